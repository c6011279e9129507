"""A position in one channel of a replay log, and the records that follow it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.replay.manifest import LogFile, Manifest, checked_arrivals
from workbench.elements import Int64s
from workbench.errors import HistoryError
from workbench.raised import first_line_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FEW = 4_096
"""Up to this many records are read by one thread: distributing their columns takes longer than reading them."""
_SMALL_BYTES = 16_384
"""A file of few records up to this size is read as a whole, and decoded once for all readers: most of that time does
not depend on its size."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a row group."""

    file: LogFile
    index: int
    first_row: int
    rows: int
    last_arrival_us: int
    previous_us: int | None


@dataclass(frozen=True, slots=True)
class Rest:
    """Records that follow a position without a gap, and their arrivals in microseconds."""

    batch: pa.RecordBatch
    arrivals: Int64s

    def first(self, rows: int) -> Rest:
        """At most the first `rows` of them."""
        return self if rows >= len(self.arrivals) else Rest(self.batch.slice(0, rows), self.arrivals[:rows])


class Cursor:
    """Reads one channel in order of arrival; holds at most one row group in memory, or one small file.

    Not shared between threads; close it when done.

    Attributes:
        channel: number of the channel.
        position: offset, from 0, of the next record in the channel.
        rows: records in the channel.

    Example:
        >>> cursor = log.cursor(0)
        >>> cursor.seek_time(parse_instant("2013-07-01", "start"))
        >>> batch = cursor.read(1024)
    """

    __slots__ = (
        "_arrivals",
        "_batch",
        "_folder",
        "_loaded",
        "_manifest",
        "_parquet",
        "_places",
        "_starts",
        "channel",
        "position",
        "rows",
    )

    def __init__(self, folder: Path, manifest: Manifest, channel: int) -> None:
        self.channel = channel
        self.position = 0
        self._folder = folder
        self._manifest = manifest
        self._places: list[_Place] = []
        previous_us: int | None = None
        row = 0
        for file in manifest.channels[channel]:
            for index, group in enumerate(file.groups):
                self._places.append(_Place(file, index, row, group.rows, group.last_arrival_us, previous_us))
                previous_us = group.last_arrival_us
                row += group.rows
        self.rows = row
        self._starts = [place.first_row for place in self._places]
        self._loaded: _Place | None = None
        self._parquet: tuple[LogFile, pq.ParquetFile] | None = None
        self._batch: pa.RecordBatch  # and its arrivals: those of the loaded row group
        self._arrivals: Int64s

    @property
    def exhausted(self) -> bool:
        """Whether no record follows."""
        return self.position >= self.rows

    def seek(self, offset: int) -> None:
        """Move to the record at `offset`; the number of rows means the end.

        Raises:
            HistoryError: the channel has no such offset.
        """
        if not 0 <= offset <= self.rows:
            raise HistoryError(
                f"offset {offset} is outside channel {self.channel} of {self._folder}, which has {self.rows} records"
            )
        self.position = offset

    def seek_time(self, arrival_us: int) -> None:
        """Move to the first record whose arrival is at or after `arrival_us`; to the end if there is none."""
        index = bisect_left(self._places, arrival_us, key=lambda place: place.last_arrival_us)
        if index == len(self._places):
            self.position = self.rows
            return
        place = self._places[index]
        self._load(place)
        self.position = place.first_row + int(np.searchsorted(self._arrivals, arrival_us, side="left"))

    def peek_arrival_us(self) -> int | None:
        """The arrival of the next record; None at the end."""
        if self.exhausted:
            return None
        place = self._load_position()
        return int(self._arrivals[self.position - place.first_row])

    def read(self, max_records: int, arrival_limit_us: int | None = None) -> pa.RecordBatch | None:
        """Return the next records, at most `max_records`, as a slice without copying, and move past them.

        A slice never spans two row groups, so it may hold fewer records than remain.

        Args:
            max_records: at least 1.
            arrival_limit_us: only records that arrived at or before this time.

        Returns:
            None when there is no such record.

        Raises:
            HistoryError: the file is missing or damaged, or its arrivals are null or decrease.
        """
        if self.exhausted:
            return None
        place = self._load_position()
        start = self.position - place.first_row
        stop = min(start + max_records, place.rows)
        if arrival_limit_us is not None:
            stop = min(stop, int(np.searchsorted(self._arrivals, arrival_limit_us, side="right")))
        if stop <= start:
            return None
        self.position = place.first_row + stop
        return self._batch.slice(start, stop - start)

    def rest(self, end: int) -> Rest:
        """The records from the position on that are in memory, without copying; does not move.

        Args:
            end: only records before this offset; it is behind the position.

        Raises:
            HistoryError: as for `read`.
        """
        place = self._load_position()
        start, stop = self.position - place.first_row, min(end - place.first_row, place.rows)
        return Rest(self._batch.slice(start, stop - start), self._arrivals[start:stop])

    def close(self) -> None:
        """Release the file and the loaded records; the cursor can be used again."""
        if self._parquet is not None:
            self._parquet[1].close()
        self._parquet = self._loaded = None

    def _load_position(self) -> _Place:
        if self._loaded is not None and 0 <= self.position - self._loaded.first_row < self._loaded.rows:
            return self._loaded
        place = self._places[bisect_right(self._starts, self.position) - 1]
        self._load(place)
        return place

    def _load(self, place: _Place) -> None:
        if self._loaded is place:
            return
        path = self._folder / place.file.name
        try:
            table = self._rows_of(place, path)
            if not table.schema.equals(self._manifest.schema):
                table = table.cast(self._manifest.schema)
            batch = _in_one(table)
            check_text(batch)
        except FileNotFoundError:
            raise HistoryError(f"{path} is missing: the replay log was deleted or rewritten; open it again") from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise HistoryError(
                f"{path} cannot be read ({first_line_of(error)}): the replay log is damaged; write it again"
            ) from error
        _check_count(path, batch.num_rows, place.rows)
        first_row = place.first_row - place.file.first_row
        name = self._manifest.arrival_time
        self._arrivals = checked_arrivals(batch.column(name), name, str(path), first_row, place.previous_us)
        self._batch = batch
        self._loaded = place

    def _rows_of(self, place: _Place, path: Path) -> pa.Table:
        file = place.file
        if file.bytes > _SMALL_BYTES or file.rows > _FEW:
            parquet = self._open(file, path)
            _check_count(path, _rows_in(parquet, place.index), place.rows)
            names = self._manifest.schema.names
            narrowed = None if parquet.schema_arrow.names == names else names
            rows = parquet.read_row_group(place.index, columns=narrowed, use_threads=place.rows > _FEW)
            return self._narrowed(rows)
        whole = _decoded(path.read_bytes(), file.rows, path)
        return self._narrowed(whole.slice(place.first_row - file.first_row, place.rows))

    def _narrowed(self, rows: pa.Table) -> pa.Table:
        names = self._manifest.schema.names
        return rows if rows.column_names == names or not set(names).issubset(rows.column_names) else rows.select(names)

    def _open(self, file: LogFile, path: Path) -> pq.ParquetFile:
        if self._parquet is None or self._parquet[0] is not file:
            import pyarrow.parquet as pq

            self.close()
            self._parquet = (file, pq.ParquetFile(path))
        return self._parquet[1]


@lru_cache(maxsize=128)
def _decoded(content: bytes, rows: int, path: Path) -> pa.Table:
    """The records of a small file, whose number must match: a file of some kilobytes may hold millions."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(content)) as parquet:
        _check_count(path, sum(_rows_in(parquet, group) for group in range(parquet.num_row_groups)), rows)
        return parquet.read(use_threads=False).combine_chunks()


def _rows_in(parquet: pq.ParquetFile, group: int) -> int:
    """The number of rows of a row group, according to the file; 0 if there is no such row group."""
    return parquet.metadata.row_group(group).num_rows if group < parquet.num_row_groups else 0


def _check_count(path: Path, rows: int, expected: int) -> None:
    if rows != expected:
        raise HistoryError(f"{path} has {rows} rows where the manifest counts {expected}: write the log again")


def _in_one(table: pa.Table) -> pa.RecordBatch:
    """The rows as one batch; usually they already are."""
    batches = table.to_batches()
    return (
        batches[0] if len(batches) == 1 else pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())
    )
