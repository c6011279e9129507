"""TableSink: committed rows are exactly those before the latest complete checkpoint, whatever crashes when."""

from __future__ import annotations

import binascii
import shutil
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from sink_job import CRASH_POINTS, KEYS, SCHEMA, NoOutput, SinkJob, crash_at, go_on, resolve, rows
from sink_machine import SinkMachine

from workbench.connectors.parts.part_files import PartFile
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.connectors.tables.part_log import FAN_IN
from workbench.connectors.tables.table_sink import TableSink
from workbench.connectors.tables.tables import Tables
from workbench.errors import CheckpointError, CorruptCheckpointError, JobError, PlanError, SettingError, SinkError
from workbench.operators.contract.base import OperatorContext


def values(job: SinkJob) -> list[int]:
    return sorted(job.tables.read("t").column("value").to_pylist())


def latest(offset: int) -> list[int]:
    """The last value of each key among 0 .. offset - 1."""
    return sorted({value % KEYS: value for value in range(offset)}.values())


@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize(
    ("durable", "killed"),
    [(True, True), (True, False), (False, False)],  # memory alone does not survive the process
)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_crash_points(tmp_path: Path, point: str, durable: bool, killed: bool, parallelism: int) -> None:
    job = SinkJob(TableSink("t"), tmp_path if durable else None, parallelism=2)
    crash_at(point, job, lambda: values(job), parallelism=parallelism, killed=killed)
    assert job.tables.rows("t") == job.offset
    go_on(job, lambda: values(job), killed=killed)


def test_rows_are_invisible_before_completion_and_ordered_after(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path, parallelism=2)
    assert job.tables.read("t").schema == SCHEMA
    job.process(4)
    first = job.trigger()
    job.write(first)
    assert job.tables.rows("t") == 0
    job.process(4)
    second = job.trigger()
    job.write(second)
    job.notify(second)
    # By epoch, then subtask (key modulo 2), then arrival; completing the second commits the first too.
    assert job.tables.read("t").column("value").to_pylist() == [0, 2, 1, 3, 4, 6, 7, 5]


@pytest.mark.parametrize("durable", [True, False])
def test_completing_an_earlier_checkpoint_keeps_the_later_one_pending(tmp_path: Path, durable: bool) -> None:
    job = SinkJob(TableSink("t"), tmp_path if durable else None)
    job.process(4)
    first = job.trigger()
    job.process(4)
    second = job.trigger()
    job.write(first)
    job.notify(first)
    assert values(job) == [0, 1, 2, 3]
    job.write(second)
    job.notify(second)
    assert values(job) == list(range(8))


def test_a_restored_part_is_listed_by_one_subtask(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path, parallelism=1)
    job.process(4)
    job.checkpoint()
    job.crash(parallelism=3)
    job.checkpoint()
    assert [len(snapshot["parts"]) for snapshot in job.stored[2][1]] == [1, 0, 0]


class TableMachine(SinkMachine):
    upsert: tuple[str, ...] = ()

    def made(self, parallelism: int) -> SinkJob:
        return SinkJob(TableSink("t", self.upsert), self.folder if self.durable else None, parallelism)

    def visible(self) -> list[int]:
        return values(self.job)

    def check_exact(self) -> None:
        offset = self.job.completed_offset
        expected = latest(offset) if self.upsert else list(range(offset))
        assert self.visible() == expected
        assert self.job.tables.rows("t") == len(expected)


class MemoryMachine(TableMachine):
    durable = False


class UpsertMachine(TableMachine):
    upsert = ("key",)


QUICK = settings(max_examples=120, stateful_step_count=30)
TestDurableMachine = TableMachine.TestCase
TestDurableMachine.settings = QUICK
TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = QUICK
TestUpsertMachine = UpsertMachine.TestCase
TestUpsertMachine.settings = QUICK


def part_files(folder: Path) -> list[Path]:
    return sorted((folder / "tables" / "t").iterdir())


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete"])
def test_a_damaged_part_stops_the_restore(tmp_path: Path, damage: str) -> None:
    job = SinkJob(TableSink("t"), tmp_path)
    job.process(10)
    job.checkpoint()
    (part,) = part_files(tmp_path)
    data = bytearray(part.read_bytes())
    if damage == "delete":
        part.unlink()
    else:
        data[len(data) // 2] ^= 1
        part.write_bytes(data if damage == "flip" else data[:-1])
    with pytest.raises(CorruptCheckpointError, match=part.name):
        job.crash(killed=True)


@pytest.mark.parametrize("upsert", [[], ["key"]])
@pytest.mark.parametrize("durable", [True, False])
def test_parts_become_few_however_many_epochs_there_are(tmp_path: Path, upsert: list[str], durable: bool) -> None:
    job = SinkJob(TableSink("t", upsert), tmp_path if durable else None, parallelism=2)
    for _ in range(100):
        job.process(20)
        job.checkpoint()
    lines = [line for snapshot in job.stored[100][1] for line in snapshot["parts"]]
    if not upsert:
        assert sum(line["rows"] for line in lines) == 2_000
    # At most seven of each size, and each size is more than twice the next: of 100 equal parts at most 7 * log2(100).
    assert len(lines) <= 2 * 20
    if durable:
        job.crash(parallelism=3, killed=True)
    assert values(job) == (latest(2_000) if upsert else list(range(2_000)))
    job.process(10)
    job.checkpoint()
    assert values(job) == (latest(2_010) if upsert else list(range(2_010)))


def test_a_merged_file_gives_the_same_order_as_its_parts(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path, parallelism=2)
    for _ in range(FAN_IN + 2):
        job.process(5)
        job.checkpoint()
    before = job.tables.read("t")
    assert any("-to-" in line["file"] for line in job.stored[FAN_IN + 2][1][0]["parts"])
    job.crash(killed=True)
    assert job.tables.read("t").equals(before)


def test_rows_that_moved_to_another_subtask_are_newer_than_merged_ones(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t", ["key"]), tmp_path, parallelism=1)
    for parallelism in (2, 1, 3, 2):
        for _ in range(FAN_IN + 1):
            job.process(KEYS)
            job.checkpoint()
        job.crash(parallelism=parallelism, killed=True)
        assert values(job) == latest(job.offset)


def test_an_epoch_without_rows_has_no_file(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path)
    job.checkpoint()
    assert part_files(tmp_path) == []
    assert job.tables.rows("t") == 0


def test_never_behind_a_committed_epoch(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path)
    job.process(3)
    job.checkpoint()
    job.process(3)
    job.checkpoint()
    job.start(1)
    with pytest.raises(SinkError, match="rows of epoch 2, later than checkpoint 1"):
        job.restore(1)


def test_rows_kept_in_memory_only_are_missed() -> None:
    job = SinkJob(TableSink("t"), None)
    job.process(3)
    job.checkpoint()
    job.checkpoint()
    with pytest.raises(SinkError, match="kept in memory only"):
        job.crash(killed=True)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path)
    job.process(3)
    job.checkpoint()
    other = TableSink("t").create(pa.schema([("key", pa.string())]))
    other.open(OperatorContext(tables=Tables(), data_dir=tmp_path))
    with pytest.raises(CheckpointError, match="had the columns key int64, value int64 and now has key string"):
        other.restore(job.stored[1][1])


def test_a_failed_write_is_tried_again_by_the_next_checkpoint(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), tmp_path)
    job.process(3)
    first = job.trigger()
    shutil.rmtree(tmp_path / "tables")
    with pytest.raises(SinkError, match="cannot write"):
        job.write(first)
    (tmp_path / "tables" / "t").mkdir(parents=True)
    job.process(3)
    job.checkpoint()
    job.crash(killed=True)
    assert values(job) == list(range(6))


def test_upsert_keeps_the_latest_row_of_each_key() -> None:
    sink = TableSink("t", upsert_key=["key"]).create(SCHEMA)
    tables = Tables()
    sink.open(OperatorContext(tables=tables))
    for first in range(0, 200_000, 10_000):
        sink.process(rows(list(range(first, first + 10_000))), 0, NoOutput())
    snapshot = resolve(sink.snapshot(1))
    assert sorted(snapshot["rows-1-0"].column("value").to_pylist()) == list(range(199_993, 200_000))
    sink.notify_complete(1)
    assert sorted(tables.read("t").column("value").to_pylist()) == list(range(199_993, 200_000))


def test_superseded_rows_are_let_go() -> None:
    latest_rows = LatestRows(["key"], SCHEMA)
    for first in range(0, 400_000, 10_000):
        latest_rows.add(rows(list(range(first, first + 10_000))).batch)
        assert latest_rows.rows_held <= 65_536 + 2 * KEYS
    assert latest_rows.table().column("value").to_pylist() == list(range(400_000 - KEYS, 400_000))


updates = st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(0, 5), max_size=8)), max_size=12)


@pytest.mark.slow
@settings(max_examples=60)
@given(updates=updates, many=st.booleans())
def test_the_latest_row_is_that_of_the_latest_epoch(updates: list[tuple[int, list[int]]], many: bool) -> None:
    latest_rows = LatestRows(["key"], SCHEMA)
    naive: dict[int, tuple[int, int]] = {}
    number = 0
    for epoch, keys in updates:
        keys = keys * 20_000 if many and number < 500_000 else keys
        values = list(range(number, number + len(keys)))
        latest_rows.add(
            pa.record_batch([pa.array(keys, pa.int64()), pa.array(values, pa.int64())], schema=SCHEMA), epoch
        )
        for key, value in zip(keys, values, strict=True):
            if epoch >= naive.get(key, (0, 0))[0]:
                naive[key] = (epoch, value)
        number += len(keys)
    table = latest_rows.table()
    assert len(latest_rows) == len(naive)
    columns = table["key"].to_pylist(), latest_rows.epochs().tolist(), table["value"].to_pylist()
    assert {key: (epoch, value) for key, epoch, value in zip(*columns, strict=True)} == naive
    assert table["value"].to_pylist() == sorted(table["value"].to_pylist())


def test_upsert_after_rescaling_prefers_the_later_epoch(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t", ["key"]), tmp_path, parallelism=3)
    job.process(30)
    job.checkpoint()
    job.crash(parallelism=1, killed=True)
    job.process(30)
    job.checkpoint()
    job.crash(parallelism=2, killed=True)
    assert values(job) == latest(60) == list(range(53, 60))


def test_a_table_of_many_epochs_is_one_of_few_pieces() -> None:
    tables = Tables()
    tables.declare("t", SCHEMA)
    for epoch in range(1, 501):
        for subtask in (1, 0):
            value = 2 * epoch + subtask
            tables.commit("t", subtask, epoch, pa.table([[0], [value]], schema=SCHEMA))
        if epoch % 3 == 0:
            assert tables.rows("t") == 2 * epoch
    read = tables.read("t")
    assert read.column("value").to_pylist() == list(range(2, 1_002))
    assert read.column("value").num_chunks <= 12


def test_a_null_is_a_key() -> None:
    tables = Tables()
    tables.declare("t", SCHEMA, ["key"])
    tables.commit("t", 0, 1, pa.table([[None, 1, None], [1, 2, 3]], schema=SCHEMA))
    tables.commit("t", 0, 2, pa.table([[1], [4]], schema=SCHEMA))
    assert tables.read("t").to_pylist() == [{"key": None, "value": 3}, {"key": 1, "value": 4}]


def test_a_commit_is_made_once() -> None:
    tables = Tables()
    tables.declare("t", SCHEMA)
    for _ in range(2):
        tables.commit("t", 0, 3, pa.table([[1], [2]], schema=SCHEMA))
    tables.commit("t", 1, 3, pa.table([[5], [6]], schema=SCHEMA))
    assert tables.read("t").column("value").to_pylist() == [2, 6]
    assert (tables.last_epoch("t"), tables.last_epoch("t", 2)) == (3, 0)


def test_a_file_is_encoded_once_and_lets_its_rows_go(tmp_path: Path) -> None:
    calls: list[int] = []

    def encode() -> bytes:
        calls.append(1)
        return b"rows"

    part = PartFile(tmp_path / "part", encode)
    first, second = part.write(), part.write()
    assert first == second == f"crc32:{binascii.crc32(b'rows'):08x}"
    assert calls == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_tables_by_name() -> None:
    tables = Tables()
    tables.declare("delays", SCHEMA)
    tables.declare("late", SCHEMA)
    assert tables.names() == ["delays", "late"]
    with pytest.raises(JobError, match="unknown table 'delay': did you mean 'delays'"):
        tables.read("delay")
    tables.commit("late", 0, 1, pa.table([[1], [2]], schema=SCHEMA))
    tables.clear("late")
    assert tables.read("late") == SCHEMA.empty_table()
    assert tables.last_epoch("late") == 0


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../up", "a b", "ü"])
def test_names_that_would_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be used"):
        TableSink(name)


def test_check() -> None:
    TableSink("t", "key").check(SCHEMA)
    with pytest.raises(PlanError, match="unknown key column 'keys': did you mean 'key'"):
        TableSink("t", ["keys"]).check(SCHEMA)
    with pytest.raises(
        PlanError, match="the table 't' cannot have this key: key column 'key' has type list<item: int64>"
    ):
        TableSink("t", ["key"]).check(pa.schema([("key", pa.list_(pa.int64()))]))


def test_a_job_without_a_folder_may_get_one_later(tmp_path: Path) -> None:
    job = SinkJob(TableSink("t"), None)
    job.process(4)
    job.write(job.trigger())  # complete, but its rows are still in the snapshot
    job.data_dir = tmp_path
    job.crash(killed=True)
    assert values(job) == [0, 1, 2, 3]
    job.checkpoint()
    job.crash(killed=True)
    assert values(job) == [0, 1, 2, 3]
