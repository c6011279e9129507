"""A seek takes effect whatever the job does meanwhile: a checkpoint of a paused source, a rescaling, a restart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb


def history(tmp_path: Path) -> wb.History:
    """A record a second on two channels."""
    times = pa.array([i * 1_000_000 for i in range(1_000)], pa.timestamp("us"))
    table = pa.table({"n": pa.array(range(1_000), pa.int64()), "e": times, "a": times})
    return wb.History.from_arrow(table, tmp_path / "log", event_time="e", arrival_time="a", channels=2, progress=False)


def paused_job(tmp_path: Path, *, keyed: bool = False) -> wb.types.Job:
    """A replay, paused near its start."""
    stream = wb.Stream.replay(history(tmp_path), speed="30x")
    if keyed:  # one region, which restarts as a whole
        stream = stream.key_by("n").aggregate(count=wb.count()).select("n")
    job = stream.sink_to(wb.TableSink("out")).run(
        "sought",
        parallelism=2,
        checkpoint_dir=tmp_path / "c",
        checkpoint_interval="disabled",
        restart=wb.restart.fixed_delay(5, "2s"),
    )
    until(lambda: job.status()["records_out"] >= 10)
    job.pause()
    job.savepoint("paused")
    return job


def check(job: wb.types.Job) -> None:
    """What it had read before the pause, and what was sought: nothing between, and nothing twice."""
    job.resume()
    job.tune(speed="max")
    assert job.wait("120s") == "FINISHED"
    found = sorted(job.table("out")["n"].to_pylist())
    before = [n for n in found if n < 900]
    for channel in (0, 1):  # even numbers in one, odd ones in the other; a busy machine pauses one a record later
        read = [n for n in before if n % 2 == channel]
        assert read == list(range(channel, 2 * len(read), 2))
    assert 10 <= len(before) < 500
    assert found[len(before) :] == list(range(900, 1_000))


def seek(job: wb.types.Job) -> None:
    job.seek("1970-01-01T00:15:00")


def test_a_seek_behind_the_end_is_refused_with_the_times_that_there_are(tmp_path: Path) -> None:
    job = paused_job(tmp_path)
    with pytest.raises(wb.errors.SettingError) as refused:
        job.seek("1970-01-01T00:16:40")
    assert str(refused.value) == (
        "position is 1970-01-01 00:16:40, after the last record: the history covers arrival times from 1970-01-01 "
        "00:00:00 to 1970-01-01 00:16:39; job.stop() ends the job"
    )
    for position in (900, None, date(1970, 1, 1)):
        with pytest.raises(wb.errors.SettingError, match="write an ISO time such as"):
            job.seek(position)  # type: ignore[arg-type]
    job.seek("1970-01-01T00:16:39")  # the last record
    job.tune(speed="max")
    job.resume()
    assert job.wait("120s") == "FINISHED"
    assert max(n for n in job.table("out")["n"].to_pylist() if n < 999) < 900


def fail_and_seek(job: wb.types.Job) -> None:
    job.fail("source[0]")
    until(lambda: job.state != "RUNNING")
    seek(job)
    assert job.state == "RESTARTING"
    until(lambda: job.state == "RUNNING")


def seek_and_rescale(job: wb.types.Job) -> None:
    seek(job)
    job.rescale(3)


def seek_and_fail_over(job: wb.types.Job) -> None:
    seek(job)
    job.savepoint("sought")
    job.faults.fail(coordinator=True)


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True], ids=["a region", "the whole job"])
@pytest.mark.parametrize("action", [fail_and_seek, seek_and_rescale, seek_and_fail_over])
def test_a_seek_is_not_forgotten(tmp_path: Path, action: Callable[[wb.types.Job], None], keyed: bool) -> None:
    job = paused_job(tmp_path, keyed=keyed)
    action(job)
    check(job)


def test_a_savepoint_behind_a_seek_is_where_was_sought(tmp_path: Path) -> None:
    job = paused_job(tmp_path)
    seek(job)
    job.savepoint("sought")
    check(job.restore("sought"))


def test_a_seek_during_a_rescaling_holds_behind_it(tmp_path: Path) -> None:
    job = paused_job(tmp_path)
    sources = job._run.master.sources
    hold = sources.hold

    def hold_and_seek(held: bool, *, reading: bool = True) -> None:
        hold(held, reading=reading)
        if held:  # the rescaling's barrier is on its way
            sources.seek(900_000_000, reading=True)

    sources.hold = hold_and_seek  # type: ignore[method-assign]
    job.rescale(3)
    check(job)


def test_a_seek_among_the_barriers_of_a_checkpoint_is_behind_all_of_them(tmp_path: Path) -> None:
    stream = wb.Stream.replay(history(tmp_path), speed="max")
    job = stream.sink_to(wb.TableSink("out")).run(
        "sought",
        driver="stepping",
        parallelism=2,
        buffer_size=10,
        checkpoint_interval="disabled",
        restart=wb.restart.fixed_delay(5, "0s"),
    )
    driver, master = job.stepper.driver, job._run.master
    job.stepper.step(3)
    master.call(master.checkpoint)
    driver.step_master()
    driver.step_task("source[0]")
    master.call(lambda: master.sources.seek(900_000_000, reading=master.reading))
    driver.step_master()
    driver.step_task("source[1]")
    assert driver.run_until(lambda: master.coordinator.completed == 1)
    job.fail("source[0]")
    assert driver.run_until(lambda: job.over)
    assert sorted(job.table("out")["n"].to_pylist()) == list(range(1_000)), "the failure was behind the seek"
