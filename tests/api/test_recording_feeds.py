"""``job.record``: the records that a running job reads from then on are recorded, and can be replayed later."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.errors import CommittedRowsError, JobError, PlanError, SettingError

NUMBERS = pa.table({"n": range(400)})


def started(name: str, place: Path | None, rate: int = 200) -> wb.types.Job:
    stream = wb.Stream.from_table(NUMBERS, rate=rate).map_batches(lambda batch: batch)
    pipeline = stream.sink_to(wb.TableSink(name))
    return pipeline.run(name, parallelism=1, checkpoint_interval="50ms", checkpoint_dir=place)


def test_everything_after_the_restart_is_recorded_once(tmp_path: Path) -> None:
    job = started("recorded", tmp_path / "checkpoints")
    until(lambda: job.table().num_rows > 20)
    first = job
    job = job.record(tmp_path / "feed")
    assert (first.state, wb.jobs()["recorded"]) == ("FINISHED", job)
    begun = first.table().num_rows
    job.tune(rate=100_000)
    assert job.wait("60s") == "FINISHED"
    assert job.table()["n"].to_pylist() == list(range(400))  # nothing is lost or doubled in its own sink
    history = wb.History.from_recording(tmp_path / "feed", tmp_path / "log", progress=False)
    replayed = wb.Stream.replay(history, speed="600x").collect()
    assert sorted(replayed["n"].to_pylist()) == list(range(begun, 400))


def test_what_cannot_be_recorded_keeps_running(tmp_path: Path) -> None:
    job = started("kept", tmp_path / "checkpoints", rate=50)
    with pytest.raises(SettingError, match="unknown source 'clicks'"):
        job.record(tmp_path / "feed", "clicks")
    before = wb.Stream.from_table(NUMBERS).sink_to(wb.ParquetSink(tmp_path / "other")).run("other")
    assert before.wait("60s") == "FINISHED"
    with pytest.raises(CommittedRowsError, match="other"):
        job.record(tmp_path / "other")
    assert job.state == "RUNNING"
    job.cancel()
    with pytest.raises(JobError, match="has ended"):
        job.record(tmp_path / "feed")
    in_memory = started("memory", None, rate=50)
    with pytest.raises(JobError, match=r"keeps its checkpoints in memory.*record_to"):
        in_memory.record(tmp_path / "feed")
    in_memory.cancel()


def test_which_source_and_which_columns(tmp_path: Path) -> None:
    left, right = (wb.Stream.from_table(NUMBERS, rate=50).uid(uid) for uid in ("left", "right"))
    job = left.union(right).sink_to(wb.TableSink("two")).run("two", checkpoint_dir=tmp_path / "two")
    with pytest.raises(SettingError, match="several sources: name one, such as source='left'"):
        job.record(tmp_path / "feed")
    job.cancel()
    times = pa.table({"arrived_at": range(400)})
    job = wb.Stream.from_table(times, rate=50).sink_to(wb.TableSink("at")).run("at", checkpoint_dir=tmp_path / "at")
    with pytest.raises(PlanError, match="already has a column 'arrived_at'"):
        job.record(tmp_path / "feed")
    job.cancel()
