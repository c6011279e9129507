"""Without a buffer timeout, a hash exchange forwards each batch as pending buffers would, but without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.clock import VirtualClock
from workbench.elements import LatencyMarker, Records, Watermark
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.state.key_groups import KeyPartitioner

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int32())])
TARGET_US = 15_000


@dataclass
class End:
    """A sending end with its channels."""

    clock: VirtualClock
    output: EdgeOutput
    channels: list[Channel]

    def counted(self) -> list[tuple[int, ...]]:
        """What is counted of each channel, and the present sizes of buffers."""
        return [
            (channel.records_sent, channel.bytes_sent, pending.size, pending.rows)
            for channel, pending in zip(self.channels, self.output.pending, strict=True)
        ]


class ThroughPendingBuffers(EdgeOutput):
    """Hands nothing on directly."""

    __slots__ = ()

    def _passes(self, records: Records) -> bool:
        return False


def end(targets: int, size: int, target_us: int | None = TARGET_US, kind: type[EdgeOutput] = EdgeOutput) -> End:
    clock = VirtualClock(1_000)
    channels = [Channel("e", "a[0]", f"b[{n}]", 1_000, Waker(), Waker()) for n in range(targets)]
    splitter = KeyPartitioner(["k"], SCHEMA, targets)
    output = kind(channels, "hash", splitter, None, clock.now_us, size, 0, target_us)
    OutputPool([output], 8)
    return End(clock, output, channels)


def batch(rows: list[int], *, timed: bool = True) -> Records:
    columns = [pa.array(rows, pa.int64()), pa.array([n % 7 for n in rows], pa.int32())]
    return Records(pa.record_batch(columns, schema=SCHEMA), np.array(rows, np.int64) if timed else None)


STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(0, 10**9), min_size=1, max_size=60),
        st.integers(1, 40_000).map(lambda us: ("wait", us)),
        st.integers(0, 10**9).map(Watermark),
        st.just(LatencyMarker(5, "a[0]")),
        st.just("untimed"),
    ),
    max_size=30,
)


@given(STEPS, st.integers(1, 3), st.sampled_from([3, 40, 300]), st.booleans())
def test_channels_get_the_same_as_through_pending_buffers(
    steps: list[Any], targets: int, size: int, debloats: bool
) -> None:
    target_us = TARGET_US if debloats else None
    direct, pending = (end(targets, size, target_us, kind) for kind in (EdgeOutput, ThroughPendingBuffers))
    timed = True
    for step in steps:
        for own in (direct, pending):
            match step:
                case list():
                    own.output.route(batch(step, timed=timed))
                case ("wait", us):
                    own.clock.advance_to(own.clock.now_us() + us)
                case Watermark():
                    own.output.emit_watermark(step)
                case LatencyMarker():
                    own.output.emit_marker(step, 1)
        timed = timed and step != "untimed"
        assert rows_of(direct) == rows_of(pending)
        assert direct.counted() == pending.counted()


def rows_of(own: End) -> list[list[object]]:
    """Rows and control elements in their order; where buffers begin does not matter."""
    found = []
    for channel in own.channels:
        flow: list[object] = []
        for element in channel.elements:
            if isinstance(element, Records):
                times = [None] * len(element) if element.timestamps is None else element.timestamps.tolist()
                flow += zip(*element.batch.to_pydict().values(), times, strict=True)
            else:
                flow.append(element)
        found.append(flow)
    return found


def test_a_batch_of_a_buffers_size_goes_through_pending_buffers() -> None:
    own = end(2, 3)
    own.output.route(batch(list(range(40))))
    assert all(len(element) <= 3 for channel in own.channels for element in channel.elements)
    assert sum(channel.records_sent for channel in own.channels) == 40


def test_nothing_is_handed_on_past_rows_that_wait_for_room() -> None:
    own = end(2, 300)
    for channel in own.channels:
        channel.credit = 1
    for first in range(0, 2_000, 20):
        own.output.route(batch(list(range(first, first + 20))))
    assert own.output.pool is not None
    assert not own.output.pool.has_free
    assert any(pending.rows for pending in own.output.pending)
    for channel in own.channels:
        kept = [n for element in channel.elements for n in element.batch["k"].to_pylist()]  # type: ignore[union-attr]
        assert kept == sorted(kept)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 255])
def test_a_batch_that_does_not_fit_behind_the_last_one_gets_memory_of_its_own(rows: int) -> None:
    own = end(2, 256, None)
    sent = [list(range(first, first + rows)) for first in range(0, 20 * rows, rows)]
    for each in sent:
        own.output.route(batch(each))
    found = [n for flow in rows_of(own) for n, *_ in flow]  # type: ignore[misc]
    assert sorted(found) == list(range(20 * rows))
    assert all(len(element) <= rows for channel in own.channels for element in channel.elements)
