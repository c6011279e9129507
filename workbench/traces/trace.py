"""An exception and its causes with the user's lines that they have passed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any

from workbench.raised import described
from workbench.traces.lines import Line, lines_of

BYTES_MAX = 4_000
"""Of the text."""
_CAUSES_MAX = 5
_LINE_MAX = 500
_CAUSE_OF: Any = BaseException.__dict__["__cause__"]
_CONTEXT_OF: Any = BaseException.__dict__["__context__"]
_SUPPRESSED: Any = BaseException.__dict__["__suppress_context__"]


@dataclass(frozen=True, slots=True)
class Trace:
    """An exception and its causes, each with the user's lines that it has passed.

    Attributes:
        parts: the exception first; those without such lines are included.
        text: of all of them, at most 4 kB in UTF-8, each line as in Python's tracebacks, outermost first; empty: none
            of them has passed the user's code. It has no values of variables, and no secrets.

    Example:
        >>> Trace().text
        ''
    """

    parts: tuple[tuple[BaseException, tuple[Line, ...]], ...] = ()
    text: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Trace:
        """What an exception has passed, as long as it has its traceback."""
        return cls.of_parts((each, lines_of(each)) for each in islice(_chain(error), _CAUSES_MAX))

    @classmethod
    def of_parts(cls, parts: Iterable[tuple[BaseException, tuple[Line, ...]]]) -> Trace:
        """The trace of exceptions with the lines that each has passed."""
        kept = tuple(parts)
        return cls(kept, _text(kept))

    @property
    def original(self) -> BaseException | None:
        """The exception that was raised in the user's code or in a library, and not by this package; the first one if
        there is no such; None: nothing is recorded."""
        foreign = (each for each, _ in self.parts if not type(each).__module__.startswith("workbench."))
        return next(foreign, self.parts[0][0] if self.parts else None)

    def restore(self) -> BaseException | None:
        """Give each exception a traceback of its lines, and return the `original`.

        The traceback shows what the real one shows, but its frames are new and have no variables.
        """
        for error, lines in self.parts:
            BaseException.with_traceback(error, _traceback(lines))
        return self.original


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    left: BaseException | None = error
    while left is not None and id(left) not in seen:  # causes may form a cycle
        seen.add(id(left))
        yield left
        cause = _CAUSE_OF.__get__(left)
        left = cause if cause is not None or _SUPPRESSED.__get__(left) else _CONTEXT_OF.__get__(left)


def _text(parts: Sequence[tuple[BaseException, tuple[Line, ...]]]) -> str:
    told: list[str] = []
    for error, lines in parts:
        if lines:
            told += [f"caused by {described(error)[:_LINE_MAX]}"] * bool(told)
            told += map(str, lines)
    while len(told) > 1 and _bytes(told) > BYTES_MAX:
        del told[len(told) // 2]
    return "\n".join(told).encode()[:BYTES_MAX].decode(errors="ignore")


def _bytes(told: Sequence[str]) -> int:
    return sum(len(each.encode()) + 1 for each in told)


def _traceback(lines: Sequence[Line]) -> TracebackType | None:
    trace: TracebackType | None = None
    for line in reversed(lines):
        own = _raised_at(line)
        own.tb_next = trace
        trace = own
    return trace


class _RaisedError(Exception):
    pass


def _raised_at(line: Line) -> TracebackType:
    """A traceback of one frame, which is in a line of the user's code, and runs nothing of it."""
    begin, end = line.columns or (0, len(line.text.encode()))
    place = {"lineno": line.line, "end_lineno": line.line, "col_offset": begin, "end_col_offset": end}
    tree = ast.Module([ast.Raise(ast.Name("error", ast.Load(), **place), None, **place)], [])
    code = compile(tree, line.file, "exec").replace(co_name=line.function.rpartition(".")[2])
    try:
        exec(code, {"error": _RaisedError}, {})
    except _RaisedError as error:
        made = error.__traceback__
        assert made is not None
        assert made.tb_next is not None
        return made.tb_next
    raise AssertionError("it always raises")
