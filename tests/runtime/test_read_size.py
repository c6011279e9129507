"""The number of records that a source reads at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.tasks import read_size
from workbench.runtime.tasks.read_size import FIRST, LARGE, LARGEST, LONGEST_STEP_US, QUICK_STEP_US, SMALLEST, ReadSize

FULL = 262_144


def grown(times, elapsed_us=100, sent=0.0):
    size = ReadSize()
    for _ in range(times):
        size.note(size.records, elapsed_us, sent=int(sent * size.records))
    return size


def pool(free):
    """A pool with so many free buffers."""
    channels = [SimpleNamespace(buffers_sent=0, buffers_received=0, credit=0) for _ in range(2)]
    partials = [SimpleNamespace(channel=channel, rows=0) for channel in channels]
    made = OutputPool([SimpleNamespace(channels=channels, pending=partials)], floating=4)  # 8 buffers
    channels[0].buffers_sent = 8 - free
    return made


@pytest.mark.parametrize(("sent", "largest"), [(1.0, LARGE), (0.6, LARGE), (0.5, LARGEST), (0.0, LARGEST)])
def test_it_doubles_while_steps_are_short_and_beyond_a_buffer_only_where_few_rows_leave(sent, largest):
    sizes = [grown(times, sent=sent).records for times in range(10)]
    assert sizes == [min(FIRST << times, largest) for times in range(10)]


def test_a_large_read_grows_only_while_it_is_quick():
    assert grown(20, QUICK_STEP_US).records == LARGE
    assert grown(20, QUICK_STEP_US - 1).records == LARGEST


def test_it_goes_back_to_a_buffer_when_more_rows_leave_again():
    size = grown(20)
    size.note(LARGEST, 100, sent=LARGEST)
    assert size.records == LARGE


def test_it_shrinks_to_what_takes_half_of_the_longest_step():
    size = grown(20)
    size.note(LARGEST, 4 * LONGEST_STEP_US, sent=0)
    assert size.records == LARGEST // 8
    size.note(100, 100 * LONGEST_STEP_US, sent=0)
    assert size.records == SMALLEST


def test_a_read_that_was_not_full_says_nothing():
    size = ReadSize()
    size.note(FIRST - 1, 100, sent=0)
    assert size.records == FIRST


def test_what_may_be_read_fits_the_free_buffers_and_small_buffers():
    size = grown(20)
    assert [size.at_most(FULL, pool(free)) for free in (8, 4, 3, 1, 0)] == [LARGEST, LARGEST, 3 * FULL, FULL, FULL]
    assert size.at_most(FULL, OutputPool([], 4)) == LARGEST  # nothing to send anything to
    assert size.at_most(FULL - 1, pool(8)) == FULL - 1
    assert size.at_most(500, pool(8)) == 500


def test_a_chain_that_sends_nothing_reads_more_than_a_buffer_and_one_that_sends_everything_does_not(monkeypatch):
    monkeypatch.setattr(read_size, "FIRST", LARGE)
    for limit in ("QUICK_STEP_US", "LONGEST_STEP_US"):  # the machine may have other work to do
        monkeypatch.setattr(read_size, limit, 10**9)

    def most(keep):
        reads = []

        def rows(first, count):
            reads.append(count)
            return pa.record_batch({"n": np.arange(first, first + count)})

        stream = wb.Stream.from_generator(rows, pa.schema({"n": pa.int64()}), limit=64 * LARGEST)
        seen = stream.filter(f"n % 4 < {keep}").rebalance().sink_to(wb.CallbackSink(lambda batch: None))
        seen.run("reads", parallelism=1).wait("60s")
        return max(reads)

    assert LARGE < most(keep=1) <= LARGEST
    assert most(keep=4) == LARGE
