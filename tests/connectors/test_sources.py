"""TableSource and GeneratorSource: every row once, at every parallelism, from every position, at a steady rate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_readers import read_in_runs, readers

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, WaitUntil
from workbench.connectors.contract.rate import RateLimit
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.connectors.tables.table_source import TableSource
from workbench.durations import NO_TIME
from workbench.errors import CheckpointError, PlanError, RecordError, SettingError

SCHEMA = pa.schema([("n", pa.int64()), ("square", pa.int64())])


def squares(offset: int, n: int) -> pa.RecordBatch:
    numbers = np.arange(offset, offset + n, dtype=np.int64)
    return pa.record_batch([pa.array(numbers), pa.array(numbers * numbers)], schema=SCHEMA)


def table_of(rows: int) -> Source:
    return TableSource(pa.Table.from_batches([squares(0, rows)], SCHEMA), splits=3)


def generator_of(rows: int) -> Source:
    return GeneratorSource(squares, SCHEMA, limit=rows, splits=3)


def numbers(fetched: Fetched) -> list[int]:
    values: list[int] = fetched.records.batch.column("n").to_pylist()
    assert fetched.records.batch.column("square").to_pylist() == [value * value for value in values]
    return values


def drain(reader: SourceReader, max_records: int = 1000) -> list[int]:
    values: list[int] = []
    while isinstance(fetched := reader.poll(max_records), Fetched):
        assert 0 < len(fetched.records) <= max_records
        values += numbers(fetched)
    assert isinstance(fetched, Exhausted)
    assert list(reader.splits()) == []
    return values


@pytest.mark.parametrize("make", [table_of, generator_of])
@pytest.mark.parametrize("rows", [1, 5, 100, 20_000])
def test_rows_come_in_order_at_parallelism_one(make: Callable[[int], Source], rows: int) -> None:
    (reader,) = readers(make(rows), 1)
    assert drain(reader) == list(range(rows))


@pytest.mark.parametrize("make", [table_of, generator_of])
@pytest.mark.parametrize("parallelism", [2, 3, 5])
def test_every_row_once_at_any_parallelism(make: Callable[[int], Source], parallelism: int) -> None:
    shares = [drain(reader) for reader in readers(make(20_000), parallelism)]
    assert Counter(value for share in shares for value in share) == Counter(range(20_000))
    assert all(share == sorted(share) for share in shares)
    assert [bool(share) for share in shares] == [subtask < 3 for subtask in range(parallelism)]


def test_splits_stay_aligned() -> None:
    first, second, third = readers(table_of(3_000), 3)
    for _ in range(30):
        heads = [numbers(reader.poll(20))[0] for reader in (first, second, third)]  # type: ignore[arg-type]
        assert max(heads) - min(heads) < 3 * 62  # three blocks of 3,000 / (3 * 16) rows


@settings(max_examples=60)
@given(
    rows=st.integers(1, 400),
    table=st.booleans(),
    runs=st.lists(st.tuples(st.integers(1, 5), st.lists(st.integers(1, 40), max_size=10)), min_size=1, max_size=5),
)
def test_restoring_at_another_parallelism_repeats_and_loses_nothing(
    rows: int, table: bool, runs: list[tuple[int, list[int]]]
) -> None:
    source = table_of(rows) if table else generator_of(rows)
    seen = read_in_runs(source, runs, numbers)
    assert Counter(seen) == Counter(range(rows))


def test_a_snapshot_of_other_data_is_refused() -> None:
    (reader,) = readers(table_of(100), 1)
    (other,) = readers(table_of(101), 1)
    with pytest.raises(CheckpointError, match="'rows': 100"):
        other.restore([reader.snapshot()])


def test_an_empty_table_is_exhausted() -> None:
    (reader,) = readers(TableSource(SCHEMA.empty_table()), 1)
    assert list(reader.splits()) == []
    assert reader.poll(10) == Exhausted()


def test_chunks_of_a_table_are_joined() -> None:
    chunks = pa.Table.from_batches([squares(0, 3), squares(3, 1), squares(4, 6)], SCHEMA)
    (reader,) = readers(TableSource(chunks, splits=1), 1)
    assert drain(reader) == list(range(10))


def test_event_times() -> None:
    table = pa.table({"day": pa.array([date(1970, 1, 2), None]), "n": [1, 2]})
    (reader,) = readers(TableSource(table, event_time="day", splits=1), 1)
    fetched = reader.poll(1)
    assert isinstance(fetched, Fetched)
    times = list(fetched.records.timestamps or ())
    fetched = reader.poll(1)
    assert isinstance(fetched, Fetched)
    assert [*times, *(fetched.records.timestamps or ())] == [86_400_000_000, NO_TIME]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("s"), 2**62),  # taken modulo 2**64 these would be other times
        (pa.timestamp("ms", "UTC"), -(2**62)),
        (pa.date32(), 2**31 - 1),
        (pa.date64(), 2**62 // 86_400_000 * 86_400_000),
    ],
    ids=str,
)
def test_event_times_beyond_64_bits_are_an_error(kind: pa.DataType, value: int) -> None:
    times = pa.array([value], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    (reader,) = readers(TableSource(pa.table({"t": times}), event_time="t", splits=1), 1)
    found = f"a time of 't' is {value} as {re.escape(str(kind))}, more than 73,000 years from 1970: is it in another"
    with pytest.raises(RecordError, match=found):
        reader.poll(1)


def test_event_time_must_exist_and_be_a_time() -> None:
    table = pa.table({"departed": ["x"], "n": [1]})
    with pytest.raises(PlanError, match="unknown column 'departd': did you mean 'departed'"):
        TableSource(table, event_time="departd")
    with pytest.raises(PlanError, match="'departed' has type string"):
        TableSource(table, event_time="departed")
    with pytest.raises(PlanError, match="unknown column 't'"):
        GeneratorSource(squares, SCHEMA, event_time="t")


@pytest.mark.parametrize("rate", [0, -1.0, float("inf"), float("nan")])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(SettingError, match="rate is"):
        TableSource(SCHEMA.empty_table(), rate=rate)


def test_counts_are_above_zero() -> None:
    with pytest.raises(SettingError, match="splits is 0"):
        TableSource(SCHEMA.empty_table(), splits=0)
    with pytest.raises(SettingError, match="limit is 0"):
        GeneratorSource(squares, SCHEMA, limit=0)


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_the_rate_is_that_of_the_whole_source(parallelism: int) -> None:
    clock = VirtualClock()
    made = readers(GeneratorSource(squares, SCHEMA, rate=1_000, splits=4), parallelism, clock)
    read = 0
    for now_us in range(0, 5_000_001, 10_000):
        clock.advance_to(now_us)
        for reader in made:
            while isinstance(fetched := reader.poll(100), Fetched):
                read += len(fetched.records)
            assert isinstance(fetched, WaitUntil)
            assert fetched.time_us is not None
            assert now_us < fetched.time_us <= now_us + 5_000
    assert abs(read - 5_000) <= parallelism


def test_a_stall_is_caught_up_by_a_second_at_most() -> None:
    clock = VirtualClock()
    (reader,) = readers(GeneratorSource(squares, SCHEMA, rate=100), 1, clock)
    assert isinstance(reader.poll(1000), Fetched)
    clock.advance_to(60_000_000)
    caught_up = 0
    while isinstance(fetched := reader.poll(1000), Fetched):
        caught_up += len(fetched.records)
    assert caught_up == 100
    assert fetched == WaitUntil(60_010_000)


@given(rate=st.fractions(Fraction(1, 10), 10_000), steps=st.lists(st.integers(0, 400_000), max_size=40))
def test_waiting_until_the_next_record_is_enough(rate: Fraction, steps: list[int]) -> None:
    limit, now_us = RateLimit(rate), 0
    for step in [0, *steps]:
        now_us += step
        limit.take(limit.due(now_us))
        assert limit.due(now_us) == 0
        now_us = limit.next_us(now_us)
        assert limit.due(now_us) >= 1


def test_a_failing_generator_is_named() -> None:
    def broken(offset: int, n: int) -> pa.RecordBatch:
        raise KeyError("lost")

    (reader,) = readers(GeneratorSource(broken, SCHEMA, limit=5), 1)
    with pytest.raises(RecordError, match=r"'broken' failed for row 0: KeyError: 'lost'"):
        reader.poll(10)


def test_a_wrong_batch_is_refused() -> None:
    (reader,) = readers(GeneratorSource(lambda offset, n: squares(offset, n + 1), SCHEMA, limit=5), 1)
    with pytest.raises(RecordError, match=r"returned 2 rows of \['n', 'square'\] where 1 rows"):
        reader.poll(10)


def test_a_fast_source_looks_once_a_millisecond_and_loses_nothing_by_it() -> None:
    clock = VirtualClock()
    (reader,) = readers(GeneratorSource(squares, SCHEMA, rate=100_000, splits=1), 1, clock)
    counts = []
    for now_us in range(0, 10_000, 100):
        clock.advance_to(now_us)
        fetched = reader.poll(1_000)
        if isinstance(fetched, Fetched):
            counts.append((now_us, len(fetched.records)))
        else:
            assert fetched == WaitUntil(now_us // 1_000 * 1_000 + 1_000)
    assert counts == [(0, 1), *((now_us, 100) for now_us in range(1_000, 10_000, 1_000))]


def test_a_source_that_is_behind_does_not_rest() -> None:
    clock = VirtualClock()
    (reader,) = readers(GeneratorSource(squares, SCHEMA, rate=100_000, splits=1), 1, clock)
    assert isinstance(reader.poll(1_000), Fetched)
    clock.advance_to(10_000)
    for _ in range(2):
        fetched = reader.poll(500)
        assert isinstance(fetched, Fetched)
        assert len(fetched.records) == 500


def test_slow_rows_are_dealt_in_small_blocks_and_a_restored_reader_keeps_the_blocks_it_counted_in() -> None:
    slow = GeneratorSource(squares, SCHEMA, rate=1_000, splits=2)
    (reader,) = readers(slow, 1)
    reader.rate.per_second = None
    first = reader.poll(1_000)
    assert isinstance(first, Fetched)
    assert len(first.records) == 256
    saved = reader.snapshot()
    (restored,) = readers(GeneratorSource(squares, SCHEMA, splits=2), 1)
    restored.restore([saved])
    following = restored.poll(1_000)
    assert isinstance(following, Fetched)
    assert following.records.batch.column("n").to_pylist() == list(range(256, 512))
