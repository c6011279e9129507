"""Many jobs in one process share the telemetry budget, polls of sources, and turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.connectors.contract.rate import LOOK_US
from workbench.drivers.contract.crowd import CROWD, PATIENCE_MAX, SLEEPERS, Crowd
from workbench.drivers.contract.turns import TURNSTILE, Turnstile
from workbench.drivers.live.looking import LONGEST_OF_ALL_US, LONGEST_US, WAITING_SHARE, Looking
from workbench.drivers.live.ticks import SHARE, Budget, Ticks
from workbench.durations import NO_TIME
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.input_gate import InputChannel, WatermarkValve


def looks(costs_us: list[int], seconds: int) -> list[list[int]]:
    """When jobs are looked at, each of which costs so much to look at."""
    budget = Budget()
    all_ticks = [Ticks(100_000, 0, budget) for _ in costs_us]
    times: list[list[int]] = [[] for _ in costs_us]
    for now_us in range(0, seconds * 1_000_000, 1_000):
        for ticks, cost_us, own in zip(all_ticks, costs_us, times, strict=True):
            if now_us >= ticks.due_us:
                ticks.looked(now_us, cost_us)
                own.append(now_us)
    return times


def test_a_small_job_is_looked_at_ten_times_a_second() -> None:
    assert looks([1_000], 1) == [list(range(0, 1_000_000, 100_000))]


@pytest.mark.parametrize("costs_us", [[150_000], [1_000] * 150, [150_000] + [1_000] * 50])
def test_looking_at_all_jobs_takes_no_more_than_its_share(costs_us: list[int]) -> None:
    seconds = 20
    times = looks(costs_us, seconds)
    spent_us = sum(len(own) * cost_us for own, cost_us in zip(times, costs_us, strict=True))
    assert spent_us <= (SHARE * seconds * 1_000_000 + 2 * sum(costs_us)) * 1.01
    assert all(len(own) >= 3 for own in times)


def test_a_job_that_has_ended_gives_its_share_back() -> None:
    budget = Budget()
    wide, small = Ticks(100_000, 0, budget), Ticks(100_000, 0, budget)
    wide.looked(0, 500_000)
    small.looked(0, 500)
    assert small.due_us > 5_000_000
    wide.end()
    small.looked(small.due_us, 500)
    assert budget.total_us == 500
    small.end()
    small.end()
    assert budget.total_us == 0


class Clock:
    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


def intervals(crowd: Crowd, others_share: float, ship_after_us: int | None, rounds: int = 10) -> list[int]:
    """How often a job looks that is busy for a tenth of the time, while others take such a share of the processor."""
    clock = Clock()
    looking = Looking(clock.now_us, crowd)
    found = []
    for _ in range(rounds):
        clock.us += 20_000
        crowd.spent_us += int(others_share * 20_000)
        found.append(looking.rested(2_000, ship_after_us, 2_000))
    return found


def crowd_of(jobs: int) -> Crowd:
    crowd = Crowd()
    for job in range(jobs):
        crowd.join(job, 1)
    return crowd


def test_among_others_sources_look_less_often_where_records_wait_for_their_buffers_anyway() -> None:
    assert set(intervals(crowd_of(1), 0.9, 100_000)) == {LOOK_US}
    assert set(intervals(crowd_of(2), 0.0, 100_000)) == {LOOK_US}
    first = intervals(crowd_of(50), 0.5, 100_000, 1)[0]
    assert first == pytest.approx(LOOK_US * 0.6 / WAITING_SHARE, rel=0.01)
    assert intervals(crowd_of(3), 0.9, 100_000)[-1] == 3 * LONGEST_US
    assert intervals(crowd_of(150), 0.9, None)[-1] == LONGEST_OF_ALL_US


def test_a_job_that_joins_a_crowd_begins_with_its_interval() -> None:
    crowd = crowd_of(50)
    last = intervals(crowd, 0.9, 100_000)[-1]
    assert Looking(Clock().now_us, crowd).interval_us == last > LOOK_US
    for job in range(49):
        crowd.leave(job)
    assert Looking(Clock().now_us, crowd).interval_us == LOOK_US


def test_many_slots_look_around_less_often_but_each_does() -> None:
    crowd = Crowd()
    patience = []
    for slots in (1, SLEEPERS, 3 * SLEEPERS, 100 * SLEEPERS):
        crowd.join("job", slots)
        patience.append(crowd.patience)
    assert patience == [1.0, 1.0, 3.0, PATIENCE_MAX]


def test_a_few_lanes_let_as_many_through_and_what_stays_is_passed_by() -> None:
    lanes = Turnstile(lanes=2, patience_s=0.01)
    ways = [lanes.enter() for _ in range(2)]
    assert None not in ways
    assert lanes.taken
    assert lanes.enter() is None  # both stay
    again = [lanes.enter() for _ in range(2)]
    assert None not in again
    for way in (*ways, *again):
        assert way is not None
        way.release()
    assert not lanes.taken


def table(rows: int) -> pa.Table:
    return pa.table({"n": range(rows), "key": [n % 3 for n in range(rows)]})


def test_a_function_that_does_not_return_keeps_no_other_job_waiting() -> None:
    stuck, let_go = threading.Event(), threading.Event()

    def wait(batch: pa.RecordBatch) -> None:
        stuck.set()
        let_go.wait(60)

    blocked = wb.Stream.from_table(table(10)).sink_to(wb.CallbackSink(wait)).run("blocked")
    try:
        assert stuck.wait(60)
        jobs = [
            wb.Stream.from_table(table(300), rate=1_000).sink_to(wb.TableSink("out")).run(f"free-{number}")
            for number in range(5)
        ]
        for job in jobs:
            job.wait("60s")
            assert job.table("out").num_rows == 300
        assert not let_go.is_set()
        assert blocked.status()["state"] == "RUNNING"
    finally:
        let_go.set()
    blocked.wait("60s")


def test_many_jobs_leave_nothing_behind(tmp_path: object) -> None:
    before = {thread for thread in threading.enumerate() if thread.is_alive()}
    jobs = [
        wb.Stream.from_table(table(200), rate=1_000)
        .key_by("key")
        .aggregate(n=wb.count(), s=wb.sum("n"))
        .sink_to(wb.TableSink("out"))
        .run(f"many-{number}", checkpoint_dir=f"{tmp_path}/{number}", checkpoint_interval="50ms")
        for number in range(20)
    ]
    for job in jobs:
        job.wait("120s")
        assert job.table("out").num_rows == 200
    until = time.monotonic() + 30
    while (left := {each for each in threading.enumerate() if each.is_alive()} - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left
    assert CROWD.jobs == 0
    assert not TURNSTILE.taken


def test_a_wide_exchange_gives_each_subtask_its_channels_in_their_order() -> None:
    job = (
        wb.Stream.from_table(table(1_000))
        .key_by("key")
        .aggregate(n=wb.count())
        .sink_to(wb.TableSink("out"))
        .run("wide", parallelism=24, driver="stepping")
    )
    execution = job._run.driver.master.execution
    assert execution is not None
    tasks = {task.name: task for task in execution.tasks}
    assert len(execution.channels) == 24 * 24
    places = [(channel.source, channel.target) for channel in execution.channels]
    assert len(set(places)) == len(places)
    for task in tasks.values():
        sent = [channel.target for output in task.outputs for channel in output.channels]
        assert sent == [target for source, target in places if source == task.name]
        if hasattr(task, "gate"):
            came = [item.channel.source for item in task.gate.channels]
            assert came == [source for source, target in places if target == task.name]
    numbers = [int(target.split("[")[1][:-1]) for _, target in places[:24]]
    assert all(after == before + 1 for before, after in pairwise(numbers))
    job.cancel()


@given(
    moves=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("wwwwis"), st.integers(0, 6)), max_size=60),
)
def test_a_valve_that_skips_inputs_gives_the_minimum_of_all_of_them(moves: list[tuple[int, str, int]]) -> None:
    inputs = [InputChannel(Channel("e", f"a[{i}]", "b[0]", 2, Waker(), Waker()), 0) for i in range(5)]
    valve = WatermarkValve(inputs)
    reached = [NO_TIME] * 5
    told = NO_TIME
    for at, kind, value in moves:
        if kind == "w":
            reached[at] = max(reached[at], value)
            found = valve.reach(inputs[at], value)
        else:
            silenced = kind == "i" and not inputs[at].idle
            inputs[at].idle = kind == "i"
            found = valve.silence(inputs[at]) if silenced else valve.advance()
        active = [time for time, item in zip(reached, inputs, strict=True) if not item.idle]
        minimum = min(active) if active else max(reached)
        assert found == (minimum if minimum > told else None)
        told = max(told, minimum)
        holder = valve.holder
        assert (holder is None) == (not active)
        assert holder is None or holder.watermark_us == min(active)


def test_a_wide_valve_is_gone_through_once_for_each_watermark() -> None:
    inputs = [InputChannel(Channel("e", f"a[{i}]", "b[0]", 2, Waker(), Waker()), 0) for i in range(128)]
    valve = WatermarkValve(inputs)
    scans = 0

    class Counted(tuple[InputChannel, ...]):
        def __iter__(self) -> Iterator[InputChannel]:
            nonlocal scans
            scans += 1
            return super().__iter__()

    valve._channels = Counted(inputs)
    told = [valve.reach(item, watermark_us) for watermark_us in range(10) for item in inputs]
    assert [each for each in told if each is not None] == list(range(10))
    assert scans <= 11


def test_a_quiet_job_is_asked_and_not_looked_at_until_something_happens() -> None:
    ticks = Ticks(100_000, 0, Budget())
    looks = []
    for now_us in range(0, 6_000_000, 50_000):
        if now_us >= ticks.due_us and ticks.sees_news(now_us, ("still", 0, 0)):
            looks.append(now_us)
            ticks.looked(now_us, cost_us=0)
    assert looks == [*range(0, 1_500_000, 100_000), 3_400_000, 5_400_000]
    ticks.stirred()
    assert ticks.due_us <= 6_000_000
    assert ticks.sees_news(6_000_000, ("moved", 0, 0))


def test_a_quiet_job_that_no_one_reads_is_left_alone_but_for_what_is_told_of_it() -> None:
    ticks = Ticks(100_000, 0, Budget())
    looks, asked = [], 0
    for now_us in range(0, 30_000_000, 50_000):
        told, checkpoint = int(now_us >= 25_000_000), now_us // 5_000_000
        if now_us % 5_000_000 == 50_000:
            ticks.stirred()
        if now_us >= ticks.due_us:
            asked += 1
            if ticks.sees_news(now_us, ("still", told, checkpoint)):
                looks.append(now_us)
                ticks.looked(now_us, cost_us=0, read=False)
    assert [look for look in looks if look > 3_400_000] == [13_400_000, 23_400_000, 25_050_000]
    assert asked < len(looks) + 24


def test_who_reads_again_gets_a_new_sample_once() -> None:
    ticks = Ticks(100_000, 0, Budget())
    for now_us in range(0, 20_000_000, 50_000):
        if now_us >= ticks.due_us and ticks.sees_news(now_us, ("still", 0, 0)):
            ticks.looked(now_us, cost_us=0, read=False)
    assert ticks.unread
    assert ticks.wanted(20_000_000)
    assert ticks.due_us == 20_000_000
    assert ticks.sees_news(20_000_000, ("still", 0, 0))
    ticks.looked(20_000_000, cost_us=0)
    assert not ticks.wanted(20_050_000)


def test_jobs_poll_one_after_the_other_and_a_job_alone_at_whole_intervals() -> None:
    crowd = crowd_of(2)
    places = sorted(Looking(Clock().now_us, crowd).from_us for _ in range(10))
    assert all(after - before >= LOOK_US // 20 for before, after in pairwise(places))
    crowd.leave(0)
    assert Looking(Clock().now_us, crowd).from_us == 0


def test_a_job_whose_frames_no_one_reads_is_sampled_half_as_often_until_someone_does() -> None:
    ticks = Ticks(100_000, 0, Budget())
    looks = []
    for now_us in range(0, 5_000_000, 50_000):
        if now_us >= ticks.due_us:
            looks.append(now_us)
            ticks.looked(now_us, cost_us=0, read=now_us == 4_000_000)
    assert looks == [
        *range(0, 3_000_000, 100_000),
        *range(3_000_000, 4_000_000, 200_000),
        *range(4_000_000, 5_000_000, 100_000),
    ]
