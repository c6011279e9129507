"""Exchanges at run time: which subtask receives which record (F1-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.drivers.contract.probes import Probe, attach
from workbench.elements import Element, Records
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.splitters import ShuffleSplitter, split_by

ROWS = 600


def table(rows: int = ROWS) -> pa.Table:
    return pa.table({"n": pa.array(range(rows), pa.int64())})


def records(numbers: Sequence[int], *, times: bool = True) -> Records:
    stamps = np.array(numbers, np.int64) * 10 if times else None
    return Records(pa.record_batch({"n": pa.array(numbers, pa.int64())}), stamps)


def numbers(part: Records | None) -> list[int]:
    found: list[int] = [] if part is None else part.batch.column("n").to_pylist()
    return found


class Taken(Probe):
    """Notes which records each subtask of the operator ``behind`` takes."""

    def __init__(self, taken: dict[int, list[int]]) -> None:
        self._taken = taken

    def received(self, channel: Channel, element: Element) -> None:
        if isinstance(element, Records) and channel.target.startswith("behind"):
            self._taken.setdefault(int(channel.target[7:-1]), []).extend(numbers(element))


def received(stream: wb.Stream, receivers: int, parallelism: int = 2) -> list[list[int]]:
    """What each subtask behind an exchange gets."""
    taken: dict[int, list[int]] = {}

    behind = stream.map_batches(lambda batch: batch).uid("behind").with_parallelism(receivers)
    job = behind.sink_to(wb.TableSink("out")).run(
        "exchange", driver="stepping", parallelism=parallelism, buffer_size=16, checkpoint_interval=None
    )
    execution = job.stepper.driver.execution
    assert execution is not None
    attach(execution, Taken(taken))
    assert job.wait() == "FINISHED"
    assert sorted(job.table("out")["n"].to_pylist()) == sorted(n for part in taken.values() for n in part)
    return [taken.get(subtask, []) for subtask in range(receivers)]


def test_rescale_gives_each_sender_its_own_receivers() -> None:
    sources = wb.Stream.from_table(table())
    parts = received(sources.rebalance(local=True), 4)
    # The two subtasks of the source read what two receivers of a rescale to two would get.
    halves = received(sources.rebalance(local=True), 2)
    assert sorted(parts[0] + parts[1]) == sorted(halves[0])
    assert sorted(parts[2] + parts[3]) == sorted(halves[1])
    assert all(len(part) > ROWS / 8 for part in parts)


def test_rebalance_mixes_all_senders() -> None:
    parts = received(wb.Stream.from_table(table()).rebalance(), 3)
    assert sorted(n for part in parts for n in part) == list(range(ROWS))
    assert all(abs(len(part) - ROWS / 3) <= 16 for part in parts)


def test_broadcast_gives_everybody_everything() -> None:
    parts = received(wb.Stream.from_table(table(50)).broadcast(), 3)
    assert [sorted(part) for part in parts] == [list(range(50))] * 3


@pytest.mark.slow
@pytest.mark.parametrize("timeout", ["0ms", "5ms", "disabled"])
@pytest.mark.parametrize("size", [1, 16, 50, 64, 1_000])
def test_hash_loses_nothing_whatever_the_size_of_buffers(size: int, timeout: str) -> None:
    """Numbers are written straight into memory that several buffers share: a buffer may begin anywhere in it."""
    keyed = wb.Stream.from_table(table()).with_columns(key="n % 7").key_by("key").aggregate(count=wb.count())
    job = keyed.sink_to(wb.TableSink("out")).run(
        "hash", driver="stepping", parallelism=3, buffer_size=size, buffer_timeout=timeout, checkpoint_interval=None
    )
    assert job.wait() == "FINISHED"
    rows = zip(job.table("out")["key"].to_pylist(), job.table("out")["count"].to_pylist(), strict=True)
    assert Counter(rows) == Counter((n % 7, n // 7 + 1) for n in range(ROWS))


def test_shuffle_is_random_and_the_same_every_time() -> None:
    stream = wb.Stream.from_table(table()).shuffle()
    parts = received(stream, 3)
    assert sorted(n for part in parts for n in part) == list(range(ROWS))
    assert all(140 < len(part) < 260 for part in parts)  # 200 expected, 6 standard deviations of 11.5
    assert parts == received(stream, 3)


def test_partition_by_an_expression_sends_to_its_value_modulo_the_subtasks() -> None:
    parts = received(wb.Stream.from_table(table(60)).partition_by("n - 20"), 3)
    assert [sorted(part) for part in parts] == [[n for n in range(60) if (n - 20) % 3 == target] for target in range(3)]


def test_partition_by_a_function_gets_batches() -> None:
    def by_hundreds(batch: pa.RecordBatch) -> Any:
        return np.asarray(batch.column("n")) // 100

    parts = received(wb.Stream.from_table(table()).partition_by(by_hundreds), 4)
    assert sorted(parts[0]) == [*range(100), *range(400, 500)]
    assert sorted(parts[3]) == list(range(300, 400))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda batch: [1] * (batch.num_rows + 1),
            r"gave \[1, 1\] for a batch of 1: it must give one integer for each",
        ),
        (lambda batch: ["a"] * batch.num_rows, "it must give one integer for each"),
        (lambda batch: pa.array([7, 8]), r"gave \[7, 8\] for a batch of 1: it must give one integer for each"),
        (lambda batch: np.zeros((1, 2), int), r"gave \[\[0, 0\]\] for a batch of 1: it must give one integer for each"),
        (lambda batch: [2**70] * batch.num_rows, r"gave \[1180591620717411303424\] for a batch of 1: it must give one"),
        (lambda batch: pa.nulls(batch.num_rows, pa.int64()), "gave no number for 1 of 1 records: say where nulls go"),
        (lambda batch: 1 / 0, "failed: ZeroDivisionError"),
    ],
)
def test_a_partitioner_that_gives_no_numbers_ends_the_job_with_the_reason(function: Any, message: str) -> None:
    stream = wb.Stream.from_table(table(16)).partition_by(function).map_batches(lambda batch: batch)
    job = stream.sink_to(wb.TableSink("out")).run("bad", driver="stepping", restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError, match=message):
        job.wait()


def test_a_partitioner_is_checked_when_it_is_written() -> None:
    names = wb.Stream.from_table(pa.table({"name": ["a"]}))
    with pytest.raises(wb.errors.PlanError, match=r"gives string: an exchange needs integers.*test_exchange\.py"):
        names.partition_by("name")
    with pytest.raises(wb.errors.ExpressionError, match="unknown column 'nam'"):
        names.partition_by("length(nam)")


# splitters ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), max_size=60), st.booleans())
def test_splitting_keeps_rows_times_and_order(targets: list[int], times: bool) -> None:
    whole = records(range(len(targets)), times=times)
    parts = split_by(whole, np.array(targets, np.int64), 5)
    assert [numbers(part) for part in parts] == [[n for n, to in enumerate(targets) if to == t] for t in range(5)]
    for part in parts:
        if part is not None:
            assert len(part) > 0
            stamps = None if part.timestamps is None else part.timestamps.tolist()
            assert stamps == ([n * 10 for n in numbers(part)] if times else None)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(0, 2**62))
def test_a_shuffle_does_not_depend_on_how_rows_are_cut_into_batches(cuts: list[int], seed: int) -> None:
    rows = sum(cuts)
    whole = [numbers(part) for part in ShuffleSplitter(3, seed).split(records(range(rows)))]
    splitter, first = ShuffleSplitter(3, seed), 0
    found: list[list[int]] = [[], [], []]
    for cut in cuts:
        for target, part in enumerate(splitter.split(records(range(first, first + cut)))):
            found[target] += numbers(part)
        first += cut
    assert found == whole


def test_shuffles_of_different_seeds_differ_and_are_even() -> None:
    splits = [ShuffleSplitter(4, seed).split(records(range(10_000))) for seed in range(5)]
    sizes = Counter(len(part) for parts in splits for part in parts if part is not None)
    assert all(2_240 < size < 2_760 for size in sizes)  # 2,500 expected, 6 standard deviations of 43
    assert len({tuple(numbers(parts[0])) for parts in splits}) == 5
