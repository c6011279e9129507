"""A stream beside the table of the rows that it must have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import workbench as wb

SECOND = 1_000_000
NUMBERS = ("int", "float")


@dataclass(frozen=True)
class Drawn:
    """A stream, and the DuckDB table of its rows.

    The table has two columns more than the stream: ``_et``, the event time in microseconds (null: none), and ``_n``,
    the order of rows where the stream has one.

    Attributes:
        kinds: of the columns: int, float, mean (a float that is only equal up to rounding), str, bool, time, micros or
            list.
        ordered: whether it has one order, that of ``_n``.
        timed: whether its event times are known and no record is late, so that windows can follow.
    """

    stream: wb.Stream
    table: str
    kinds: dict[str, str]
    ordered: bool
    timed: bool

    def of(self, *kinds: str) -> list[str]:
        """The columns of these kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]


def listed(names: Iterable[str], table: str = "") -> str:
    """Columns as SQL lists them."""
    return ", ".join(f"{table}.{name}" if table else name for name in names)
