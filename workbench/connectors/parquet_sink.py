"""A sink that commits Parquet files in two phases, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.connectors.base import Guarantee
from workbench.connectors.part_formats import encode_parquet
from workbench.connectors.part_sink import PartFormat, PartSinkLogic, check_fresh, check_parts
from workbench.errors import SettingError, unknown
from workbench.operators.base import Operator

_COMPRESSIONS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Writes committed rows to ``path/part-<epoch>-<subtask>-<file>.parquet``; an epoch is a checkpoint's number.

    Args:
        path: a folder of the sink's own; created when the job starts.
        compression: ``"zstd"``, ``"snappy"``, ``"lz4"``, ``"gzip"``, ``"brotli"`` or ``"none"``.

    Raises:
        SettingError: no such compression.

    Example:
        >>> ParquetSink("out/delays").name
        'delays'
    """

    path: str | Path
    compression: str = "zstd"
    kind: ClassVar[str] = "sink"
    guarantee: ClassVar[Guarantee] = "exactly-once"

    def __post_init__(self) -> None:
        if self.compression not in _COMPRESSIONS:
            raise SettingError(unknown("compression", self.compression, _COMPRESSIONS))

    @property
    def folder(self) -> Path:
        """The folder as an absolute path."""
        return Path(self.path).expanduser().absolute()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def part_format(self) -> PartFormat:
        """How rows become a file."""
        return PartFormat("Parquet", ".parquet", partial(encode_parquet, compression=self.compression))

    def check(self, schema: pa.Schema) -> None:
        """Refuse a schema that Parquet cannot hold, or a folder that cannot be written; nothing is created.

        Raises:
            SinkError: with the type or the folder.
        """
        check_parts(self, schema)

    def check_fresh(self) -> None:
        """Refuse to start afresh in a folder that holds committed rows; no need to call it before a restore.

        Raises:
            SinkError: the folder holds parts.
        """
        check_fresh(self.folder)

    def describe(self) -> str:
        return str(self.path)

    def create(self, schema: pa.Schema) -> Operator:
        return PartSinkLogic(self, schema)
