"""The handling of barriers in each checkpoint mode, worked out by hand for a task of two or three channels."""

from __future__ import annotations

import pyarrow as pa
import pytest

from workbench.elements import CheckpointBarrier, EndOfStream, Records, Watermark
from workbench.runtime.barriers.policy import OperatorBarriers, SourceBarriers
from workbench.runtime.barriers.snapshots import Arrival, Copied
from workbench.runtime.exchange.buffer_bytes import BufferBytes
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.in_flight import TASK, Flow, InFlight, early_records, restored, saved
from workbench.runtime.exchange.input_gate import InputChannel, InputGate
from workbench.runtime.storage.encoding import decode, encode

NUMBERS = BufferBytes(pa.schema([("n", pa.int64())]))


class Task:
    """Stands for the task behind a policy: receives what its gate has, and remembers the snapshots that it took."""

    def __init__(self, channels: int) -> None:
        self.inputs = [
            InputChannel(Channel("e", f"a[{i}]", "b[0]", 2, Waker(), Waker(), flow(i), NUMBERS), 0)
            for i in range(channels)
        ]
        self.gate = InputGate(self.inputs)
        self.policy = OperatorBarriers(self.gate, self)
        self.seen: list[int] = []
        self.copies: list[tuple[int, list[int]]] = []
        self.reports: list[tuple[int, Arrival]] = []
        self.given_up: set[int] = set()

    @property
    def records_in(self) -> int:
        return len(self.seen)

    def wants(self, checkpoint_id: int) -> bool:
        done = max((number for number, _ in self.copies), default=0)
        return checkpoint_id > done and checkpoint_id not in self.given_up

    def take(self, barrier: CheckpointBarrier) -> Copied:
        self.copies.append((barrier.checkpoint_id, list(self.seen)))
        return Copied(barrier, {}, overtook=False, held=(), sync_us=0)

    def report(self, copied: Copied, arrival: Arrival) -> None:
        self.reports.append((copied.barrier.checkpoint_id, arrival))

    def abort(self, checkpoint_id: int) -> None:
        self.given_up.add(checkpoint_id)
        self.policy.on_abort(checkpoint_id)

    def run(self, now_us: int = 0) -> None:
        """Take all that can be taken, as a task does."""
        while True:
            for channel, barrier in self.gate.overtaking() if self.gate.attention.wanted else ():
                self.policy.on_barrier(channel, barrier, now_us)
            polled = self.gate.poll()
            if polled is None:
                return
            channel, element = polled
            if isinstance(element, Records):
                if channel.log is not None:
                    channel.log.append(element)
                self.seen += element.batch.column(0).to_pylist()
            elif isinstance(element, CheckpointBarrier):
                self.policy.on_barrier(channel, element, now_us)
            elif isinstance(element, EndOfStream):
                self.gate.finish(channel)
                self.policy.on_end(channel, now_us)


def flow(sender: int) -> Flow:
    return Flow("a", None, "b", 0, sender, 0, 1)


def records(*numbers: int) -> Records:
    return Records(pa.record_batch({"n": list(numbers)}))


def overtake(channel: InputChannel, barrier: CheckpointBarrier) -> None:
    """What a sender does that has shipped everything."""
    sent = channel.channel.buffers_sent
    channel.channel.overtake(CheckpointBarrier(barrier.checkpoint_id, barrier.triggered_us, "unaligned", None, sent))


def kept(arrival: Arrival) -> dict[int, list[int]]:
    """What was in flight, by sender."""
    return {
        piece.flow.sender: [n for buffer in piece.buffers for n in buffer.batch.column(0).to_pylist()]
        for piece in arrival.in_flight
    }


# aligned ---------------------------------------------------------------------------------------------------------


def test_alignment_holds_the_faster_channel_until_the_last_barrier() -> None:
    task = Task(3)
    a, b, c = task.inputs
    barrier = CheckpointBarrier(1, triggered_us=100)
    a.channel.push(barrier)
    a.channel.push(records(7))
    task.run(110)
    c.channel.push(barrier)
    b.channel.push(records(1, 2))
    task.run(130)
    assert [channel.blocked for channel in task.inputs] == [True, False, True]
    assert (task.seen, task.copies) == ([1, 2], [])
    b.channel.push(barrier)
    task.run(150)
    assert task.copies == [(1, [1, 2])]
    assert task.reports == [(1, Arrival(start_delay_us=10, alignment_us=40, processed=2, processed_bytes=2 * 8))]
    assert task.seen == [1, 2, 7]
    assert not any(channel.blocked for channel in task.inputs)


def test_an_aborted_or_overtaken_checkpoint_lets_its_channels_go() -> None:
    task = Task(2)
    a, b = task.inputs
    task.policy.on_barrier(a, CheckpointBarrier(1, 0), 0)
    task.abort(1)
    assert not a.blocked
    task.policy.on_barrier(b, CheckpointBarrier(1, 0), 0)  # late barrier of the aborted checkpoint
    assert not b.blocked
    task.policy.on_barrier(a, CheckpointBarrier(2, 0), 0)
    task.policy.on_barrier(b, CheckpointBarrier(3, 0), 0)  # checkpoint 2 was given up by somebody else
    assert [a.blocked, b.blocked] == [False, True]
    task.policy.on_barrier(a, CheckpointBarrier(3, 0), 0)
    assert [number for number, _ in task.copies] == [3]


def test_giving_up_a_later_checkpoint_leaves_the_alignment_of_an_earlier_one() -> None:
    task = Task(2)
    a, b = task.inputs
    task.policy.on_barrier(a, CheckpointBarrier(1, 0), 0)
    task.abort(2)
    assert a.blocked
    task.policy.on_barrier(b, CheckpointBarrier(1, 0), 0)
    assert task.copies == [(1, [])]


def test_an_ended_channel_counts_as_aligned() -> None:
    task = Task(2)
    a, b = task.inputs
    a.channel.push(CheckpointBarrier(1, 0))
    b.channel.push(EndOfStream())
    task.run()
    assert task.copies == [(1, [])]


# at least once ---------------------------------------------------------------------------------------------------


def test_at_least_once_holds_nothing_back_and_counts_what_came_too_early() -> None:
    task = Task(2)
    a, b = task.inputs
    barrier = CheckpointBarrier(1, 100, "at-least-once")
    a.channel.push(records(1))
    a.channel.push(barrier)
    a.channel.push(records(2, 3))
    task.run(110)
    assert (task.seen, task.copies) == ([1, 2, 3], [])
    b.channel.push(records(8))
    b.channel.push(barrier)
    b.channel.push(records(9))
    task.run(160)
    assert task.copies == [(1, [1, 2, 3, 8])]  # 2 and 3 are in the state and will come again
    assert task.reports == [
        (1, Arrival(start_delay_us=10, alignment_us=50, processed=3, early=2, processed_bytes=3 * 8))
    ]
    assert task.seen == [1, 2, 3, 8, 9]


def test_at_least_once_counts_several_checkpoints_at_a_time() -> None:
    task = Task(2)
    a, b = task.inputs
    for number in (1, 2, 3):
        a.channel.push(records(number))
        a.channel.push(CheckpointBarrier(number, 0, "at-least-once"))
    task.run()
    task.abort(2)
    for number in (1, 2, 3):
        b.channel.push(CheckpointBarrier(number, 0, "at-least-once"))
    task.run()
    assert task.copies == [(1, [1, 2, 3]), (3, [1, 2, 3])]
    assert [arrival.early for _, arrival in task.reports] == [2, 0]


# unaligned -------------------------------------------------------------------------------------------------------


def test_an_unaligned_snapshot_is_taken_at_the_first_barrier() -> None:
    task = Task(2)
    a, b = task.inputs
    a.channel.push(records(1))
    b.channel.push(records(8))
    task.run(50)
    barrier = CheckpointBarrier(1, 100, "unaligned")
    a.channel.push(records(2))
    a.channel.push(Watermark(5))
    a.channel.push(records(3))
    overtake(a, barrier)
    a.channel.push(records(4))  # behind the barrier
    b.channel.push(records(9))
    task.run(110)
    assert task.copies == [(1, [1, 8])]
    assert task.reports == []  # the other barrier has not come: what b brings is logged, and processed
    assert sorted(task.seen) == [1, 2, 3, 4, 8, 9]
    b.channel.push(records(10, 11))
    overtake(b, barrier)
    b.channel.push(records(12))
    task.run(170)
    [(number, arrival)] = task.reports
    assert number == 1
    assert kept(arrival) == {0: [2, 3], 1: [9, 10, 11]}
    assert (arrival.start_delay_us, arrival.alignment_us, arrival.processed) == (10, 60, 4)
    assert sorted(task.seen) == [1, 2, 3, 4, 8, 9, 10, 11, 12]
    assert [channel.log for channel in task.inputs] == [None, None]


def test_an_aligned_barrier_ends_the_log_of_its_channel() -> None:
    task = Task(2)
    a, b = task.inputs
    overtake(a, CheckpointBarrier(1, 0))
    task.run()
    b.channel.push(records(5))
    b.channel.push(CheckpointBarrier(1, 0))
    b.channel.push(records(6))
    task.run()
    assert kept(task.reports[0][1]) == {1: [5]}


def test_alignment_goes_over_to_unaligned() -> None:
    task = Task(3)
    a, b, c = task.inputs
    barrier = CheckpointBarrier(1, 0, overtakes_at_us=500)
    a.channel.push(records(1))
    a.channel.push(barrier)
    a.channel.push(records(2))
    task.run(100)
    assert a.blocked
    b.channel.push(records(5))
    b.channel.push(records(6))
    b.channel.push(barrier)
    b.channel.push(records(7))
    sent_before_the_barrier = 2
    b.channel.overtake(CheckpointBarrier(1, 0, "unaligned", None, sent_before_the_barrier))
    task.run(500)
    assert task.copies == [(1, [1])]
    assert not a.blocked
    c.channel.push(records(9))
    overtake(c, barrier)
    task.run(600)
    [(_, arrival)] = task.reports
    assert kept(arrival) == {1: [5, 6], 2: [9]}  # of a's records none: its barrier had come in its turn
    assert (arrival.start_delay_us, arrival.alignment_us) == (100, 500)
    assert sorted(task.seen) == [1, 2, 5, 6, 7, 9]


def test_a_held_back_channel_brings_word_that_the_barrier_may_overtake() -> None:
    task = Task(2)
    a, b = task.inputs
    a.channel.push(CheckpointBarrier(1, 0, overtakes_at_us=500))
    task.run(100)
    a.channel.push(records(3))
    a.channel.overtake(CheckpointBarrier(1, 0, "unaligned", None, 0))
    task.run(500)
    assert task.copies == [(1, [])]
    overtake(b, CheckpointBarrier(1, 0))
    task.run(510)
    assert kept(task.reports[0][1]) == {}
    assert task.seen == [3]


def test_a_newer_checkpoint_ends_the_collecting_of_an_older_one() -> None:
    task = Task(2)
    a, b = task.inputs
    overtake(a, CheckpointBarrier(1, 0))
    task.run()
    b.channel.push(records(4))
    task.run()
    overtake(b, CheckpointBarrier(2, 0))
    task.run()
    b.channel.push(records(5))
    a.channel.push(records(6))
    task.run()
    overtake(a, CheckpointBarrier(2, 0))
    task.run()
    [(number, arrival)] = task.reports
    assert number == 2
    assert kept(arrival) == {0: [6]}
    overtake(b, CheckpointBarrier(1, 0))  # far too late
    task.run()
    assert [number for number, _ in task.copies] == [1, 2]


def test_an_aborted_checkpoint_is_logged_no_more() -> None:
    task = Task(2)
    a, b = task.inputs
    overtake(a, CheckpointBarrier(1, 0))
    task.run()
    assert b.log == []
    task.abort(1)
    assert b.log is None
    overtake(b, CheckpointBarrier(1, 0))
    task.run()
    assert task.reports == []


# sources ---------------------------------------------------------------------------------------------------------


def test_under_stop_the_world_a_source_waits_for_the_checkpoint() -> None:
    task = Task(0)
    held: list[bool] = []
    policy = SourceBarriers(task, held.append)
    policy.on_trigger(CheckpointBarrier(1, 100, "stop-the-world"), 130)
    assert task.reports == [(1, Arrival(start_delay_us=30))]
    policy.on_abort(7)
    assert held == [True]
    policy.on_complete(1)
    policy.on_complete(1)
    assert held == [True, False]
    policy.on_trigger(CheckpointBarrier(2, 200, "stop-the-world"), 200)
    policy.on_abort(2)
    assert held == [True, False, True, False]
    policy.on_trigger(CheckpointBarrier(3, 300), 300)
    assert held == [True, False, True, False]


# what is kept ----------------------------------------------------------------------------------------------------


def test_what_is_in_flight_is_kept_as_arrow_tables() -> None:
    times = pa.array([5, -1, 9], pa.int64()).to_numpy()
    timed = Records(pa.record_batch({"n": [1, 2, 3], "s": ["x", None, "z"]}), times)
    other = Flow("late", "side", "sink", 1, 3, 2, 4)
    pieces = [InFlight(flow(1), (timed, timed.slice(1, 1))), InFlight(other, (records(4),), held=True)]
    states = {TASK: saved("b[0]", pieces, early=6), "b": {"offset": 3}}
    read = decode(encode(states).join(), "file")
    held, first = sorted(restored([read[TASK]]), key=lambda piece: piece.flow.producer, reverse=True)
    assert (first.flow, first.held, held.flow, held.held) == (flow(1), False, other, True)
    assert [buffer.batch.to_pydict() for buffer in first.buffers] == [
        {"n": [1, 2, 3], "s": ["x", None, "z"]},
        {"n": [2], "s": [None]},
    ]
    assert [list(buffer.timestamps) for buffer in first.buffers if buffer.timestamps is not None] == [[5, -1, 9], [-1]]
    assert held.buffers[0].timestamps is None
    assert early_records([read[TASK]]) == {"b[0]": 6}
    assert read["b"] == {"offset": 3}


def test_what_was_sent_comes_before_what_was_still_held() -> None:
    sender = saved("a[0]", [InFlight(flow(0), (records(3),), held=True)], 0)
    receiver = saved("b[0]", [InFlight(flow(0), (records(1), records(2)))], 0)
    found = restored(decode(encode({TASK: state}).join(), "file")[TASK] for state in (sender, receiver))
    assert [n for piece in found for b in piece.buffers for n in b.batch.column(0).to_pylist()] == [1, 2, 3]


@pytest.mark.parametrize("pushed", [0, 1, 3])
def test_the_oldest_buffers_stay_in_the_queue(pushed: int) -> None:
    channel = Channel("e", "a[0]", "b[0]", 2, Waker(), Waker())
    channel.push(Watermark(0))
    for number in range(pushed):
        channel.push(records(number))
    channel.push(Watermark(9))  # behind the barrier
    watermark, *buffers = channel.oldest(2, 0)
    assert watermark == Watermark(0)
    assert [buffer.batch.column(0)[0].as_py() for buffer in buffers] == list(range(min(pushed, 2)))
    assert len(channel.elements) == pushed + 2
