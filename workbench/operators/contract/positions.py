"""The position of a record in its source, computed only on request: for a dead letter, or for an error.

Nothing is sent with the records. A source's task processes a batch completely before it reads on, so a row can be
traced
back: each operator above says which row of its own input it came from, and the source says where that row is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.operators.contract.base import Operator


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a position; None: its source has no such part.

    Attributes:
        source: the kind of the source, such as ``kafka``.
        topic: the topic, stream or address that was read.
        partition: of the topic.
        offset: the offset or sequence number.
        id: the ID, of sources whose positions are text.
        path: of the file.
        line: of the file, from 1.
    """

    source: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    id: str | None = None
    path: str | None = None
    line: int | None = None


class Position(str):
    """The position of a record in its source: the text that is shown, with its parts.

    A source of your own may return plain text instead, which has no parts.

    Attributes:
        parts: of the position.

    Example:
        >>> found = Position("data.csv, line 17", Parts("files", path="data.csv", line=17))
        >>> found, found.parts.line
        ('data.csv, line 17', 17)
    """

    __slots__ = ("parts",)
    parts: Parts

    def __new__(cls, text: str, parts: Parts) -> Position:
        """Join the text and its parts."""
        made = super().__new__(cls, text)
        made.parts = parts
        return made


@dataclass(slots=True)
class Reading:
    """The rows that a source's task has passed to its chain and that are being processed.

    Attributes:
        where: describes the position of a row among those that were read together; None: nothing is being processed, or
            the source does not know.
        first: the row among those with which the batch in the chain begins.
    """

    where: Callable[[int], str] | None = None
    first: int = 0


class Positions:
    """The positions in the source of the rows that currently arrive at an operator.

    Args:
        reading: of the task's source.
        above: the operators between it and this one, the nearest first.

    Example:
        >>> reading = Reading("data.csv, row {}".format)
        >>> Positions(reading)(17)
        'data.csv, row 17'
    """

    __slots__ = ("_above", "_reading")

    def __init__(self, reading: Reading, above: tuple[Operator, ...] = ()) -> None:
        self._reading = reading
        self._above = above

    def __call__(self, row: int) -> str | None:
        """The position in the source's terms; None where it is not known."""
        where = self._reading.where
        if where is None:
            return None
        for operator in self._above:
            parent = operator.parent_of(row)
            if parent is None:
                return None
            row = parent
        return where(self._reading.first + row)

    def behind(self, operator: Operator) -> Positions:
        """The positions of the rows that this operator emits to its main output."""
        return Positions(self._reading, (operator, *self._above))
