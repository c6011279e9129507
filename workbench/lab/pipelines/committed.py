"""The rows of a trial's sinks, as a reader sees them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.connectors.tables.tables import Tables
from workbench.lab.pipelines.comparing import Outputs
from workbench.lab.pipelines.topologies import Trial


def committed(tables: Tables, trial: Trial) -> Outputs:
    """The rows that are visible now, by sink."""
    found: Outputs = {name: counted(tables.read(name)) for name in tables.names()}
    if trial.outside is not None:
        found |= trial.outside()
    for uid, folder in trial.folders:
        parts = [_decoded(content) for content in _parts_in(folder)]
        found[uid] = counted(pa.concat_tables(parts)) if parts else Counter()
    return found


def _parts_in(folder: Path) -> Iterator[bytes]:
    """The content of each committed file; none if there is no such folder."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for name in sorted(names):
        if name.startswith("part-") and name.endswith(".parquet"):
            with open(f"{folder}/{name}", "rb") as file:
                yield file.read()


@lru_cache(maxsize=64)
def _decoded(content: bytes) -> pa.Table:
    """A part of a few rows; a run reads the content of its parts after each process."""
    with pq.ParquetFile(pa.BufferReader(content)) as part:
        return part.read(use_threads=False)


def counted(table: pa.Table) -> Counter[tuple[object, ...]]:
    """The rows of a table as a multiset; times as microseconds, nested values as text."""
    return Counter(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
    values: list[object] = column.to_pylist()
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else values
