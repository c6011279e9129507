"""Event time: its assignment at a source and after an operator, how it advances, and which records are late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import col
from workbench.api.job.job import Job
from workbench.clock import VirtualClock
from workbench.connectors.replay.log import write_log
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import ExpressionError, JobError, PlanError, SettingError
from workbench.operators.contract.base import Json, OperatorContext, Snapshot
from workbench.operators.event_time.punctuated import Punctuated
from workbench.operators.event_time.timestamps import AssignTimestamps, AssignTimestampsLogic
from workbench.operators.event_time.watermarks import Bounded, Ingestion, Watermarks

SECOND = 1_000_000
MARKED = pa.schema([("t", pa.int64()), ("mark", pa.int64())])


def marked(rows: Sequence[tuple[int | None, int | None]]) -> Records:
    batch = pa.record_batch([pa.array(column, pa.int64()) for column in zip(*rows, strict=True)], schema=MARKED)
    return Records(batch, np.array([NO_TIME if t is None else t for t, _ in rows], np.int64))


def run(stream: wb.Stream | wb.types.Pipeline, **options: Any) -> Job:
    """One record to a buffer, on a virtual clock."""
    pipeline = stream if isinstance(stream, wb.types.Pipeline) else stream.sink_to(wb.TableSink("out"))
    options = {"buffer_size": 1, "buffer_timeout": "0ms", "checkpoint_interval": None, **options}
    return pipeline.run("time", driver="stepping", **options)


def micros(job: Job, *columns: str) -> list[tuple[int, ...]]:
    """The rows of the sink in order, instants as microseconds."""
    table = job.table("out").select(list(columns))
    return list(zip(*(column.cast(pa.int64()).to_pylist() for column in table.columns), strict=True))


def metric(job: Job, name: str) -> int:
    return sum(int(str(row[name])) for row in job.metrics())


# generators ----------------------------------------------------------------------------------------------------------


def test_the_bound_is_behind_the_largest_event_time() -> None:
    generator = Bounded(10).create(MARKED)
    assert generator.on_periodic(0) is None
    assert generator.observe(marked([(50, None), (None, None), (40, None)])) == ()
    assert generator.on_periodic(0) == 39
    generator.observe(marked([(45, None)]))
    assert generator.on_periodic(0) == 39


def test_in_order_means_right_behind_the_largest() -> None:
    generator = wb.watermarks.monotonous().create(MARKED)
    generator.observe(marked([(50, None)]))
    assert generator.on_periodic(0) == 49


def test_a_marked_record_carries_its_own_time_or_the_watermark() -> None:
    boolean = Punctuated("mark = 1").create(MARKED)
    assert boolean.observe(marked([(3, 0), (7, None)])) == ()
    assert boolean.observe(marked([(3, 1), (9, 0), (8, 1), (None, 1)])) == [(4, 8)]
    value = Punctuated(col("mark")).create(MARKED)
    assert value.observe(marked([(3, 1), (9, None), (8, 6)])) == [(3, 6)]
    assert value.observe(marked([(9, 6), (10, 5)])) == ()  # no progress


def test_a_watermark_takes_effect_ahead_of_the_records_that_it_makes_late() -> None:
    generator = Punctuated("mark").create(MARKED)
    rows = [(4, 4), (6, 5), (3, None), (5, None), (9, 8), (7, None), (12, 10)]
    # 5 goes ahead of 3 and 5, 8 ahead of 7; what 4 says, 5 says too; 10 makes nothing late.
    assert generator.observe(marked(rows)) == [(1, 4), (2, 5), (5, 8), (7, 10)]


def test_a_mark_is_a_condition_or_a_time() -> None:
    with pytest.raises(ExpressionError, match="the watermarks' mark 't / 2' has type double"):
        Punctuated("t / 2").create(MARKED)


late_rows = st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 30)), min_size=1, max_size=30)


@given(rows=late_rows, cuts=st.lists(st.integers(1, 8), min_size=1))
def test_what_is_late_does_not_depend_on_how_records_are_cut_into_batches(
    rows: list[tuple[int, int | None]], cuts: list[int]
) -> None:
    reached, expected = NO_TIME, []
    for t, mark in rows:
        expected.append(t <= reached)
        reached = max(reached, NO_TIME if mark is None else mark)
    generator = Punctuated("mark").create(MARKED)
    found, watermark, start = [], NO_TIME, 0
    for number in range(len(rows)):
        part = rows[start : start + cuts[number % len(cuts)]]
        if not part:
            break
        start += len(part)
        marks = dict(generator.observe(marked(part)))
        for place, (t, _) in enumerate(part):
            watermark = max(watermark, marks.get(place, NO_TIME))
            found.append(t <= watermark)
        watermark = max(watermark, marks.get(len(part), NO_TIME))
    assert found == expected
    assert watermark == reached


# F2-5: a stream with records and watermarks --------------------------------------------------------------------------

FIGURE_2_5 = [(1, None), (2, None), (4, 4), (3, None), (7, None), (6, 6), (5, None), (8, None)]


@pytest.mark.parametrize("buffer_size", [1, 3, 100])
@pytest.mark.parametrize("at_the_source", [True, False])
def test_records_behind_a_watermark_are_late(buffer_size: int, at_the_source: bool) -> None:
    table = pa.Table.from_batches([marked(FIGURE_2_5).batch])
    if at_the_source:
        stream = wb.Stream.from_table(table, event_time="t", watermarks=wb.watermarks.punctuated("mark"))
    else:
        stream = wb.Stream.from_table(table).assign_timestamps("t", watermarks=wb.watermarks.punctuated("mark"))
    windows = stream.window(wb.tumbling("1us")).aggregate(n=wb.count())
    pipeline = windows.sink_to(wb.TableSink("out")) + windows.side_output("late").sink_to(wb.TableSink("late"))
    job = run(pipeline, buffer_size=buffer_size)
    assert job.wait() == "FINISHED"
    assert sorted(micros(job, "window_start", "n")) == [(1, 1), (2, 1), (4, 1), (6, 1), (7, 1), (8, 1)]
    assert job.table("late")["t"].to_pylist() == [3, 5]


# eager and slow watermarks, stragglers -------------------------------------------------------------------------------

TIMES = [1, 2, 4, 3, 7, 6, 5, 8]


def windows_of_four(bound: str, lateness: str = "0s") -> Job:
    table = pa.table({"t": pa.array(TIMES, pa.int64())})
    # Ten records a second: event time is told once between two records.
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness=bound, rate=10.0)
    return run(stream.window(wb.tumbling("4us"), allowed_lateness=lateness).aggregate(n=wb.count()))


def test_an_eager_watermark_loses_the_straggler() -> None:
    job = windows_of_four("0s")
    assert job.wait() == "FINISHED"
    assert micros(job, "window_start", "n") == [(0, 2), (4, 4), (8, 1)]
    assert metric(job, "numLateRecordsDropped") == 1  # 3, for 4 has closed its window


def test_a_slow_watermark_waits_for_it() -> None:
    job = windows_of_four("2us")
    assert job.wait() == "FINISHED"
    assert micros(job, "window_start", "n") == [(0, 3), (4, 4), (8, 1)]
    assert metric(job, "numLateRecordsDropped") == 0


def test_a_straggler_corrects_what_was_said_earlier() -> None:
    job = windows_of_four("0s", lateness="4us")
    assert job.wait() == "FINISHED"
    assert micros(job, "window_start", "n") == [(0, 2), (0, 3), (4, 4), (8, 1)]


def test_the_price_of_waiting_is_time() -> None:
    def fires(bound: str) -> int:
        job = windows_of_four(bound)
        start = job.stepper.driver.clock.now_us()
        assert job.stepper.driver.run_until(lambda: metric(job, "numFiredTimers") > 0)
        passed = job.stepper.driver.clock.now_us() - start
        job.cancel()
        job.wait()
        return round(passed / 100_000)

    # The third record, 4, tells 3 at once; with a bound of 2 the fifth, 7, is the first behind which 3 is certain.
    assert (fires("0s"), fires("2us")) == (2, 4)


# F2-6: how watermarks travel -----------------------------------------------------------------------------------------


def test_a_task_is_as_far_as_its_slowest_channel_and_tells_all_that_follow() -> None:
    def source(times: list[int]) -> wb.Stream:
        return wb.Stream.from_table(pa.table({"t": times}), event_time="t", rate=10.0).with_parallelism(1)

    stream = source([10, 20, 30]).union(source([5, 25, 26]))
    job = run(stream.filter("t > 0").rebalance().filter("t > 1"), parallelism=2)
    told: dict[str, list[int]] = {}
    while job.stepper.driver.next_watermark():
        frame = job.recorder.latest()
        assert frame is not None
        for task in frame.tasks:
            channels = [item.currentChannelWatermark for item in frame.channels if item.target == task.name]
            own = task.metrics["currentOutputWatermark"]
            if own is not None and own not in told.get(task.name, []):
                told.setdefault(task.name, []).append(int(own))
                assert not channels or own == min(NO_TIME if mark is None else mark for mark in channels)
    assert told["table[0]"] == [9, 19, MAX_TIME]  # behind the last record comes the end
    assert told["table-2[0]"] == [4, 24, MAX_TIME]
    assert told["union[0]"][0] == 4
    for name in ("filter-2[0]", "filter-2[1]"):
        assert told[name] == sorted(told[name])
        assert told[name][-1] == MAX_TIME
        assert set(told[name]) <= {*told["union[0]"], *told["union[1]"]}


# at an operator ------------------------------------------------------------------------------------------------------


class Wire:
    """An output that keeps what it gets."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def emit(self, records: Records) -> None:
        assert records.timestamps is not None
        self.seen += records.timestamps.tolist()

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)

    def emit_watermark(self, watermark_us: int) -> None:
        self.seen.append(("watermark", watermark_us))

    def emit_idle(self, idle: bool) -> None:
        self.seen.append(("idle", idle))

    def take(self) -> list[Any]:
        seen, self.seen = self.seen, []
        return seen


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000)


def extractor(
    clock: VirtualClock, watermarks: Watermarks, idle_after_us: int | None = None, event_time: str | None = "t"
) -> AssignTimestampsLogic:
    spec = AssignTimestamps(None if event_time is None else col(event_time), watermarks, idle_after_us)
    logic = spec.create([MARKED])
    assert isinstance(logic, AssignTimestampsLogic)
    logic.open(OperatorContext(clock=clock))
    return logic


def pass_time(logic: AssignTimestampsLogic, clock: VirtualClock, until_us: int, out: Wire) -> None:
    while (due := logic.next_time_us()) is not None and due <= until_us:
        clock.advance_to(due)
        logic.on_time(clock.now_us(), out)
    clock.advance_to(until_us)


def test_new_times_and_watermarks_from_here_on(clock: VirtualClock) -> None:
    logic, out = extractor(clock, Bounded(2)), Wire()
    logic.on_watermark(99, out)  # upstream's ends here
    logic.process(marked([(5, None), (None, None), (3, None)]), 0, out)
    assert out.take() == [5, NO_TIME, 3]
    pass_time(logic, clock, 200_000, out)
    assert out.take() == [("watermark", 2)]
    assert logic.next_time_us() is None
    logic.process(marked([(4, None)]), 0, out)
    pass_time(logic, clock, 400_000, out)
    assert out.take() == [4]  # no progress
    logic.on_watermark(MAX_TIME, out)
    assert out.take() == [("watermark", MAX_TIME)]


def test_ten_watermarks_a_second_at_most(clock: VirtualClock) -> None:
    logic, out = extractor(clock, Bounded(0)), Wire()
    for number in range(100):
        logic.process(marked([(number, None)]), 0, out)
        pass_time(logic, clock, clock.now_us() + 5_000, out)
    told = [item for item in out.take() if isinstance(item, tuple)]
    assert told == [("watermark", us) for us in (-1, 18, 38, 58, 78, 98)]


def test_silence_is_told_after_a_time_and_the_next_record_ends_it(clock: VirtualClock) -> None:
    logic, out = extractor(clock, wb.watermarks.punctuated("mark"), idle_after_us=50_000), Wire()
    pass_time(logic, clock, 200_000, out)
    assert out.take() == [("idle", True)]
    logic.process(marked([(5, 4)]), 0, out)
    assert out.take() == [("idle", False), 5, ("watermark", 4)]
    logic.on_watermark(MAX_TIME, out)
    pass_time(logic, clock, 900_000, out)
    assert out.take() == [("watermark", MAX_TIME)]


def test_the_time_of_reading_goes_on_without_records(clock: VirtualClock) -> None:
    logic, out = extractor(clock, Ingestion(), event_time=None), Wire()
    logic.process(marked([(5, None), (70, None)]), 0, out)
    assert out.take() == [1_000, 1_000]
    pass_time(logic, clock, 201_000, out)
    assert out.take() == [("watermark", 999), ("watermark", 100_999), ("watermark", 200_999)]


def test_a_clock_that_was_set_back_makes_no_record_late(clock: VirtualClock) -> None:
    before, out = extractor(clock, Ingestion(), event_time=None), Wire()
    before.process(marked([(5, None)]), 0, out)
    after = extractor(VirtualClock(400), Ingestion(), event_time=None)
    after.restore([before.snapshot(1)])
    after.process(marked([(6, None)]), 0, out)
    assert out.take() == [1_000, 1_000]


def test_after_a_rescaling_the_slowest_counts(clock: VirtualClock) -> None:
    def state(*times: int) -> Snapshot:
        logic = extractor(clock, Bounded(0))
        if times:
            logic.process(marked([(t, None) for t in times]), 0, Wire())
        return logic.snapshot(1)

    both, out = extractor(clock, Bounded(0)), Wire()
    both.restore([state(90), state(50)])
    pass_time(both, clock, 200_000, out)
    assert out.take() == [("watermark", 49)]
    fresh = extractor(clock, Bounded(0))
    fresh.restore([state(90), state()])  # one has not begun: what it reads first may be earlier than 90
    pass_time(fresh, clock, 200_000, out)
    assert out.take() == []


def test_an_extractor_starts_event_time_anew_in_a_job() -> None:
    table = pa.table({"made": pa.array([9, 9, 9, 9], pa.int64()), "landed": pa.array([1, 12, 3, 25], pa.int64())})
    stream = wb.Stream.from_table(table, event_time="made", rate=10.0).filter("made > 0")
    landed = stream.assign_timestamps(col("landed"), out_of_orderness="10us")
    job = run(landed.window(wb.tumbling("10us")).aggregate(n=wb.count()), parallelism=2)
    assert job.wait() == "FINISHED"
    assert sorted(micros(job, "window_start", "n")) == [(0, 2), (10, 1), (20, 1)]


# at a source ---------------------------------------------------------------------------------------------------------


class LastRecord(wb.watermarks.WatermarkGenerator):
    """Trusts the last record, and remembers what it was restored from."""

    restored: list[Json] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.last = 0

    def on_batch(self, batch: pa.RecordBatch, times: Int64s) -> int | None:
        self.last = int(times[-1])
        return self.last

    def snapshot(self) -> Json:
        return {"last": self.last}

    def restore(self, state: Json) -> None:
        LastRecord.restored.append(state)


@pytest.mark.parametrize("source", [True, False])
def test_a_generator_of_ones_own_is_part_of_the_snapshot(source: bool) -> None:
    LastRecord.restored.clear()
    table = pa.table({"t": [10, 20, 30, 40]})
    if source:
        stream = wb.Stream.from_table(table, event_time="t", watermarks=LastRecord)
    else:
        stream = wb.Stream.from_table(table).assign_timestamps("t", watermarks=LastRecord)
    job = run(stream, checkpoint_interval="1h")
    job.stepper.step(2)
    assert job.stepper.driver.run_until(lambda: metric(job, "currentOutputWatermark") == 20)
    job.checkpoint()
    assert job.stepper.driver.next_checkpoint()
    job.fail(next(row["task"] for row in job.metrics()))
    assert job.wait() == "FINISHED"
    assert LastRecord.restored[0] in ({"last": 20}, {"last": 30}, {"last": 40})
    assert sorted(row[0] for row in micros(job, "t")) == [10, 20, 30, 40]


@pytest.mark.parametrize(("told", "message"), [("soon", "'str' object cannot be interpreted"), (None, "KeyError: 'x'")])
def test_a_generator_that_fails_is_named(told: str | None, message: str) -> None:
    class Wrong(wb.watermarks.WatermarkGenerator):
        def on_periodic(self, now_us: int) -> int | None:
            nothing: dict[str, int] = {}
            return nothing["x"] if told is None else told  # type: ignore[return-value]

    job = run(
        wb.Stream.from_table(pa.table({"t": [1, 2]}), event_time="t", watermarks=Wrong), restart=wb.restart.no_restart()
    )
    with pytest.raises(
        JobError, match=rf"Wrong\.on_periodic failed with .*{message}.*; it must return whole microseconds"
    ):
        job.wait()


def test_ingestion_time_needs_no_other_windows_and_nothing_is_late() -> None:
    table = pa.table({"t": pa.array([5 * SECOND, 1 * SECOND, 9 * SECOND, 2 * SECOND], pa.timestamp("us"))})

    def counted(stream: wb.Stream) -> Job:
        job = run(stream.window(wb.tumbling("1s")).aggregate(n=wb.count()))
        assert job.wait() == "FINISHED"
        return job

    by_event = counted(wb.Stream.from_table(table, event_time="t", rate=1.0))
    assert micros(by_event, "window_start", "n") == [(5 * SECOND, 1), (9 * SECOND, 1)]
    assert metric(by_event, "numLateRecordsDropped") == 2
    by_reading = counted(wb.Stream.from_table(table, event_time=wb.watermarks.INGESTION, rate=1.0))
    starts = [start for (start,) in micros(by_reading, "window_start")]
    assert [n for (n,) in micros(by_reading, "n")] == [1, 1, 1, 1]
    assert [b - a for a, b in pairwise(starts)] == [SECOND] * 3
    assert metric(by_reading, "numLateRecordsDropped") == 0


def idle_channels(job: Job) -> bool:
    frame = job.recorder.latest()
    assert frame is not None
    return any(channel.idle for channel in frame.channels)


def two_sources(idle_after: str) -> Job:
    """One that speaks every ten seconds, one ten times a second; each in a task of its own."""
    table = pa.table({"t": [10 * n for n in range(60)]})
    slow = wb.Stream.from_table(table.slice(0, 2), event_time="t", rate=0.1, idle_after=idle_after)
    quick = wb.Stream.from_table(table, event_time="t", rate=10.0)
    return run(slow.union(quick).window(wb.tumbling("10us")).aggregate(n=wb.count()))


def test_a_silent_source_holds_nothing_back_and_what_it_says_then_may_be_late() -> None:
    job = two_sources(idle_after="2s")
    assert job.stepper.driver.run_until(lambda: idle_channels(job))
    assert job.stepper.driver.run_until(lambda: metric(job, "numFiredTimers") >= 10)  # while the slow one is silent
    assert job.wait() == "FINISHED"
    assert metric(job, "numLateRecordsDropped") == 1  # its second record, 10, when the quick one is at 590
    waiting = two_sources(idle_after="1min")
    assert waiting.wait() == "FINISHED"
    assert metric(waiting, "numLateRecordsDropped") == 0


@pytest.mark.parametrize("bound", ["0s", "5us"])
def test_the_end_of_a_source_moves_time_to_its_last_watermark_while_another_is_idle(bound: str) -> None:
    ending = wb.Stream.from_table(pa.table({"t": [1, 7, 12, 18]}), event_time="t", out_of_orderness=bound)
    silent = wb.Stream.from_generator(
        lambda first, count: pa.record_batch({"t": [100 * (first + n) for n in range(count)]}),
        {"t": pa.int64()},
        event_time="t",
        rate=0.1,
        idle_after="2s",
    ).with_parallelism(1)
    job = run(ending.union(silent).window(wb.tumbling("5us")).aggregate(n=wb.count()), buffer_timeout="1s")
    driver = job.stepper.driver
    second = driver.clock.now_us() + 8 * SECOND
    fired = 3 if bound == "0s" else 2  # up to [10, 15): the watermark is at 17 or at 12; the generator's first is at 0
    assert driver.run_until(lambda: metric(job, "numFiredTimers") >= fired)
    assert driver.run_until(lambda: driver.clock.now_us() >= second)
    assert metric(job, "numFiredTimers") == fired
    assert driver.run_until(lambda: metric(job, "numFiredTimers") > fired)  # the silent source has gone on
    job.cancel()


@pytest.fixture
def two_channels(tmp_path: Path) -> Job:
    """A replay of two channels that have both spoken; either would be idle after a second of silence."""
    times = pa.array([n * SECOND for n in range(40)], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "landed": times})
    log = write_log(table, tmp_path / "log", event_time="t", arrival_time="landed", channels=2)
    stream = wb.Stream.replay(log, idle_after="1s").with_parallelism(1)
    job = run(stream.rebalance().filter("t IS NOT NULL"), parallelism=2)
    assert job.stepper.driver.run_until(lambda: metric(job, "numRecordsOut") >= 3)
    return job


def splits_that_speak(job: Job) -> int:
    frame = job.recorder.latest()
    assert frame is not None
    return sum(mark is not None for mark in frame.tasks[0].splits.values())


def goes_on_with_both(job: Job) -> None:
    job.stepper.driver.step_task("source[0]")
    assert splits_that_speak(job) == 2
    assert job.wait() == "FINISHED"


def test_a_paused_source_is_not_idle(two_channels: Job) -> None:
    job = two_channels
    job.pause()
    while job.stepper.step():
        pass
    job.stepper.driver.clock.advance_to(job.stepper.driver.clock.now_us() + 60 * SECOND)
    job.stepper.driver.step_task("source[0]")
    job.resume()
    goes_on_with_both(job)


def test_a_source_under_backpressure_is_not_idle(two_channels: Job) -> None:
    job = two_channels
    while job.stepper.driver.step_task("source[0]").outcome != "no credit":
        pass
    job.stepper.driver.clock.advance_to(job.stepper.driver.clock.now_us() + 60 * SECOND)
    assert job.stepper.driver.step_task("source[0]").outcome == "no credit"
    for _ in range(4):
        job.stepper.driver.step_task("filter[0]")
        job.stepper.driver.step_task("filter[1]")
    goes_on_with_both(job)


@pytest.mark.parametrize("noticed", [True, False])
def test_a_source_is_not_idle_for_backpressure_during_which_it_had_no_step(two_channels: Job, noticed: bool) -> None:
    job = two_channels
    source = job.stepper.driver.execution.tasks[0]
    while source.pool.has_room or (noticed and job.stepper.driver.step_task("source[0]").outcome != "no credit"):
        job.stepper.driver.step_task("source[0]")
    job.stepper.driver.clock.advance_to(job.stepper.driver.clock.now_us() + 60 * SECOND)
    for _ in range(4):
        job.stepper.driver.step_task("filter[0]")
        job.stepper.driver.step_task("filter[1]")
    goes_on_with_both(job)


def drifting(**alignment: Any) -> Iterator[tuple[int, int, list[bool]]]:
    """Two sources, one ten times as fast: at each step how many records each has sent, and which channels are idle."""
    table = pa.table({"t": pa.array([n * SECOND for n in range(40)], pa.timestamp("us"))})

    def source(rate: float) -> wb.Stream:
        return wb.Stream.from_table(table, event_time="t", rate=rate, idle_after="1s", **alignment)

    job = run(source(100.0).union(source(10.0)))
    while not job.over:
        fast, slow = (int(str(row["numRecordsOut"])) for row in job.metrics()[:2])
        frame = job.recorder.latest()
        yield fast, slow, [] if frame is None else [channel.idle for channel in frame.channels]
        if job.stepper.step() == []:
            break
    assert job.state == "FINISHED"
    assert len(micros(job, "t")) == 80


def test_an_aligned_source_waits_for_the_slower_one_and_is_not_idle_meanwhile() -> None:
    ahead = []
    for fast, slow, idle in drifting(align="both", max_drift="5s"):
        ahead.append(fast - slow)
        assert not any(idle)
    # The watermark is a microsecond behind the last record; the record that takes a source over the drift is read.
    assert max(ahead) == 6


def test_sources_that_are_not_aligned_drift_apart() -> None:
    assert max(fast - slow for fast, slow, _ in drifting()) > 30


def test_nobody_waits_for_a_source_that_has_ended_or_is_silent() -> None:
    table = pa.table({"t": pa.array([n * SECOND for n in range(40)], pa.timestamp("us"))})
    ends = wb.Stream.from_table(table.slice(0, 2), event_time="t", align="g", max_drift="1s")
    goes_on = wb.Stream.from_table(table, event_time="t", align="g", max_drift="1s")
    job = run(ends.union(goes_on), parallelism=2)
    assert job.wait() == "FINISHED"
    assert len(micros(job, "t")) == 42


# what is refused -----------------------------------------------------------------------------------------------------

TABLE = pa.table({"t": pa.array([1], pa.int64()), "name": ["x"]})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: wb.Stream.from_table(
                TABLE, event_time="t", out_of_orderness="1s", watermarks=wb.watermarks.punctuated("t > 1")
            ),
            SettingError,
            "both define the watermarks",
        ),
        (
            lambda: wb.Stream.from_table(TABLE, event_time=wb.watermarks.INGESTION, out_of_orderness="1s"),
            SettingError,
            "ingestion times are never out of order",
        ),
        (
            lambda: wb.Stream.from_table(TABLE, watermarks=wb.watermarks.monotonous()),
            PlanError,
            "name its column with event_time",
        ),
        (
            lambda: wb.Stream.from_table(TABLE, out_of_orderness="5s", idle_after="1s"),
            PlanError,
            "out_of_orderness and idle_after are about event time: name its column with event_time",
        ),
        (lambda: wb.Stream.from_table(TABLE, idle_after="1s"), PlanError, "idle_after is about event time"),
        (lambda: wb.Stream.from_table(TABLE, event_time="t", align="g"), SettingError, "pass both or neither"),
        (
            lambda: wb.Stream.from_table(TABLE, event_time="t", watermarks="mark"),  # type: ignore[arg-type]
            SettingError,
            "watermarks is 'mark': pass",
        ),
        (
            lambda: wb.Stream.from_table(TABLE, event_time="t", watermarks=dict),  # type: ignore[arg-type]
            PlanError,
            "watermarks=dict made dict",
        ),
        (
            lambda: wb.Stream.from_table(TABLE, event_time="t", watermarks=wb.watermarks.punctuated("no")),
            ExpressionError,
            "unknown column 'no'",
        ),
        (
            lambda: wb.Stream.from_table(TABLE).assign_timestamps("name"),
            ExpressionError,
            "the event time 'name' has type string",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_users_line(
    make: Callable[[], wb.Stream], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
