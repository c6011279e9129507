"""Windows: the records that belong together, and when their results are emitted.

Windows are plain data and pure functions. An *assigner* determines the windows of a time, a *trigger* when a window
fires, an *evictor* which of its records count when it fires.

Belongs here: the windows of a record, when they fire, and what they keep.
Does not: the operators (``operators/windows``).
"""

from workbench.windows.assigner import WindowAssigner
from workbench.windows.count import count_sliding, count_tumbling
from workbench.windows.cumulative import cumulative
from workbench.windows.evictor import Evictor, keep_last, keep_since
from workbench.windows.global_window import global_window
from workbench.windows.session import session
from workbench.windows.sliding import sliding
from workbench.windows.tumbling import tumbling
from workbench.windows.window import Window

__all__ = [
    "Evictor",
    "Window",
    "WindowAssigner",
    "count_sliding",
    "count_tumbling",
    "cumulative",
    "global_window",
    "keep_last",
    "keep_since",
    "session",
    "sliding",
    "tumbling",
]


def __dir__() -> list[str]:
    """The names for users: completion shows these and not the modules behind them."""
    return __all__
