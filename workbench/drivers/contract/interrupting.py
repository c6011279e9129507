"""Raises an exception in another thread when it next runs Python code, as Flink's cancellation interrupts a task.

CPython remembers in the interpreter that an exception waits for some thread, and forgets it only when a thread raises
one. Meanwhile every thread looks for it again and again, and in CPython 3.11 a thread that is traced or profiled, as by
a debugger, does nothing else any more. The other thread may be in a call that never returns, or has ended. So the
thread that asks raises an exception of its own, which it catches. The other one sees its own nevertheless: it looks
whenever it is told to let other threads run.
"""

from __future__ import annotations

import ctypes
import threading
import time

from workbench.raised import EndedFromOutside

_note = ctypes.pythonapi.PyThreadState_SetAsyncExc
_note.argtypes = (ctypes.c_ulong, ctypes.py_object)


class _Settled(EndedFromOutside):
    """Raised and caught in the thread that has interrupted another one."""


def interrupt(thread: int | None, kind: type[EndedFromOutside] = EndedFromOutside) -> None:
    """Raise an exception in another thread; drop one that this thread has not seen yet.

    Args:
        thread: its identity; None: only drop what waits for this thread.
        kind: of the exception.

    Example:
        >>> interrupt(None)  # nothing waits
    """
    mine = threading.get_ident()
    other: BaseException | None = None
    if thread is not None:
        _note(thread, kind)
    while True:
        try:
            _note(mine, _Settled)  # no function of Python is called before: it might not come back
            while True:
                time.sleep(0)
        except _Settled:
            break
        except BaseException as error:  # noqa: BLE001  Ctrl-C, which is raised again when nothing waits any more
            other = error
    if other is not None:
        raise other
