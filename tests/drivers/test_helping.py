"""Under low load, one thread steps all slots; receivers take all available input in one step."""

from __future__ import annotations

import threading
from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.rate import LOOK_US
from workbench.connectors.contract.throttle import next_look_us
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.turns import Turnstile
from workbench.drivers.live.looking import BUSY_SHARE, LONGEST_US, SHORTEST_US, Looking
from workbench.drivers.live.slot_threads import Crew, SlotThread
from workbench.elements import CheckpointBarrier, LatencyMarker, Records, Watermark
from workbench.plan.physical import build_physical_graph
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.messages.messages import Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import Execution, JobServices
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Outcome


class Host:
    dropped = 0

    def report(self, report: Report) -> None:
        raise AssertionError(report)


class Taken:
    """A sink that remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch.column("n").to_pylist())


def deployed(taken: Taken, clock: VirtualClock) -> Execution:
    """Two sources, each of which sends to both sinks; shipped at once."""
    stream = wb.Stream.from_table(pa.table({"n": range(100)})).rebalance()
    graph = build_physical_graph(stream.sink_to(wb.CallbackSink(taken)).logical_graph(), 2, 1)
    settings = Settings(parallelism=2, buffer_timeout_us=0)
    return deploy(graph, settings, JobServices("job", clock, Tables(), None, {}), Host(), 0, None)


def small(*numbers: int) -> Records:
    return Records(pa.record_batch({"n": list(numbers)}))


def receiver(execution: Execution) -> OperatorTask:
    task = execution.tasks[-1]
    assert isinstance(task, OperatorTask)
    return task


def test_a_step_takes_the_small_buffers_of_all_channels_each_in_its_order() -> None:
    taken = Taken()
    task = receiver(deployed(taken, VirtualClock()))
    task.gathers = True
    first, second = (item.channel for item in task.gate.channels)
    for channel, numbers in ((first, (1, 2)), (second, (3,)), (first, (4,)), (second, (5,))):
        channel.push(small(*numbers))
    assert [task.step(), task.step(), task.step()] == [Outcome.PROGRESSED, Outcome.PROGRESSED, Outcome.NO_INPUT]
    assert taken.batches == [[1, 2, 3], [5, 4]]
    assert first.queued_buffers == second.queued_buffers == 0


@pytest.mark.parametrize(("gathers", "steps"), [(True, 2), (False, 4)])
def test_a_step_takes_the_markers_that_follow_each_other(gathers: bool, steps: int) -> None:
    taken = Taken()
    task = receiver(deployed(taken, VirtualClock()))
    task.gathers = gathers
    channel = task.gate.channels[0].channel
    for at_us in (1, 2, 3):
        channel.push(LatencyMarker(at_us, "table[0]"))
    channel.push(small(1))
    for _ in range(steps):
        assert taken.batches == []
        assert task.step() is Outcome.PROGRESSED
    assert taken.batches == [[1]]
    assert task.markers.count == 3


def test_without_leave_a_step_takes_one_buffer() -> None:
    taken = Taken()
    task = receiver(deployed(taken, VirtualClock()))
    for item in task.gate.channels:
        item.channel.push(small(7))
    task.step()
    assert taken.batches == [[7]]


def test_nothing_is_taken_from_behind_a_watermark_or_from_a_channel_that_is_held_back_or_noted() -> None:
    taken = Taken()
    task = receiver(deployed(taken, VirtualClock()))
    task.gathers = True
    first, second = task.gate.channels
    first.channel.push(small(1))
    second.channel.push(Watermark(5))
    second.channel.push(small(2))
    task.step()
    assert taken.batches == [[1]]
    task.step()  # the watermark
    first.blocked = True
    first.channel.push(small(3))
    task.step()
    assert taken.batches == [[1], [2]]
    first.blocked = False
    second.log = []
    second.channel.push(small(4))
    task.step()
    assert taken.batches == [[1], [2], [3]]
    task.step()
    assert taken.batches == [[1], [2], [3], [4]]
    assert len(second.log) == 1


def test_a_barrier_that_overtakes_meanwhile_comes_behind_what_was_taken() -> None:
    taken = Taken()
    task = receiver(deployed(taken, VirtualClock()))
    task.gathers = True
    first, second = (item.channel for item in task.gate.channels)
    first.push(small(1))
    barrier = CheckpointBarrier(1, 0, mode="unaligned", behind=1)

    class Overtaken(deque[object]):
        """The sender puts a barrier in front between the receiver's look and its taking."""

        def popleft(self) -> object:
            self.appendleft(barrier)
            return super().popleft()

    second.elements = Overtaken([small(2)])  # type: ignore[assignment]
    second.buffers_sent += 1
    task.step()
    assert taken.batches == [[1]]
    assert [item.log for item in task.gate.channels] == [[], None]  # the snapshot was taken, then the channel noted


@given(now_us=st.integers(0, 2**50), look_us=st.integers(SHORTEST_US, LOOK_US))
def test_readers_look_at_the_same_times_and_not_too_soon(now_us: int, look_us: int) -> None:
    next_us = next_look_us(now_us, look_us)
    assert next_us % look_us == 0
    assert look_us <= 2 * (next_us - now_us) <= 3 * look_us + 1


class Ticking:
    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


def looked(share: float, ship_after_us: int | None, rounds: int = 20) -> list[int]:
    """The intervals when slots are busy for such a share, whatever the interval is."""
    clock = Ticking()
    looking = Looking(clock.now_us)
    intervals = []
    for _ in range(rounds):
        clock.us += 20_000
        intervals.append(looking.rested(int(20_000 * share), ship_after_us))
    return intervals


def test_sources_look_so_often_that_a_part_of_the_time_is_left() -> None:
    assert looked(BUSY_SHARE / 2, 0, 2) == [pytest.approx(LOOK_US / 2, abs=1), pytest.approx(LOOK_US * 3 / 8, abs=1)]
    assert looked(0.1, 0)[-1] == SHORTEST_US


def test_sources_do_not_look_more_often_than_is_of_use() -> None:
    assert set(looked(0.0, None)) == set(looked(0.0, 1_700)) == {LOOK_US}
    assert looked(0.0, 333)[-1] == 333


def spent(looking: Looking, clock: Ticking, us_per_look: int, times: int = 1) -> int:
    """Look for `times` times 20 ms; the interval then."""
    for _ in range(times):
        clock.us += 20_000
        looking.rested(20_000 // looking.interval_us * us_per_look, 0)
    return looking.interval_us


def test_an_interval_leaves_time_for_what_a_look_costs_and_an_interruption_does_not_count() -> None:
    clock = Ticking()
    looking = Looking(clock.now_us)
    usual_us = int(200 / BUSY_SHARE)
    assert spent(looking, clock, 200, 10) == pytest.approx(usual_us, abs=10)
    assert spent(looking, clock, 900) == pytest.approx(usual_us, abs=10)
    assert spent(looking, clock, 200, 3) == pytest.approx(usual_us, abs=10)
    assert spent(looking, clock, 1_400, 10) == pytest.approx(1_400 / BUSY_SHARE, rel=0.1)
    assert spent(looking, clock, 9_000, 10) == LONGEST_US


@pytest.fixture
def two_slots() -> tuple[SlotThread, SlotThread, Execution, Taken, Crew]:
    taken, clock = Taken(), VirtualClock()
    execution = deployed(taken, clock)
    crew = Crew(Turnstile(), Looking(clock.now_us), clock.now_us, threading.Event())
    own, other = (SlotThread(slot, crew) for slot in execution.slots)
    crew.threads = (own, other)
    return own, other, execution, taken, crew


def asleep(thread: SlotThread, execution: Execution) -> None:
    execution.slots[1].waker.parked = True
    thread.napping = True


def test_who_brings_something_to_a_sleeping_slot_wakes_it(
    two_slots: tuple[SlotThread, SlotThread, Execution, Taken, Crew],
) -> None:
    _, other, execution, _, _ = two_slots
    asleep(other, execution)
    receiver(execution).gate.channels[0].channel.push(small(1))
    assert not other.roused
    assert other.bell.wait(0)


def bring_to_helped(other: SlotThread, execution: Execution, crew: Crew) -> None:
    """This thread, which helps, brings a record to a slot that sleeps."""
    asleep(other, execution)
    other.brief = True
    crew.helpers.add(threading.get_ident())
    receiver(execution).gate.channels[0].channel.push(small(1))


def test_a_helper_steps_the_slot_itself(
    two_slots: tuple[SlotThread, SlotThread, Execution, Taken, Crew],
) -> None:
    own, other, execution, taken, crew = two_slots
    bring_to_helped(other, execution, crew)
    assert other.roused
    assert not other.bell.wait(0)
    assert own.help()
    assert [1] in taken.batches
    while own.help():
        pass
    assert not other.roused


def test_a_slot_that_somebody_steps_is_left_to_him(
    two_slots: tuple[SlotThread, SlotThread, Execution, Taken, Crew],
) -> None:
    own, other, execution, taken, crew = two_slots
    bring_to_helped(other, execution, crew)
    with other.stepping:
        assert not own.help()
    assert taken.batches == []
    assert other.bell.wait(0)  # he may have looked before it came


def test_two_slots_with_little_to_do_give_the_exact_result() -> None:
    rows = 2_000
    table = pa.table({"n": range(rows), "key": [n % 7 for n in range(rows)]})
    counts = wb.Stream.from_table(table, rate=10_000).key_by("key").aggregate(n=wb.count(), s=wb.sum("n"))
    job = counts.sink_to(wb.TableSink("out")).run("helped", parallelism=2, buffer_timeout="0ms")
    job.wait("60s")
    last: dict[int, tuple[int, int]] = {}
    for row in job.table("out").to_pylist():
        last[row["key"]] = max(last.get(row["key"], (0, 0)), (row["n"], row["s"]))
    assert last == {key: (len(range(key, rows, 7)), sum(range(key, rows, 7))) for key in range(7)}
    assert job.table("out").num_rows == rows
