"""The user's lines in the text of a traceback, as another process has written it."""

from __future__ import annotations

import builtins
import re

from workbench.origin import is_ours
from workbench.raised import MESSAGE_MAX, one_line
from workbench.redaction import redacted
from workbench.traces.lines import FIRST, LAST, Line, is_library
from workbench.traces.trace import Trace

TRACEBACK = "Traceback (most recent call last):\n"
_CALL = re.compile(
    r'^ +File "([^"\n]{1,400})", line (\d{1,9}), in ([^\n]{1,200})(?:\n {4}(?! *File ")([^\n]*))?', re.MULTILINE
)
_ENDS = re.compile(r"^(?:\w{1,100}\.){0,9}(\w{1,100})(?:: ([^\n]*))?$", re.MULTILINE)
_SENT = re.compile(r"[/\\]workbench[/\\](?:\w+[/\\])+\w+\.py$")
_TEXT_MAX = 200_000
_LINE_MAX = 120


def told_trace(text: str) -> Trace:
    """The exceptions in a text that have passed the user's code, innermost first.

    Each is an exception of Python's class of that name, or a RuntimeError if it is none of Python's.

    Args:
        text: with tracebacks as Python writes them, each from the beginning of a line.

    Example:
        >>> found = told_trace(TRACEBACK + '  File "/jobs/job.py", line 3, in rate\\n    return 1 / n\\nValueError: no')
        >>> found.original, found.text.splitlines()[-1]
        (ValueError('no'), '    return 1 / n')
    """
    parts: dict[tuple[tuple[str, int], ...], tuple[Exception, tuple[Line, ...]]] = {}
    for section in text[:_TEXT_MAX].split(TRACEBACK)[1:]:
        lines = _lines(section)
        if lines and (end := _ENDS.search(section)) is not None:
            # PySpark ends its own traceback with the one that it tells of, and so names its lines twice.
            parts[tuple((line.file, line.line) for line in lines)] = (_error(end[1], end[2] or ""), lines)
    return Trace.of_parts(parts.values())


def _lines(section: str) -> tuple[Line, ...]:
    found: list[Line] = []
    for file, number, name, code in _CALL.findall(section):
        ours = is_ours(file) or _SENT.search(file) is not None
        if not ours and (found or not is_library(file)):
            found.append(Line(file, int(number), name, redacted(code.strip(), code=True)[:_LINE_MAX]))
    if len(found) > FIRST + LAST:
        found[FIRST:-LAST] = ()
    return tuple(found)


def _error(kind: str, message: str) -> Exception:
    known = getattr(builtins, kind, None)
    message = one_line(message, MESSAGE_MAX)
    if (
        isinstance(known, type)
        and issubclass(known, Exception)
        and not issubclass(known, ExceptionGroup | UnicodeError)
    ):
        return known(message)
    return RuntimeError(f"{kind}: {message}")
