"""Reads the sources of a pipeline in the driver, batch by batch.

The records of a batch are written to a log before Spark learns the offset after them. Spark may ask for a batch again,
even after a restart of the process, and then receives the same records from any kind of source. When Spark has
committed a batch, its log is deleted.

An offset is a JSON object: the number of the last batch, the position of each reader as in the kernel's checkpoints
(for a replay log ``{"0": 123, "1": 120}``, the rows by channel), the number of records before it, and whether
everything has been read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from workbench.clock import Clock, SystemClock
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.parts.part_files import write_pieces_durably
from workbench.errors import PlanError
from workbench.operators.contract.base import OperatorContext
from workbench.spark.carried.parcels import Ended, FromSplit, Item, NotRecords, Splits, packed
from workbench.spark.carried.plan import TICK, CarriedPlan
from workbench.spark.engine.rereading import times_only
from workbench.spark.listening import ListeningReader

Offset = dict[str, Any]
BEGIN: Offset = {"batch": 0, "ended": False, "positions": {}}
CHUNK_ROWS = 8_192
TICK_US = 1_000_000
FAR_US = 253_370_764_800_000_000
"""The mark at the end of the input: the year 9999."""
_ROWS = pa.schema([("task", pa.int32()), ("channel", pa.int32()), ("payload", pa.large_binary())])


class Reading:
    """The readers of all sources of a pipeline, and the log of what they have read.

    Args:
        plan: of the pipeline.
        folder: of the log.
        batch_rows: the maximum number of records in a batch, over all sources; it may be exceeded by one chunk.
        clocked: whether an operator uses the clock, so that there must be batches without records, too.
        only: the source that is read; empty: all.
        reread: whether executors read the records directly: then only times are read here, and nothing is logged.
    """

    def __init__(
        self,
        plan: CarriedPlan,
        folder: Path,
        batch_rows: int,
        *,
        clocked: bool = False,
        only: str = "",
        reread: bool = False,
    ) -> None:
        self._plan = plan
        self._reread = reread
        self._vertices = [vertex for vertex in plan.sources if only in ("", vertex.name)]
        self._folder = folder
        self._batch_rows = batch_rows
        self._clocked = clocked
        self._clock = SystemClock()
        self._readers: dict[tuple[str, int], _Reader] = {}
        self._at = -1
        self._ticked_us = 0

    def next_offset(self, start: Offset) -> Offset:
        """The offset after the next batch; `start` itself if there is nothing to read now."""
        if start["ended"]:
            return start
        known = self._folder / _name(start["batch"] + 1)
        if known.exists():  # read before a restart of the process, or before Spark lost the answer
            return cast("Offset", json.loads(pa.ipc.open_file(known).schema.metadata[b"offset"]))
        if self._at != start["batch"]:
            self._go_to(start)
        parcels, read = self._poll()
        ended = all(reader.ended for reader in self._readers.values())
        now_us = self._clock.now_us()
        ticks = self._clocked and (bool(parcels) or now_us - self._ticked_us >= TICK_US)
        if not parcels and not ended and not ticks:
            return start
        self._ticked_us = now_us
        offset = {"batch": start["batch"] + 1, "ended": ended, "positions": self._positions()}
        offset["records"] = start.get("records", 0) + read
        offset |= self._marks(start, ended)
        rows = [] if self._reread else [(task, 0, packed(items)) for task, items in parcels.items()]
        if ticks:
            rows += [(task, TICK, str(now_us).encode()) for task in self._plan.tasks]
        if not self._reread:
            self._write(known, offset, rows)
        self._at = offset["batch"]
        return offset

    def forget(self, end: Offset) -> None:
        """Delete the logs of batches that Spark has committed, up to `end`."""
        for file in self._folder.glob("*.arrow"):
            if int(file.stem) <= end["batch"]:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the readers."""
        for reader in self._readers.values():
            reader.close()
        self._readers = {}

    def _go_to(self, start: Offset) -> None:
        self.close()
        positions: Mapping[str, Any] = start["positions"]
        for vertex in self._vertices:
            for subtask in range(vertex.parallelism):
                reader = _Reader(self._plan, vertex, subtask, self._clock, self._reread)
                if vertex.name in positions:
                    reader.restore(list(positions[vertex.name].values()))
                    reader.largest = dict(start["largest"][vertex.name][str(subtask)])
                self._readers[vertex.name, subtask] = reader
        self._at = start["batch"]

    def _poll(self) -> tuple[dict[int, list[Item]], int]:
        """Read a chunk from each reader in turn until the batch is full or nothing is due; count the records."""
        parcels: dict[int, list[Item]] = {}
        left, active = self._batch_rows, list(self._readers.values())
        while active and left > 0:
            for reader in list(active):
                items, rows, waits = reader.poll(min(CHUNK_ROWS, max(left, 1)))
                if items:
                    parcels.setdefault(reader.task, []).extend(items)
                left -= rows
                if waits:
                    active.remove(reader)
        return parcels, self._batch_rows - left

    def _positions(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for (name, subtask), reader in self._readers.items():
            found.setdefault(name, {})[str(subtask)] = reader.position(name)
        return found

    def _marks(self, start: Offset, ended: bool) -> Offset:
        """The largest event time of each split, and the minimum over the splits that still have records: Spark's
        watermark is this minimum minus the bound on disorder."""
        largest: dict[str, dict[str, Any]] = {}
        marks = []
        for (name, subtask), reader in self._readers.items():
            largest.setdefault(name, {})[str(subtask)] = reader.largest
            if not reader.ended:
                marks.append(reader.mark())
        mark = FAR_US if ended else max(min(marks, default=0), start.get("mark", 0))
        return {"largest": largest, "mark": mark}

    def _write(self, file: Path, offset: Offset, rows: list[tuple[int, int, bytes]]) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], []]
        schema = _ROWS.with_metadata({"offset": json.dumps(offset)})
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROWS, strict=True)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        write_pieces_durably(str(file), [sink.getvalue()])


class _Reader:
    """One subtask's reader, and the event times that it has reached."""

    def __init__(self, plan: CarriedPlan, vertex: Any, subtask: int, clock: Clock, reread: bool) -> None:
        self.task = plan.task(vertex, subtask)
        self.ended = False
        self.largest: dict[str, int] = {}
        self._told: Splits | None = None
        spec = vertex.nodes[0].spec
        reader: SourceReader = (times_only(spec) if reread else spec).create()
        self._reader = reader if spec.resettable else ListeningReader(reader)
        self._reader.open(
            OperatorContext(
                job=plan.job,
                uid=vertex.name,
                subtask=subtask,
                parallelism=vertex.parallelism,
                max_parallelism=plan.graph.max_parallelism,
                clock=clock,
                run=plan.run,
            )
        )

    def restore(self, snapshots: list[Any]) -> None:
        """Continue from the positions of all subtasks."""
        self._reader.restore(snapshots)

    def position(self, name: str) -> Any:
        """Its position, as JSON."""
        snapshot = self._reader.snapshot()
        try:
            json.dumps(snapshot)
        except TypeError:
            raise PlanError(
                f"the position of the source {name!r} contains tables, but an offset of Spark is a JSON object: run "
                "this pipeline in the kernel"
            ) from None
        return snapshot

    def mark(self) -> int:
        """The event time that all its splits have reached."""
        if self._told is None:
            return 0
        if self._told.shared:
            return max(self.largest.values(), default=0)
        return min((self.largest.get(split, 0) for split in self._told.names), default=0)

    def poll(self, most: int) -> tuple[list[Item], int, bool]:
        """Return elements, the number of records in them, and whether nothing more is due now."""
        if self.ended:
            return [], 0, True
        items: list[Item] = self._splits()
        fetched = self._reader.poll(most)
        match fetched:
            case Fetched(records, split, dead_letters):
                if len(records):
                    if self._told is None or split not in self._told.names:
                        items.append(self._tell((*(self._told.names if self._told else ()), split)))
                    items.append(FromSplit(split, records))
                    if records.timestamps is not None:
                        largest = int(records.timestamps.max())
                        self.largest[split] = max(largest, self.largest.get(split, largest))
                if dead_letters is not None:
                    items.append(NotRecords(dead_letters))
                return [*items, *self._splits()], len(records), False
            case WaitUntil():
                return items, 0, True
            case Exhausted():
                self.ended = True
                return [*items, Ended()], 0, True

    def _splits(self) -> list[Item]:
        names = tuple(self._reader.splits())
        return [] if self._told is not None and names == self._told.names else [self._tell(names)]

    def _tell(self, names: tuple[str, ...]) -> Splits:
        self._told = Splits(names, self._reader.shares_event_time)
        return self._told

    def close(self) -> None:
        """Release its files."""
        self._reader.close()


def logged(folder: Path, number: int) -> pa.RecordBatch:
    """The rows of a batch in the log: task, channel and parcel."""
    with pa.OSFile(str(folder / _name(number))) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


def _name(number: int) -> str:
    return f"{number}.arrow"
