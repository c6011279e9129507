"""Kernels, compared with plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_sources import SOURCES, kernels_of

from workbench import compiled
from workbench.compiled.machinery.codes import COUNT, MAX, MIN, SUM

INT64 = st.integers(-(2**63), 2**63 - 1)
U64 = 2**64 - 1
ALL_VALID = np.empty(0, np.uint8)


@pytest.fixture(autouse=True, scope="module", params=SOURCES)
def _kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernels_of(request.param):
        yield


def splitmix(h: int) -> int:
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & U64
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & U64
    return h ^ (h >> 31)


def fnv(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & U64
    return h


def test_a_ready_kernel_refuses_other_types_instead_of_compiling_in_the_middle_of_a_stream():
    with pytest.raises(TypeError):
        compiled.hash_ints(np.zeros(1, np.float32), np.zeros(1, np.uint64))


@given(st.lists(INT64, max_size=20))
def test_ints_hash_as_splitmix64(values):
    out = np.empty(len(values), np.uint64)
    compiled.hash_ints(np.array(values, np.int64), out)
    assert out.tolist() == [splitmix((value + 0x9E3779B97F4A7C15) & U64) for value in values]


@given(st.lists(st.binary(max_size=12), max_size=10))
def test_bytes_hash_as_finished_fnv1a(values):
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    out = np.empty(len(values), np.uint64)
    compiled.hash_bytes(offsets, np.frombuffer(b"".join(values) + b"\0", np.uint8), out)
    assert out.tolist() == [splitmix(fnv(value)) for value in values]


@given(st.lists(st.integers(0, U64), min_size=1, max_size=50), st.integers(1, 9), st.sampled_from([9, 64, 100, 128]))
def test_route_orders_rows_by_target_and_keeps_their_order(hashes, parallelism, groups):
    target_of_group = np.arange(groups) * parallelism // groups
    starts, positions = np.empty(parallelism + 1, np.int64), np.empty(len(hashes), np.int64)
    compiled.route(np.array(hashes, np.uint64), target_of_group, starts, positions)
    targets = [int(target_of_group[h % groups]) for h in hashes]
    ordered = sorted(range(len(hashes)), key=lambda row: targets[row])  # sorted() is stable
    assert [ordered.index(row) for row in range(len(hashes))] == positions.tolist()
    assert starts.tolist() == [sum(t < target for t in targets) for target in range(parallelism + 1)]


def test_scatter_moves_columns_of_every_width():
    positions = np.array([2, 0, 1])
    columns = [np.array([10, 20, 30], kind) for kind in (np.int64, np.float32, np.int16, np.uint8)]
    moved = [np.zeros_like(column) for column in columns]
    compiled.scatter(
        positions,
        np.array([column.ctypes.data for column in columns]),
        np.array([column.ctypes.data for column in moved]),
        np.array([column.itemsize for column in columns]),
    )
    assert [column.tolist() for column in moved] == [[20, 30, 10]] * 4


NUMBERS = {
    SUM: lambda values: sum(values),
    MIN: lambda values: min(values, default=2**63 - 1),
    MAX: lambda values: max(values, default=-(2**63)),
    COUNT: len,
}
START = {SUM: 0, COUNT: 0, MIN: 2**63 - 1, MAX: -(2**63)}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**40), 2**40), st.booleans()), max_size=30),
    st.sampled_from([COUNT, SUM, MIN, MAX]),
)
def test_ints_fold_at_once_and_row_by_row(rows, operation):
    slots = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1] for row in rows], np.int64)
    valid = np.array([row[2] for row in rows], np.uint8)
    cells, running = np.full((4, 2), START[operation]), np.full((4, 2), START[operation])
    out = np.empty(len(rows), np.int64)
    assert not compiled.fold_ints(operation, slots, values, valid, cells, 1)
    assert not compiled.running_ints(operation, slots, values, valid, running, 1, out)
    for i in range(len(rows)):
        assert out[i] == NUMBERS[operation]([v for s, v, ok in rows[: i + 1] if ok and s == rows[i][0]])
    for slot in range(4):
        assert cells[slot, 1] == NUMBERS[operation]([v for s, v, ok in rows if ok and s == slot])
    assert np.array_equal(cells, running)
    assert (cells[:, 0] == START[operation]).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**40), 2**40)), max_size=30))
def test_operations_together_are_those_one_by_one(rows):
    slots, values = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    operations = [COUNT, MIN, SUM, MAX]
    places = [2, 0, 4, 1]
    start = np.full((4, 5), 7)
    start[:, places] = [START[operation] for operation in operations]
    together, single = start.copy(), start.copy()
    out = np.full((5, len(rows)), -1)
    folds = (np.array(operations), np.array(places), np.full(4, values.ctypes.data), np.array(places))
    assert compiled.roll_slots(slots, *folds, together, out) == -1
    for operation, place in zip(operations, places, strict=True):
        expected = np.empty(len(rows), np.int64)
        compiled.running_ints(operation, slots, values, ALL_VALID, single, place, expected)
        assert np.array_equal(out[place], expected)
    assert np.array_equal(together, single)
    assert (out[3] == -1).all()


def test_the_operation_that_left_the_range_of_int64_is_named():
    slots, values = np.zeros(2, np.int64), np.array([2**63 - 1, 1])
    cells, out = np.zeros((1, 2), np.int64), np.empty((2, 2), np.int64)
    folds = (np.array([COUNT, SUM]), np.array([1, 0]), np.full(2, values.ctypes.data), np.array([1, -1]))
    assert compiled.roll_slots(slots, *folds, cells, out) == 1


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**63 - 1, 1, -5]])
def test_a_sum_beyond_int64_is_noticed(values):
    slots = np.zeros(len(values), np.int64)
    out = np.empty(len(values), np.int64)
    assert compiled.fold_ints(SUM, slots, np.array(values), ALL_VALID, np.zeros((1, 1), np.int64), 0)
    assert compiled.running_ints(SUM, slots, np.array(values), ALL_VALID, np.zeros((1, 1), np.int64), 0, out)


FLOATS = st.one_of(st.sampled_from([math.nan, math.inf, -math.inf, 0.5, -2.0]), st.integers(-50, 50).map(float))


def largest(values):
    return math.nan if any(map(math.isnan, values)) else max(values)


def smallest(values):
    return min((value for value in values if not math.isnan(value)), default=math.nan)


@given(st.lists(FLOATS, min_size=1, max_size=12))
def test_nan_is_larger_than_any_number(values):
    slots = np.zeros(len(values), np.int64)
    for operation, start, naive in ((MAX, -math.inf, largest), (MIN, math.nan, smallest), (SUM, 0.0, sum)):
        cells, running = np.full((1, 1), start), np.full((1, 1), start)
        out = np.empty(len(values))
        compiled.fold_floats(operation, slots, np.array(values), ALL_VALID, cells, 0)
        compiled.running_floats(operation, slots, np.array(values), ALL_VALID, running, 0, out)
        assert np.array_equal(out, [naive(values[: i + 1]) for i in range(len(values))], equal_nan=True)
        assert np.array_equal([cells[0, 0], running[0, 0]], [naive(values)] * 2, equal_nan=True)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=25), st.lists(st.integers(-1, 3), max_size=6))
def test_linked_rows_are_followed_and_taken_out_by_their_content(rows, wanted):
    heads, nexts = np.full(4, -1), np.full(len(rows) + 1, -1)
    codes = np.array([code for code, _ in rows], np.int64)
    hashes = np.array([content for _, content in rows], np.int64)
    compiled.link_rows(codes, 0, heads, nexts)
    listed = {code: [at for at, row in enumerate(rows) if row[0] == code] for code in range(4)}
    looked = np.array(wanted, np.int64)

    def followed() -> list[tuple[int, int]]:
        counts = np.empty(len(looked), np.int64)
        total = compiled.count_links(looked, heads, nexts, counts)
        places, found = np.empty(total, np.int64), np.empty(total, np.int64)
        compiled.follow_links(looked, heads, nexts, places, found)
        assert counts.tolist() == [len(listed.get(code, ())) for code in wanted]
        return list(zip(places.tolist(), found.tolist(), strict=True))

    assert followed() == [(at, row) for at, code in enumerate(wanted) for row in listed.get(code, ())]
    taken = np.empty(3, np.int64)
    compiled.take_equal(np.array([0, 0, 1]), np.array([1, 1, 2]), heads, nexts, hashes, taken)
    for code, content, row in zip((0, 0, 1), (1, 1, 2), taken.tolist(), strict=True):
        if row < 0:
            assert all(rows[at][1] != content for at in listed[code])
        else:
            assert rows[row] == (code, content)
            listed[code].remove(row)
    gone = [kept[-1] for kept in listed.values() if kept]
    compiled.unlink_rows(codes[gone], np.array(gone, np.int64), heads, nexts)
    for row in gone:
        listed[rows[row][0]].remove(row)
    assert followed() == [(at, row) for at, code in enumerate(wanted) for row in listed.get(code, ())]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=25))
def test_different_values_are_counted_for_each_condition(rows):
    groups = np.array([row[0] for row in rows], np.int64)
    pairs = np.array([4 * row[0] + row[1] for row in rows], np.int64)
    masks = np.array([row[2] for row in rows], np.int64)
    weights = np.array([-1 if row[3] else 1 for row in rows], np.int64)
    marks, once = np.zeros(12, np.int64), np.zeros((3, 2), np.int64)
    compiled.mark_values(pairs, groups, masks, marks, once)
    counts, different = np.zeros((12, 2), np.int64), np.zeros((3, 2), np.int64)
    compiled.count_values(pairs, groups, masks, weights, counts, different)
    for at in range(2):
        seen = [(pair, weight) for pair, mask, weight in zip(pairs, masks, weights, strict=True) if mask >> at & 1]
        left = [sum(weight for other, weight in seen if other == pair) for pair in range(12)]
        assert counts[:, at].tolist() == left
        for group in range(3):
            own = range(4 * group, 4 * group + 4)
            assert once[group, at] == len({pair for pair, _ in seen if pair in own})
            assert different[group, at] == sum(left[pair] > 0 for pair in own)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), max_size=20), st.booleans())
def test_the_best_row_of_each_key_is_picked(rows, last_wins):
    codes = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1:] for row in rows], np.int64).reshape(-1, 2)
    best, known, picked = np.empty((4, 2), np.int64), np.zeros(4, np.int64), np.full(4, -1)
    found = np.empty(len(rows), np.int64)
    count = compiled.pick_best(codes, values, int(last_wins), best, known, picked, found)
    expected: dict[int, int] = {}
    for at, (code, *value) in enumerate(rows):
        held = expected.get(code)
        if held is None or value > list(rows[held][1:]) or (last_wins and value == list(rows[held][1:])):
            expected[code] = at
    assert found[:count].tolist() == list(dict.fromkeys(codes.tolist()))
    assert {int(code): int(picked[code]) for code in found[:count]} == expected
    seen = np.zeros(4, np.int64)
    distinct = np.empty(len(rows), np.int64)
    assert compiled.distinct_codes(codes, seen, 1, distinct) == len(expected)
    assert distinct[: len(expected)].tolist() == list(dict.fromkeys(codes.tolist()))
