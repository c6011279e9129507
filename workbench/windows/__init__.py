"""Windows as plain data and pure functions: which windows a record belongs to, when they fire, what they keep.

An *assigner* says to which windows a time belongs (`Tumbling`, `Sliding`, `Session`, `CountWindows`, `GlobalWindow`), a
*trigger* when a window fires (`Schedule`, or a user's `Trigger`), an *evictor* which of its records count then. What
does not belong here: state and firing; those are ``operators/window_*.py``.

Belongs here: which windows a record belongs to, when they fire, and what they keep.
Does not: the operators (``operators/windows``).
"""

from workbench.windows.assigner import WindowAssigner
from workbench.windows.count import CountWindows, count_sliding, count_tumbling
from workbench.windows.evictor import Evictor, KeepLast, KeepSince, keep_last, keep_since
from workbench.windows.global_window import GlobalWindow, global_window
from workbench.windows.schedule import (
    AT_END,
    Schedule,
    TimeKind,
    early,
    on_count,
    on_event_time,
    on_processing_time,
    purging,
)
from workbench.windows.session import Session, session
from workbench.windows.sliding import Sliding, sliding
from workbench.windows.trigger import Action, Trigger, TriggerContext
from workbench.windows.tumbling import Tumbling, tumbling
from workbench.windows.window import Window

__all__ = [
    "AT_END",
    "Action",
    "CountWindows",
    "Evictor",
    "GlobalWindow",
    "KeepLast",
    "KeepSince",
    "Schedule",
    "Session",
    "Sliding",
    "TimeKind",
    "Trigger",
    "TriggerContext",
    "Tumbling",
    "Window",
    "WindowAssigner",
    "count_sliding",
    "count_tumbling",
    "early",
    "global_window",
    "keep_last",
    "keep_since",
    "on_count",
    "on_event_time",
    "on_processing_time",
    "purging",
    "session",
    "sliding",
    "tumbling",
]
