"""Tasks whose step does not end: a call of a user's function, a sink or a source has not returned.

A call cannot be ended from outside. But the job can report which one it is, and make it raise as soon as it returns to
Python.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from types import FrameType

from workbench.durations import format_instant
from workbench.origin import Origin, is_ours, line_text
from workbench.raised import EndedFromOutside
from workbench.runtime.tasks.task import Task

NOTEWORTHY_US = 2_000_000
"""A step that takes this long is reported."""
LONG_WRITE_US = 10_000_000
"""So is a file write."""


class LeftBehind(EndedFromOutside):
    """Raised on a thread that was left behind; not an Exception, so that a function's retries do not catch it."""


def told(tasks: Iterable[Task], now_us: int) -> str:
    """The task that has been in one step for longest, with the operator, start and place; empty: none."""
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
    """A report that a write to storage is taking long, with its start and place; empty: it is not.

    Args:
        thread: the writer's thread.
        since_us: when its call began; None: it is in none.
        now_us: the present time of the same clock.
    """
    if thread is None or thread.ident is None or since_us is None or now_us - since_us < LONG_WRITE_US:
        return ""
    frame = sys._current_frames().get(thread.ident)
    origin: Origin | None = None
    while frame is not None and not is_ours(frame.f_code.co_filename):  # a user's file system
        file, line = frame.f_code.co_filename, frame.f_lineno or 0
        origin = Origin(file, line, line_text(file, line))
        frame = frame.f_back
    since = format_instant(since_us // 1_000_000 * 1_000_000)
    where = "" if origin is None else f", at {origin}"
    return (
        f"the storage of the checkpoints has been in one call since {since} UTC, "
        f"for {(now_us - since_us) // 1_000_000} s{where}"
    )


def _place(task: Task) -> tuple[str, Origin | None]:
    """The operator that is called in a task's step, and the line of the user's code that the call has reached."""
    uids = {id(link.operator): link.uid for link in task.links}
    origin: Origin | None = None
    uid: str | None = None
    for frame in sys._current_frames().values():
        inner = _within_step(frame, task)
        for each in inner:
            if uid is None:
                uid = uids.get(id(each.f_locals.get("self")))
            file, line = each.f_code.co_filename, each.f_lineno or 0  # None between two lines
            if not is_ours(file) and (text := line_text(file, line)):  # generated code has no text
                origin = Origin(file, line, text)
        if inner:
            break
    return uid or task.links[0].uid, origin


def _within_step(frame: FrameType | None, task: Task) -> list[FrameType]:
    """The frames within this task's step, the innermost first; none, if this thread is not in it."""
    inner: list[FrameType] = []
    while frame is not None:
        if frame.f_code is Task.step.__code__ and frame.f_locals.get("self") is task:
            return inner
        inner.append(frame)
        frame = frame.f_back
    return []
