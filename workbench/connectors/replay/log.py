"""Replay logs: recorded histories on disk, written once and replayed many times, seekable by offset and by time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.arguments import as_given, is_utf8, path_of
from workbench.clock import Clock, SystemClock
from workbench.connectors.replay.cursor import Cursor
from workbench.connectors.replay.draft import LogDraft, writing
from workbench.connectors.replay.manifest import (
    BLOCK_MOST,
    MANIFEST,
    Manifest,
    Partitioned,
    file_sha256,
    time_column,
)
from workbench.connectors.replay.merge import Merge
from workbench.durable.regular_file import size_of_regular
from workbench.elements import event_times
from workbench.errors import MISSING, HistoryError, remedy
from workbench.raised import first_line_of

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, the steps done and the total number of steps (0 while unknown)."""

ROW_GROUP_ROWS = 65_536
"""The maximum number of records that a cursor loads at once."""

_MANIFEST_MAX = 1 << 28
"""Bytes; a log with a million row groups has a manifest of half that size."""

_BLOCKS = 2_048
"""A log has at least about this many blocks."""

ARRIVED = "arrived_at"
"""The column that recordings of live streams add: when a record arrived."""


@dataclass(frozen=True, slots=True)
class ReplayLog:
    """A replay log, open for reading; needs neither Spark nor a JVM.

    Attributes:
        path: its folder.
        manifest: describes its content.

    Example:
        >>> log = ReplayLog.open("workbench-data/flights.log")
        >>> log.rows, log.channels
        (336776, 2)
    """

    path: Path
    manifest: Manifest
    _folder: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folder", self.path.absolute())  # independent of the working directory

    @staticmethod
    def open(path: str | Path) -> ReplayLog:
        """Read the manifest and check that every file exists in its full size.

        Raises:
            HistoryError: no such log, not a log, or a log with missing or truncated files.
        """
        folder = path_of(path, "path")
        if not is_utf8(folder.absolute()):
            raise HistoryError(f"the path {str(folder.absolute())!r} is not UTF-8, which Arrow cannot open: rename it")
        try:
            size = size_of_regular(folder, MANIFEST)
            if size > _MANIFEST_MAX:
                raise ValueError(f"{MANIFEST} has {size:,} bytes")
            text = (folder / MANIFEST).read_text(encoding="utf-8")
        except MISSING:
            fact = "it has no manifest" if folder.is_dir() else "there is no such folder"
            raise HistoryError(
                f"no replay log at {folder} ({fact}): write it with History.from_spark or History.from_arrow"
            ) from None
        except PermissionError as error:
            raise _unreadable(folder, error) from error
        except (OSError, ValueError) as error:
            raise HistoryError(
                f"the replay log at {folder} cannot be read ({first_line_of(error)}): write it again"
            ) from error
        manifest = Manifest.from_json(text, folder)
        for file in manifest.files:
            try:
                size = size_of_regular(folder, file.name)
            except ValueError as error:
                raise HistoryError(f"the replay log at {folder} cannot be used ({error}): write it again") from None
            except MISSING:
                raise HistoryError(f"the replay log at {folder} lacks its file {file.name}: write it again") from None
            except OSError as error:
                raise _unreadable(folder, error) from error
            if size != file.bytes:
                raise HistoryError(
                    f"the replay log at {folder} is damaged: {file.name} has {size} bytes "
                    f"instead of {file.bytes}; write it again"
                )
        return ReplayLog(folder, manifest)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the records; timestamps are in microseconds, UTC."""
        return self.manifest.schema

    @property
    def channels(self) -> int:
        """Number of channels, each ordered by arrival and spanning the whole time."""
        return len(self.manifest.channels)

    @property
    def rows(self) -> int:
        """Records in all channels."""
        return self.manifest.rows

    @property
    def rows_without_event_time(self) -> int:
        """Records whose event time is null: they are replayed, and event-time operators count and drop them."""
        return sum(file.without_event_time for file in self.manifest.files)

    @property
    def start_us(self) -> int:
        """Arrival of the first record, 0 in an empty log."""
        return min((file.groups[0].first_arrival_us for file in self.manifest.files), default=0)

    @property
    def end_us(self) -> int:
        """Arrival of the last record, 0 in an empty log."""
        return max((file.groups[-1].last_arrival_us for file in self.manifest.files), default=0)

    @property
    def event_time(self) -> str:
        """Name of the event-time column."""
        return self.manifest.event_time

    @property
    def arrival_time(self) -> str:
        """Name of the arrival-time column."""
        return self.manifest.arrival_time

    def merge(self, channels: Sequence[int]) -> Merge:
        """Create a reader of some channels, ascending, in order of arrival."""
        column = self.manifest.order_column if len(channels) > 1 else ""
        cursors = self
        if column:
            wider = self.schema.append(pa.field(column, pa.int64(), nullable=False))
            cursors = ReplayLog(self._folder, replace(self.manifest, schema=wider))
        return Merge([cursors.cursor(channel) for channel in channels], self.manifest)

    def cursor(self, channel: int) -> Cursor:
        """Create a cursor at the start of `channel`.

        Raises:
            HistoryError: no such channel.
        """
        if not 0 <= channel < self.channels:
            raise HistoryError(
                f"channel {channel} of {self.path} does not exist: its channels are 0 to {self.channels - 1}"
            )
        return Cursor(self._folder, self.manifest, channel)

    def narrowed(self, names: Iterable[str]) -> ReplayLog:
        """The log with some of its columns, in the order of the log; the others are not read."""
        wanted = set(names)
        kept = pa.schema([column for column in self.schema if column.name in wanted])
        return ReplayLog(self._folder, replace(self.manifest, schema=kept))

    def verify(self) -> None:
        """Compare every file with its checksum.

        Raises:
            HistoryError: a file differs; names it.
        """
        for file in self.manifest.files:
            if file_sha256(self._folder / file.name) != file.sha256:
                raise HistoryError(
                    f"{self.path / file.name} does not match its checksum: the log is damaged; write it again"
                )


def write_log(
    data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    path: str | Path,
    *,
    event_time: str,
    arrival_time: str,
    channels: int = 2,
    partition_by: Sequence[str] = (),
    fingerprint: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
    row_group_rows: int = ROW_GROUP_ROWS,
    compression: Literal["zstd", "none"] = "zstd",
    clock: Clock | None = None,
) -> ReplayLog:
    """Write a replay log from Arrow data in memory, replacing an existing one.

    Records are sorted by arrival (equal arrivals keep their order) and dealt out to the channels in blocks of up to
    1,024, so every channel spans the whole time; or to the channel of their key, with `partition_by`. Timestamps become
    microseconds in UTC; timestamps without a zone are taken as UTC.

    Args:
        data: a table or at least one batch, all of one schema.
        path: folder of the log.
        event_time: column with the time at which something happened; null if a record has none.
        arrival_time: column with the time at which it became known; never null.
        channels: number of channels, at least 1.
        partition_by: columns; all records with equal values in them go to one channel, in order of arrival.
        fingerprint: describes what the data was made from, to detect later whether the log is stale.
        notes: sentences for readers of the history.
        progress: called for every channel written.
        row_group_rows: records that a reader loads at once.
        compression: of the Parquet files; ``"none"`` is fastest to read if a reader loads few records at once.
        clock: dates the manifest; the machine's time by default.

    Raises:
        HistoryError: a time column is missing or does not hold times, an arrival is null, a time exceeds the range of
            microseconds, or `path` holds something else.
        RecordError: an event time or arrival more than 73,000 years from 1970.

    Example:
        >>> write_log(table, "rides.log", event_time="started", arrival_time="ended", channels=4)
    """
    import pyarrow.parquet as pq

    check_channels(channels)
    table = (
        data
        if isinstance(data, pa.Table)
        else pa.Table.from_batches([data] if isinstance(data, pa.RecordBatch) else data)
    )
    repeated = {name for name in table.column_names if table.column_names.count(name) > 1}
    if repeated:
        raise HistoryError(f"columns {sorted(repeated)} occur more than once: give each column its own name")
    time_column(table.schema, event_time, "event_time")
    time_column(table.schema, arrival_time, "arrival_time")
    event_times(table.column(event_time).combine_chunks(), event_time)
    arrivals = event_times(table.column(arrival_time).combine_chunks(), arrival_time)
    table = _in_log_types(table).combine_chunks()
    nulls = table.column(arrival_time).null_count
    if nulls:
        first = table.column(arrival_time).is_null().index(pa.scalar(True)).as_py()
        raise HistoryError(null_arrivals(arrival_time, nulls, f"row {first}"))
    order = np.argsort(arrivals, kind="stable")
    draft = LogDraft(path_of(path, "path"), event_time, arrival_time)
    schema = table.schema
    if partition_by:
        draft.partitioned = Partitioned(tuple(partition_by), "arrow")
        draft.order_column = free_name(schema.names)
        table = table.append_column(
            pa.field(draft.order_column, pa.int64(), nullable=False), pa.array(np.argsort(order, kind="stable"))
        )
        turns = _channels_of(table.select(list(partition_by)).take(pa.array(order)), channels)
    else:
        draft.block_rows = block_of(len(order))
        turns = np.arange(len(order)) // draft.block_rows % channels
    try:
        for channel in range(channels):
            rows = table.take(pa.array(order[turns == channel]))
            with writing(path):
                draft.add_channel()
                if rows.num_rows:
                    file = draft.folder / f"{channel}.parquet"
                    pq.write_table(
                        rows,
                        file,
                        compression=compression,
                        row_group_size=row_group_rows,
                        use_dictionary=_repetitive(table.schema, event_time, arrival_time),
                    )
                    draft.add_file(file)
            if progress is not None:
                progress("write", channel + 1, channels)
        with writing(path):
            draft.publish(schema, fingerprint or {}, notes, (clock or SystemClock()).now_us())
    finally:
        draft.discard()
    return ReplayLog.open(path)


def block_of(rows: int) -> int:
    """For how many records each channel has its turn in a log: few records in a short log, so that channels stay close
    to each other, and many in a long one, which is faster to read in order.

    Example:
        >>> block_of(3_000), block_of(400_000), block_of(10_000_000)
        (1, 195, 4882)
    """
    return max(1, min(BLOCK_MOST, rows // _BLOCKS))


def free_name(names: Sequence[str]) -> str:
    """The name of a column for the order of records that is none of `names`."""
    name = "$order"
    while name in names:
        name += "_"
    return name


def _channels_of(keys: pa.Table, channels: int) -> npt.NDArray[np.int64]:
    """The channel of each row; rows with equal keys have the same one. Keys are dealt out as they appear."""
    numbers = np.zeros(keys.num_rows, np.int64)
    for column in keys.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
    turn: npt.NDArray[np.int64] = np.argsort(np.argsort(first)) % channels
    return turn[numbers]


def _repetitive(schema: pa.Schema, *times: str) -> list[str]:
    """The columns for which a dictionary of values pays: times and fractions rarely repeat, and a dictionary of them
    takes space and time to decode."""
    return [each.name for each in schema if each.name not in times and not pa.types.is_floating(each.type)]


def _unreadable(folder: Path, error: OSError) -> HistoryError:
    return HistoryError(
        f"the replay log at {folder} cannot be read ({error.strerror}: {error.filename}): {remedy(error)}"
    )


def log_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a log's records: without metadata, and with every timestamp, also within structs, lists and maps,
    in microseconds and in UTC; timestamps without a zone (Spark's TIMESTAMP_NTZ) are taken as UTC."""
    return pa.schema([pa.field(column.name, _log_type(column.type), column.nullable) for column in schema])


def _log_type(kind: Any) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _log_type(part.type), part.nullable) for part in kind])
    if pa.types.is_list(kind):
        item = kind.value_field
        return pa.list_(pa.field(item.name, _log_type(item.type), item.nullable))
    if pa.types.is_map(kind):
        return pa.map_(_log_type(kind.key_type), _log_type(kind.item_type))
    own: pa.DataType = kind
    return own


def _in_log_types(table: pa.Table) -> pa.Table:
    """The table in the types of a log; nanoseconds are truncated.

    Raises:
        HistoryError: a time is too far from 1970 for microseconds.
    """
    schema = log_schema(table.schema)
    columns = [_cast(table.column(at), kept) for at, kept in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.ChunkedArray[Any], kept: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    if column.type == kept.type:
        return column
    options = pc.CastOptions(kept.type, allow_time_truncate=True)
    try:
        return column.cast(options=options)
    except pa.ArrowInvalid as error:
        row = bisect_left(range(len(column)), True, key=lambda last: not _fits(column.slice(0, last + 1), options))
        raise HistoryError(
            f"column {kept.name!r} has the time {str(error).rpartition(' ')[2]} in row {row}, stored as {column.type}: "
            "a replay log stores microseconds, which reach 292,000 years before and after 1970; fix the time or its "
            "unit, or make it null"
        ) from None


def _fits(column: pa.ChunkedArray[Any], options: pc.CastOptions) -> bool:
    try:
        column.cast(options=options)
    except pa.ArrowInvalid:
        return False
    return True


def check_channels(channels: object) -> None:
    """Reject an invalid number of channels.

    Raises:
        HistoryError: with the value.
    """
    if isinstance(channels, bool) or not isinstance(channels, Integral) or channels < 1:
        raise HistoryError(f"channels is {as_given(channels)}: write a whole number, at least 1")


def null_arrivals(column: str, count: int, first: str) -> str:
    """The sentence for records without an arrival."""
    return (
        f"arrival_time column {column!r} is null in {count} records, first in {first}: every record of a history must "
        "have an arrival time; fill it in (for example with the event time) or filter out those records"
    )
