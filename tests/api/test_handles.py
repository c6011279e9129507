"""Handles of jobs: one for each name, only for jobs of this process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from multiprocessing.connection import Connection

import pyarrow as pa
import pytest

import workbench as wb

SLOW = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10).sink_to(wb.TableSink("out"))


def test_of_two_that_begin_at_once_under_one_name_the_second_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first = SLOW.run("one")
    monkeypatch.setattr(
        "workbench.api.launching.launch.check_free", lambda name: None
    )  # it looked before the first was known
    with pytest.raises(wb.errors.JobError, match="a job 'one' is RUNNING: stop it first"):
        SLOW.run("one")
    assert wb.jobs()["one"] is first
    assert first.state == "RUNNING"


def test_a_handle_is_not_pickled() -> None:
    job = SLOW.run("kept")
    with pytest.raises(TypeError, match="the job 'kept' runs in this process, and its handle cannot be pickled"):
        pickle.dumps(job)


def _ask(job: wb.types.Job, answers: Connection) -> None:
    told = []
    for ask in (job.checkpoint, job.wait, job.stop, job.cancel, lambda: job.savepoint("x"), lambda: job.rescale(2)):
        try:
            told.append(str(ask()))
        except wb.errors.JobError as error:
            told.append(str(error))
    answers.send((told, list(wb.jobs())))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_no_part_in_the_jobs_of_its_parent() -> None:
    job = SLOW.run("parents")
    answers, end = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_ask, args=(job, end))
    child.start()
    told, jobs = answers.recv()
    child.join()
    assert jobs == []
    assert len(told) == 6
    for sentence in told:
        assert f"the job 'parents' runs in process {os.getpid()}, from which this one was forked" in sentence
    assert job.state == "RUNNING"


def test_a_pipeline_runs_again_under_another_architecture():
    numbers = wb.Stream.from_table(pa.table({"n": range(2_000)}), rate=1_000)
    job = numbers.sink_to(wb.TableSink("n")).run("under", checkpoint_interval="1s")
    job.tune(buffer_timeout="7ms")
    with pytest.raises(wb.errors.SettingError, match="unknown fault_tolerance 'storm'"):
        job.run_again("storm")
    assert not job.over
    again = job.run_again(wb.transactions(coalesce=100))
    assert job.over
    assert wb.job("under") is again
    shown = again.status()
    assert shown["fault_tolerance"] == "transactions:coalesce=100,strong=true,store=memory"
    assert (shown["buffer_timeout"], shown["checkpoint_interval"]) == ("7ms", "1s")
    again.tune(rate="max")
    assert again.wait("60s") == "FINISHED"
    assert sorted(again.table()["n"].to_pylist()) == list(range(2_000))
    counted = numbers.key_by("n").window(wb.windows.count_tumbling(2)).aggregate(c=wb.count())
    refused = counted.sink_to(wb.TableSink("n")).run("windows-of-two")
    with pytest.raises(wb.errors.PlanError, match="which end with records and not with a batch"):
        refused.run_again("micro-batches")
    assert not refused.over
    refused.cancel()
