"""Distributes work among processes that end with this one, however it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_processes(
    jobs: int, work: Callable[[Piece], Result], pieces: Sequence[Piece], *, at_once: int = 1
) -> Iterator[Result]:
    """The results of `work` for each piece, in order, from `jobs` processes.

    If the caller stops early (an interrupt, a failure), it does not wait for work in progress: the processes are ended.
    Ctrl-C and the end of a terminal reach every process in it: only this one handles them.

    Args:
        jobs: number of processes; 1: only this one.
        work: a function that can be sent to another process.
        pieces: its arguments.
        at_once: how many pieces a process takes at a time.
    """
    if jobs == 1:
        yield from map(work, pieces)
        return
    others = set(active_children())
    with _heard_here_alone():  # this starts Python's resource tracker, which unblocks SIGINT
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent)
    finished = False
    due: deque[Future[list[Result]]] = deque()
    try:
        for at in range(0, len(pieces), at_once):
            with _heard_here_alone():
                due.append(pool.submit(_each, work, pieces[at : at + at_once]))
            if len(due) > 2 * jobs:
                yield from due.popleft().result()
        while due:
            yield from due.popleft().result()
        finished = True
    finally:
        if not finished:  # none is canceled: when its processes end, the pool would fail on those that are
            for process in set(active_children()) - others:
                process.terminate()
        pool.shutdown()


def _each(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """What another process does."""
    return [work(piece) for piece in pieces]


@contextmanager
def _heard_here_alone() -> Iterator[None]:
    """Deliver signals of the terminal after the block, and never to processes that are started in it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
