"""The number of records in a full buffer: those of 15 ms, or those available at once, up to the buffer size."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from workbench.elements import Records, Watermark
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.pending_buffer import SMALLEST_BUFFER, PendingBuffer
from workbench.runtime.exchange.splitters import ShuffleSplitter, Splitter
from workbench.state.key_groups import KeyPartitioner

SCHEMA = pa.schema({"key": pa.int64()})
LARGEST = 10_000
TARGET_US = 15_000


class Sender:
    """One output whose receiver takes everything at once, in a time that the test sets."""

    def __init__(self, *, keyed: bool, ship_after_us: int | None = None, largest: int = LARGEST) -> None:
        self.now_us = 1
        targets = 2 if keyed else 1
        self.channels = [Channel("e", "a[0]", f"b[{i}]", 2, Waker(), Waker()) for i in range(targets)]
        self.output = EdgeOutput(
            self.channels,
            "hash" if keyed else "forward",
            KeyPartitioner(["key"], SCHEMA, 2) if keyed else None,
            None,
            lambda: self.now_us,
            largest,
            ship_after_us,
            TARGET_US,
        )

    def send(self, rows: int) -> None:
        self.output.route(Records(pa.record_batch([pa.array(range(rows))], schema=SCHEMA)))

    def taken(self) -> list[int]:
        """Sizes of the buffers that have come to the first channel since the last look."""
        sizes = []
        while (element := self.channels[0].poll()) is not None:
            assert isinstance(element, Records)
            sizes.append(len(element))
        return sizes


@pytest.mark.parametrize("keyed", [False, True])
def test_a_full_buffer_follows_the_pace_of_the_records(keyed: bool) -> None:
    sender = Sender(keyed=keyed, ship_after_us=50_000)
    share = 2 if keyed else 1
    for _ in range(400):  # 100 records a millisecond to each channel: 1,500 in 15 ms
        sender.now_us += 1_000
        sender.send(100 * share)
        sender.output.ship_due(sender.now_us)
    sizes = sender.taken()
    assert 1_200 <= sizes[-1] <= 1_800
    assert sizes[0] > 4_000  # the first one waited for the timeout, because nothing was known yet


def test_records_that_are_few_do_not_wait_for_a_large_buffer_to_fill() -> None:
    sender = Sender(keyed=False, ship_after_us=50_000)
    for _ in range(2_000):  # one record a millisecond
        sender.now_us += 1_000
        sender.send(1)
        sender.output.ship_due(sender.now_us)
    assert sender.output.pending[0].size == SMALLEST_BUFFER


def test_watermarks_that_ship_what_is_before_them_do_not_hide_the_pace() -> None:
    sender = Sender(keyed=False, ship_after_us=None)
    for step in range(1_000):  # 1,000 records in 10 ms: 1,500 in 15 ms; the watermarks leave no buffer time to fill
        sender.now_us += 1_000
        sender.send(100)
        if step % 50 == 0:
            sender.output.emit_watermark(Watermark(step))
    assert 1_200 <= sender.output.pending[0].size <= 1_800


def test_what_comes_at_once_leaves_in_one_buffer_however_long_the_pause_before_it() -> None:
    sender = Sender(keyed=False, ship_after_us=0)
    for _ in range(10):
        sender.now_us += 500_000
        sender.send(6_000)
    assert sender.taken() == [6_000] * 10


@pytest.mark.parametrize("keyed", [False, True])
def test_buffers_grow_back_when_the_flow_does(keyed: bool) -> None:
    sender = Sender(keyed=keyed, ship_after_us=50_000)
    for _ in range(300):
        sender.now_us += 1_000
        sender.send(1)
        sender.output.ship_due(sender.now_us)
    assert sender.output.pending[0].size == SMALLEST_BUFFER
    sender.taken()
    for _ in range(30):
        sender.now_us += 1_000
        sender.send(8_000)
    assert sender.output.pending[0].size == LARGEST
    sizes = sender.taken()
    assert max(sizes) <= LARGEST
    assert sizes[-1] > LARGEST // 4


def test_a_buffer_never_holds_more_than_the_buffer_size() -> None:
    sender = Sender(keyed=True)
    sender.output.buffer_size = 1
    sender.send(50)
    assert set(sender.taken()) == {1}


def test_a_channel_of_which_nothing_is_known_takes_little_memory_and_grows_when_it_must() -> None:
    sender = Sender(keyed=True, ship_after_us=50_000, largest=262_144)
    gc.collect()  # or what other tests have left goes meanwhile
    before = pa.total_allocated_bytes()
    sender.now_us += 1_000
    sender.send(10)
    assert 0 < pa.total_allocated_bytes() - before < 2 * 16_384 * 2 * 8 + 10_000  # two channels of a key, without times
    for _ in range(8):
        sender.now_us += 1_000
        sender.send(200_000)
    assert sender.taken()[-1] > 100_000
    sender.output.buffer_size = 1_000_000
    assert [pending.size for pending in sender.output.pending] == [16_384, 16_384]
    sender.output.buffer_size = 100
    assert [pending.size for pending in sender.output.pending] == [100, 100]


def test_what_cannot_be_one_buffer_is_several() -> None:
    # As parts whose text is more than two gigabytes together: these dictionaries have more values than their codes.
    kind = pa.dictionary(pa.int8(), pa.string())
    parts = [pa.array([f"{part}-{at}" for at in range(50)]).cast(kind) for part in range(5)]
    channel = Channel("e", "a[0]", "b[0]", 2, Waker(), Waker())
    pending = PendingBuffer(channel, 0, 250, 250, 0, exact=False)
    pending.parts.extend(Records(pa.record_batch([part], ["word"])) for part in parts)
    pending.rows, pending.since_us = 250, 1
    pending.push_buffer()
    assert (pending.rows, pending.since_us) == (150, 1)
    pending.ship()
    assert (pending.rows, pending.since_us) == (0, 0)
    found = [element for element in iter(channel.poll, None) if isinstance(element, Records)]
    assert [len(records) for records in found] == [100, 50, 100]
    words = [word for records in found for word in records.batch.column("word").to_pylist()]
    assert words == [word for part in parts for word in part.to_pylist()]


SPLITTERS: dict[str, Splitter | None] = {
    "forward": None,
    "rebalance": None,
    "broadcast": None,
    "shuffle": ShuffleSplitter(2, 1),
    "hash": KeyPartitioner(["key"], SCHEMA, 2),
}


@pytest.mark.parametrize("rows", [70, 256, 1_100])
@pytest.mark.parametrize("ship_after_us", [1_000_000, None])
@pytest.mark.parametrize("watermarks", [False, True])
@pytest.mark.parametrize("strategy", SPLITTERS)
def test_a_full_buffer_leaves_at_once(strategy: str, watermarks: bool, ship_after_us: int | None, rows: int) -> None:
    """The records of a millisecond do not fill buffers evenly; no more than a buffer ever waits."""
    now_us = 1
    channels = [Channel("e", "a[0]", f"b[{i}]", 2, Waker(), Waker()) for i in range(1 if strategy == "forward" else 2)]
    output = EdgeOutput(
        channels, strategy, SPLITTERS[strategy], None, lambda: now_us, 262_144, ship_after_us, TARGET_US
    )
    sent = 0
    for step in range(1_000):
        now_us += 1_000
        times = np.full(rows, step) if watermarks else None
        output.route(Records(pa.record_batch([pa.array(range(sent, sent + rows))], schema=SCHEMA), times))
        sent += rows
        if watermarks:
            output.emit_watermark(Watermark(step))
        assert all(pending.rows < pending.size for pending in output.pending)
    of_15_ms = rows * (15 if len(channels) == 1 or strategy == "broadcast" else 7.5)
    assert all(pending.size < 2.2 * of_15_ms for pending in output.pending)


def test_what_a_source_reads_after_a_rest_has_not_come_at_once() -> None:
    """It rests until half of a buffer has come: a buffer that held it all would never become smaller."""
    sender = Sender(keyed=False, ship_after_us=1_000_000)
    for _ in range(100):
        rows = sender.output.pending[0].size // 2
        sender.output.arrived_us = sender.now_us
        sender.now_us += 10 * rows  # 1,500 in 15 ms
        sender.send(rows)
    assert 1_400 <= sender.output.pending[0].size <= 3_000
