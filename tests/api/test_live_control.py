"""Actions of a user on a running job: rates, buffers, intervals, failed TaskManagers, guarantees."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.api.job.tuning import Tuning
from workbench.runtime.job.master import Master

SECOND = 1_000_000


def source(rows: int = 100_000, **options: Any) -> wb.Stream:
    return wb.Stream.from_table(pa.table({"n": pa.array(range(rows), pa.int64())}), **options)


def stepped(pipeline: wb.types.Pipeline, **options: Any) -> Job:
    return pipeline.run("controlled", **{"driver": "stepping", "checkpoint_interval": None, **options})


def read(job: Job, source: str = "table") -> int:
    return sum(row["numRecordsIn"] for row in job.metrics() if row["task"].startswith(source + "["))


def run_for(job: Job, seconds: float) -> None:
    end_us = job.stepper.driver.clock.now_us() + int(seconds * SECOND)
    job.stepper.driver.run_until(lambda: job.stepper.driver.clock.now_us() >= end_us)


def rate_over(job: Job, seconds: float, source: str = "table") -> float:
    before = read(job, source)
    run_for(job, seconds)
    return (read(job, source) - before) / seconds


# rates -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rate_is_tuned_up_down_and_off() -> None:
    job = stepped(source(5_000, rate=100.0).rebalance().sink_to(wb.TableSink("out")), parallelism=2)
    assert job.status()["rate"] == "100"
    assert rate_over(job, 2) == pytest.approx(100, rel=0.05)
    assert job.tune(rate=400)["rate"] == "400"
    assert rate_over(job, 2) == pytest.approx(400, rel=0.05)
    job.tune(rate="20")
    assert rate_over(job, 2) == pytest.approx(20, rel=0.1)
    assert job.tune(rate="max")["rate"] == "max"
    assert job.wait() == "FINISHED"
    assert sorted(job.table("out")["n"].to_pylist()) == list(range(5_000))


def test_a_source_without_a_limit_gets_one_within_a_step() -> None:
    job = stepped(source().sink_to(wb.TableSink("out")), buffer_size=100)
    job.stepper.step(1)
    job.tune(rate=200)
    assert rate_over(job, 2) == pytest.approx(200, rel=0.05)


def test_a_tuned_rate_outlives_a_failure_and_a_rescaling() -> None:
    job = stepped(source(rate=1_000.0).sink_to(wb.TableSink("out")))
    job.tune(rate=150)
    run_for(job, 0.5)
    job.fail(task="table[0]")
    job.stepper.driver.run_until(lambda: job.status()["restarts"] == 1 and job.state == "RUNNING")
    assert rate_over(job, 2) == pytest.approx(150, rel=0.05)
    job.rescale(3)
    assert rate_over(job, 2) == pytest.approx(150, rel=0.05)


def test_one_of_several_sources_is_tuned_by_its_name() -> None:
    both = source(rate=50.0).uid("slow").union(source(rate=50.0).uid("fast")).sink_to(wb.TableSink("out"))
    job = stepped(both)
    assert job.tune(rate={"fast": 200})["rate"] == "slow:50, fast:200"
    before = read(job, "slow"), read(job, "fast")
    run_for(job, 2)
    assert read(job, "slow") - before[0] == pytest.approx(100, rel=0.05)
    assert read(job, "fast") - before[1] == pytest.approx(400, rel=0.05)
    assert job.tune(rate="slow:500")["rate"] == "slow:500, fast:200"
    with pytest.raises(wb.errors.SettingError, match="unknown source with a rate 'fats': did you mean 'fast'"):
        job.tune(rate={"fats": 1})


def test_past_and_present_have_rates_of_their_own() -> None:
    stream = wb.Stream.hybrid(source(900, rate=100.0), source(rate=50.0))
    job = stepped(stream.sink_to(wb.TableSink("out")))
    assert job.status()["rate"] == "hybrid.history:100, hybrid.live:50"
    assert rate_over(job, 2, "hybrid") == pytest.approx(100, rel=0.05)
    assert job.tune(rate="hybrid.history:400")["rate"] == "hybrid.history:400, hybrid.live:50"
    assert rate_over(job, 1, "hybrid") == pytest.approx(400, rel=0.05)
    run_for(job, 2)  # the past is read
    assert rate_over(job, 2, "hybrid") == pytest.approx(50, rel=0.05)
    job.tune(rate={"hybrid.live": 200})
    job.rescale(2)
    assert rate_over(job, 2, "hybrid") == pytest.approx(200, rel=0.05)
    with pytest.raises(wb.errors.SettingError, match=r"'hybrid': did you mean 'hybrid.live'\? Valid: hybrid.history"):
        job.tune(rate={"hybrid": 1})


def test_only_the_part_that_has_a_rate_is_tuned() -> None:
    past = source(10, event_time=wb.watermarks.INGESTION)
    live = wb.Stream.from_socket(
        "127.0.0.1", 9, past.schema, format="json", event_time=wb.watermarks.INGESTION, retries=None
    )
    job = stepped(wb.Stream.hybrid(past, live).uid("clicks").sink_to(wb.TableSink("out")))
    assert job.tune(rate=5)["rate"] == "5"
    with pytest.raises(wb.errors.SettingError, match=r"Valid: clicks.history"):
        job.tune(rate={"clicks.live": 5})


@pytest.mark.parametrize("value", [0, -1, "quick", float("nan"), float("inf"), None])
def test_a_rate_that_is_none_is_refused(value: Any) -> None:
    job = stepped(source().sink_to(wb.TableSink("out")))
    with pytest.raises(wb.errors.SettingError, match="write records per second, above zero, or 'max'"):
        job.tune(rate=value)


def test_what_a_job_has_no_use_for_is_refused(tmp_path: Any) -> None:
    job = stepped(source().sink_to(wb.TableSink("out")))
    with pytest.raises(wb.errors.SettingError, match="speed applies only to a replayed history"):
        job.tune(speed="10x")
    job.cancel()
    job.wait()
    times = pa.array([0, SECOND], pa.timestamp("us"))
    history = wb.History.from_arrow(
        pa.table({"e": times, "a": times}), tmp_path / "log", event_time="e", arrival_time="a", progress=False
    )
    job = stepped(wb.Stream.replay(history, speed="1x").sink_to(wb.TableSink("out")))
    assert job.status()["rate"] is None
    with pytest.raises(
        wb.errors.SettingError, match=r"rate applies only to sources that read at a rate.*a replay has a speed"
    ):
        job.tune(rate=5)


# the other settings ------------------------------------------------------------------------------------------------


def test_buffer_size_and_timeout_act_on_the_next_step() -> None:
    job = stepped(source(rate=100.0).rebalance().sink_to(wb.TableSink("out")), buffer_timeout="1s", buffer_size=10)
    run_for(job, 2)
    execution = job.stepper.driver.execution
    assert execution is not None
    [channel] = execution.channels
    assert channel.records_sent == 10 * channel.buffers_sent
    job.tune(buffer_size=25)
    run_for(job, 1)
    sent = (channel.buffers_sent, channel.records_sent)
    run_for(job, 2)
    assert (channel.records_sent - sent[1]) / (channel.buffers_sent - sent[0]) == 25
    job.tune(buffer_timeout="0ms")
    run_for(job, 0.5)
    sent = (channel.buffers_sent, channel.records_sent)
    run_for(job, 1)
    assert channel.records_sent - sent[1] == channel.buffers_sent - sent[0]
    assert job.tune(buffer_timeout="disabled")["buffer_timeout"] == "disabled"
    run_for(job, 0.5)
    sent = (channel.buffers_sent, channel.records_sent)
    run_for(job, 1)
    assert (channel.records_sent - sent[1]) / (channel.buffers_sent - sent[0]) == 25


def test_the_checkpoint_interval_acts_from_now_on() -> None:
    job = stepped(source(rate=100.0).sink_to(wb.TableSink("out")))
    run_for(job, 3)
    assert job.status()["checkpoints"] == 0
    job.tune(checkpoint_interval="1s")
    run_for(job, 3.5)
    assert job.status()["checkpoints"] == 3
    job.tune(checkpoint_interval="disabled")
    run_for(job, 5)
    assert job.status()["checkpoints"] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"buffer_timeout": 5}, "buffer_timeout is 5, which has no unit"),
        ({"buffer_size": 0}, "buffer_size is 0: it must be above zero"),
        ({"checkpoint_interval": "0"}, "checkpoint_interval is 0: write a time such as '5s'"),
        ({"parallelism": -2}, "parallelism is -2: it must be above zero"),
        ({"speeed": 2}, "unknown setting 'speeed': did you mean 'speed'"),
        ({"slots_per_taskmanager": 4}, "unknown setting 'slots_per_taskmanager'"),
        ({"buffer_size": 7, "rate": -1}, "rate is -1"),
    ],
)
def test_a_wrong_setting_changes_nothing(settings: dict[str, Any], message: str) -> None:
    job = stepped(source().sink_to(wb.TableSink("out")))
    before = {name: job.status()[name] for name in wb.SETTINGS if name != "speed"}
    with pytest.raises(wb.errors.SettingError, match=message):
        job.tune(**settings)
    assert {name: job.status()[name] for name in before} == before


def test_of_two_people_who_tune_at_once_the_second_is_refused_what_does_not_go_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = source(rate=100).sink_to(wb.TableSink("out")).run("tuned-by-two", checkpoint_interval=None)
    check = Tuning.of

    def overtaken(master: Master, values: dict[str, object]) -> Tuning:
        checked = check(master, values)
        monkeypatch.setattr(Tuning, "of", staticmethod(check))
        job.tune(checkpoint_mode="unaligned")
        return checked

    try:
        monkeypatch.setattr(Tuning, "of", staticmethod(overtaken))
        with pytest.raises(
            wb.errors.SettingError, match="max_concurrent_checkpoints is 2 with checkpoint_mode 'unaligned'"
        ):
            job.tune(max_concurrent_checkpoints=2)
        status = job.tune(buffer_size=500)  # the job goes on, and so does tuning
        assert (status["checkpoint_mode"], status["max_concurrent_checkpoints"]) == ("unaligned", 1)
        assert (status["state"], status["buffer_size"]) == ("RUNNING", 500)
    finally:
        job.cancel()
    job.wait("60s")


def test_every_setting_that_is_listed_can_be_tuned() -> None:
    assert set(wb.SETTINGS) == {
        *("buffer_timeout", "buffer_size", "parallelism", "rate", "speed"),
        *("checkpoint_interval", "checkpoint_mode", "aligned_checkpoint_timeout", "checkpoint_timeout", "min_pause"),
        *("max_concurrent_checkpoints", "tolerable_failed_checkpoints", "retained_checkpoints", "at_end"),
        "restart_delay",
    }


# failures of a TaskManager -----------------------------------------------------------------------------------------


def test_a_taskmanager_takes_its_tasks_along() -> None:
    stream = source(1_000).rebalance().filter("n >= 0")
    job = stepped(stream.sink_to(wb.TableSink("out")), parallelism=4, buffer_size=8)
    assert job.graph().slots["tm-1/slot-0"] == ["table[2]", "filter[2]"]
    job.stepper.step(20)
    job.faults.fail(taskmanager="tm-1")
    frame = job.recorder.latest()
    assert frame is not None
    lost = [event.text for event in frame.events if event.text.startswith("tm-1 failed")]
    assert lost == ["tm-1 failed: tm-1 was failed on purpose, with table[2], filter[2], table[3], filter[3]"]
    assert job.wait() == "FINISHED"
    assert job.status()["restarts"] == 1
    assert sorted(job.table("out")["n"].to_pylist()) == list(range(1_000))


def test_what_is_to_fail_must_exist() -> None:
    job = stepped(source().sink_to(wb.TableSink("out")), parallelism=4, slots_per_taskmanager=4)
    with pytest.raises(wb.errors.JobError, match="unknown TaskManager 'tm-1': did you mean 'tm-0'"):
        job.faults.fail(taskmanager="tm-1")
    with pytest.raises(wb.errors.JobError, match="unknown task 'table\\[4\\]'"):
        job.fail("table[4]")
    with pytest.raises(wb.errors.JobError, match="say what should fail"):
        job.faults.fail()
    with pytest.raises(wb.errors.JobError, match="say what should fail"):
        job.faults.fail("table[0]", taskmanager="tm-0")


# guarantees --------------------------------------------------------------------------------------------------------


def test_a_job_is_refused_what_its_ends_cannot_give() -> None:
    exact = source(10).sink_to(wb.TableSink("out"))
    printed = exact + source(10).uid("other").sink_to(wb.CallbackSink(lambda batch: None, name="screen"))
    for wanted in ("exactly-once", "at-least-once", None):
        assert stepped(exact, guarantee=wanted).wait() == "FINISHED"
    assert stepped(printed, guarantee="at-least-once").wait() == "FINISHED"
    with pytest.raises(
        wb.errors.PlanError, match="cannot keep exactly-once, only at-least-once: the sink 'screen' does not"
    ):
        stepped(printed, guarantee="exactly-once")
    with pytest.raises(wb.errors.SettingError, match="unknown guarantee 'exactly_once': did you mean 'exactly-once'"):
        stepped(exact, guarantee="exactly_once")


def test_the_status_has_all_its_keys_before_anything_was_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    job = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.TableSink("all")).run("begun")
    assert job.wait("60s") == "FINISHED"
    status = job.status()
    monkeypatch.setattr(job.recorder, "latest", lambda: None)
    before = job.status()
    assert list(before) == list(status)
    assert (before["last_checkpoint"], before["records_in"], before["committed_rows"]) == (None, 0, {})
    assert (status["records_in"], status["committed_rows"]) == (2, {"all": 2})


def test_the_status_counts_pipelines_that_exchange_nothing() -> None:
    alone = [source(rows).uid(f"{rows}").sink_to(wb.TableSink(f"of-{rows}")) for rows in (10, 20)]
    exchanging = source(5).uid("5").rebalance().filter("n >= 0").sink_to(wb.TableSink("of-5"))
    for pipeline, rows in ((alone[0] + alone[1], 30), (alone[0] + exchanging, 15)):
        job = stepped(pipeline)
        assert job.wait() == "FINISHED"
        assert (job.status()["records_in"], job.status()["records_out"]) == (rows, rows)


def test_what_is_asked_of_a_job_at_its_very_end_is_not_waited_for() -> None:
    job = source(10).sink_to(wb.TableSink("out")).run("ended")
    assert job.wait("60s") == "FINISHED"
    answered = threading.Event()
    job._run.driver.master.call(answered.set)  # too late: its master is gone
    waiting = threading.Thread(target=job._run.driver.wait_for, args=(answered, None), daemon=True)
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()
    assert not answered.is_set()


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_function_that_would_end_the_program_fails_its_task(ending: BaseException) -> None:
    def leave(record: dict[str, Any]) -> dict[str, Any]:
        raise ending

    class Leaves(wb.functions.ProcessFunction):
        def open(self) -> None:
            raise ending

    called = source(10).map(leave, {"n": pa.int64()})
    opened = source(10).key_by("n").process(Leaves(), {"n": pa.int64()})

    async def answer(n: int) -> dict[str, int]:
        raise ending

    asked = source(10).lookup_async(answer, key="n", schema={"found": pa.int64()})
    for stream in (called, asked):
        job = stream.sink_to(wb.DiscardSink()).run("leaves", restart=wb.restart.no_restart())
        with pytest.raises(wb.errors.JobError, match="was raised, which ends programs and not jobs: raise an error"):
            job.wait("120s")
    with pytest.raises(wb.errors.JobError, match="was raised, which ends programs and not jobs"):
        opened.sink_to(wb.DiscardSink()).run("leaves", restart=wb.restart.no_restart()).wait("30s")
