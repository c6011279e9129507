"""Stepping jobs run until something happens, return to any earlier step, and fork into another run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.durations import MAX_TIME
from workbench.errors import ExpressionError, JobError, SettingError
from workbench.telemetry.scene import Scene


def sums(name: str = "sums", values: tuple[int, ...] = (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)) -> Job:
    """Two sources, each with half of the numbers in turn, and the running sums of the even and the odd ones."""
    numbers = wb.Stream.from_table(pa.table({"n": values})).with_parallelism(2).uid("numbers")
    parity = numbers.with_columns(parity="CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END").with_parallelism(2)
    totals = parity.key_by("parity").aggregate(total=wb.sum("n")).uid("sum").sink_to(wb.TableSink("totals"))
    return totals.run(
        name, driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None
    )


@pytest.fixture
def job() -> Iterator[Job]:
    job = sums()
    yield job
    for one in wb.jobs().values():
        if not one.live and not one.over:
            one.cancel()
            one.wait()


def scene(job: Job) -> Scene:
    return job.stepper.scene().scene


def held(job: Job) -> dict[str, str]:
    """The running sums, by key."""
    return {what: value for task in scene(job).tasks for what, value in task.state if what in ("even", "odd")}


# verbs -----------------------------------------------------------------------------------------------------------


def test_next_record_stops_behind_each_record(job: Job) -> None:
    taken = []
    while job.stepper.next_record():
        taken.append(sum(int(str(row["numRecordsIn"])) for row in job.metrics()))
    assert taken == list(range(1, 25))  # twelve read by the sources, twelve taken by the sums


def test_until_goes_on_to_the_first_record_for_which_a_condition_is_true(job: Job) -> None:
    assert job.stepper.until("total >= 4", "sum")
    assert held(job) == {"even": "total=4", "odd": "total=2"}
    assert job.stepper.until(wb.col("n") == 5, "numbers")
    assert [task.state[0] for task in scene(job).tasks[:2]] == [("offset", "5"), ("offset", "4")]
    assert not job.stepper.until("total = 7", "sum")  # 2 4 8 12 18 24 and 1 2 5 8 13 18
    assert job.over


def test_until_hears_operators_that_came_after_a_failure(job: Job) -> None:
    job.fail("sum[0]")
    assert job.stepper.until("total = 24", "sum")
    assert job.status()["restarts"] == 1


def test_until_listens_no_longer_than_it_waits(job: Job) -> None:
    assert job.stepper.until("total > 0", "sum")
    assert job.stepper.driver.execution is not None
    for task in job.stepper.driver.execution.tasks:
        for link in task.links:
            assert len(link._main) == len(link.children) + len(link.edges)


def test_what_cannot_be_waited_for_is_refused(job: Job) -> None:
    with pytest.raises(JobError, match="unknown source or operator 'sums': did you mean 'sum'"):
        job.stepper.until("total = 7", "sums")
    with pytest.raises(ExpressionError):
        job.stepper.until("price > 7", "sum")
    with pytest.raises(JobError, match="the pipeline has no windows"):
        job.stepper.until_window_fires()


def test_until_a_window_fires() -> None:
    table = pa.table({"k": ["a"] * 6, "t": [second * 1_000_000 for second in range(6)]})
    counts = (
        wb.Stream.from_table(table, event_time="t", rate=1.0).with_parallelism(1).key_by("k").window(wb.tumbling("2s"))
    )
    job = counts.aggregate(n=wb.count()).sink_to(wb.TableSink("n")).run(
        "windows", driver="stepping", buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None
    )  # fmt: skip
    fired = []
    while job.stepper.until_window_fires("aggregate"):
        fired.append(job.stepper.scene().scene.task("aggregate[0]").watermark_us)
    assert fired == [1_999_999, 3_999_999, MAX_TIME]
    with pytest.raises(JobError, match="unknown operator with windows 'n'"):
        job.stepper.until_window_fires("n")


# back ------------------------------------------------------------------------------------------------------------


def test_every_past_step_looks_as_it_did() -> None:
    job = sums("past")
    pictures = [scene(job)]
    for number in itertools.count(1):
        if number == 7:
            job.checkpoint()
        elif number == 11:
            job.tune(buffer_timeout="disabled", checkpoint_interval="1s")
        elif number == 15:
            job.fail("sum[1]")
        while len(pictures) <= job.stepper.driver.taken:
            pictures.append(scene(job))  # a command takes a step or two of its own
        if not job.stepper.step():
            break
        pictures.append(scene(job))
    assert job.state == "FINISHED"
    last = job.stepper.driver.taken
    for number in (last - 1, 40, 20, 17, 13, 8, 7, 3, 0):
        assert job.stepper.back(job.stepper.driver.taken - number).scene == pictures[number]
    job.cancel()


def test_a_job_that_went_back_goes_the_same_way_again(job: Job) -> None:
    steps = [str(step) for step in job.stepper.step(40)]
    assert job.stepper.back(25).scene.step == 15
    assert [str(step) for step in job.stepper.step(25)] == steps[15:]
    assert job.stepper.back(1_000).scene.step == 0


def test_commands_behind_the_step_that_is_reached_are_forgotten(job: Job) -> None:
    job.stepper.step(5)
    job.pause()
    job.stepper.step(50)
    assert job.stepper.step() == []
    job.stepper.back(job.stepper.driver.taken - 5)
    assert not job.status()["paused"]
    assert job._run.journal is not None
    assert job._run.journal.commands == []
    assert job.wait() == "FINISHED"


def test_back_into_the_middle_of_a_savepoint(job: Job) -> None:
    job.stepper.step(6)
    job.savepoint("here")
    end = job.stepper.driver.taken
    assert end > 12
    job.stepper.back(end - 10)
    assert scene(job).in_progress == ((1, ()),)
    assert job.stepper.until_checkpoint()
    job.stepper.back(2)  # goes through the savepoint again, which had been broken off
    assert scene(job).step == job.stepper.driver.taken
    assert job.wait() == "FINISHED"


def test_tasks_stepped_out_of_turn_are_stepped_so_again(job: Job) -> None:
    for _ in range(4):
        job.stepper.driver.step_task("numbers[1]")
    job.stepper.step(6)
    before = scene(job)
    job.stepper.step(5)
    assert [task.state[0] for task in before.tasks[:2]] == [("offset", "2"), ("offset", "6")]
    assert job.stepper.back(5).scene == before


def test_looking_at_state_moves_nothing_that_back_would_miss(job: Job) -> None:
    job.stepper.step(9)
    assert job.operator_state("sum").get("odd") == {"total": 2}
    before = scene(job)
    job.stepper.step(4)
    assert job.stepper.back(4).scene == before


def test_a_job_that_has_ended_goes_back_and_ends_again(job: Job) -> None:
    assert job.wait() == "FINISHED"
    rows = job.table("totals").num_rows
    job.stepper.back(30)
    assert job.state == "RUNNING"
    assert job.table("totals").num_rows < rows
    assert job.wait() == "FINISHED"
    assert job.table("totals").num_rows == rows


def test_a_job_that_does_something_else_each_time_says_so() -> None:
    draw = random.Random(1)
    stream = wb.Stream.from_table(pa.table({"n": list(range(64))})).filter(lambda record: draw.random() < 0.5)
    job = stream.rebalance().sink_to(wb.DiscardSink()).run(
        "dice", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None
    )  # fmt: skip
    job.stepper.step(60)
    with pytest.raises(
        JobError, match="the job 'dice' cannot go back: it took different steps this time; functions that"
    ):
        job.stepper.back()
    assert job.stepper.driver.taken == 60
    job.cancel()


def test_what_a_second_run_would_do_outside_is_refused(tmp_path: pytest.TempPathFactory) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
    outside = numbers.sink_to(wb.ParquetSink(f"{tmp_path}/out")).run("outside", driver="stepping")
    with pytest.raises(JobError, match="'outside' cannot go back: its sink 'out' writes outside the job"):
        outside.stepper.back()
    outside.cancel()
    kept = numbers.sink_to(wb.TableSink("n")).run("kept", driver="stepping", checkpoint_dir=f"{tmp_path}/state")
    with pytest.raises(JobError, match="its checkpoints are kept in a checkpoint_dir"):
        kept.stepper.fork(0)
    kept.cancel()
    live = numbers.sink_to(wb.TableSink("n")).run("live")
    with pytest.raises(JobError, match="runs live and cannot be stepped"):
        live.stepper.back()
    assert live.wait("120s") == "FINISHED"


# fork ------------------------------------------------------------------------------------------------------------


def test_a_fork_goes_its_own_way_from_a_past_step(job: Job) -> None:
    job.stepper.step(30)
    here = scene(job)
    other = job.stepper.fork(12, checkpoint_interval="1s")
    assert scene(job) == here
    assert wb.job("sums-2") is other
    assert other.status()["checkpoint_interval"] == "1s"
    assert other.wait() == job.wait() == "FINISHED"
    assert job.stepper.driver.digests[:12] == other.stepper.driver.digests[:12]
    tables = [one.table("totals").sort_by([("parity", "ascending"), ("total", "ascending")]) for one in (job, other)]
    assert tables[0].equals(tables[1])  # I9: tuning changes no results


def test_a_fork_is_refused_where_it_cannot_begin(job: Job) -> None:
    job.stepper.step(3)
    with pytest.raises(JobError, match="step 9 has not been taken: the job is at step 3"):
        job.stepper.fork(9)
    with pytest.raises(SettingError, match="unknown setting 'bufer_timeout'"):
        job.stepper.fork(2, name="misspelt-fork", bufer_timeout="1s")
    assert "misspelt-fork" not in wb.jobs()
    with pytest.raises(JobError, match="stop it first"):
        job.stepper.fork(2, name="sums")


def test_compare_names_what_differs(job: Job) -> None:
    job.stepper.step(9)
    other = job.stepper.fork()
    other.stepper.step(1)
    assert wb.compare(job, other).differences == (("steps", "9", "10"), ("sum[0] even", "total=2", "total=4"))
    html = wb.compare(job, other)._repr_html_()
    assert html.count("<svg") == 2
    assert "total=4" in html


def test_of_a_long_way_back_only_the_last_frames_are_made_again() -> None:
    job = sums("long", tuple(range(400)))
    job.stepper.step(700)
    before = job.recorder.frames()[-1]
    job.stepper.step(1)
    job.stepper.back(1)
    after = job.recorder.frames()
    assert len(after) == 301
    assert after[-1].sequence == before.sequence == 700
    assert [task.metrics["numRecordsIn"] for task in after[-1].tasks] == [
        task.metrics["numRecordsIn"] for task in before.tasks
    ]
    job.cancel()
