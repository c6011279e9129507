"""A sink that commits Parquet files in two phases, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from workbench.arguments import path_of
from workbench.connectors.parts.part_formats import decode_parquet, encode_parquet
from workbench.connectors.parts.part_sink import PartFormat, PartSink
from workbench.errors import SettingError, unknown

_COMPRESSIONS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


@dataclass(frozen=True)
class ParquetSink(PartSink):
    """Writes committed rows to ``path/part-<epoch>-<subtask>-<file>.parquet``; an epoch is a checkpoint's number.

    Source: D1: exactly once, by Flink's two-phase commit.

    Args:
        path: a folder used by this sink alone; created when the job starts, and no other job writes to it until that
            ends.
        compression: ``"zstd"``, ``"snappy"``, ``"lz4"``, ``"gzip"``, ``"brotli"`` or ``"none"``.

    Raises:
        SettingError: no such compression.
        SinkError: when the pipeline is built or the job starts: columns that Parquet cannot represent, or a folder that
            cannot be written, holds rows of another run, or is being written to by another job.

    Example:
        >>> ParquetSink("out/delays").name
        'delays'
    """

    path: str | Path
    compression: str = "zstd"

    def __post_init__(self) -> None:
        path_of(self.path, "path")
        if self.compression not in _COMPRESSIONS:
            raise SettingError(unknown("compression", self.compression, _COMPRESSIONS))

    @property
    def part_format(self) -> PartFormat:
        """The format of the files."""
        return _parquet(self.compression)


@cache
def _parquet(compression: str) -> PartFormat:
    """The format with a compression; cached, so that two sinks share it."""
    return PartFormat("Parquet", ".parquet", partial(encode_parquet, compression=compression), decode_parquet)
