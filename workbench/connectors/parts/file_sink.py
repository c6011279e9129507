"""A sink that commits files in two phases, exactly once, in a format of your choice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.arguments import path_of
from workbench.connectors.parts.part_formats import PART_FORMATS, PartFormatName
from workbench.connectors.parts.part_sink import PartFormat, PartSink
from workbench.errors import SettingError, unknown


@dataclass(frozen=True)
class FileSink(PartSink):
    """Writes committed rows to ``path/part-<epoch>-<subtask>-<file>.csv``; an epoch is a checkpoint's number.

    The files with these names hold the committed rows, at every moment; other programs can read them, and
    `Stream.from_files` does.

    Source: D1: exactly once, by Flink's two-phase commit; Flink's ``FileSink``.

    Args:
        path: a folder used by this sink alone; created when the job starts, and no other job writes to it until that
            ends.
        format: ``"csv"`` (the first line names the columns, an empty value is a null), ``"json"`` (an object per line,
            in ``.jsonl`` files; instants, dates and decimals as text, NaN and the infinities as null) or ``"parquet"``.

    Raises:
        SettingError: no such format.
        SinkError: when the pipeline is built or the job starts: columns that the format cannot represent, or a folder
        that cannot be written, holds rows of another run, or is being written to by another job.

    Example:
        >>> FileSink("out/delays", "csv").name
        'delays'
    """

    path: str | Path
    format: PartFormatName = "parquet"

    def __post_init__(self) -> None:
        path_of(self.path, "path")
        if not isinstance(self.format, str) or self.format not in PART_FORMATS:
            raise SettingError(unknown("file format", self.format, PART_FORMATS))

    @property
    def part_format(self) -> PartFormat:
        """The format of the files."""
        return PART_FORMATS[self.format]
