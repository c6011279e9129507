"""The kernels of windows, compared with plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_sources import SOURCES, kernels_of

from workbench import compiled
from workbench.compiled.machinery import codes as places
from workbench.durations import MAX_TIME, NO_TIME
from workbench.state.key_table import KeyTable

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(autouse=True, scope="module", params=SOURCES)
def _kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernels_of(request.param):
        yield


def ints(values) -> np.ndarray:
    return np.array(values, np.int64)


@given(
    st.lists(
        st.tuples(st.one_of(st.just(NO_TIME), st.integers(-1000, 1000)), st.one_of(st.integers(-2, 30), INT64)),
        max_size=60,
    ),
    st.integers(1, 300),
    st.integers(0, 299),
    st.integers(-300, 300),
    st.booleans(),
    st.booleans(),
)
def test_records_find_their_entries_also_before_1970_and_when_tables_are_full(
    rows, size, offset, closed, coded, counting
):
    offset %= size
    times = ints([time for time, _ in rows])
    numbers, windows, entries = KeyTable(), KeyTable(), KeyTable()
    keys = ints([key for _, key in rows])
    if coded:
        keys = KeyTable().codes(keys)
    tables = {places.KEYS: numbers, places.WINDOWS: windows, places.ENTRIES: entries}
    progress = np.zeros(8, np.int64)
    progress[places.FIRST_START] = MAX_TIME
    recent, fired, got = np.full((99, 2), -1), np.ones(500, np.uint8), np.empty(len(rows), np.int64)
    counts = np.zeros(500 * counting, np.int64)
    none = (np.empty((0, 2), np.int64), np.empty(0, np.int64), 0)
    while True:
        layouts = (*(none if coded else numbers.layout()), *windows.layout(), *entries.layout())
        compiled.place_in_tumbling(times, keys, size, offset, closed, progress, *layouts, recent, fired, counts, got)
        for at, table in tables.items():
            table.extended(int(progress[at]))
        if not progress[places.FULL]:
            break
        tables[int(progress[places.FULL])].enlarge()
    starts = [None if t == NO_TIME else math.floor((t - offset) / size) * size + offset for t in times.tolist()]
    known: dict[tuple, int] = {}
    wanted = []
    for start, key in zip(starts, keys.tolist(), strict=True):
        late = start is not None and start <= closed
        wanted.append(-2 if start is None else -1 if late else known.setdefault((start, key), len(known)))
    assert got.tolist() == wanted
    assert [progress[places.LATE_COUNT], progress[places.TIMELESS_COUNT]] == [wanted.count(-1), wanted.count(-2)]
    assert progress[places.FIRST_START] == min((start for start, _ in known), default=MAX_TIME)
    assert fired.tolist() == [0] * len(known) + [1] * (500 - len(known))
    assert counts.tolist() == [wanted.count(entry) for entry in range(len(counts))]
    both = entries.keys()
    key_of = keys if coded else numbers.keys()
    decoded = [(windows.keys()[b >> 32], b & 0xFFFFFFFF if coded else key_of[b & 0xFFFFFFFF]) for b in both]
    assert decoded == list(known)


@given(st.lists(st.lists(st.integers(0, 4), max_size=20), max_size=3))
def test_rows_are_numbered_per_slot_over_batches(batches):
    seen, had = np.zeros(5, np.int64), [0] * 5
    for slots in batches:
        numbers = np.empty(len(slots), np.int64)
        compiled.number_rows(ints(slots), seen, numbers)
        for slot, number in zip(slots, numbers.tolist(), strict=True):
            assert number == had[slot]
            had[slot] += 1


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.integers(1, 4),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
def test_a_window_does_something_once_per_wave_and_after_its_last_row_there(entries, every, before):
    seen, waves = ints([number % every for number in before]), np.zeros(6, np.int64)
    pair_waves, firing = np.empty(len(entries), np.int64), np.empty(len(entries), np.int64)
    nothing = np.empty(0, np.int64)
    moves = np.empty((0, 3), np.int64)
    had = seen.tolist()
    fired, count = compiled.count_into_waves(ints(entries), every, seen, moves, waves, pair_waves, nothing, firing)
    wanted, wave = [], [0] * 6
    for row, entry in enumerate(entries):
        assert pair_waves[row] == wave[entry]
        had[entry] += 1
        if had[entry] == every:
            had[entry] = 0
            wave[entry] += 1
            wanted.append(row)
    assert firing[:fired].tolist() == wanted
    assert (seen.tolist(), waves.tolist(), count) == (had, [0] * 6, pair_waves.max() + 1)


def test_a_session_that_takes_over_another_counts_its_rows_and_waits_for_its_waves():
    entries, moves = ints([0, 1, 1, 0]), ints([[3, 0, 1]])
    seen, waves = ints([0, 0]), np.zeros(2, np.int64)
    pair_waves, move_waves, firing = np.empty(4, np.int64), np.empty(1, np.int64), np.empty(4, np.int64)
    fired, count = compiled.count_into_waves(entries, 2, seen, moves, waves, pair_waves, move_waves, firing)
    assert (pair_waves.tolist(), move_waves.tolist(), firing[:fired].tolist(), count) == ([0, 0, 0, 1], [1], [2, 3], 2)
    assert (seen.tolist(), waves.tolist()) == ([0, 0], [0, 0])


SMALL = st.integers(-5, 5)


@given(st.lists(st.tuples(SMALL, st.one_of(SMALL.map(float), st.just(math.nan))), min_size=1, max_size=6))
def test_cells_are_merged_as_their_values_are_folded(values):
    operations = ints([places.COUNT, 1, 2, 3, 1, 2, 3])
    decimal = np.array([0, 0, 0, 0, 1, 1, 1], np.uint8)
    rows = np.empty((len(values) + 1, 7), np.int64)
    floats = rows.view(np.float64)
    for at, (number, real) in enumerate(values):
        rows[at, :4] = 1, number, number, number
        floats[at, 4:] = real
    rows[-1, :4] = 0, 0, 2**63 - 1, -(2**63)
    floats[-1, 4:] = 0.0, math.nan, -math.inf
    sources, targets = np.arange(len(values)), np.full(len(values), len(values))
    assert compiled.merge_cells(operations, decimal, sources, targets, rows, floats, rows, floats) == -1
    numbers, reals = [number for number, _ in values], [real for _, real in values]
    whole = [real for real in reals if not math.isnan(real)]
    assert rows[-1, :4].tolist() == [len(values), sum(numbers), min(numbers), max(numbers)]
    wanted = [sum(reals), min(whole, default=math.nan), math.nan if len(whole) < len(reals) else max(reals)]
    assert np.array_equal(floats[-1, 4:], wanted, equal_nan=True)


def test_a_sum_that_leaves_its_range_is_told():
    rows = ints([[1, 2**63 - 1], [1, 1]])
    floats = rows.view(np.float64)
    operations, decimal = ints([0, 1]), np.zeros(2, np.uint8)
    assert compiled.merge_cells(operations, decimal, ints([0]), ints([1]), rows, floats, rows, floats) == 1
