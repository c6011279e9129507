"""Jobs that continue with another parallelism without losing their position, stepped and live."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.api.job.job import Job
from workbench.connectors.contract.base import SourceReader
from workbench.connectors.contract.block_reader import BlockReader, Blocks
from workbench.plan import Node
from workbench.plan.logical import Input

ROWS = 900
KEYS = 7


def table(rows: int = ROWS) -> pa.Table:
    n = np.arange(rows)
    return pa.table({"n": n, "key": n % KEYS, "t": n * 1_000})


def source(**options: Any) -> wb.Stream:
    return wb.Stream.from_table(table(), event_time="t", out_of_orderness="1s", **options)


def counts() -> wb.Stream:
    return source().key_by("key").aggregate(count=wb.count())


def oracle() -> Counter[tuple[int, int]]:
    """(key, count so far) of every record."""
    return Counter((n % KEYS, n // KEYS + 1) for n in range(ROWS))


def pairs(job: Job) -> Counter[tuple[int, int]]:
    found = job.table("out")
    return Counter(zip(found["key"].to_pylist(), found["count"].to_pylist(), strict=True))


def stepped(pipeline: wb.types.Pipeline, **options: Any) -> Job:
    settings = {"driver": "stepping", "buffer_size": 16, "buffer_timeout": "0ms", "checkpoint_interval": None}
    return pipeline.run("rescaled", **{**settings, **options})


def events(job: Job) -> list[str]:
    frame = job.recorder.latest()
    assert frame is not None
    return [event.text for event in frame.events]


def slots(job: Job) -> list[str]:
    return sorted({row["slot"] for row in job.metrics()})


def test_one_to_three_to_two_gives_every_result_once() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(40)
    status = job.rescale(3)
    assert status["parallelism"] == 3
    assert slots(job) == ["tm-0/slot-0", "tm-0/slot-1", "tm-1/slot-0"]
    between = pairs(job).total()
    assert 0 < between < ROWS
    job.stepper.step(60)
    job.rescale(2)
    assert slots(job) == ["tm-0/slot-0", "tm-0/slot-1"]
    job.stepper.step(30)
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()
    assert job.status()["restarts"] == 0
    assert job.status()["failure"] is None
    assert [text for text in events(job) if "parallelism" in text] == [
        "parallelism = 3, it was 1",
        "parallelism = 2, it was 3",
    ]


def test_nothing_is_processed_twice() -> None:
    """A sink that keeps nothing back shows every record once, because sources wait behind the barrier."""
    seen: Counter[tuple[int, int]] = Counter()

    def note(batch: pa.RecordBatch) -> None:
        seen.update(zip(batch.column("key").to_pylist(), batch.column("count").to_pylist(), strict=True))

    job = stepped(counts().sink_to(wb.CallbackSink(note)))
    for parallelism in (3, 2, 4):
        job.stepper.step(15)
        job.rescale(parallelism)
    assert 0 < seen.total() < ROWS
    assert job.wait() == "FINISHED"
    assert seen == oracle()


def test_windows_keep_their_state_and_no_record_becomes_late() -> None:
    windows = source().key_by("key").window(wb.tumbling("100ms")).aggregate(count=wb.count())
    job = stepped(windows.sink_to(wb.TableSink("out")), parallelism=2)
    for parallelism in (1, 3):
        job.stepper.step(30)
        job.rescale(parallelism)
    assert job.wait() == "FINISHED"
    expected = Counter((n % KEYS, n // 100) for n in range(ROWS))
    found = job.table("out")
    starts = [start.timestamp() * 10 for start in found["window_start"].to_pylist()]
    keys = zip(found["key"].to_pylist(), starts, strict=True)
    assert dict(zip(keys, found["count"].to_pylist(), strict=True)) == expected
    assert job.status()["late_records"] == 0


def test_tuning_the_parallelism_rescales_and_applies_the_rest() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(20)
    status = job.tune(parallelism=2, buffer_timeout="5ms")
    assert (status["parallelism"], status["buffer_timeout"]) == (2, "5ms")
    assert job.tune(parallelism=2)["parallelism"] == 2  # nothing to do
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()
    assert events(job).count("parallelism = 2, it was 1") == 1


def test_fixed_operators_keep_their_parallelism() -> None:
    stream = source().with_parallelism(1).rebalance().filter("n >= 0").with_parallelism(2)
    job = stepped(stream.key_by("key").aggregate(count=wb.count()).sink_to(wb.TableSink("out")))
    job.stepper.step(20)
    job.rescale(4)
    tasks = Counter(row["task"].partition("[")[0] for row in job.metrics())
    assert tasks == {"table": 1, "filter": 2, "aggregate": 4}
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()


def test_a_chain_may_come_apart_and_close_again() -> None:
    """At parallelism 2 the filter is chained to the source, at others it is not; state is found by uid."""
    stream = source().filter("n >= 0").with_parallelism(2).key_by("key").aggregate(count=wb.count())
    job = stepped(stream.sink_to(wb.TableSink("out")), parallelism=2)
    for parallelism, vertices in ((3, 3), (2, 2), (1, 3)):
        job.stepper.step(40)
        job.rescale(parallelism)
        assert len(job.graph().vertices) == vertices
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()


def test_a_failure_after_rescaling_recovers_at_the_new_parallelism() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(40)
    job.rescale(3)
    job.stepper.step(40)
    job.fail(task="aggregate[2]")
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()
    assert (job.status()["restarts"], job.status()["parallelism"]) == (1, 3)


def test_a_failure_while_the_checkpoint_is_taken_leaves_the_job_as_it_was() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")), parallelism=2)
    job.stepper.step(40)
    master = job.stepper.driver.master
    begin = master.rescale

    def rescale_and_fail(rescale: Any) -> None:
        begin(rescale)
        master.crash("aggregate[1]")

    master.rescale = rescale_and_fail  # type: ignore[method-assign]
    with pytest.raises(wb.errors.JobError, match=r"stays at parallelism 2: aggregate\[1\] failed in the meantime"):
        job.rescale(3)
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()
    assert job.status()["parallelism"] == 2


def test_a_checkpoint_that_fails_lets_the_sources_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(20)
    storage = job.stepper.driver.master.storage

    def broken(*_: Any) -> Any:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write", broken)
        with pytest.raises(wb.errors.JobError, match=r"stays at parallelism 1: its checkpoint failed: .*no space left"):
            job.rescale(2)
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()


def test_a_plan_that_cannot_be_opened_leaves_the_job_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(40)
    opened = BlockReader.open

    def only_alone(reader: BlockReader, context: Any) -> None:
        if context.parallelism > 1:
            raise OSError("too many open files")
        opened(reader, context)

    monkeypatch.setattr(BlockReader, "open", only_alone)
    with pytest.raises(wb.errors.JobError, match="stays at parallelism 1: OSError: too many open files"):
        job.rescale(2)
    assert job.status()["parallelism"] == 1
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()


def test_a_paused_job_is_rescaled_and_stays_paused() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.stepper.step(40)
    job.pause()
    job.rescale(2)
    assert job.status()["paused"]
    committed = pairs(job)
    job.stepper.step(100)
    assert pairs(job) == committed
    job.resume()
    assert job.wait() == "FINISHED"
    assert pairs(job) == oracle()


def test_a_job_that_has_read_everything_ends_instead() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    driver = job.stepper.driver
    driver.run_until(lambda: driver.execution is not None and all(task.drained for task in driver.execution.sources))
    with pytest.raises(wb.errors.JobError, match="stays at parallelism 1: the job has ended"):
        job.rescale(3)
    assert pairs(job) == oracle()


@dataclass(frozen=True)
class Radio:
    """What is not heard is lost."""

    schema: ClassVar[pa.Schema] = table().schema
    event_time: ClassVar[None] = None
    kind: ClassVar[str] = "radio"
    resettable: ClassVar[bool] = False

    def describe(self) -> str:
        return "on air"

    def create(self) -> SourceReader:
        blocks = Blocks.dealt(1, ROWS)
        return BlockReader(blocks, lambda first, n: table().slice(first, n).to_batches()[0], None, None, "table")


def test_what_cannot_be_rescaled_says_why() -> None:
    on_air = wb.Stream(Input(Node(Radio(), (), Radio.schema, {}))).sink_to(wb.TableSink("out"))
    job = stepped(on_air)
    with pytest.raises(wb.errors.JobError, match="cannot be rescaled: its source 'radio' cannot be read again"):
        job.rescale(2)
    with pytest.raises(wb.errors.JobError, match="cannot be rescaled: its source 'radio'"):
        job.tune(parallelism=2, buffer_timeout="1ms")
    assert job.status()["buffer_timeout"] == "0ms"  # all or nothing
    job.wait()
    job = stepped(counts().sink_to(wb.TableSink("out")))
    with pytest.raises(
        wb.errors.PlanError, match="parallelism is 129, and the job runs with max_parallelism 128: take a"
    ):
        job.rescale(129)
    with pytest.raises(wb.errors.SettingError, match="parallelism is 0: it must be above zero"):
        job.rescale(0)
    with pytest.raises(wb.errors.SettingError, match="parallelism is 'two': write a whole number"):
        job.tune(parallelism="two")
    job.stop(wait=False)
    with pytest.raises(wb.errors.JobError, match="stays at parallelism 1: the job is about to end"):
        job.rescale(2)
    job.wait()
    with pytest.raises(wb.errors.JobError, match="has ended"):
        job.rescale(2)


def test_a_rescaled_job_is_resumed_from_disk(tmp_path: Path) -> None:
    pipeline = counts().sink_to(wb.TableSink("out"))
    job = stepped(pipeline, checkpoint_dir=tmp_path / "c")
    job.stepper.step(40)
    job.rescale(3)
    job.stepper.step(40)
    job.cancel()
    job.wait()
    again = stepped(pipeline, checkpoint_dir=tmp_path / "c", resume=True, parallelism=2)
    assert again.wait() == "FINISHED"
    assert pairs(again) == oracle()


class Gate:
    """Lets the records of a live job pass up to a number, so that something is left to be read after a rescaling."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows and batch.column("n")[0].as_py() >= ROWS // 2:
            self.reached.set()
            self.opened.wait(60)
        return batch


def test_live_jobs_are_rescaled_too() -> None:
    gate = Gate()
    stream = source().map_batches(gate).key_by("key").aggregate(count=wb.count())
    job = stream.sink_to(wb.TableSink("out")).run("live", buffer_size=16, checkpoint_interval=None)
    assert gate.reached.wait(60)
    rescaler = threading.Thread(target=lambda: job.rescale(3))
    rescaler.start()
    until(job.checkpoints)  # the one that it needs has begun: its request has come before the rest is read
    gate.opened.set()
    rescaler.join(60)
    assert job.wait("60s") == "FINISHED"
    assert pairs(job) == oracle()
    assert job.status()["parallelism"] == 3
    assert job.status()["restarts"] == 0


def test_a_restored_job_keeps_the_settings_in_force(tmp_path: Path) -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")), parallelism=1, checkpoint_dir=tmp_path / "c")
    job.savepoint("before")
    job.faults.fail(coordinator=True)
    job.stepper.driver.run_until(lambda: job.status()["restarts"] == 1 and job.state == "RUNNING")
    job.rescale(3)
    job.tune(buffer_timeout="7ms")
    again = job.restore("before")
    assert (again.status()["parallelism"], again.status()["buffer_timeout"]) == (3, "7ms")
    assert job.state == "CANCELED"
    assert again.wait() == "FINISHED"
    assert pairs(again) == oracle()


def test_a_job_that_failed_goes_back_to_its_savepoint(tmp_path: Path) -> None:
    poison = {"on": True}

    def check(batch: pa.RecordBatch) -> pa.RecordBatch:
        if poison["on"] and 500 in batch["n"].to_pylist():
            raise ValueError("poison")
        return batch

    stream = source().map_batches(check).key_by("key").aggregate(count=wb.count())
    job = stepped(stream.sink_to(wb.TableSink("out")), checkpoint_dir=tmp_path / "c", restart=wb.restart.no_restart())
    job.savepoint("before")
    with pytest.raises(wb.errors.JobError, match="poison"):
        job.wait()
    poison["on"] = False
    again = job.restore("before")
    assert again.wait() == "FINISHED"
    assert pairs(again) == oracle()


def test_a_savepoint_in_memory_goes_with_its_job() -> None:
    job = stepped(counts().sink_to(wb.TableSink("out")))
    job.savepoint("before")
    with pytest.raises(wb.errors.JobError, match="is in memory and is lost when the job ends"):
        job.restore("before")
    assert job.wait() == "FINISHED"
