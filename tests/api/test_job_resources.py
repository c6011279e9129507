"""Resources of a running job besides its tasks: acquired at the start, kept by a heartbeat, released at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.kept.job_record import RECORD, JobRecord
from workbench.api.launching.job_resources import JobResources
from workbench.runtime.job.observer import JobObserver, Observers
from workbench.telemetry.recorder import Recorder
from workbench.telemetry.sampler import Sampler


class Told(JobObserver):
    def __init__(self, name: str, told: list[tuple[Any, ...]]) -> None:
        self._name, self._told = name, told

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        self._told.append((self._name, time_us, kind, text))

    def on_checkpoint(self, time_us: int, checkpoint_id: int) -> None:
        self._told.append((self._name, time_us, checkpoint_id))

    def on_end(self, time_us: int) -> None:
        self._told.append((self._name, time_us))


def test_all_observers_are_told_in_order() -> None:
    told: list[tuple[Any, ...]] = []
    both = Observers(Told("a", told), Told("b", told))
    both.on_event(1, "tune", "paused")
    both.on_checkpoint(2, 7)
    both.on_end(3)
    assert told == [
        *(("a", 1, "tune", "paused"), ("b", 1, "tune", "paused")),
        *(("a", 2, 7), ("b", 2, 7)),
        *(("a", 3), ("b", 3)),
    ]


def test_a_sampler_only_samples() -> None:
    """Nothing hangs on telemetry that the job needs: the end of a job is none of the sampler's business."""
    assert Sampler.on_end is JobObserver.on_end
    assert not {"keep", "holder", "directory", "heartbeat", "executor"} & {*dir(Sampler(Recorder()))}


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_at_the_end_all_is_given_free_and_written_down(tmp_path: Path, end: str) -> None:
    slow = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10)
    pipeline = slow.sink_to(wb.ParquetSink(tmp_path / "out"))
    job = pipeline.run("resources", checkpoint_dir=tmp_path / "checkpoints")

    def record() -> JobRecord:
        found = JobRecord.from_json((tmp_path / "checkpoints" / RECORD).read_bytes())
        assert found is not None
        return found

    assert record().state == "RUNNING"
    assert record().settings["buffer_timeout"] == "100ms"
    getattr(job, end)()
    assert record().state == {"stop": "FINISHED", "cancel": "CANCELED"}[end]
    again = pipeline.run("resources", checkpoint_dir=tmp_path / "checkpoints", resume=True)  # nobody holds them
    again.cancel()


def test_what_could_not_start_is_given_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.ParquetSink(tmp_path / "out"))
    taken: list[JobResources] = []
    take = JobResources.take

    def fail_behind(self: JobResources, begin: Any) -> None:
        take(self, begin)
        taken.append(self)
        raise OSError("no threads are left")

    with monkeypatch.context() as patch:
        patch.setattr(JobResources, "take", fail_behind)
        with pytest.raises(OSError, match="no threads are left"):
            pipeline.run("unstarted", checkpoint_dir=tmp_path / "checkpoints")
    assert "unstarted" not in wb.jobs()
    heartbeat = taken[0]._heartbeat
    assert heartbeat is not None
    assert not heartbeat._thread.is_alive()
    job = pipeline.run("unstarted", checkpoint_dir=tmp_path / "checkpoints")
    assert job.wait("60s") == "FINISHED"
