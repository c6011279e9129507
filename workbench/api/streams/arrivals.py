"""The time at which records arrive, for recordings of live feeds."""

from __future__ import annotations

import pyarrow as pa

from workbench.clock import SystemClock
from workbench.connectors.replay.log import ARRIVED
from workbench.errors import PlanError

_KIND = pa.timestamp("us", "UTC")


def with_arrival(schema: pa.Schema) -> pa.Schema:
    """A schema with the column of arrival times.

    Raises:
        PlanError: it has a column of that name.

    Example:
        >>> with_arrival(pa.schema({"n": pa.int64()})).names
        ['n', 'arrived_at']
    """
    if ARRIVED in schema.names:
        raise PlanError(f"the stream already has a column {ARRIVED!r}, which a recording adds: rename it before")
    return schema.append(pa.field(ARRIVED, _KIND))


def arrived(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the present time in each row."""
    now = pa.array([SystemClock().now_us()] * batch.num_rows, pa.int64()).cast(_KIND)
    return pa.RecordBatch.from_arrays([*batch.columns, now], schema=with_arrival(batch.schema))
