"""What a reader sees of a trial's sinks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.connectors.tables import Tables
from workbench.testing.comparing import Outputs
from workbench.testing.topologies import Trial


def committed(tables: Tables, trial: Trial) -> Outputs:
    """The rows that are visible now, by sink."""
    found: Outputs = {name: counted(tables.read(name)) for name in tables.names()}
    found |= {uid: read() for uid, read in trial.outside}
    for uid, folder in trial.folders:
        parts = [_read(path) for path in sorted(folder.glob("part-*.parquet"))]
        found[uid] = counted(pa.concat_tables(parts)) if parts else Counter()
    return found


def _read(path: Path) -> pa.Table:
    """A part as it stands in the file, of a few rows; looking for it on a file system takes as long as reading it."""
    with pq.ParquetFile(pa.BufferReader(path.read_bytes())) as part:
        return part.read(use_threads=False)


def counted(table: pa.Table) -> Counter[tuple[object, ...]]:
    """The rows of a table as a multiset; times as microseconds, nested values as text."""
    return Counter(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
    values: list[object] = column.to_pylist()
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else values
