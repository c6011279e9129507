"""A source and a sink that somebody else wrote: the product learns of them by the objects that it is given alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.connectors.contract.base import (
    Exhausted,
    Fetched,
    Guarantee,
    Place,
    Sink,
    SinkContext,
    Source,
    SourceReader,
    WaitUntil,
)
from workbench.connectors.parts.sink_folder import SinkFolder
from workbench.elements import Records
from workbench.errors import CommittedRowsError
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot

PARTS = 4
CHUNK = 5


@dataclass(frozen=True)
class Numbers(Source):
    """The numbers 0 to ``PARTS * each - 1`` in parts that subtasks share, `CHUNK` of them every `pause_us`."""

    each: int
    pause_us: int = 0
    kind: ClassVar[str] = "numbers"
    schema: ClassVar[pa.Schema] = pa.schema({"n": pa.int64()})

    def describe(self) -> str:
        return f"{PARTS} times {self.each}"

    def create(self) -> SourceReader:
        return NumbersReader(self)

    def stream(self) -> Stream:
        return Stream.from_source(self)


class NumbersReader(SourceReader):
    shares_event_time = True

    def __init__(self, source: Numbers) -> None:
        self._source = source

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._next_us = 0
        self._positions = {part: 0 for part in range(PARTS) if part % context.parallelism == context.subtask}

    @property
    def rows_read(self) -> int:
        return sum(self._positions.values())

    def splits(self) -> Sequence[str]:
        return tuple(str(part) for part, position in self._positions.items() if position < self._source.each)

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        left = self.splits()
        if not left:
            return Exhausted()
        if self._clock.now_us() < self._next_us:
            return WaitUntil(self._next_us)
        self._next_us = self._clock.now_us() + self._source.pause_us if self._source.pause_us else 0
        part = min(map(int, left), key=lambda each: self._positions[each])
        begin = self._positions[part]
        end = self._positions[part] = min(begin + min(CHUNK, max_records), self._source.each)
        first = part * self._source.each
        batch = pa.record_batch([pa.array(range(first + begin, first + end), pa.int64())], schema=self._source.schema)
        return Fetched(Records(batch, None), str(part))

    def snapshot(self) -> Snapshot:
        return {"positions": {str(part): position for part, position in self._positions.items()}}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            for part, position in cast("dict[str, int]", snapshot["positions"]).items():
                if int(part) in self._positions:
                    self._positions[int(part)] = position

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class LinesSink(Sink):
    """A text file for each epoch and subtask, ``EPOCH-SUBTASK.txt``, with a JSON object to a line."""

    path: Path
    guarantee: ClassVar[Guarantee] = "exactly-once"

    @property
    def name(self) -> str:
        return self.path.name

    def describe(self) -> str:
        return f"lines in {self.path.name}"

    def create(self, schema: pa.Schema) -> Operator:
        return LinesLogic(self.path)

    def place(self) -> Place:
        return Place(os.path.realpath(self.path))

    def hold(self, context: SinkContext) -> SinkFolder:
        return SinkFolder(self.path.absolute(), context.job, context.lease, context.ended)

    def check_fresh(self, context: SinkContext) -> None:
        if self._epochs():
            raise CommittedRowsError(f"{self.name} has lines, which job {context.job!r} did not write: empty it")

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        last = max(cast("int", snapshot["checkpoint"]) for snapshot in snapshots)
        if later := [epoch for epoch in self._epochs() if epoch > last]:
            raise CommittedRowsError(f"{self.name} has lines of epoch {max(later)}, behind {context.checkpoint}")

    def committed(self) -> Iterable[object]:
        return [line for file in sorted(self.path.glob("*.txt")) for line in file.read_text().splitlines()]

    def _epochs(self) -> list[int]:
        return [int(file.name.partition("-")[0]) for file in self.path.glob("*.txt")]


class LinesLogic(Operator):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: list[Any] = []
        self._pending: dict[str, list[Any]] = {}

    def open(self, context: OperatorContext) -> None:
        self._subtask = context.subtask
        self._folder.mkdir(parents=True, exist_ok=True)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._rows += records.batch.to_pylist()

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        if self._rows:
            self._pending[f"{checkpoint_id}-{self._subtask}"] = self._rows
            self._rows = []
        return {"checkpoint": checkpoint_id, "pending": dict(self._pending)}

    def notify_complete(self, checkpoint_id: int) -> None:
        for name in [name for name in self._pending if int(name.partition("-")[0]) <= checkpoint_id]:
            self._write(name, self._pending.pop(name))

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        if self._subtask == 0:
            for snapshot in snapshots:
                for name, rows in cast("dict[str, list[Any]]", snapshot.get("pending", {})).items():
                    self._write(name, rows)

    def _write(self, name: str, rows: list[Any]) -> None:
        hidden = self._folder / f".{name}"
        hidden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        hidden.replace(self._folder / f"{name}.txt")
