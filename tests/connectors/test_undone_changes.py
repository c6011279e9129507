"""A changelog that comes again in other batches after a failure: what was written before it is taken back."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from databases import query
from postgresql_server import running as postgresql
from redis_server import running as redis
from sink_job import NoOutput

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Sink
from workbench.elements import Records
from workbench.errors import CheckpointError, SinkError
from workbench.operators.changelogs.row_kinds import FIELD
from workbench.operators.contract.base import Operator, OperatorContext

GIVEN = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.int64()), FIELD])
Change = tuple[int, int, int]
Counts = set[tuple[int, int, int]]


class Parcels(NoOutput):
    """Keeps what an operator emits."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def emit(self, records: Records) -> None:
        self.batches.append(records.batch)


def counted(sink: Callable[..., Sink]) -> tuple[Any, Sink, pa.Schema]:
    """The grouping, the sink behind it, and the changes between them."""
    stream = wb.Stream.from_table(pa.table({"k": [0], "v": [0]}))
    groups = stream.group_by("k").aggregate(n=wb.count(), total=wb.sum("v"))
    schema = groups._end.schema
    return groups._end.node.spec, sink().for_changes(("k",), schema), schema


class CountingJob:
    """Changes are counted by key in one task, and go to subtasks of a sink; every step on demand."""

    def __init__(self, sink: Callable[..., Sink], parallelism: int = 1) -> None:
        self.spec, self.sink, self.schema = counted(sink)
        self.clock = VirtualClock(1)
        self.offset = self.attempt = self.completed = 0
        self.run = "first"
        self.taken: dict[int, tuple[int, list[Any], list[Any]]] = {}
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        def context(subtask: int, width: int) -> OperatorContext:
            return OperatorContext(
                subtask=subtask, parallelism=width, attempt=self.attempt, run=self.run, clock=self.clock
            )

        self.groups: Operator = self.spec.create([GIVEN])
        self.groups.open(context(0, 1))
        self.subtasks = [self.sink.create(self.schema) for _ in range(parallelism)]
        for number, subtask in enumerate(self.subtasks):
            subtask.open(context(number, parallelism))

    def process(self, changes: list[Change]) -> None:
        """One batch."""
        columns = zip(*changes, strict=True)
        batch = pa.record_batch(
            [pa.array(values, kind) for values, kind in zip(columns, GIVEN.types, strict=True)], GIVEN
        )
        out = Parcels()
        self.groups.process(Records(batch, None), 0, out)
        for made in out.batches:
            of = made.column("k").to_numpy() % len(self.subtasks)
            for number, subtask in enumerate(self.subtasks):
                if (of == number).any():
                    subtask.process(Records(made.take(pa.array(np.flatnonzero(of == number))), None), 0, NoOutput())
        self.offset += len(changes)

    def flush(self) -> None:
        """The time has come to write what the subtasks have gathered."""
        self.clock.advance_to(self.clock.now_us() + 10_000_000)
        for subtask in self.subtasks:
            if subtask.next_time_us() is not None:
                subtask.on_time(self.clock.now_us(), NoOutput())

    def trigger(self) -> int:
        number = max(self.taken, default=0) + 1
        states = [subtask.snapshot(number) for subtask in self.subtasks]
        self.taken[number] = self.offset, [self.groups.snapshot(number)], states
        return number

    def complete(self, number: int, *, told: bool = True) -> None:
        self.completed = number
        for subtask in self.subtasks if told else ():
            subtask.notify_complete(number)

    def crash(self, parallelism: int, *, killed: bool) -> None:
        """Lose everything behind the last complete checkpoint."""
        self.attempt += 1
        if killed:
            self.attempt, self.run = 0, f"{self.run} again"
        self.start(parallelism)
        self.offset = 0
        if self.completed:
            self.offset, groups, states = self.taken[self.completed]
            self.groups.restore([{name: resolved(value) for name, value in state.items()} for state in groups])
            for subtask in self.subtasks:
                subtask.restore(states)
                subtask.notify_complete(self.completed)


def resolved(value: Any) -> Any:
    return value() if callable(value) else value


def truth(changes: list[Change]) -> Counts:
    left = Counter[tuple[int, int]]()
    for k, v, kind in changes:
        left[k, v] += -1 if kind & 1 else 1
    rows = [(k, v) for (k, v), count in left.items() for _ in range(count)]
    return {(key, sum(k == key for k, _ in rows), sum(v for k, v in rows if k == key)) for key in {k for k, _ in rows}}


def random_changes(chance: Random, count: int) -> list[Change]:
    """Rows come and go, often at once."""
    there: list[tuple[int, int]] = []
    changes: list[Change] = []
    for _ in range(count):
        if there and chance.random() < 0.5:
            k, v = there.pop(chance.randrange(len(there)) if chance.random() < 0.3 else -1)
            changes.append((k, v, 3))
        else:
            there.append((chance.randrange(4), chance.randrange(3)))
            changes.append((*there[-1], 0))
    return changes


def drive(sink: Callable[[], Sink], read: Callable[[], Counts], seed: int, *, totals: bool = True) -> None:
    """Batches of any size, writes, checkpoints and failures at any moment; without totals, they read as 0."""

    def wanted(count: int) -> Counts:
        return {(k, n, total * totals) for k, n, total in truth(changes[:count])}

    chance = Random(seed)
    changes = random_changes(chance, 60)
    job = CountingJob(sink, chance.choice((1, 2)))
    for _ in range(40):
        match chance.choice("pppfftck"):
            case "p" if job.offset < len(changes):
                job.process(changes[job.offset : job.offset + chance.choice((1, 1, 2, 9))])
            case "f":
                job.flush()
            case "t":
                number = job.trigger()
                if chance.random() < 0.7:
                    job.complete(number, told=chance.random() < 0.7)
            case "c" | "k" as verb:
                job.crash(chance.choice((1, 2, 3)), killed=verb == "k")
                if job.completed:
                    assert read() == wanted(job.offset), (seed, "after a failure")
    while job.offset < len(changes):
        job.process(changes[job.offset : job.offset + 7])
    job.complete(job.trigger())
    assert read() == wanted(len(changes)), seed


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_table_has_no_row_that_came_and_went_during_a_failure(engine: str, tmp_path: Path) -> None:
    address = f"{engine}:///{tmp_path}/out.db"

    def read() -> Counts:
        return set(query(address, "SELECT k, n, total FROM counts"))

    job = CountingJob(lambda: wb.SqlSink(address, "counts"))
    job.process([(1, 5, 0), (2, 7, 0)])
    job.complete(job.trigger())
    job.process([(3, 1, 0)])
    job.process([(1, 4, 0)])
    job.process([(2, 7, 3)])
    job.flush()
    assert read() == {(1, 2, 9), (3, 1, 1)}
    job.crash(1, killed=True)
    assert read() == {(1, 1, 5), (2, 1, 7)}
    job.process([(3, 1, 0), (1, 4, 0), (2, 7, 3), (3, 1, 3), (1, 4, 3), (2, 7, 0)])  # nothing to tell
    job.complete(job.trigger())
    assert read() == {(1, 1, 5), (2, 1, 7)}
    assert query(address, "SELECT count(*) FROM workbench_undo") == [(0,)]


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("duckdb", marks=pytest.mark.slow)])
def test_a_table_is_right_after_any_failures(engine: str, tmp_path: Path) -> None:
    for seed in range(5):
        address = f"{engine}:///{tmp_path}/{seed}.db"

        def read(address: str = address) -> Counts:
            return set(query(address, "SELECT k, n, total FROM counts"))

        drive(lambda address=address: wb.SqlSink(address, "counts"), read, seed)


@pytest.mark.slow
def test_a_table_of_postgresql_is_right_after_any_failures() -> None:
    with postgresql() as server:
        for seed in range(2):
            drive(
                lambda seed=seed: wb.SqlSink(server.url, f"counts{seed}"),
                lambda seed=seed: set(server.query(f"SELECT k, n, total FROM counts{seed}")),
                seed,
            )


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, "n"])
def test_hashes_of_redis_are_right_after_any_failures(value: str | None) -> None:
    with redis() as server:
        for seed in range(6):
            sink = wb.RedisSink(server.url, f"counts{seed}", upsert_key="k", value=value)
            drive(lambda sink=sink: sink, lambda sink=sink: hashes(sink), seed, totals=value is None)


def hashes(sink: wb.RedisSink) -> Counts:
    """The rows in Redis; of those with one value the key and it."""
    rows = [{name: int(text) for name, text in row} for row in sink.committed()]
    return {(row["k"], row["n"], row["total"]) if sink.value is None else (row[""], row["n"], 0) for row in rows}


def written_twice(folder: Path, *, goes_back: bool) -> tuple[wb.SqlSink, Any, dict[str, OperatorContext]]:
    """A table that has a row behind the last checkpoint, and the contexts of the run that wrote it and of the next."""
    _, sink, schema = counted(lambda: wb.SqlSink(f"sqlite:///{folder}/out.db", "counts"))
    contexts = {run: OperatorContext(run=run, clock=VirtualClock(1), goes_back=goes_back) for run in ("one", "two")}
    first = sink.create(schema)
    first.open(contexts["one"])
    first.process(Records(pa.record_batch([[5], [1], [7], pa.array([0], pa.int8())], schema), None), 0, NoOutput())
    first.on_time(0, NoOutput())
    return cast("wb.SqlSink", sink), sink.create(schema), contexts


def test_what_is_not_read_again_is_not_taken_back(tmp_path: Path) -> None:
    for goes_back, left in ((False, [(5, 1, 7)]), (True, [])):
        folder = tmp_path / str(goes_back)
        folder.mkdir()
        sink, second, contexts = written_twice(folder, goes_back=goes_back)
        second.open(contexts["two"])
        second.restore([{"writer": "job/operator", "checkpoint": 0}])
        assert list(sink.committed()) == left
        assert query(sink.url, "SELECT * FROM workbench_undo") == []


def test_another_job_that_takes_the_table_takes_nothing_back(tmp_path: Path) -> None:
    sink, second, contexts = written_twice(tmp_path, goes_back=True)
    second.open(dataclasses.replace(contexts["two"], job="another"))
    second.snapshot(1)
    assert list(sink.committed()) == [(5, 1, 7)]
    assert query(sink.url, "SELECT * FROM workbench_undo") == []


def test_notes_that_were_changed_are_named(tmp_path: Path) -> None:
    for value, error, sentence in (
        (b"nonsense", SinkError, "the notes of 'job/operator' beside the table 'counts' .* are damaged"),
        (of_other_columns(), CheckpointError, "had the columns n int64 and now has k int64"),
    ):
        folder = tmp_path / sentence[:9]
        folder.mkdir()
        sink, second, contexts = written_twice(folder, goes_back=True)
        with closing(sqlite3.connect(folder / "out.db")) as database, database:
            database.execute("UPDATE workbench_undo SET changes = ?", (value,))
        second.open(contexts["two"])
        with pytest.raises(error, match=sentence):
            second.snapshot(1)
        assert list(sink.committed()) == [(5, 1, 7)]


def of_other_columns() -> bytes:
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, pa.schema({"n": pa.int64()})) as stream:
        stream.write_batch(pa.record_batch({"n": [1]}))
    return cast("bytes", written.getvalue().to_pybytes())
