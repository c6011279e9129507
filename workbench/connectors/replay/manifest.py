"""The manifest of a replay log: describes its files, so that a reader can seek without opening them.

A replay log is a folder::

    flights.log/
        manifest.json
        channel-0/00000-4b1d5a0c9e21.parquet      the name ends with the file's checksum
        channel-1/00000-77e0d1f25c3b.parquet

The manifest is written last and the folder gets its name last, so a folder without a manifest is an incomplete write.
Because names contain checksums, a reader of a log that was replaced finds a file missing and never mixes two versions.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME, format_instant
from workbench.elements import Int64s, event_times, holds_times
from workbench.errors import HistoryError, unknown
from workbench.from_json import made, parsed
from workbench.raised import first_line_of

MANIFEST = "manifest.json"
_FORMAT = "workbench replay log"
_VERSION = 1
BLOCK_MOST = 8_192
"""The largest number of records for which a channel has its turn: while a paced replay is in the block of one channel,
readers of the others wait, and so does event time."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The unit that is loaded at once: `rows` records with arrivals from the first to the last (us)."""

    rows: int
    first_arrival_us: int
    last_arrival_us: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file of one channel.

    Attributes:
        name: path below the log's folder, with ``/``.
        first_row: offset of its first record in the channel.
        event_us: earliest and latest event time, None if no record of the file has one.
        without_event_time: number of records whose event time is null.
        bytes, sha256: of the whole file.
        groups: its row groups, in order; arrival times grow from each to the next.
    """

    name: str
    first_row: int
    event_us: tuple[int, int] | None
    without_event_time: int
    bytes: int
    sha256: str
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)


@dataclass(frozen=True, slots=True)
class Partitioned:
    """All records with equal values in the columns `by` are in one channel; `writer` has chosen it."""

    by: tuple[str, ...]
    writer: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All information about a replay log that is available without opening its Parquet files.

    Attributes:
        schema: of the records; timestamps are in microseconds, UTC.
        event_time, arrival_time: names of the time columns.
        channels: the files of each channel, in order of arrival.
        fingerprint: by name, what the log was made from and how; a log is stale when an entry has changed.
        notes: sentences for readers of the history.
        created_at: date and time in UTC.
        grown_from: identities of the logs that this one was before records were appended, oldest first; their offsets
            mean the same in this one.
        appended_after: for each time that records were appended, the rows of each channel before.
        partitioned: which columns decide on a record's channel; None: records are dealt out.
        block_rows: the channels have taken turns, each for so many records.
        order_column: a column of the files, outside of `schema`, that orders records with the same arrival; empty:
            their order follows from the blocks.
    """

    schema: pa.Schema
    event_time: str
    arrival_time: str
    channels: tuple[tuple[LogFile, ...], ...]
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    created_at: str = ""
    grown_from: tuple[str, ...] = ()
    appended_after: tuple[tuple[int, ...], ...] = ()
    partitioned: Partitioned | None = None
    block_rows: int = 1
    order_column: str = ""

    @property
    def files(self) -> Iterator[LogFile]:
        return (file for channel in self.channels for file in channel)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def identity(self) -> str:
        """Equal for two logs exactly when they hold the same records at the same offsets."""
        names = [[file.sha256 for file in channel] for channel in self.channels]
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()

    def to_json(self) -> str:
        """The text of ``manifest.json``."""
        content: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "created_at": self.created_at,
            "event_time": self.event_time,
            "arrival_time": self.arrival_time,
            "rows": self.rows,
            "rows_without_event_time": sum(file.without_event_time for file in self.files),
            "columns": {column.name: str(column.type) for column in self.schema},
            "schema": base64.b64encode(self.schema.serialize()).decode(),
            "fingerprint": dict(self.fingerprint),
            "notes": list(self.notes),
            "grown_from": list(self.grown_from),
            "appended_after": [list(rows) for rows in self.appended_after],
            "partitioned": None if self.partitioned is None else asdict(self.partitioned),
            "block_rows": self.block_rows,
            "order_column": self.order_column,
            "channels": [[asdict(file) for file in channel] for channel in self.channels],
        }
        return json.dumps(content, indent=1) + "\n"

    @staticmethod
    def from_json(text: str, folder: Path) -> Manifest:
        """Parse a manifest.

        Raises:
            HistoryError: not a manifest, or of a version that this release does not support.
        """
        try:
            content = parsed(text)
            keys = content.get("partitioned")
            if content["format"] != _FORMAT:
                raise ValueError(f"its format is {content['format']!r}")
            if content["version"] != _VERSION:
                raise HistoryError(
                    f"the replay log at {folder} has format version {content['version']} and this release reads "
                    f"version {_VERSION}: write it again"
                )
            manifest = Manifest(
                schema=_schema(made(str, content["schema"], "schema")),
                event_time=made(str, content["event_time"], "event_time"),
                arrival_time=made(str, content["arrival_time"], "arrival_time"),
                channels=_checked(made(tuple[tuple[LogFile, ...], ...], content["channels"], "channels")),
                fingerprint=made(dict[str, str], content["fingerprint"], "fingerprint"),
                notes=made(tuple[str, ...], content["notes"], "notes"),
                created_at=made(str, content["created_at"], "created_at"),
                grown_from=made(tuple[str, ...], content.get("grown_from", []), "grown_from"),
                appended_after=made(tuple[tuple[int, ...], ...], content.get("appended_after", []), "appended_after"),
                partitioned=None if keys is None else made(Partitioned, keys, "partitioned"),
                block_rows=made(int, content.get("block_rows", 1), "block_rows"),
                order_column=made(str, content.get("order_column", ""), "order_column"),
            )
            if manifest.rows != content["rows"]:
                raise ValueError(f"it counts {content['rows']} rows and lists {manifest.rows}")
            _check_order(manifest)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
            raise HistoryError(
                f"{folder / MANIFEST} is not a replay log's manifest ({first_line_of(error)}): write the log again"
            ) from None
        time_column(manifest.schema, manifest.event_time, "event_time")
        time_column(manifest.schema, manifest.arrival_time, "arrival_time")
        return manifest


def _schema(text: str) -> pa.Schema:
    """Decode the schema from base64; raises a ValueError, an OSError or an Arrow error."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    str(schema)  # Arrow validates the bytes of names, including nested ones, only when they are converted
    if len(set(schema.names)) < len(schema):
        raise ValueError("two of its columns have the same name")
    return schema


def _checked(channels: tuple[tuple[LogFile, ...], ...]) -> tuple[tuple[LogFile, ...], ...]:
    """The channels, if their files are in the log's folder and consecutive."""
    if not channels:
        raise ValueError("it has no channel")
    for channel in channels:
        row, arrived_us = 0, NO_TIME
        for file in channel:
            if "\0" in file.name or not {"", ".", ".."}.isdisjoint(file.name.split("/")):
                raise ValueError(f"it has a file {file.name!r}, which is outside of its folder")
            if file.first_row != row or any(group.rows < 1 for group in file.groups) or not file.groups:
                raise ValueError(f"{file.name} does not begin at row {row}, or has no rows")
            if not 0 <= file.without_event_time <= file.rows:
                raise ValueError(f"{file.name} has {file.rows} rows, {file.without_event_time} without event time")
            for group in file.groups:
                if not arrived_us <= group.first_arrival_us <= group.last_arrival_us:
                    raise ValueError(f"the arrival times of {file.name} go back")
                arrived_us = group.last_arrival_us
            row += file.rows
    return channels


def _check_order(manifest: Manifest) -> None:
    """Reject facts about the order of records that contradict the files."""
    names = manifest.schema.names
    if not 1 <= manifest.block_rows <= BLOCK_MOST:
        raise ValueError(f"its blocks have {manifest.block_rows} rows")
    if manifest.order_column in names:
        raise ValueError(f"its column {manifest.order_column!r} is also a column of the records")
    if manifest.partitioned is not None and not set(manifest.partitioned.by).issubset(names):
        raise ValueError(f"it is partitioned by {list(manifest.partitioned.by)}, which are not its columns")
    before: tuple[int, ...] = (0,) * len(manifest.channels)
    ends = tuple(sum(file.rows for file in channel) for channel in manifest.channels)
    for rows in (*manifest.appended_after, ends):
        if len(rows) != len(before) or any(row < start for start, row in zip(before, rows, strict=True)):
            raise ValueError(f"records were appended after {list(rows)} rows of its channels")
        before = rows


def time_column(schema: pa.Schema, name: str, role: str) -> pa.Field:
    """The field of a time column.

    Raises:
        HistoryError: no such column, or it does not hold times.
    """
    if name not in schema.names:
        raise HistoryError(unknown(f"{role} column", name, schema.names))
    column = schema.field(name)
    if not holds_times(column.type):
        raise HistoryError(
            f"{role} column {name!r} is of type {column.type}: it must be a timestamp, a date or an int64 of "
            "microseconds since 1970 (UTC)"
        )
    return column


def checked_arrivals(column: pa.Array, name: str, place: str, first_row: int, previous_us: int | None) -> Int64s:
    """The arrival times in a column, in microseconds, checked: none is null, and they never decrease.

    Args:
        column: of one row group.
        name: of the column, for errors.
        place: the file, for errors.
        first_row: offset of the column's first row in the file, for errors.
        previous_us: the arrival before the first row, None at the start of a channel.

    Raises:
        HistoryError: a null arrival, or one before its predecessor; names the file, the row and both values.
        RecordError: an arrival before `EARLIEST_TIME` or after `LATEST_TIME`.
    """
    arrivals = event_times(column, name)
    before = NO_TIME if previous_us is None else previous_us
    back = np.flatnonzero(arrivals < np.concatenate(([before], arrivals[:-1])))
    nulls = np.flatnonzero(arrivals == NO_TIME) if column.null_count else back[:0]
    if len(nulls):
        row = int(nulls[0])
        left = before if row == 0 else int(arrivals[row - 1])
        raise HistoryError(
            f"{place}, row {first_row + row}: the arrival time is null after {format_instant(left)}; every record of a "
            "history must have an arrival time: fill it in or filter out such records, then write the log again"
        )
    if len(back):
        row = int(back[0])
        left = before if row == 0 else int(arrivals[row - 1])
        raise HistoryError(
            f"{place}, row {first_row + row}: the arrival time goes back from {format_instant(left)} to "
            f"{format_instant(int(arrivals[row]))}; a replay log is ordered by arrival: write it again"
        )
    return arrivals


def describe_file(
    path: Path, name: str, schema_names: tuple[str, str], first_row: int, previous_us: int | None
) -> LogFile:
    """Read a finished Parquet file's times and checksum.

    Args:
        path: the file.
        name: its path in the log, for the manifest and for errors; ``{sha}`` in it is replaced by the checksum's start.
        schema_names: the event-time and the arrival-time column.
        first_row: offset of its first record in its channel.
        previous_us: the preceding arrival in its channel.

    Raises:
        HistoryError: its arrivals are null or decrease.
        RecordError: a time before `EARLIEST_TIME` or after `LATEST_TIME`.
    """
    import pyarrow.parquet as pq

    event_time, arrival_time = schema_names
    groups: list[RowGroup] = []
    earliest: list[int] = []
    latest: list[int] = []
    without = row = 0
    with pq.ParquetFile(path) as parquet:
        for index in range(parquet.num_row_groups):
            table = parquet.read_row_group(index, columns=list({event_time, arrival_time})).combine_chunks()
            if table.num_rows == 0:
                continue
            column = table.column(arrival_time).chunk(0)
            arrivals = checked_arrivals(column, arrival_time, path.name, row, previous_us)
            events = event_times(table.column(event_time).chunk(0), event_time)
            timed = events[events != NO_TIME]
            without += len(events) - len(timed)
            if len(timed):
                earliest.append(int(timed.min()))
                latest.append(int(timed.max()))
            previous_us = int(arrivals[-1])
            groups.append(RowGroup(table.num_rows, int(arrivals[0]), previous_us))
            row += table.num_rows
    checksum = file_sha256(path)
    return LogFile(
        name=name.format(sha=checksum[:12]),
        first_row=first_row,
        event_us=(min(earliest), max(latest)) if earliest else None,
        without_event_time=without,
        bytes=path.stat().st_size,
        sha256=checksum,
        groups=tuple(groups),
    )


def file_sha256(path: Path) -> str:
    """The checksum of a file's content, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
