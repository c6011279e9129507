"""Copying chosen rows: every form of a choice, every kind of column, against Arrow's own filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.elements import Records
from workbench.expressions import compile_expression
from workbench.expressions.evaluation.choice import Choice, Codes
from workbench.operators.contract.gather import Gather

WORDS = pa.array(["a", "b", None, "d"])
TYPES: list[pa.DataType] = [
    pa.int8(),
    pa.uint16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.decimal128(9, 2),
    pa.string(),
    pa.list_(pa.int64()),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.null(),
]


def column(type_: pa.DataType, numbers: list[int | None]) -> pa.Array:
    """A column whose value is told by a number, null for None."""
    if pa.types.is_null(type_):
        return pa.nulls(len(numbers))
    if pa.types.is_dictionary(type_):
        codes = pa.array([None if number is None else number % len(WORDS) for number in numbers], type_.index_type)
        return pa.DictionaryArray.from_arrays(codes, WORDS)
    if pa.types.is_boolean(type_):
        return pa.array([None if number is None else number % 2 == 1 for number in numbers], type_)
    if pa.types.is_list(type_):
        return pa.array([None if number is None else [number] * (number % 3) for number in numbers], type_)
    if pa.types.is_decimal(type_) or pa.types.is_string(type_):
        return pa.array([None if number is None else str(number) for number in numbers]).cast(type_)
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        width = pa.int32() if pa.types.is_date(type_) else pa.int64()
        return pa.array(numbers, width).view(type_)
    return pa.array(numbers, type_)


@dataclass
class Case:
    """Rows, which of them are chosen, and which columns are wanted."""

    records: Records
    chosen: list[bool | None]
    wanted: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n, offset = draw(st.integers(0, 70)), draw(st.integers(0, 9))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=5))
    columns = []
    for type_ in types:
        values = st.integers(0, 100) if draw(st.booleans()) else st.none() | st.integers(0, 100)
        columns.append(column(type_, draw(st.lists(values, min_size=n + offset, max_size=n + offset))))
    schema = pa.schema([pa.field(f"c{at}", type_) for at, type_ in enumerate(types)], {"who": "a test"})
    batch = pa.RecordBatch.from_arrays(columns, schema=schema).slice(offset)
    times = draw(st.sampled_from(["none", "own", "strided", "a column's"]))
    stamps = np.arange(2 * n, dtype=np.int64) * 1_000
    own = {"none": None, "own": stamps[:n], "strided": stamps[::2], "a column's": stamps[:n]}[times]
    for at, type_ in enumerate(types):
        if times == "a column's" and type_ == pa.int64() and batch.column(at).null_count == 0:
            own = batch.column(at).to_numpy()
    everything = draw(st.sampled_from([st.just(True), st.just(False), st.booleans(), st.none() | st.booleans()]))
    chosen = draw(st.lists(everything, min_size=n, max_size=n))
    return Case(
        Records(batch, own), chosen, draw(st.lists(st.sampled_from(range(len(types))), min_size=1, unique=True))
    )


def as_mask(chosen: list[bool | None], offset: int) -> Choice:
    return pa.array([True] * offset + chosen, pa.bool_()).slice(offset)


def as_rows(chosen: list[bool | None]) -> Choice:
    return np.flatnonzero([value is True for value in chosen]).astype(np.int32)


def as_codes(chosen: list[bool | None], offset: int, width: pa.DataType) -> Choice:
    """Three codes, of which those with the number 1 are chosen."""
    codes = [0] * offset + [{True: 1, False: 0, None: 2}[value] for value in chosen]
    dictionary = pa.DictionaryArray.from_arrays(pa.array(codes, width), pa.array(["no", "yes", "null"]))
    return Codes(dictionary.slice(offset), np.array([0, 1, 0], np.uint8))


def check(case: Case, choice: Choice) -> None:
    mask = pa.array([value is True for value in case.chosen], pa.bool_())
    expected = case.records.batch.select(case.wanted).filter(mask)
    got = Gather(case.records.batch.schema, case.wanted)(case.records, choice)
    if not expected.num_rows:
        assert got is None
        return
    assert got is not None
    got.batch.validate(full=True)
    assert got.batch.schema.equals(expected.schema, check_metadata=True)
    assert got.batch.to_pylist() == expected.to_pylist()
    assert [item.null_count for item in got.batch.columns] == [item.null_count for item in expected.columns]
    if case.records.timestamps is None:
        assert got.timestamps is None
    else:
        assert got.timestamps is not None
        assert got.timestamps.tolist() == case.records.timestamps[mask.to_numpy(zero_copy_only=False)].tolist()


@settings(max_examples=200)
@given(case=cases(), offset=st.integers(0, 9))
def test_a_mask_chooses_what_arrow_chooses(case: Case, offset: int) -> None:
    check(case, as_mask(case.chosen, offset))


@given(case=cases())
def test_so_do_the_numbers_of_rows(case: Case) -> None:
    check(case, as_rows(case.chosen))


@given(case=cases(), offset=st.integers(0, 9), width=st.sampled_from([pa.int8(), pa.uint16(), pa.int32(), pa.int64()]))
def test_so_do_the_codes_of_a_dictionary(case: Case, offset: int, width: pa.DataType) -> None:
    check(case, as_codes(case.chosen, offset, width))


def test_one_gather_serves_many_batches_and_none_changes_another() -> None:
    schema = pa.schema({"n": pa.int64(), "m": pa.string()})
    gather = Gather(schema, [0, 1])
    kept = []
    for first in (0, 100, 200):
        numbers = list(range(first, first + 50 + first))
        batch = pa.record_batch([numbers, [str(number) for number in numbers]], schema=schema)
        mask = pa.array([number % 10 == 3 for number in numbers])
        kept.append(gather(Records(batch, np.array(numbers)), mask))
    for first, records in zip((0, 100, 200), kept, strict=True):
        wanted = list(range(first + 3, first + 50 + first, 10))
        assert records is not None
        assert records.batch.to_pydict() == {"n": wanted, "m": [str(number) for number in wanted]}
        assert records.timestamps is not None
        assert records.timestamps.tolist() == wanted


def test_rows_that_are_all_chosen_are_not_copied() -> None:
    schema = pa.schema({"n": pa.int64(), "m": pa.int64()})
    records = Records(pa.record_batch([[1, 2], [3, 4]], schema=schema), np.array([5, 6]))
    every = pa.array([True, True])
    assert Gather(schema, [0, 1])(records, every) is records
    narrow = Gather(schema, [1])(records, every)
    assert narrow is not None
    assert narrow.batch.to_pydict() == {"m": [3, 4]}
    assert narrow.batch.column(0).buffers()[1].address == records.batch.column(1).buffers()[1].address
    assert narrow.timestamps is records.timestamps


CONDITIONS = [
    ("kind = 'view'", [0, 3]),
    ("'view' = kind OR kind = 'click'", [0, 1, 3]),
    ("NOT (kind = 'view')", [1, 4]),
    ("(kind IN ('view', 'buy')) AND length(kind) > 3", [0, 3]),
    ("kind IS NOT NULL", [0, 1, 3, 4]),
    ("kind IS NULL", [2]),
    ("kind = other", [0, 4]),
    ("kind RLIKE 'i.w$'", [0, 3]),
    ("contains(kind, 'i')", [0, 1, 3]),
    ("text RLIKE 'er+or'", [1, 4]),
    ("contains(text, 'err')", [1, 3, 4]),
    ("NOT contains(text, 'err')", [0]),
    ("n > 1 AND kind = 'view'", [3]),
    ("n > 1", [1, 3, 4]),
    ("true", [0, 1, 2, 3, 4]),
    ("CAST(NULL AS boolean)", []),
]


@pytest.mark.parametrize(("condition", "rows"), CONDITIONS)
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("with_null", [False, True])
def test_a_condition_chooses_where_it_is_true(condition: str, rows: list[int], encoded: bool, with_null: bool) -> None:
    """`kind` is null in row 2, as a null row or as a null in the dictionary, which need not be told apart."""
    kind: pa.Array = pa.array(["view", "click", None, "view", "buy"])
    if encoded and with_null:
        kind = kind.dictionary_encode()
    elif encoded:
        words = pa.array(["view", "click", "buy", None])
        kind = pa.DictionaryArray.from_arrays(pa.array([0, 1, 3, 0, 2], pa.int8()), words)
    elif with_null:
        kind = pa.concat_arrays([pa.array(["x"]), kind]).slice(1)
    other = pa.array(["view", "x", None, "click", "buy"]).dictionary_encode()
    text = pa.array(["all is well", "an error", None, "an err", "error"])
    batch = pa.record_batch([kind, other, text, pa.array([1, 2, None, 4, 5])], names=["kind", "other", "text", "n"])
    compiled = compile_expression(condition, batch.schema)
    got = Gather(batch.schema, [3])(Records(batch, np.arange(5)), compiled.choose(batch))
    assert ([] if got is None else got.timestamps.tolist()) == rows
    mask = compiled(batch)
    assert np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)).tolist() == rows


def test_a_condition_on_a_dictionary_is_computed_anew_for_another_dictionary() -> None:
    schema = pa.schema({"kind": pa.dictionary(pa.int8(), pa.string())})
    compiled = compile_expression("kind = 'view'", schema)

    def chosen(words: list[str], codes: list[int]) -> list[int]:
        array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(words))
        batch = pa.RecordBatch.from_arrays([array], schema=schema)
        choice = compiled.choose(batch)
        values: list[int] = compiled(batch).to_pylist()
        if isinstance(choice, Codes):
            assert choice.accepted[choice.column.indices.to_numpy()].tolist() == values
        else:
            assert choice.to_pylist() == values
        return values

    for _ in range(3):  # memory that was freed may be given out again at the same address
        assert chosen(["view", "click"], [0, 1, 0]) == [True, False, True]
        assert chosen(["click", "view"], [0, 1, 0]) == [False, True, False]
        assert chosen(["a", "b", "c", "view"], [3]) == [True]  # more words than rows
        assert chosen(["view"], []) == []
