"""A source whose rows are computed from their numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import as_given, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import BlockReader, Blocks, check_event_time, check_rate
from workbench.errors import RecordError, SettingError
from workbench.raised import PASSING, described, shown


@dataclass(frozen=True)
class GeneratorSource(Source):
    """Rows computed by ``function(offset, n)``: those with the numbers [offset, offset + n), as one batch.

    The function must return the same row for the same number every time, in any batch: then the source can be read
    again from any position, and its rows do not depend on the parallelism. It is called from several threads.

    Args:
        function: from (offset, n) to a record batch of n rows with `schema`.
        schema: of the rows.
        event_time: column that carries event time (timestamp, date, or int64 microseconds), or None.
        rate: records per second over the whole source; None for full speed.
        limit: number of rows; None for an unbounded source.
        splits: how many subtasks can share the reading.

    Raises:
        PlanError: no such event-time column, or not of a time type.
        SettingError: no function of (offset, n), such as a Python generator; a rate, limit or number of splits that
            is not above zero.

    Example:
        >>> schema = pa.schema([("n", pa.int64())])
        >>> source = GeneratorSource(
        ...     lambda first, n: pa.record_batch([pa.array(range(first, first + n))], schema=schema), schema, limit=10
        ... )
        >>> source.describe()
        '<lambda>, 10 rows'
    """

    function: Callable[[int, int], pa.RecordBatch]
    schema: pa.Schema
    event_time: str | None = None
    rate: float | None = None
    limit: int | None = None
    splits: int = 4
    kind: ClassVar[str] = "generator"

    def __post_init__(self) -> None:
        _check_function(self.function)
        check_event_time(self.schema, self.event_time)
        check_rate(self.rate)
        whole_number(self.splits, "splits")
        if self.limit is not None:
            whole_number(self.limit, "limit")

    @property
    def bounded(self) -> bool:
        """Whether it has a limit."""
        return self.limit is not None

    def describe(self) -> str:
        return self._name() if self.limit is None else f"{self._name()}, {self.limit:,} rows"

    def create(self) -> SourceReader:
        blocks = Blocks.dealt(self.splits, self.limit, self.rate)
        return BlockReader(blocks, self._fetch, self.event_time, self.rate, self.kind)

    def _name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def _fetch(self, offset: int, count: int) -> pa.RecordBatch:
        try:
            batch = self.function(offset, count)
        except PASSING:
            raise
        except BaseException as error:
            rows = f"row {offset}" if count == 1 else f"rows {offset} to {offset + count - 1}"
            raise RecordError(
                f"the generator function {self._name()!r} failed for {rows}: {described(error)}"
            ) from error
        if not isinstance(batch, pa.RecordBatch) or batch.num_rows != count or batch.schema != self.schema:
            found = (
                f"{batch.num_rows} rows of {batch.schema.names}"
                if isinstance(batch, pa.RecordBatch)
                else shown(batch, 80)
            )
            raise RecordError(
                f"the generator function {self._name()!r} returned {found} where {count} rows of {self.schema.names}"
                " were asked for: return a pyarrow.RecordBatch of the declared schema"
            )
        return batch


def _check_function(function: object) -> None:
    """Reject what cannot be asked for any rows again, as a recovery does."""
    fact = "a Python generator" if inspect.isgenerator(function) else as_given(function)
    if inspect.isgeneratorfunction(function):
        fact = f"{function.__name__}, which makes a Python generator"
    elif callable(function):
        try:
            inspect.signature(function).bind(0, 1)
        except TypeError:
            fact = f"{getattr(function, '__name__', fact)}{inspect.signature(function)}"
        except ValueError:  # of a builtin, whose arguments are not known
            return
        else:
            return
    raise SettingError(
        f"the function of the source is {fact}: pass a function of (first, n) that returns a pyarrow.RecordBatch of n "
        "rows, so that rows can be read again after a failure, or stream a finite list of dicts with "
        "wb.Stream.from_table(pyarrow.Table.from_pylist(rows))"
    )
