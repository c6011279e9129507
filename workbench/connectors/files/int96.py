"""Timestamps of 96 bits in Parquet, which Spark, Hive and Impala write: days and nanoseconds of a day.

Arrow converts them to 64 bits in one unit: nanoseconds wrap around in 1677 and 2262, and microseconds lose digits, both
without an error. So what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workbench.errors import SourceError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MICROS, _NANOS = pa.timestamp("us"), pa.timestamp("ns")
_NANOS_MAX = (2**63 - 1) // 1_000


def int96_columns(schema: pq.ParquetSchema) -> list[str]:
    """The names of the columns that are such timestamps, or contain some."""
    columns = map(schema.column, range(len(schema)))
    return [column.path.partition(".")[0] for column in columns if column.physical_type == "INT96"]


def check_int96(path: Path, index: int, names: Sequence[str], *, in_nanos: bool) -> None:
    """Refuse a row group with a time that does not fit its column.

    Args:
        path: of the file.
        index: of the row group.
        names: of columns with timestamps of 96 bits.
        in_nanos: whether they become nanoseconds instead of microseconds.

    Raises:
        SourceError: names the column and the first such time.
    """
    import pyarrow.parquet as pq

    found: dict[str, pa.Table] = {}
    for unit in ("us", "ns"):
        with pq.ParquetFile(path, coerce_int96_timestamp_unit=unit) as file:
            found[unit] = file.read_row_group(index, columns=list(names)).combine_chunks()
    for name in names:
        micros, nanos = (_numbers(found[unit].column(name).combine_chunks()) for unit in ("us", "ns"))
        if in_nanos:
            far = (micros > _NANOS_MAX) | (micros < -_NANOS_MAX)
            if far.any():
                raise _refused(path, name, pa.scalar(int(micros[far][0]), _MICROS), "outside of 1677 to 2262", "us")
        else:
            finer = nanos - micros * 1_000 != 0  # both wrap around in the same way
            if finer.any():
                raise _refused(path, name, pa.scalar(int(nanos[finer][0]), _NANOS), "no whole microsecond", "ns")


def _refused(path: Path, name: str, time: pa.Scalar, fact: str, unit: str) -> SourceError:
    return SourceError(
        f"{path} has {time.cast(pa.string())} in the column {name!r}, which is {fact}: declare the column with "
        f"schema={{{name!r}: pa.timestamp({unit!r}), ...}}"
    )


def _numbers(times: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The timestamps in an array that are not null, also those within other values."""
    kind = times.type
    if pa.types.is_timestamp(kind):
        found: np.ndarray[tuple[int], np.dtype[np.int64]] = times.drop_null().view(pa.int64()).to_numpy()
        return found
    if pa.types.is_struct(kind):
        parts = [_numbers(part) for part in times.flatten()]
    elif pa.types.is_map(kind):
        parts = [_numbers(times.keys), _numbers(times.items)]
    else:
        parts = [_numbers(times.flatten())] if pa.types.is_list(kind) else []
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
