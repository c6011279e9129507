"""Sizes of buffers in bytes, computed from offsets and widths, compared with a walk over the values and with Arrow's
sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.elements import Records, Watermark
from workbench.operators.aggregates.preaggregated import RECORDS
from workbench.runtime.exchange.buffer_bytes import BufferBytes
from workbench.runtime.exchange.channel import Channel, Waker

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "s": pa.int16(),
        "b": pa.bool_(),
        "t": pa.timestamp("us"),
        "x": pa.string(),
        "y": pa.large_binary(),
    }
)


def values(row: int, text: str) -> dict[str, Any]:
    return {"i": row, "s": row % 7, "b": row % 2 == 0, "t": row, "x": text, "y": text.encode() * 2}


def naive(rows: list[dict[str, Any]], timed: bool) -> int:
    """What the values take, one after the other; null text is nothing but its offset."""
    flat = len(rows) * (8 + 2 + 8 + 4 + 8 + 8 * timed) + math.ceil(len(rows) / 8)
    return flat + sum(len((row["x"] or "").encode()) + len(row["y"] or b"") for row in rows)


@given(
    st.lists(st.one_of(st.text(max_size=5), st.none()), max_size=30),
    st.integers(0, 29),
    st.integers(0, 30),
    st.booleans(),
)
def test_a_slice_weighs_what_its_values_take(held, begin, length, timed):
    rows = [values(row, text or "") | ({"x": None, "y": None} if text is None else {}) for row, text in enumerate(held)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(min(begin, len(rows)), length)
    times = np.arange(len(batch)) if timed else None
    assert BufferBytes(SCHEMA).of(Records(batch, times)) == naive(rows[begin : begin + length], timed)


@given(st.integers(1, 40), st.integers(0, 39), st.integers(1, 40))
def test_without_nulls_arrow_counts_the_same(rows, begin, length):
    schema = pa.schema([field for field in SCHEMA if field.name != "b"])
    made = [{key: value for key, value in values(row, "é" * (row % 4)).items() if key != "b"} for row in range(rows)]
    batch = pa.RecordBatch.from_pylist(made, schema=schema).slice(begin % rows, length)
    assert BufferBytes(schema).of(Records(batch)) == batch.nbytes


def test_nested_columns_weigh_what_arrow_says():
    column = pa.array([[1, 2], [], [3]] * 4)
    words = pa.array(["a", "b", "a"] * 4).dictionary_encode()
    batch = pa.record_batch({"n": pa.array(range(12)), "l": column, "d": words}).slice(3, 6)
    assert BufferBytes(batch.schema).of(Records(batch)) == 6 * 8 + column.slice(3, 6).nbytes + words.slice(3, 6).nbytes


def test_an_extension_of_a_type_weighs_what_that_does():
    text = pa.array(["{}", "[1]", "2"] * 4)
    pairs = pa.array([[1, 2], [3, 4], [5, 6]] * 4, pa.list_(pa.int32(), 2))
    ids = pa.array([b"0123456789abcdef"] * 12, pa.binary(16))
    kinds = [pa.json_(), pa.fixed_shape_tensor(pa.int32(), [2]), pa.uuid()]
    held = [text, pairs, ids]
    extended = [pa.ExtensionArray.from_storage(kind, column) for kind, column in zip(kinds, held, strict=True)]
    plain, batch = (pa.record_batch(columns, ["a", "b", "c"]).slice(3, 6) for columns in (held, extended))
    assert BufferBytes(batch.schema).of(Records(batch)) == BufferBytes(plain.schema).of(Records(plain)) == plain.nbytes


def test_what_has_columns_of_one_width_is_not_looked_at():
    assert BufferBytes(pa.schema({"i": pa.int64(), "b": pa.bool_(), "n": pa.null()})).is_flat
    assert BufferBytes(pa.schema({"i": pa.int64(), "b": pa.bool_()})).row_bits == 65
    assert not BufferBytes(pa.schema({"x": pa.string()})).is_flat
    assert not BufferBytes(pa.schema({"i": pa.int64()}), preaggregates=True).is_flat


def test_partials_have_their_own_columns():
    buffer_bytes = BufferBytes(pa.schema({"k": pa.string(), "n": pa.int64()}), preaggregates=True)
    partials = pa.record_batch({"k": pa.array([1, 2]), "total": pa.array([1.5, 2.5]), RECORDS: pa.array([3, 4])})
    assert buffer_bytes.of(Records(partials, np.array([1, 2]))) == 2 * (8 + 8 + 8 + 8)
    records = pa.record_batch({"k": ["a", "bcd"], "n": [1, 2]})
    assert buffer_bytes.of(Records(records)) == 2 * (4 + 8) + 4


@pytest.mark.parametrize("schema", [pa.schema({"n": pa.int64()}), pa.schema({"n": pa.string()})], ids=["flat", "text"])
def test_a_channel_counts_bytes_at_both_ends(schema):
    channel = Channel("e", "a", "b", 2, Waker(), Waker(), buffer_bytes=BufferBytes(schema))
    sizes = []
    for rows in (3, 1, 5):
        batch = pa.RecordBatch.from_pylist([{"n": 7 if "int64" in str(schema) else "seven"}] * rows, schema=schema)
        channel.push(Records(batch, np.zeros(rows, np.int64)))
        channel.push(Watermark(rows))
        sizes.append(batch.nbytes + 8 * rows)
    assert (channel.bytes_sent, channel.bytes_received) == (sizes[0] + sizes[1] + sizes[2], 0)
    for _ in range(3):  # a buffer, a watermark, a buffer
        channel.poll()
    assert channel.bytes_received == sizes[0] + sizes[1]
