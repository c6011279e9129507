"""`stop` and `cancel` wait for the end: afterwards the job's name and directory are free, unless the job waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb

NUMBERS = pa.table({"n": range(100_000)})
STATES = {"stop": "FINISHED", "cancel": "CANCELED"}
"""As Flink's stop and cancel end a job."""


def pipeline(look: Callable[[pa.RecordBatch], object] | None = None) -> wb.types.Pipeline:
    stream = wb.Stream.from_table(NUMBERS, rate=2_000)
    return stream.sink_to(wb.TableSink("numbers") if look is None else wb.CallbackSink(look))


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_the_next_run_has_the_name_and_the_directory(tmp_path: Path, end: str) -> None:
    for resume in (False, True, True):
        job = pipeline().run("again", checkpoint_dir=tmp_path, checkpoint_interval="50ms", resume=resume)
        getattr(job, end)()
        assert (job.state, job.complete) == (STATES[end], False)
        getattr(job, end)()  # of an ended job it is nothing


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_who_does_not_wait_goes_on_at_once(end: str) -> None:
    entered, opened = threading.Event(), threading.Event()

    def hold(batch: pa.RecordBatch) -> None:
        entered.set()
        opened.wait(60)

    job = pipeline(hold).run("held")
    assert entered.wait(60)
    getattr(job, end)(wait=False)
    assert not job._run.driver.ended.is_set()
    with pytest.raises(wb.errors.JobError, match=r"the job 'held' is still .*, and will end as soon as it can"):
        getattr(job, end)(timeout="20ms")
    opened.set()
    assert job.wait("60s") == STATES[end]


@pytest.mark.parametrize("end", ["stop", "cancel"])
@pytest.mark.parametrize("driver", ["live", "stepping"])
def test_a_job_may_end_itself(end: str, driver: str) -> None:
    ends: list[str] = []

    def end_it(batch: pa.RecordBatch) -> None:
        if not ends:
            getattr(wb.job("ends-itself"), end)()
            ends.append(end)

    started = pipeline(end_it).run("ends-itself", driver=driver)
    assert started.wait("60s") == STATES[end]
    assert ends == [end]


def test_a_stepping_job_takes_the_steps_to_its_end() -> None:
    job = pipeline().run("stepped", driver="stepping")
    job.stepper.next_record()
    job.stop()
    assert job.state == "FINISHED"
    assert job.table("numbers").num_rows > 0  # the last checkpoint has committed them


def test_an_interrupt_ends_the_waiting_and_not_the_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    job = pipeline().run("interrupted")

    def interrupt(event: threading.Event, seconds: float | None) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job._run.driver, "wait_for", interrupt)
        with pytest.raises(KeyboardInterrupt):
            job.stop()
    assert job.wait("60s") == "FINISHED"


def test_a_job_that_fails_while_it_stops_says_so() -> None:
    job = pipeline().run("fails", driver="stepping", restart=wb.restart.no_restart())
    job.stepper.next_record()
    job.fail("table[0]")  # in its next step
    with pytest.raises(wb.errors.JobError, match=r"the job 'fails' failed: table\[0\] was failed on purpose"):
        job.stop()
    job.stop()  # it is over, and has been heard of


def test_what_cannot_be_meant_is_refused_before_the_job_ends() -> None:
    job = pipeline().run("refuses")
    for arguments in ({"wait": "no"}, {"timeout": "soon"}, {"wait": False, "timeout": 5}):
        for end in (job.stop, job.cancel):
            with pytest.raises(wb.errors.SettingError):
                end(**arguments)
    assert job.state == "RUNNING"
    job.cancel()
