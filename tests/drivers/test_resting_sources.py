"""A paced source rests until the buffer with its records is due, without delaying any record."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import WaitUntil
from workbench.connectors.contract.rate import LOOK_US
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.turns import Turnstile
from workbench.drivers.live.looking import Looking
from workbench.drivers.live.slot_threads import Bell, Crew, SlotThread
from workbench.elements import LatencyMarker, Records, Watermark
from workbench.plan.physical import build_physical_graph
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.messages.messages import Pause, Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import JobServices, Slot
from workbench.runtime.tasks.kept_markers import KeptMarkers, spread
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Outcome

SECOND_US = 1_000_000


class Host:
    dropped = 0

    def report(self, report: Report) -> None:
        raise AssertionError(report)


def paced(
    clock: VirtualClock, rate: float, timeout_us: int, look_us: int = LOOK_US, **settings: int
) -> tuple[SourceTask, Channel]:
    """A source at a rate, and the channel that it fills."""
    table = pa.table({"t": pa.array(range(5_000_000 // 50), pa.int64())})
    stream = wb.Stream.from_table(table, event_time="t", rate=rate).rebalance()
    graph = build_physical_graph(stream.sink_to(wb.CallbackSink(lambda batch: None)).logical_graph(), 1, 1)
    wanted = Settings(parallelism=1, buffer_timeout_us=timeout_us, **settings)
    source = deploy(graph, wanted, JobServices("job", clock, Tables(), None, {}), Host(), 0, None).sources[0]
    source.look_every(look_us)
    (channel,) = source.outputs[0].channels
    return source, channel


class Run:
    """A second of a source at a rate, stepped whenever it says that a step is due.

    Attributes:
        steps: that it took.
        arrived_us: when each record was shipped.
        watermarks: when each watermark was shipped, and its time, both in microseconds.
        markers: when each latency marker was shipped.

    Each step is `late_us` late, as on a real clock.
    """

    def __init__(self, rate: float, timeout_us: int, look_us: int = LOOK_US, *, late_us: int = 0) -> None:
        clock = VirtualClock()
        source, channel = paced(clock, rate, timeout_us, look_us)
        self.steps = 0
        self.arrived_us: list[int] = []
        self.watermarks: list[tuple[int, int]] = []
        self.markers: list[tuple[int, LatencyMarker]] = []
        while (now_us := clock.now_us()) < SECOND_US:
            self.steps += 1
            if source.step() is not Outcome.PROGRESSED:
                due_us = source.next_due_us()
                assert due_us is not None
                clock.advance_to(max(due_us, now_us + 1) + late_us)
            while (element := channel.poll()) is not None:
                if isinstance(element, Records):
                    self.arrived_us += [now_us] * len(element)
                elif isinstance(element, Watermark):
                    self.watermarks.append((now_us, element.timestamp_us))
                elif isinstance(element, LatencyMarker):
                    self.markers.append((now_us, element))


@pytest.mark.parametrize("late_us", [0, 150, 2_000])
@pytest.mark.parametrize(("rate", "timeout_us"), [(1_000, 50_000), (1_000, 100_000), (100, 100_000), (40_000, 50_000)])
def test_a_paced_source_is_stepped_seldom_and_ships_in_time(rate: int, timeout_us: int, late_us: int) -> None:
    run = Run(rate, timeout_us, late_us=late_us)
    # A look every millisecond makes more than a thousand; at 40,000/s, a buffer is full after 15 ms.
    assert run.steps < (400 if rate == 40_000 else 110)
    waited_us = [at_us - number * SECOND_US // rate for number, at_us in enumerate(run.arrived_us)]
    assert max(waited_us) <= timeout_us + late_us + LOOK_US * 3 // 2
    assert len(run.arrived_us) >= rate * (SECOND_US - timeout_us - 20_000) // SECOND_US


def test_watermarks_are_no_older_than_their_interval_and_the_records_that_they_follow() -> None:
    run = Run(1_000, 100_000)
    for (before_us, _), (at_us, time_us) in zip(run.watermarks, run.watermarks[1:], strict=False):
        assert at_us - before_us <= 102_000
        assert time_us >= at_us // 1_000 - 3  # records are a microsecond of event time and a millisecond apart
    assert len(run.watermarks) >= 9


def test_among_many_jobs_a_source_is_stepped_about_once_for_each_buffer() -> None:
    run = Run(1_000, 100_000, look_us=100_000)
    assert run.steps <= 60
    assert max(at_us - number * 1_000 for number, at_us in enumerate(run.arrived_us)) <= 201_000


def test_a_watermark_goes_with_a_buffer_that_is_shipped_shortly_before_or_after_it_is_due() -> None:
    run = Run(100, 60_000, look_us=40_000, late_us=150)
    assert run.steps <= 36  # eight buffers; 42 with a step for each watermark
    assert {at_us for at_us, _ in run.watermarks} <= {*run.arrived_us}


def test_the_step_that_ships_a_buffer_begins_the_next_rest() -> None:
    run = Run(1_000, 100_000, late_us=700)
    assert run.steps <= 48  # otherwise one more for each buffer


@pytest.mark.parametrize("timeout_us", [20_000, 50_000, 100_000, 250_000])
@pytest.mark.parametrize("rate", [300, 1_000, 40_000])
def test_the_markers_of_a_second_tell_what_the_records_wait(rate: int, timeout_us: int) -> None:
    run = Run(rate, timeout_us)
    kept = KeptMarkers()
    for arrived_us, marker in run.markers[1:]:  # the first is sent before any record
        kept.add(arrived_us, marker)
    _, said_us = spread(*kept.newest())
    exact_us = np.array(run.arrived_us) - np.arange(len(run.arrived_us)) * SECOND_US // rate
    said, exact = (np.percentile(each, (50, 90, 99)) for each in (said_us, exact_us))
    at_first_us = 1_500 if rate == 40_000 else 0  # there are few markers, and the first buffers are large
    assert said == pytest.approx(exact, rel=0.1, abs=max(SECOND_US // rate, at_first_us))


def test_a_source_whose_records_do_not_wait_in_buffers_does_not_rest() -> None:
    assert Run(1_000, 0).steps >= 1_000


def test_a_source_that_never_catches_up_does_not_take_the_time_since_its_last_rest_for_latency() -> None:
    """Its receiver takes a buffer every 20 ms, and at most so many are under way: no record travels for longer, nor
    waits for more than the second with which the source catches up."""
    clock = VirtualClock()
    source, channel = paced(clock, 20_000, 100_000, buffer_size=64)
    most_us = SECOND_US + 20_000 * (channel.credit + source.pool.total + 2)
    taken_us, travelled_us = 0, []
    while (now_us := clock.now_us()) < 4 * SECOND_US:
        while source.step() is Outcome.PROGRESSED:
            pass
        if now_us - taken_us >= 20_000 * (now_us > 200_000):  # it is quick at first, so that the source rests
            taken_us, element = now_us, channel.poll()
            while element is not None and not isinstance(element, Records):
                if isinstance(element, LatencyMarker):
                    travelled_us.append(now_us - element.marked_us)
                element = channel.poll()
        clock.advance_to(now_us + 1_000)
    assert len(travelled_us) > 20
    assert max(travelled_us) <= most_us + 100_000


@pytest.mark.parametrize("after_us", [0, 150, 900])
def test_a_step_that_finds_nothing_does_not_let_a_source_rest_while_its_buffer_fills(after_us: int) -> None:
    """A buffer of 256 records fills in 6.4 ms; a command may cause a step at any time."""
    clock = VirtualClock()
    source, channel = paced(clock, 40_000, 100_000, buffer_size=256)
    waited_us: list[int] = []
    arrived = 0
    while (now_us := clock.now_us()) < SECOND_US:
        outcome = source.step()
        while (element := channel.poll()) is not None:
            if isinstance(element, Records):
                if now_us > 200_000:  # it knows by now how fast they come
                    waited_us += [now_us - number * 25 for number in range(arrived, arrived + len(element))]
                arrived += len(element)
        if outcome is not Outcome.PROGRESSED:
            due_us = source.next_due_us()
            assert due_us is not None
            if due_us > now_us + after_us:  # one more step, before it is due
                clock.advance_to(now_us + after_us)
                source.step()
                due_us = source.next_due_us()
                assert due_us is not None
            clock.advance_to(max(due_us, clock.now_us() + 1))
    assert len(waited_us) > 31_000
    assert max(waited_us) <= 13_000


class Sleep(Bell):
    """Rings at once, and remembers for how long the slot would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def wait(self, seconds: float) -> bool:
        self.seconds = seconds
        return True


def slept(source: SourceTask, clock: VirtualClock) -> float:
    """How long the slot of a source sleeps when there is nothing to do, in seconds."""
    crew = Crew(Turnstile(), Looking(clock.now_us), clock.now_us, threading.Event())
    slot = SlotThread(Slot("tm-0/slot-0", source.waker, [source]), crew)
    crew.threads = (slot,)
    slot.bell = sleep = Sleep()
    slot._begin()
    while slot._step():
        pass
    slot._rest()
    return sleep.seconds


def test_a_slot_sleeps_until_something_is_due_and_asks_only_a_source_that_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = VirtualClock(SECOND_US)
    source, _ = paced(clock, 0.5, 0)
    slept(source, clock)
    clock.advance_to(SECOND_US + 5_000)
    assert slept(source, clock) == 1.995  # the next record is due then
    source.post(Pause(True))
    assert slept(source, clock) == 5
    source.post(Pause(False))
    monkeypatch.setattr(source.reader, "poll", lambda most: WaitUntil(None))
    assert slept(source, clock) == 0.5
