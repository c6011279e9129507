"""The user's lines that an exception has passed: recorded as text, shown in errors, logs and reports.

Belongs here: choosing the user's frames of a traceback, their text, and a traceback made from them again; how a
    function of ours is called that a line has called with the wrong arguments.
Does not: the sentence of an error (``errors``, ``raised``).
"""

from workbench.traces.lines import Line, is_library, lines_of
from workbench.traces.told import told_trace
from workbench.traces.trace import Trace

__all__ = ["Line", "Trace", "is_library", "lines_of", "told_trace"]
