"""Reads a bounded source, or a recording, into one table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.clock import SystemClock, rest
from workbench.connectors.contract.base import Exhausted, Fetched, Source
from workbench.errors import HistoryError
from workbench.operators.contract.base import OperatorContext

_READ = 65_536
_REST_S_MAX = 0.05


def read_to_its_end(source: Source) -> pa.Table:
    """The records of a bounded source, in the order in which it delivers them.

    Raises:
        HistoryError: the source has no end.
        SourceError: it cannot be read.

    Example:
        >>> from workbench.connectors.tables.table_source import TableSource
        >>> read_to_its_end(TableSource(pa.table({"n": [1, 2]}))).num_rows
        2
    """
    if not getattr(source, "bounded", True):
        raise HistoryError(f"{source.describe()} has no end: create the source with bounded=True")
    clock, reader = SystemClock(), source.create()
    batches: list[pa.RecordBatch] = []
    reader.open(OperatorContext(clock=clock))
    try:
        while not isinstance(fetched := reader.poll(_READ), Exhausted):
            if isinstance(fetched, Fetched):
                batches.append(fetched.records.batch)
            elif fetched.time_us is not None:
                rest(min(max(fetched.time_us - clock.now_us(), 0) / 1_000_000, _REST_S_MAX))
    finally:
        reader.close()
    return pa.Table.from_batches(batches, source.schema)


def read_recording(path: Path) -> pa.Table:
    """The committed records of a recording.

    Raises:
        HistoryError: there are none.
    """
    files = sorted(path.glob("part-*.parquet"))
    if not files:
        raise HistoryError(f"{path} has no recorded records: run a job with stream.record_to({str(path)!r}) first")
    return pa.concat_tables([pq.read_table(file) for file in files])
