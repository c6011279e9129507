"""A sink that prints rows, each with the number of its subtask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from workbench.arguments import whole_number
from workbench.connectors.contract.base import Sink
from workbench.elements import Records
from workbench.errors import SettingError
from workbench.operators.changelogs.row_kinds import KIND, NAMES
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.python_rows import python_rows


def _write_to_stdout(text: str) -> None:
    sys.stdout.write(text)


@dataclass(frozen=True, slots=True)
class PrintSink(Sink):
    """Prints rows as ``1> origin=JFK, flights=3``, where 1 is the first subtask, as Flink does.

    Source: Flink's ``PrintSink``.

    Args:
        limit: rows that each subtask prints before it announces that it stops; None for all.
        write: receives each text with its line ends; by default it goes to the current standard output.
        name: of the sink in graphs.

    Raises:
        SettingError: a negative limit.

    Example:
        >>> text = []
        >>> sink = PrintSink(limit=2, write=text.append)
        >>> job = wb.Stream.from_table(pa.table({"n": [1, 2, 3]})).sink_to(sink).run("print")
        >>> job.wait("60s"), "".join(text).splitlines()
        ('FINISHED', ['1> n=1', '1> n=2', '1> ... further rows are not printed (limit=2)'])
    """

    limit: int | None = None
    write: Callable[[str], object] = _write_to_stdout
    name: str = "print"

    def __post_init__(self) -> None:
        if self.limit is not None and whole_number(self.limit, "limit", -(2**63)) < 0:
            raise SettingError(f"limit is {self.limit}: write a number of rows, at least 0, or None to print all")

    def describe(self) -> str:
        return "all rows" if self.limit is None else f"first {self.limit} rows of each subtask"

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> Self:
        """Itself: it prints changes with their kinds, as Flink does: ``1> +U key=7, n=2``."""
        return self

    def create(self, schema: pa.Schema) -> Operator:
        return _PrintSinkLogic(self)


class _PrintSinkLogic(Operator):
    def __init__(self, spec: PrintSink) -> None:
        self._spec = spec
        self._left = spec.limit
        self._prefix = "1> "

    def open(self, context: OperatorContext) -> None:
        self._prefix = f"{context.subtask + 1}> "

    def process(self, records: Records, port: int, out: Output) -> None:
        if self._left is not None and self._left < 0:
            return
        rows = records.batch if self._left is None else records.batch.slice(0, self._left)
        shown = map(_shown, python_rows(rows))
        lines = [f"{self._prefix}{row}\n" for row in shown]
        if self._left is not None:
            hidden = len(records) - rows.num_rows
            self._left = -1 if hidden else self._left - rows.num_rows
            if hidden:
                lines.append(f"{self._prefix}... further rows are not printed (limit={self._spec.limit})\n")
        if lines:
            self._spec.write("".join(lines))


def _shown(row: dict[str, object]) -> str:
    """A row as text; that of a changelog begins with its kind."""
    kind = row.pop(KIND, None)
    text = ", ".join(f"{name}={value}" for name, value in row.items())
    return f"{NAMES[kind]} {text}" if isinstance(kind, int) else text
