"""Tasks whose step does not end: a user's function, a sink or a source has been called and has not returned.

Nothing can end a call from outside. What can be done is to say which one it is, and to have it raise as soon as it
comes back to Python, as Flink's cancellation interrupts a task.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterable
from types import FrameType

from workbench.durations import format_instant
from workbench.origin import Origin, is_ours, line_text
from workbench.raised import EndedFromOutside
from workbench.runtime.tasks.task import Task

NOTEWORTHY_US = 2_000_000
"""A step that has taken so long is worth a word."""
LONG_WRITE_US = 10_000_000
"""So is a file that has been written for so long."""


class LeftBehind(EndedFromOutside):
    """Raised on a thread that nobody waits for any more; no Exception, so that a function's retries let it pass."""


def interrupt(thread: int) -> None:
    """Have the thread of this identity, which must not have ended, raise `LeftBehind` when it is in Python next."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(LeftBehind))


def told(tasks: Iterable[Task], now_us: int) -> str:
    """Which of the tasks has been in one step for longest, in which operator, since when and where; empty: none is."""
    stalled = [task for task in tasks if task.load.stepping and now_us - task.load.last_us >= NOTEWORTHY_US]
    if not stalled:
        return ""
    task = min(stalled, key=lambda task: task.load.last_us)
    uid, origin = _place(task)
    since = format_instant(task.load.last_us // 1_000_000 * 1_000_000)
    where = "" if origin is None else f", at {origin}"
    return (
        f"{task.name} has been in one call of {uid!r} since {since} UTC, "
        f"for {(now_us - task.load.last_us) // 1_000_000} s{where}"
    )


def told_of_writer(thread: threading.Thread | None, since_us: int | None, now_us: int) -> str:
    """That what is written to storage has taken long, since when and where; empty: it has not.

    Args:
        thread: that writes.
        since_us: when its call began; None: it is in none.
        now_us: by the same clock.
    """
    if thread is None or thread.ident is None or since_us is None or now_us - since_us < LONG_WRITE_US:
        return ""
    frame = sys._current_frames().get(thread.ident)
    origin: Origin | None = None
    while frame is not None and not is_ours(frame.f_code.co_filename):  # a file system of the user's
        origin = Origin(frame.f_code.co_filename, frame.f_lineno, line_text(frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    since = format_instant(since_us // 1_000_000 * 1_000_000)
    where = "" if origin is None else f", at {origin}"
    return (
        f"the storage of the checkpoints has been in one call since {since} UTC, "
        f"for {(now_us - since_us) // 1_000_000} s{where}"
    )


def _place(task: Task) -> tuple[str, Origin | None]:
    """The operator that is being called in a task's step, and the line of the user's code that the call has come to."""
    uids = {id(link.operator): link.uid for link in task.links}
    origin: Origin | None = None
    uid: str | None = None
    for frame in sys._current_frames().values():
        inner = _within_step(frame, task)
        for each in inner:
            if uid is None:
                uid = uids.get(id(each.f_locals.get("self")))
            file, line = each.f_code.co_filename, each.f_lineno
            if not is_ours(file) and (text := line_text(file, line)):  # code that was made for it has no text
                origin = Origin(file, line, text)
        if inner:
            break
    return uid or task.links[0].uid, origin


def _within_step(frame: FrameType | None, task: Task) -> list[FrameType]:
    """The calls within this task's step, the innermost first; none, if this thread is not in it."""
    inner: list[FrameType] = []
    while frame is not None:
        if frame.f_code is Task.step.__code__ and frame.f_locals.get("self") is task:
            return inner
        inner.append(frame)
        frame = frame.f_back
    return []
