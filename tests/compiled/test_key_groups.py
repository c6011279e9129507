"""The hash exchange: the owner of a key, and splitting batches by owner."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.elements import Records
from workbench.errors import PlanError
from workbench.state.key_groups import (
    KeyPartitioner,
    default_max_parallelism,
    key_groups_of,
    owned_rows,
    subtask_of_group,
)

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    DICTIONARY: st.sampled_from(["JFK", "LGA", "EWR", ""]),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    pa.timestamp("ms"): st.integers(-(10**12), 10**12),
}


def column(kind: pa.DataType, values: list) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@st.composite
def key_columns(draw, size: int = 12):
    """One to three key columns with nulls, of random types, as slices with an offset."""
    n = draw(st.integers(0, size))
    columns = {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        kind = draw(st.sampled_from(list(VALUES)))
        values = VALUES[kind] if draw(st.booleans()) else st.one_of(st.none(), VALUES[kind])
        columns[name] = column(kind, draw(st.lists(values, min_size=n + 2, max_size=n + 2))).slice(1, n)
    return columns


@given(key_columns(), st.integers(1, 5), st.sampled_from([5, 128]), st.booleans())
def test_split_gives_each_row_to_the_owner_of_its_key_in_order(columns, parallelism, groups, timed):
    names = list(columns)
    n = len(columns[names[0]])
    columns["row"] = pa.array(range(n), pa.int64())
    columns["narrow"] = pa.array(range(n + 3), pa.int16()).slice(3)
    columns["maybe"] = pa.array([None if i % 3 else i for i in range(n)], pa.int32())
    columns["deep"] = pa.array([[i] for i in range(n)], pa.list_(pa.int64()))
    batch = pa.record_batch(columns)
    times = np.arange(2 * n)[::2] if timed else None
    parts = KeyPartitioner(names, batch.schema, parallelism, groups).split(Records(batch, times))
    assert len(parts) == parallelism
    owners = key_groups_of(batch, names, groups) * parallelism // groups
    for target, part in enumerate(parts):
        rows = np.flatnonzero(owners == target)
        if part is None:
            assert len(rows) == 0
            continue
        assert part.batch["row"].to_pylist() == rows.tolist()
        part.batch.validate(full=True)
        assert part.batch.schema == batch.schema
        assert repr(part.batch.to_pylist()) == repr(batch.take(pa.array(rows)).to_pylist())  # NaN equals NaN in text
        assert (part.timestamps is None) if not timed else part.timestamps.tolist() == (2 * rows).tolist()


@given(key_columns())
def test_equal_keys_have_equal_groups(columns):
    batch = pa.record_batch(columns)
    names = list(columns)
    twice = pa.Table.from_batches([batch, batch])
    groups = key_groups_of(twice, names, 128)
    assert ((groups >= 0) & (groups < 128)).all()
    assert np.array_equal(groups[: len(batch)], groups[len(batch) :])


def test_groups_never_change():
    """Checkpoints are restored by these numbers."""
    table = pa.table(
        {
            "i": pa.array([0, 1, -1, None], pa.int64()),
            "s": pa.array(["JFK", "LGA", "", None]),
            "f": pa.array([0.0, 1.5, float("nan"), None]),
        }
    )
    assert [key_groups_of(table, [name], 128).tolist() for name in "isf"] == [I_GROUPS, S_GROUPS, F_GROUPS]
    assert key_groups_of(table, ["i", "s"], 128).tolist() == IS_GROUPS
    assert key_groups_of(table, ["s", "i"], 128).tolist() != IS_GROUPS


I_GROUPS = [47, 65, 32, 33]
S_GROUPS = [15, 47, 27, 33]
F_GROUPS = [47, 10, 70, 33]
IS_GROUPS = [127, 118, 119, 26]


def test_groups_are_the_same_in_every_process():
    program = (
        "import pyarrow as pa; from workbench.state.key_groups import key_groups_of;"
        "print(key_groups_of(pa.table({'s': ['JFK', 'LGA', '', None]}), ['s'], 128).tolist())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1234"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(S_GROUPS)


def test_zero_has_one_sign_and_nan_one_value():
    other_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    column = pa.array(np.array([0.0, -0.0, np.nan, *other_nan]))
    zero, minus_zero, *nans = key_groups_of(pa.table({"f": column}), ["f"], 4096).tolist()
    assert zero == minus_zero
    assert len(set(nans)) == 1


def test_text_hashes_alike_in_every_encoding():
    text = ["JFK", None, "ü", "JFK"]
    kinds = (pa.string(), pa.large_string(), DICTIONARY)
    groups = [key_groups_of(pa.table({"s": column(kind, text)}), ["s"], 4096).tolist() for kind in kinds]
    assert groups[0] == groups[1] == groups[2]


def test_keys_spread_over_groups():
    groups = key_groups_of(pa.table({"k": np.arange(12_800)}), ["k"], 128)
    counts = np.bincount(groups, minlength=128)
    assert counts.min() > 60
    assert counts.max() < 150


@given(key_columns(), st.integers(1, 4))
def test_each_row_is_owned_once(columns, parallelism):
    columns["row"] = pa.array(range(len(columns["a"])), pa.int64())
    table = pa.table(columns)
    names = [name for name in columns if name != "row"]
    rows = [r for s in range(parallelism) for r in owned_rows(table, names, s, parallelism)["row"].to_pylist()]
    assert sorted(rows) == list(range(table.num_rows))


def test_without_keys_the_first_subtask_owns_everything():
    table = pa.table({"n": [1, 2]})
    assert [owned_rows(table, [], subtask, 2).num_rows for subtask in (0, 1)] == [2, 0]


def test_rows_for_one_target_are_passed_on_uncopied():
    batch = pa.record_batch({"k": pa.array([7] * 5, pa.int64())})
    records = Records(batch)
    parts = KeyPartitioner(["k"], batch.schema, 4).split(records)
    assert sum(part is records for part in parts) == 1
    assert parts.count(None) == 3


@pytest.mark.parametrize(
    ("keys", "kind", "message"),
    [
        (["k"], pa.list_(pa.int64()), "key column 'k' has type list<item: int64>: integers, floats"),
        (["k"], pa.decimal128(5, 2), "key column 'k' has type decimal128(5, 2): integers, floats"),
        (["k"], pa.dictionary(pa.int32(), pa.int64()), "key column 'k' has type dictionary"),
        (["q"], pa.int64(), "unknown key column 'q':"),
        (["k", "k"], pa.int64(), "key_by(k, k) names a column twice"),
        ([], pa.int64(), "a hash exchange needs at least one key column"),
    ],
)
def test_columns_that_cannot_be_keys_are_refused_with_the_reason(keys, kind, message):
    with pytest.raises(PlanError) as error:
        KeyPartitioner(keys, pa.schema({"k": kind}), 2)
    assert str(error.value).startswith(message)


def flinks_range(subtask, parallelism, groups):
    """Flink's KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex, whose end is part of the range."""
    return (subtask * groups + parallelism - 1) // parallelism, ((subtask + 1) * groups - 1) // parallelism


@given(st.integers(1, 32_768), st.data())
def test_every_key_group_has_one_owner_and_every_subtask_a_range(groups, data):
    parallelism = data.draw(st.one_of(st.integers(1, groups), st.just(groups), st.integers(1, min(groups, 9))))
    owned = []
    for subtask in range(parallelism):
        first, last = flinks_range(subtask, parallelism, groups)
        assert first <= last
        owned += [subtask] * (last - first + 1)
    assert subtask_of_group(parallelism, groups).tolist() == owned


def test_flinks_default_number_of_key_groups():
    def flinks(parallelism):
        bits = parallelism + parallelism // 2 - 1
        for shift in (1, 2, 4, 8, 16):  # Flink's MathUtils.roundUpToPowerOfTwo
            bits |= bits >> shift
        return min(max(bits + 1, 1 << 7), 1 << 15)

    for parallelism in range(1, 32_769):
        assert default_max_parallelism(parallelism) == flinks(parallelism)


def test_more_targets_than_groups_are_refused():
    with pytest.raises(PlanError, match="parallelism is 129: it must be from 1 to max_parallelism, 128"):
        KeyPartitioner(["k"], pa.schema({"k": pa.int64()}), 129)


def test_decimals_travel_beside_the_key():
    values = [decimal.Decimal(i) for i in range(20)]
    batch = pa.record_batch({"k": pa.array(range(20), pa.int64()), "d": pa.array(values, pa.decimal128(5, 0))})
    parts = KeyPartitioner(["k"], batch.schema, 2).split(Records(batch))
    assert all(
        part is not None and [int(d) for d in part.batch["d"].to_pylist()] == part.batch["k"].to_pylist()
        for part in parts
    )
