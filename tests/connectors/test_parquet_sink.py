"""ParquetSink: any reader of part-*.parquet sees exactly the committed rows, whatever crashes when."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from sink_job import CRASH_POINTS, SCHEMA, NoOutput, SinkJob, crash_at, go_on, rows
from sink_machine import SinkMachine

from workbench.connectors.contract.base import SinkContext
from workbench.connectors.parts import part_sink
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.errors import CorruptCheckpointError, SettingError, SinkError
from workbench.operators.contract.base import OperatorContext


def visible(folder: Path) -> list[int]:
    """What another program reads."""
    return sorted(value for part in folder.glob("part-*.parquet") for value in pq.read_table(part)["value"].to_pylist())


def pending(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".pending-*"))


@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_crash_points(tmp_path: Path, point: str, killed: bool, parallelism: int) -> None:
    job = SinkJob(ParquetSink(tmp_path), None, parallelism=2)
    crash_at(point, job, lambda: visible(tmp_path), parallelism=parallelism, killed=killed)
    assert pending(tmp_path) == []
    go_on(job, lambda: visible(tmp_path), killed=killed)


def test_a_crash_between_two_renames(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None, parallelism=2)
    job.process(10)
    job.write(job.trigger())
    first = pending(tmp_path)[0]
    (tmp_path / first).rename(tmp_path / "part-00000001-0000-000.parquet")
    job.crash(killed=True)
    assert visible(tmp_path) == list(range(10))


def test_completing_a_later_checkpoint_commits_the_earlier_one(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(4)
    job.trigger()
    job.process(4)
    second = job.trigger()
    job.write(second)
    assert visible(tmp_path) == []
    job.notify(second)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "part-00000001-0000-000.parquet",
        "part-00000002-0000-000.parquet",
    ]
    assert visible(tmp_path) == list(range(8))


def test_a_snapshot_lists_what_is_not_yet_committed(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(4)
    first = job.trigger()
    job.process(4)
    second = job.trigger()
    job.write(first)
    job.notify(first)
    assert visible(tmp_path) == [0, 1, 2, 3]
    job.write(second)
    job.notify(second)
    assert visible(tmp_path) == list(range(8))
    job.checkpoint()
    assert job.stored[3][1][0]["pending"] == []


def test_files_of_subtasks_that_are_no_more_are_deleted(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None, parallelism=3)
    job.process(7)
    job.checkpoint()
    job.process(7)
    job.write(job.trigger(), subtasks=3)
    assert [name.split("-")[2] for name in pending(tmp_path)] == ["0000", "0001", "0002"]
    job.crash(parallelism=1)
    assert pending(tmp_path) == []
    assert visible(tmp_path) == list(range(7))


class ParquetMachine(SinkMachine):
    def made(self, parallelism: int) -> SinkJob:
        return SinkJob(ParquetSink(self.folder, compression="none"), None, parallelism)

    def visible(self) -> list[int]:
        return visible(self.folder)


TestParquetMachine = ParquetMachine.TestCase
TestParquetMachine.settings = settings(max_examples=80, stateful_step_count=30)


def test_many_rows_roll_to_further_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_sink, "_FILE_ROWS_MAX", 10)
    job = SinkJob(ParquetSink(tmp_path), None)
    for _ in range(5):
        job.process(6)
    assert len(pending(tmp_path)) == 2  # rows 0 to 11 and 12 to 23 are on disk; six are in memory
    job.checkpoint()
    assert [pq.read_metadata(path).num_rows for path in sorted(tmp_path.iterdir())] == [12, 12, 6]
    job.process(11)
    job.crash(killed=True)
    assert pending(tmp_path) == []
    assert visible(tmp_path) == list(range(30))


def test_a_fresh_start_beside_committed_rows_is_refused(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(4)
    job.checkpoint()
    with pytest.raises(SinkError, match=r"already holds 1 committed files.*choose another path, or resume"):
        ParquetSink(tmp_path).check_fresh(SinkContext("job", "out", pa.schema([])))
    fresh = SinkJob(ParquetSink(tmp_path), None)
    with pytest.raises(SinkError, match="already holds 1 committed files"):
        fresh.process(1)
    with pytest.raises(SinkError, match="already holds 1 committed files"):
        fresh.trigger()
    assert visible(tmp_path) == [0, 1, 2, 3]


def test_a_recovery_before_the_first_checkpoint_starts_again(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None, parallelism=2)
    job.process(4)
    job.write(job.trigger(), subtasks=1)
    job.crash()
    job.process(4)
    job.checkpoint()
    assert visible(tmp_path) == [0, 1, 2, 3]
    assert pending(tmp_path) == []


def test_never_behind_a_committed_epoch(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    for _ in range(2):
        job.process(3)
        job.checkpoint()
    job.start(1)
    with pytest.raises(
        SinkError, match=r"part-00000002-0000-000.parquet was committed by checkpoint 2, later than checkpoint 1"
    ):
        job.restore(1)
    assert visible(tmp_path) == list(range(6))


def test_lost_rows_are_named(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(3)
    job.write(job.trigger())
    (tmp_path / pending(tmp_path)[0]).unlink()
    with pytest.raises(SinkError, match=r"part-00000001-0000-000.parquet are lost"):
        job.crash(killed=True)


def test_a_damaged_pending_file_is_never_committed(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(3)
    job.write(job.trigger())
    path = tmp_path / pending(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptCheckpointError, match="does not match its checksum"):
        job.crash(killed=True)
    assert visible(tmp_path) == []


def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    job = SinkJob(ParquetSink(tmp_path), None)
    job.process(3)
    checkpoint_id = job.trigger()
    job.write(checkpoint_id)
    (tmp_path / "part-00000001-0000-000.parquet").write_bytes(b"mine")
    with pytest.raises(SinkError, match="would be overwritten"):
        job.notify(checkpoint_id)
    assert (tmp_path / "part-00000001-0000-000.parquet").read_bytes() == b"mine"


def test_a_failed_write_is_tried_again_by_the_next_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    job = SinkJob(ParquetSink(folder), None)
    job.process(3)
    first = job.trigger()
    shutil.rmtree(folder)
    with pytest.raises(SinkError, match="cannot write"):
        job.write(first)
    folder.mkdir()
    job.process(3)
    job.checkpoint()
    assert visible(folder) == list(range(6))


def test_a_sink_that_the_checkpoint_does_not_know_starts_afresh(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path).create(SCHEMA)
    sink.open(OperatorContext())
    sink.restore([])
    sink.process(rows([1, 2]), 0, NoOutput())
    sink.snapshot(9)
    assert pending(tmp_path) == []


def test_check_refuses_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ParquetSink(tmp_path / "new" / "folder").check(SCHEMA)
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SinkError, match="is a file, not a folder"):
        ParquetSink(file / "out").check(SCHEMA)
    with pytest.raises(SinkError, match="Parquet cannot hold"):
        ParquetSink(tmp_path).check(pa.schema([("i", pa.month_day_nano_interval())]))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(SinkError, match="cannot be written"):
        ParquetSink(tmp_path / "out").check(SCHEMA)
    with pytest.raises(SinkError, match="cannot create the folder"):
        ParquetSink(file / "out").create(SCHEMA).open(OperatorContext())


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown compression 'zst': did you mean 'zstd'"):
        ParquetSink("out", compression="zst")
