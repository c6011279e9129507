"""The lines of the user's code that an exception has passed.

A traceback holds the frames of its calls, and these hold the values of every local variable. What is recorded here is
only where each frame was: so it may be kept, sent to another process and shown to others.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, TracebackType

from workbench.origin import cell_name, is_cell, is_ours, line_text
from workbench.printable import printable
from workbench.redaction import redacted

FIRST, LAST = 4, 12
"""How many lines are kept from each end of a long traceback, such as that of an endless recursion."""
_FILE_MAX = 300
_NAME_MAX = 100
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")  # noqa: PTH118, PTH120  compared with files of code
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SHELL = f"{os.sep}IPython{os.sep}core{os.sep}"
_COMPILED = (".pyx", ".pxi", ".pxd")
_TRACE_OF = BaseException.__dict__["__traceback__"]  # a user's class may have attributes of that name


@dataclass(frozen=True, slots=True)
class Line:
    """One call that an exception has passed.

    Attributes:
        file: of the code.
        line: its number, from 1.
        function: the function's qualified name.
        text: of the line, at most 120 characters, without secrets.
        columns: where the failing part of the line begins and ends, in bytes; None: not known.
    """

    file: str
    line: int
    function: str
    text: str
    columns: tuple[int, int] | None = None

    def __str__(self) -> str:
        file = f'File "{printable(redacted(self.file))[:_FILE_MAX]}"'
        place = f"C{cell_name(self.file)[1:]}" if is_cell(self.file) else file
        head = f"  {place}, line {self.line}, in {printable(self.function)[:_NAME_MAX]}"
        return f"{head}\n    {printable(self.text)}" if self.text else head


def lines_of(error: BaseException) -> tuple[Line, ...]:
    """The user's lines that an exception has passed, outermost first; empty if it has passed none.

    They begin with the first call of the user's code, and include the libraries that it calls, but not this package,
    nor IPython, which replaces `open` in a notebook.

    Example:
        >>> lines_of(ValueError("never raised"))
        ()
    """
    calls: list[tuple[CodeType, int, int]] = []
    trace: TracebackType | None = _TRACE_OF.__get__(error)
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if not (is_ours(file) or _SHELL in file) and (calls or not is_library(file)):
            calls.append((code, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    if len(calls) > FIRST + LAST:
        calls[FIRST:-LAST] = ()
    return tuple(_line(*call) for call in calls)


@lru_cache(1_024)
def _line(code: CodeType, instruction: int, number: int) -> Line:
    line, last, begin, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    known = line == last == number and begin is not None and end is not None
    columns = (begin, end) if known else None
    name = getattr(code, "co_qualname", code.co_name)
    return Line(code.co_filename, number, name, line_text(code.co_filename, number), columns)  # type: ignore[arg-type]


@lru_cache(1_024)
def is_library(file: str) -> bool:
    """Whether a file of code belongs to Python or an installed package."""
    if file.startswith("<"):
        return file.startswith(("<frozen ", "<__array_function__"))
    if file.endswith(_COMPILED):
        return True
    place = str(Path(file).absolute())
    return place.startswith(_STANDARD) or any(folder in place for folder in _INSTALLED)
