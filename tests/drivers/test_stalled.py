"""Jobs with a call that does not return: how this is reported, and how such a job ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.api.job import endings
from workbench.api.job import run as handle
from workbench.api.job.job import Job
from workbench.drivers.contract import stalls
from workbench.drivers.live import live
from workbench.jupyter.verbs.running import run_verb
from workbench.runtime.checkpoints import requests
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.storage import DirectoryStorage

NUMBERS = {"n": pa.int64()}
Record = dict[str, Any]


class Gate:
    """A function that does not return from record 50 on, until somebody opens."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def pass_on(self, record: Record) -> Record:
        if record["n"] == 50:
            self.entered.set()
            self.opened.wait(120)
        return record


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CANCELLATION_TIMEOUT_S", 0.3)
    monkeypatch.setattr(stalls, "NOTEWORTHY_US", 100_000)
    monkeypatch.setattr(handle, "APPLY_TIMEOUT_S", 0.3)


def numbers(function: Callable[[Record], Record], rows: int = 100_000) -> wb.types.Pipeline:
    table = pa.table({"n": pa.array(range(rows), pa.int64())})
    stream = wb.Stream.from_table(table, rate=500).rebalance()
    return stream.map(function, NUMBERS).uid("ask").sink_to(wb.TableSink("out"))


def run(pipeline: wb.types.Pipeline, **options: Any) -> Job:
    return pipeline.run("stalled", **{"checkpoint_interval": "50ms", "buffer_size": 8, **options})


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stalled ")]


CALL = r"ask\[0\] has been in one call of 'ask' since .* UTC, for \d+ s, at test_stalled.py, line \d+: self.opened.wait"


def test_who_waits_in_vain_is_told_for_whom(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    job = run(numbers(gate.pass_on))
    assert gate.entered.wait(60)
    for question in (
        lambda: job.rescale(2, timeout="300ms"),
        lambda: job.savepoint("kept", timeout="300ms"),
        lambda: job.wait("300ms"),
    ):
        with pytest.raises(wb.errors.JobError, match=CALL + r".*; job.cancel\(\) ends the job without waiting for it"):
            question()
    monkeypatch.setattr(endings, "PATIENCE_S", 0.1)  # who waits is told after ten seconds
    with pytest.raises(wb.errors.JobError, match="is still RUNNING, and will end as soon as it can: " + CALL):
        run_verb(["stop", "stalled"])
    assert "'ask'" in job.status()["stalled"]
    gate.opened.set()
    assert job.wait("60s") == "FINISHED"  # stopped: it has not read everything
    assert job.status()["stalled"] is None
    rows = job.table()["n"].to_pylist()
    assert len(rows) == len(set(rows)) > 50


def test_who_waits_for_an_operator_that_is_stalled_on_purpose_is_told_how_to_end_it() -> None:
    job = run(numbers(lambda record: record))
    job.faults.stall("ask")
    with pytest.raises(
        wb.errors.JobError, match=r"ask is stalled on purpose: job.faults.stall\(OPERATOR, False\) ends"
    ):
        job.rescale(2, timeout="300ms")
    job.cancel()
    job.wait("60s")


def test_a_canceled_job_leaves_a_call_behind_that_does_not_return(gate: Gate, tmp_path: Path) -> None:
    job = run(numbers(gate.pass_on, 200), checkpoint_dir=tmp_path)
    assert gate.entered.wait(60)
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    assert threads() == ["stalled tm-0/slot-0 #0"]
    notices = [event.text for frame in job.recorder.frames() for event in frame.events]
    assert "ask[0] is abandoned in a step that does not end; its output is discarded" in notices
    with pytest.raises(wb.errors.JobError, match="has ended"):
        job.pause()

    again = run(numbers(lambda record: record, 200), checkpoint_dir=tmp_path, resume=True)
    gate.opened.set()  # what it gives now goes nowhere
    assert again.wait("60s") == "FINISHED"
    assert again.table()["n"].to_pylist() == list(range(200))
    until(lambda: not threads())


@pytest.mark.parametrize("stopped", [False, True])
def test_a_canceled_job_waits_no_longer_for_storage_that_does_not_return(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(live, "WRITER_TIMEOUT_S", 0.6)
    monkeypatch.setattr(stalls, "LONG_WRITE_US", 100_000)
    monkeypatch.setattr(requests, "LAST_CHECKPOINT_TRIES", 0)
    written = DirectoryStorage.write

    def write(self: DirectoryStorage, *arguments: Any) -> Any:
        gate.pass_on({"n": 50})
        return written(self, *arguments)

    monkeypatch.setattr(DirectoryStorage, "write", write)
    settings = {"checkpoint_dir": tmp_path, "checkpoint_timeout": "300ms" if stopped else "10min"}
    job = run(numbers(lambda record: record, 200), **settings)
    assert gate.entered.wait(60)
    if stopped:  # its last checkpoint times out, which is why it fails
        job.stop(wait=False)
        until(lambda: job.state == "FAILED")
    stall = r"the storage of the checkpoints has been in one call since .* UTC, for \d+ s, at test_stalled.py, line \d+"
    with pytest.raises(wb.errors.JobError, match=stall + r".*; job.cancel\(\) ends the job without waiting for it"):
        job.wait("300ms")
    job.cancel()
    if stopped:
        with pytest.raises(wb.errors.JobError, match="the final checkpoint could not be taken"):
            job.wait("60s")
    else:
        assert job.wait("60s") == "CANCELED"
    assert job.status()["stalled"] is None
    with pytest.raises(wb.errors.CheckpointError, match="is in use by"):
        run(numbers(lambda record: record, 200), resume=True, **settings)
    gate.opened.set()
    until(lambda: not threads())
    settings["checkpoint_timeout"] = "10min"
    again = run(numbers(lambda record: record, 200), resume=True, **settings)
    assert again.wait("60s") == "FINISHED"
    assert again.table()["n"].to_pylist() == list(range(200))


def test_a_call_that_returns_in_time_is_not_left_behind(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CANCELLATION_TIMEOUT_S", 60.0)
    job = run(numbers(gate.pass_on))
    assert gate.entered.wait(60)
    job.cancel(wait=False)
    until(lambda: job.state == "CANCELLING")
    gate.opened.set()
    assert job.wait("60s") == "CANCELED"
    assert not threads()
    assert not [event for frame in job.recorder.frames() for event in frame.events if "left behind" in event.text]


def test_a_loop_that_is_left_behind_ends() -> None:
    entered = threading.Event()

    def loop(record: Record) -> Record:
        entered.set()
        while True:
            try:
                time.sleep(0.001)
            except Exception:  # noqa: BLE001  what tries again and again must be left as well
                continue

    job = run(numbers(loop))
    assert entered.wait(60)
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    until(lambda: not threads())


@pytest.mark.parametrize("what", ["slot", "coordinator"])
def test_a_job_that_waits_for_a_call_to_start_again_can_be_canceled(gate: Gate, what: str) -> None:
    """Its master waits for the threads, and hears neither a command nor that the job is canceled."""
    job = run(numbers(gate.pass_on))
    assert gate.entered.wait(60)
    place: Any = {"slot": "tm-0/slot-0"} if what == "slot" else {"coordinator": True}
    with pytest.raises(
        wb.errors.JobError, match=r"is too busy to do this now, and will do it as soon as it can: " + CALL
    ):
        job.faults.fail(**place)
    with pytest.raises(wb.errors.JobError, match=r"\(FAILING\) is too busy to do this now"):
        job.tune(buffer_timeout="5ms")
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    gate.opened.set()
    until(lambda: not threads())
    with pytest.raises(wb.errors.JobError, match="has ended"):
        job.pause()


def test_a_job_that_waits_for_a_call_when_it_is_rescaled_can_be_canceled(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged = threading.Event()
    made = CheckpointCoordinator._make_complete

    def make(self: Any, *arguments: Any) -> None:  # the barrier has gone through: only a timer calls the function now
        acknowledged.set()
        assert gate.entered.wait(60)
        made(self, *arguments)

    class Ticks(wb.functions.ProcessFunction):
        def process(self, record: Record, state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_processing_timer(ctx.processing_time + 1_000)

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            if acknowledged.is_set():
                gate.pass_on({"n": 50})
            ctx.register_processing_timer(ctx.processing_time + 1_000)

    monkeypatch.setattr(CheckpointCoordinator, "_make_complete", make)
    stream = wb.Stream.from_table(pa.table({"n": pa.array(range(100_000), pa.int64())}), rate=500)
    ticking = stream.key_by("n").process(Ticks(), NUMBERS).uid("ask").sink_to(wb.DiscardSink())
    job = run(ticking, checkpoint_interval=None)
    until(lambda: job.status()["records_in"] > 0)
    with pytest.raises(
        wb.errors.JobError, match=r"not yet at parallelism 2 after 2s: ask\[0\] has been in one call of 'ask'"
    ):
        job.rescale(2, timeout="2s")
    assert job.state == "RESTARTING"
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    assert not [event for frame in job.recorder.frames() for event in frame.events if "parallelism =" in event.text]
    gate.opened.set()
    until(lambda: not threads())


def test_a_thread_without_a_line_number_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of another thread has none for a moment."""
    frame = SimpleNamespace(f_code=SimpleNamespace(co_filename="/srv/storage.py"), f_lineno=None, f_back=None)
    writer = threading.current_thread()
    monkeypatch.setattr(sys, "_current_frames", lambda: {writer.ident: frame})
    assert "has been in one call since 1970-01-01 00:00:00 UTC" in stalls.told_of_writer(writer, 0, 10**9)
