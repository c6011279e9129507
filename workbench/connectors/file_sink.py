"""A sink that commits files in two phases, exactly once, in a format of your choice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.connectors.base import Guarantee
from workbench.connectors.part_formats import PART_FORMATS, PartFormatName
from workbench.connectors.part_sink import PartFormat, PartSinkLogic, check_fresh, check_parts
from workbench.errors import SettingError, unknown
from workbench.operators.base import Operator


@dataclass(frozen=True, slots=True)
class FileSink:
    """Writes committed rows to ``path/part-<epoch>-<subtask>-<file>.csv``; an epoch is a checkpoint's number.

    What another program finds under these names are the committed rows, at every moment; `Stream.from_files` reads
    them.

    Args:
        path: a folder of the sink's own; created when the job starts.
        format: ``"csv"`` (the first line names the columns, an empty value is a null), ``"json"`` (an object to a
            line, in ``.jsonl`` files; instants, dates and decimals as text) or ``"parquet"``.

    Raises:
        SettingError: no such format.

    Example:
        >>> FileSink("out/delays", "csv").name
        'delays'
    """

    path: str | Path
    format: PartFormatName = "parquet"
    kind: ClassVar[str] = "sink"
    guarantee: ClassVar[Guarantee] = "exactly-once"

    def __post_init__(self) -> None:
        if self.format not in PART_FORMATS:
            raise SettingError(unknown("file format", self.format, PART_FORMATS))

    @property
    def folder(self) -> Path:
        """The folder as an absolute path."""
        return Path(self.path).expanduser().absolute()

    @property
    def part_format(self) -> PartFormat:
        """How rows become a file."""
        return PART_FORMATS[self.format]

    @property
    def name(self) -> str:
        return self.folder.name

    def check(self, schema: pa.Schema) -> None:
        """Refuse a schema that the format cannot hold, or a folder that cannot be written; nothing is created.

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
