"""Runs functions that an operator must not wait for: on threads and an event loop that belong to one job."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from workbench.errors import as_error
from workbench.operators.contract.executor import Answer, Given, Inline

_Call = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


class ThreadedExecutor:
    """Calls plain functions on threads and coroutine functions on one event loop.

    Threads are started on demand, one for each simultaneous call (the caller limits their number), and are daemons: a
    call that never returns does not keep the process alive.

    Args:
        name: of the job; the threads are named after it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._threads = 0
        self._unfinished = 0  # calls that wait or run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        """Start a call of a function; returns at once."""
        if inspect.iscoroutinefunction(function):
            return asyncio.run_coroutine_threadsafe(_told(function(*arguments)), self._running_loop())
        future: Future[Any] = Future()
        with self._lock:
            self._unfinished += 1
            if self._unfinished > self._threads and not self._closed:
                self._threads += 1
                self._start(self._run, str(self._threads))
        self._calls.put((future, function, arguments))
        return future

    def close(self) -> None:
        """Let the threads end; running calls are not interrupted, and their results are dropped."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._calls.put(None)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _start(self, target: Callable[[], None], suffix: str) -> None:
        threading.Thread(target=target, name=f"{self._name}/calls-{suffix}", daemon=True).start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function, arguments = call
            try:
                result = function(*arguments)
                future.set_result(asyncio.run(result) if inspect.iscoroutine(result) else result)
            except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
                future.set_exception(error)
            with self._lock:
                self._unfinished -= 1

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = self._loop = asyncio.new_event_loop()
                self._start(lambda: _run_loop(loop), "loop")
            return self._loop


class SteppedExecutor:
    """Calls functions within the step, so that a stepping job advances only when you step it."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        """Call a function, and wait for it if it is a coroutine function."""
        if not inspect.iscoroutinefunction(function):
            return Inline().submit(function, *arguments)
        answer: list[Answer] = []
        # On a separate thread, because the notebook's cell already runs within an event loop.
        thread = threading.Thread(target=lambda: answer.append(_outcome(function(*arguments))), daemon=True)
        thread.start()
        thread.join()
        return answer[0]

    def close(self) -> None:
        """There is nothing to end."""


async def _told(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine's result; an exception that would end the loop, and leave all other calls pending, becomes an
    error."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise as_error(error) from error


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))  # lets the cancelled ones end
    loop.close()


def _outcome(coroutine: Coroutine[Any, Any, Any]) -> Answer:
    try:
        return Given(asyncio.run(coroutine))
    except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
        return Given(error=as_error(error))
