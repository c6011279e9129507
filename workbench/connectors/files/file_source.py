"""A source over files: Parquet, CSV or JSON lines, in the order of their names."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.arguments import as_given, is_utf8, path_of
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, WaitUntil
from workbench.connectors.contract.block_reader import check_event_time, check_microseconds, check_rate
from workbench.connectors.contract.plain_types import plain_schema
from workbench.connectors.contract.rate import Rate
from workbench.connectors.contract.throttle import Throttle
from workbench.connectors.files.csv_format import CsvFormat
from workbench.connectors.files.file_format import COMPRESSED, FileFormat, Part, unchanged
from workbench.connectors.files.json_lines import JsonLines
from workbench.connectors.files.json_times import TimeUnit, check_unit
from workbench.connectors.files.lenient_files import LinesOfRecords, Parse, TextLines, sorted_out
from workbench.connectors.files.parquet_format import ParquetFormat
from workbench.durable.kind import kind_of
from workbench.elements import Records
from workbench.errors import MISSING, CheckpointError, PlanError, SettingError, SourceError, remedy, unknown
from workbench.operators.contract.base import Json, OperatorContext, Snapshot
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import OnError, as_records, check_on_error, of_bytes
from workbench.operators.snapshots.pieces import value_in

FormatName = Literal["parquet", "csv", "tsv", "json"]

FORMATS: Mapping[str, FileFormat] = {
    "parquet": ParquetFormat(),
    "csv": CsvFormat(),
    "tsv": CsvFormat("\t"),
    "json": JsonLines(),
}
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_DELIMITERS: Mapping[str, str | None] = {"csv": ",", "tsv": "\t", "json": None}
"""Of the formats of text."""


@dataclass(frozen=True)
class FileSource(Source):
    """The rows of files, file after file in the order of their paths.

    The list of files is read when the source is created; files that are added later are read by a job that is resumed
    with a new source. A position is a row of a file, so files must not change while they are read.

    Args:
        paths: a file, a folder (all its files except hidden ones), a pattern such as ``"data/*.parquet"``, or several.
        columns: names and types; None takes them from the first file (text formats infer them from its first rows).
            Other columns of the files are not read.
        event_time: column that carries event time (timestamp, date, or int64 microseconds), or None.
        format: None infers it from the files' names.
        rate: records per second over the whole source; None for full speed.
        on_error: what happens to a line of text that is not a record.
        unit: what numbers in columns of timestamps count, in JSON.

    Raises:
        SourceError: no such files, a file that cannot be read, or files of different formats.
        PlanError: no such event-time column, or not of a time type.
        SettingError: an unknown format, or a rate that is not above zero.
        PlanError: an unknown `on_error`, or dead letters of Parquet files, which have no lines.

    Example::

        FileSource("data/*.parquet", event_time="departed").describe()  # '12 parquet files by departed'
    """

    paths: str | Path | Sequence[str | Path]
    columns: pa.Schema | None = field(default=None, repr=False)
    event_time: str | None = None
    format: FormatName | None = None
    rate: float | None = None
    on_error: OnError = "fail"
    unit: TimeUnit | None = None
    files: tuple[Path, ...] = field(init=False, repr=False)
    _places: tuple[Path, ...] = field(init=False, repr=False, compare=False)
    schema: pa.Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "files"

    def __post_init__(self) -> None:
        check_rate(self.rate)
        files = _found(self.paths)
        name = self.format or _format_of(files)
        if not isinstance(name, str) or name not in FORMATS:
            raise SettingError(unknown("file format", name, FORMATS))
        check_on_error(self.on_error, None)
        check_unit(self.unit, name)
        if self.on_error != "fail" and name not in _DELIMITERS:
            raise PlanError(f"{name} files have no lines that could be dead letters: leave out on_error")
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "_places", tuple(file.absolute() for file in files))
        object.__setattr__(self, "format", name)
        object.__setattr__(self, "schema", self.columns or plain_schema(FORMATS[name].schema(files[0])))
        check_event_time(self.schema, self.event_time)

    def describe(self) -> str:
        count = len(self.files)
        text = f"{count} {self.format} file{'s' if count != 1 else ''}"
        return f"{text} by {self.event_time}" if self.event_time else text

    @property
    def file_format(self) -> FileFormat:
        """How the files are read."""
        assert self.format is not None
        return FORMATS[self.format] if self.unit is None else JsonLines(self.unit)

    def parts(self, file_format: FileFormat) -> list[Part]:
        """The parts of all files, as absolute paths; their names are the paths as given, because checkpoints identify
        them by these names.

        Raises:
            SourceError: a file no longer exists, or cannot yield rows of the schema.
        """
        found: list[Part] = []
        for file, place in zip(self.files, self._places, strict=True):
            for part in file_format.parts(place, self.schema):
                found.append(replace(part, name=f"{file}{part.name.removeprefix(str(place))}"))
        return found

    def create(self) -> SourceReader:
        return FileReader(self) if self.on_error == "fail" else LenientFileReader(self)


class FileReader(SourceReader):
    """Reads the parts of one subtask one after the other; part i belongs to subtask i modulo the parallelism.

    The part that is being read is a split with its own event time. After a rescaling a subtask may have several parts
    that
    were begun, and earlier ones that were not: parts are read in order all the same, and all that were begun are
        splits, so that nothing becomes late.

    Attributes:
        rate: the present rate.
    """

    shares_event_time = False
    _counts = "rows"

    def __init__(self, source: FileSource) -> None:
        self.rate = Rate(source.rate)
        self._source = source
        self._format = source.file_format
        self._parts: dict[str, Part] = {}
        self._sizes: dict[str, int] = {}
        self._rows: dict[str, int] = {}  # rows read, of parts that have been begun
        self._done: set[str] = set()
        self._order: list[str] = []  # parts not yet read completely
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        self._offset = 0

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        every = self._source.parts(self._format)
        self._first = every[0].name if every else None
        own = every[context.subtask :: context.parallelism]
        self._sizes = {part.name: part.size for part in every}
        self._parts = {part.name: part for part in own}
        self._order = list(self._parts)
        self._throttle = Throttle(Fraction(len(own), max(1, len(every))))

    def splits(self) -> Sequence[str]:
        return [name for place, name in enumerate(self._order) if place == 0 or name in self._rows]

    def pending_records(self) -> int | None:
        """Records not yet read, if the format knows."""
        left = 0
        for name in self._order:
            rows = self._parts[name].rows
            if rows is None:
                return None
            left += rows - self._rows.get(name, 0)
        return left

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        batch = self._next_batch() if self._batch is None else self._batch
        if batch is None:
            return Exhausted()
        count = self._throttle.allow(min(max_records, batch.num_rows - self._offset), self.rate, self._clock.now_us())
        if isinstance(count, WaitUntil):
            return count
        name = self._order[0]
        rows = batch.slice(self._offset, count)
        self._rows[name] += count
        self._offset += count
        if self._offset == batch.num_rows:
            self._batch = None
        return self._fetched(rows, name)

    def _fetched(self, rows: pa.RecordBatch, name: str) -> Fetched:
        column = self._source.event_time
        if column is not None and name == self._first and self._rows[name] == rows.num_rows:
            check_microseconds(rows.column(column), column)
        where = _rows_of(self._parts[name], self._rows[name] - rows.num_rows)
        return Fetched(Records.timed(rows, column), name, where=where, due_us=self._throttle.due_us)

    def snapshot(self) -> Snapshot:
        """``{"files": {"data/a.csv": [rows read, whether that is all, bytes of the file]}, "counts": "rows"}``."""
        files: dict[str, Json] = {
            name: [rows, name in self._done, self._parts[name].size] for name, rows in self._rows.items()
        }
        return {"files": files, "counts": self._counts}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            if (counted := snapshot.get("counts", self._counts)) != self._counts:
                raise CheckpointError(
                    f"the checkpoint counts {counted} of the files and this source counts {self._counts}: read them "
                    "with the same on_error, or start afresh"
                )
            files = value_in(snapshot, "files", dict[str, tuple[int, bool, int]]) if "files" in snapshot else {}
            for name, (rows, done, size) in files.items():
                if rows < 0:
                    raise ValueError(f"files has {rows} rows of {name}")
                if not done and self._sizes.get(name) != size:
                    raise CheckpointError(
                        f"{name} was being read when the checkpoint was taken, and has since been deleted or changed: "
                        "bring it back, or start afresh"
                    )
                if name in self._parts:
                    self._rows[name] = rows
                    if done:
                        self._done.add(name)
        self._order = [name for name in self._parts if name not in self._done]

    def close(self) -> None:
        self._close_part()
        self._order = []

    def _next_batch(self) -> pa.RecordBatch | None:
        """The next rows of the first part that has any; it is then the first in order."""
        while self._order:
            name = self._order[0]
            if self._batches is None:
                skip = self._rows.setdefault(name, 0)
                part = self._parts[name]
                self._batches = unchanged(part, self._format.batches(part, self._source.schema, skip))
            self._batch, self._offset = next(self._batches, None), 0
            if self._batch is not None:
                return self._batch
            self._close_part()
            self._done.add(name)
            self._order.pop(0)
        return None

    def _close_part(self) -> None:
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]  # it is a generator
        self._batches = self._batch = None


class LenientFileReader(FileReader):
    """The same for lines, some of which may not be records."""

    _counts = "lines"

    def __init__(self, source: FileSource) -> None:
        super().__init__(source)
        assert source.format is not None
        self._text = TextLines(source.file_format, _DELIMITERS[source.format], source.unit)
        self._format = self._text
        self._parse: tuple[str, Parse] | None = None

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._context = context

    def _fetched(self, rows: pa.RecordBatch, name: str) -> Fetched:
        path, schema = self._parts[name].path, self._source.schema
        if self._parse is None or self._parse[0] != name:
            self._parse = name, self._text.parser(path, schema)
        lines = rows.column("line").to_pylist()
        good, bad = sorted_out(lines, self._parse[1], schema, self._source.event_time)
        first = self._rows[name] - len(lines) + self._text.first_line()
        where = LinesOfRecords(str(path), first, lines, {at for at, _ in bad})
        form = str(self._source.format)
        letters = [
            of_bytes(f"{where.line(at)} is not a record: {reason}", lines[at], form, where.line(at))
            for at, reason in bad
        ]
        timed = self._source.event_time is not None
        dead = as_records(letters, self._context, with_times=timed) if letters else None
        return replace(super()._fetched(good, name), dead_letters=dead, where=where)


def _rows_of(part: Part, first: int) -> Callable[[int], Position]:
    """The position of each row that was read of a part, the first of which is row `first`."""
    return lambda row: Position(f"{part.name}, row {first + row}", Parts("files", path=str(part.path)))


def _found(paths: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    found: list[Path] = []
    if not isinstance(paths, str | Path | Sequence) or isinstance(paths, bytes) or not paths:
        raise SettingError(
            f"paths is {as_given(paths)}: name a file, a folder, a pattern such as 'data/*.csv', or several"
        )
    for item in [paths] if isinstance(paths, str | Path) else paths:
        path = path_of(item, "a path")
        try:
            own = _files_of(path)
        except OSError as error:
            raise SourceError(
                f"the files of {str(item)!r} cannot be listed: {error.filename}: {error.strerror}; {remedy(error)}, or "
                "name others"
            ) from error
        if not own:
            raise SourceError(
                f"there is no file {str(item)!r}: name files, a folder, or a pattern such as 'data/*.csv'"
            )
        found += own
    for path in found:
        if not is_utf8(path.absolute()):
            raise SourceError(f"the path {str(path.absolute())!r} is not UTF-8, which Arrow cannot open: rename it")
    return tuple(sorted(set(found), key=str))


def _files_of(path: Path) -> list[Path]:
    """The files that a path or pattern matches; raises an OSError if a folder cannot be read."""
    kind = kind_of(path)
    if kind == "folder":
        return [file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
    if kind == "file":
        return [path]
    if kind is not None:
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    _look_into_folders(path.parts)
    return [file for file in map(Path, glob.iglob(str(path), recursive=True)) if file.is_file()]  # noqa: PTH207


def _look_into_folders(pattern: Sequence[str]) -> None:
    """Raise an OSError if a folder on the path of a pattern cannot be read: `glob` skips it, and the rows of its files
    would be missing."""
    first = next((at for at, name in enumerate(pattern) if glob.has_magic(name)), len(pattern))
    for end in range(first, len(pattern) + (pattern[-1] == "**")):
        above = str(Path(*pattern[:end]))
        for folder in [above] if end == first else glob.iglob(f"{above}/", recursive=True):  # noqa: PTH207
            with suppress(*MISSING):
                if end == len(pattern) or glob.has_magic(pattern[end]):
                    os.scandir(folder).close()
                else:
                    Path(folder, pattern[end]).stat()


def _format_of(files: Sequence[Path]) -> str:
    names: dict[str, Path] = {}
    for file in files:
        stem = file.name.removesuffix(next((end for end in COMPRESSED if file.name.endswith(end)), ""))
        suffix = Path(stem).suffix.lower()
        if suffix not in _SUFFIXES:
            raise SourceError(
                f"{file} has no suffix that names a format ({', '.join(_SUFFIXES)}, also with .gz): pass format='csv'"
            )
        names.setdefault(_SUFFIXES[suffix], file)
    if len(names) > 1:
        shown = " and ".join(str(file) for file in names.values())
        raise SourceError(f"the files are of different formats ({shown}): make a stream of each and union them")
    return next(iter(names))
