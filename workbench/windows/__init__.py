"""Window assigners: which window a record belongs to, as plain data and pure functions.

What does not belong here: state and firing; that is ``operators/window_aggregate.py``.
"""

from workbench.windows.tumbling import Tumbling, tumbling

__all__ = ["Tumbling", "tumbling"]
