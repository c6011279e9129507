"""Where a record stands in its source, found only when somebody asks: for a dead letter, or for an error.

Nothing travels with the records. What a source's task has handed to its chain is worked off before it reads on, so a
row of a batch can be followed upwards: each operator above says which row of its own input it came of, and the source
where that stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.operators.contract.base import Operator


@dataclass(slots=True)
class Reading:
    """What a source's task has handed to its chain and is being worked off.

    Attributes:
        where: tells in words where a row stands of those that were read together; None: nothing is worked off, or the
            source does not tell.
        first: the row of those with which the batch in the chain begins.
    """

    where: Callable[[int], str] | None = None
    first: int = 0


class Positions:
    """Where the rows stand in their source that are coming into an operator at this moment.

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
        """In the source's words; None where it is not known."""
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
        """Of the rows that this operator emits to its main output."""
        return Positions(self._reading, (operator, *self._above))
