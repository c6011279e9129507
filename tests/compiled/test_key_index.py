"""Dense codes of keys, against a dictionary of first appearances."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_key_groups import VALUES, column

from workbench.errors import PlanError
from workbench.state.key_index import KeyIndex


def canonical(value):
    """Equal keys become equal Python values: one NaN, one zero."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def rows(batch: pa.RecordBatch) -> list[tuple]:
    return [tuple(map(canonical, row)) for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]


@st.composite
def batches_of_keys(draw):
    """Several batches of one schema: one to three key columns in which values recur."""
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    pools = [[None, *draw(st.lists(VALUES[kind], min_size=1, max_size=4))] for kind in kinds]
    schema = pa.schema(dict(zip("abc", kinds, strict=False)))
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(0, 10))
        columns = [
            column(kind, draw(st.lists(st.sampled_from(pool), min_size=n + 1, max_size=n + 1))).slice(1)
            for kind, pool in zip(kinds, pools, strict=True)
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return batches


@given(batches_of_keys())
def test_codes_count_up_in_order_of_first_appearance(batches):
    schema = batches[0].schema
    index = KeyIndex(schema.names, schema)
    code_of: dict[tuple, int] = {}
    for batch in batches:
        expected = [code_of.setdefault(row, len(code_of)) for row in rows(batch)]
        codes = index.codes(batch)
        assert codes.dtype == np.int64
        assert codes.tolist() == expected
        assert len(index) == len(code_of)
    table = index.keys_table()
    assert table.schema == schema
    assert rows(table) == list(code_of)


@given(batches_of_keys(), st.data())
def test_retain_forgets_all_other_keys(batches, data):
    schema = batches[0].schema
    index = KeyIndex(schema.names, schema)
    for batch in batches:
        index.codes(batch)
    before = rows(index.keys_table())
    kept = data.draw(st.lists(st.integers(0, len(before) - 1), unique=True) if before else st.just([]))
    mapping = index.retain(np.array(kept, np.int64))
    assert len(index) == len(kept)
    assert rows(index.keys_table()) == [before[code] for code in kept]
    assert mapping.tolist() == [kept.index(code) if code in kept else -1 for code in range(len(before))]
    code_of = {before[code]: at for at, code in enumerate(kept)}
    for batch in batches:
        assert index.codes(batch).tolist() == [code_of.setdefault(row, len(code_of)) for row in rows(batch)]


def test_many_numbers_grow_the_table():
    keys = np.random.default_rng(3).permutation(200_000) * 1_000_003 - 10**11
    index = KeyIndex(["k"], pa.schema({"k": pa.int64()}))
    for part in np.array_split(keys, 7):
        index.codes(pa.record_batch({"k": part}))
    assert len(index) == 200_000
    assert np.array_equal(index.keys_table()["k"].to_numpy(), keys)
    assert np.array_equal(index.codes(pa.record_batch({"k": keys[::-1]})), np.arange(200_000)[::-1])


def test_keys_of_some_codes_come_in_the_order_asked_for():
    schema = pa.schema({"s": pa.string(), "n": pa.int32()})
    index = KeyIndex(["s", "n"], schema)
    index.codes(pa.record_batch([["x", "y", "x"], [1, 1, None]], schema=schema))
    assert index.keys_table(np.array([2, 0])).to_pylist() == [{"s": "x", "n": None}, {"s": "x", "n": 1}]


def test_without_key_columns_everything_is_one_group():
    schema = pa.schema({"n": pa.int64()})
    index = KeyIndex([], schema)
    assert len(index) == 0
    assert index.codes(pa.record_batch([[4, 5]], schema=schema)).tolist() == [0, 0]
    assert len(index) == 1
    assert index.keys_table().num_rows == 1
    assert index.retain(np.array([], np.int64)).tolist() == [-1]
    assert len(index) == 0


def test_a_column_that_cannot_be_a_key_is_refused():
    with pytest.raises(PlanError, match="key column 'k' has type struct<>: integers, floats"):
        KeyIndex(["k"], pa.schema({"k": pa.struct([])}))
