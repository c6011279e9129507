"""Reads numbered rows: an Arrow table, a generator.

The rows are dealt to a fixed number of splits in blocks, like cards: block 0 to split 0, block 1 to split 1, and so on.
So splits stay roughly aligned in event time, and each row belongs to the same split at every parallelism. A position
is the number of rows read from a split, so a snapshot can be restored at any parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.arguments import as_given
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil, counted
from workbench.connectors.contract.rate import Rate
from workbench.connectors.contract.throttle import Throttle
from workbench.elements import Records, holds_times
from workbench.errors import CheckpointError, PlanError, SettingError, unknown
from workbench.operators.contract.base import Json, OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import positions_in, value_in

_FIRST_ROWS = 1_000
_UNITS = {"ms": 1_000, "s": 1}
_UNIT_NAMES = {"ms": "milliseconds", "s": "seconds"}
_CENTURY = 946_684_800, 4_102_444_800
"""The seconds from 1970 to 2000 and to 2100."""
_BLOCK_ROWS_MAX = 1_048_576
_POSITION_MAX = 2**53
_SLOW_BLOCK_ROWS_MIN = 256  # the rate may be raised while the job runs, and a read takes one block at most
_BLOCK_US = 50_000
_BLOCKS_PER_SPLIT = 16


@dataclass(frozen=True, slots=True)
class Blocks:
    """How numbered rows are dealt to splits.

    Attributes:
        splits: number of splits.
        block: rows per block.
        total: number of rows, None when they never end.
    """

    splits: int
    block: int
    total: int | None

    @staticmethod
    def dealt(splits: int, total: int | None, rate: float | None = None, most: int = _BLOCK_ROWS_MAX) -> Blocks:
        """Blocks as large as the largest read; smaller ones for few rows, so that each split gets its share, or for a
        low rate, so that the splits' rows stay close to each other in time.

        Args:
            splits: number of splits.
            total: number of rows, None when they never end.
            rate: records per second of the whole source; None for full speed.
            most: the maximum number of rows per block.
        """
        block = most
        if total is not None:
            block = min(block, max(1, total // (splits * _BLOCKS_PER_SPLIT)))
        if rate is not None:
            block = min(block, max(_SLOW_BLOCK_ROWS_MIN, int(rate * _BLOCK_US / 1_000_000)))
        return Blocks(splits, block, total)

    def row(self, split: int, position: int) -> int:
        """The number of the row at `position` of `split`."""
        return (position // self.block * self.splits + split) * self.block + position % self.block

    def room(self, split: int, position: int) -> int:
        """The number of rows from `position` to the end of its block or of all rows; 0 when the split is exhausted."""
        left = self.block - position % self.block
        return left if self.total is None else max(0, min(left, self.total - self.row(split, position)))


def check_event_time(schema: pa.Schema, column: str | None) -> None:
    """Reject an event-time column that does not exist, occurs twice or does not hold times.

    Raises:
        PlanError: with the column's type, or the nearest name.
    """
    if column is None:
        return
    if column not in schema.names:
        raise PlanError(unknown("column", column, schema.names))
    if (several := schema.names.count(column)) > 1:
        raise PlanError(f"there are {several} columns {column!r}: give each a different name")
    kind = schema.field(column).type
    if not holds_times(kind):
        raise PlanError(
            f"the event-time column {column!r} has type {kind}: it must be a timestamp,"
            " a date, or int64 microseconds since 1970"
        )


def check_microseconds(column: pa.Array | pa.ChunkedArray, name: str) -> None:
    """Reject the first int64 event times of a source if they count something else than microseconds: all lie in 1970,
    and as milliseconds or seconds they would lie in this century.

    Args:
        column: the first rows' values, of any type.
        name: of the column.

    Raises:
        PlanError: names the unit that they seem to have.

    Example:
        >>> check_microseconds(pa.array([1_767_225_600_000]), "stamp")
        Traceback (most recent call last):
        ...
        workbench.errors.PlanError: the event-time column 'stamp' is int64, which counts microseconds ...
    """
    times = column.slice(0, _FIRST_ROWS)
    if times.type != pa.int64() or times.null_count == len(times):
        return
    found = pc.min_max(times).as_py()
    for unit, per_second in _UNITS.items():
        if _CENTURY[0] * per_second <= found["min"] and found["max"] < _CENTURY[1] * per_second:
            raise PlanError(
                f"the event-time column {name!r} is int64, which counts microseconds since 1970, and its first values, "
                f"such as {found['min']}, lie in 1970: if they count {_UNIT_NAMES[unit]}, convert the column to "
                f"pa.timestamp(unit='{unit}') (timestamps in JSON take unit='{unit}')"
            )


def check_rate(rate: float | None) -> None:
    """Reject a rate that is not above zero.

    Raises:
        SettingError: with the value.
    """
    if rate is not None and not (isinstance(rate, Real) and not isinstance(rate, bool) and 0 < rate < float("inf")):
        raise SettingError(f"rate is {as_given(rate)}: write records per second, above zero, or None for full speed")


class BlockReader(SourceReader):
    """Reads the splits of one subtask in the order of row numbers: at parallelism 1 the rows keep their order.

    Args:
        blocks: how rows are dealt to splits; split i is read by subtask i modulo the parallelism.
        fetch: returns the rows [first, first + n) as one batch; called with rows of one block only.
        event_time: column of the event times, or None.
        rate: records per second of the whole source, shared equally among its splits; None for no limit.
        name: the name of the rows, for positions: ``table, row 17``.

    Attributes:
        rate: the present rate.
    """

    shares_event_time = True

    def __init__(
        self,
        blocks: Blocks,
        fetch: Callable[[int, int], pa.RecordBatch],
        event_time: str | None,
        rate: float | None,
        name: str,
    ) -> None:
        self._rows = f"{name}, row"
        self._blocks = blocks
        self._fetch = fetch
        self._event_time = event_time
        self.rate = Rate(rate)
        self._positions: dict[int, int] = {}
        self._live: tuple[str, ...] | None = None  # None: not known at present
        self._row, self._split, self._room = 0, 0, 0

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._context = context
        self._deal()

    def _deal(self) -> None:
        """Acquire this subtask's splits, each from its beginning."""
        blocks, context = self._blocks, self._context
        used = [split for split in range(blocks.splits) if blocks.room(split, 0)]
        own = [split for split in used if split % context.parallelism == context.subtask]
        self._positions = dict.fromkeys(own, 0)
        self._look_again()
        self._throttle = Throttle(Fraction(len(own), max(1, len(used))))

    def _look_again(self) -> None:
        """Positions have changed: determine which splits are left, and which row is next."""
        self._live = None
        self._room = 0

    def splits(self) -> Sequence[str]:
        if self._live is None:
            positions = self._positions.items()
            self._live = tuple(str(split) for split, position in positions if self._blocks.room(split, position))
        return self._live

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._room and not self._next_block():
            return Exhausted()
        allowed = self._throttle.allow(min(self._room, max_records), self.rate, self._clock.now_us())
        if isinstance(allowed, WaitUntil):
            return allowed
        batch = self._fetch(self._row, allowed)
        if self._row == 0 and self._event_time is not None:
            check_microseconds(batch.column(self._event_time), self._event_time)
        split, where = self._split, counted(self._rows, self._row)
        self._positions[split] += allowed
        self._row += allowed
        self._room -= allowed
        if not self._room:
            self._look_again()
        records = Records.timed(batch, self._event_time)
        return Fetched(records, str(split), None, self._throttle.look_again_us, where, self._throttle.due_us)

    def _next_block(self) -> bool:
        """Move to the block with the lowest remaining row; returns whether there is one."""
        blocks = self._blocks
        ready = [
            (blocks.row(split, position), split, room)
            for split, position in self._positions.items()
            if (room := blocks.room(split, position))
        ]
        if not ready:
            return False
        self._row, self._split, self._room = min(ready)
        return True

    @property
    def rows_read(self) -> int:
        """The number of rows read so far, over all splits."""
        return sum(self._positions.values())

    def snapshot(self) -> Snapshot:
        return {
            "positions": {str(split): position for split, position in self._positions.items()},
            "blocks": self._layout(),
        }

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            layout = value_in(snapshot, "blocks", dict[str, Any]) if "blocks" in snapshot else self._layout()
            self._keep_block(layout)
            if layout != self._layout():
                raise CheckpointError(
                    f"the source's rows were distributed as {layout} and are now distributed as {self._layout()}: "
                    "restore with the same data and number of splits, or start afresh"
                )
            most = _POSITION_MAX if self._blocks.total is None else self._blocks.total
            for split, position in positions_in(snapshot, most).items():
                if split in self._positions:
                    self._positions[split] = position
        self._look_again()

    def _keep_block(self, layout: dict[str, Any]) -> None:
        """Keep the block size that positions were counted with; it depends on the rate at the job's start."""
        block = layout.get("block")
        if block != self._blocks.block and layout == {**self._layout(), "block": block} and type(block) is int:
            if not 0 < block <= _BLOCK_ROWS_MAX:
                raise ValueError(f"blocks has {block} rows per block")
            self._blocks = Blocks(self._blocks.splits, block, self._blocks.total)
            self._deal()

    def close(self) -> None:
        self._positions = {}
        self._look_again()

    def _layout(self) -> dict[str, Json]:
        return {"splits": self._blocks.splits, "block": self._blocks.block, "rows": self._blocks.total}
