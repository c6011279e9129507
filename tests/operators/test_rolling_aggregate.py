"""Aggregations and the rolling aggregate operator, against lists of values in Python."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs import Collected

from workbench.elements import Records
from workbench.errors import CheckpointError, ExpressionError, PlanError, RecordError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregate import RollingAggregate
from workbench.operators.contract.base import OperatorContext
from workbench.state.key_groups import KeyPartitioner

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int32(), "x": pa.float64(), "t": pa.timestamp("ms"), "d": pa.date32()})


def batch(rows: list[tuple], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def naive(function: str, values: list) -> object:
    """An aggregate of the values of one group; None is null."""
    if function == "rows":
        return len(values)
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    numbers = [value for value in values if value == value]
    if function == "sum":
        return sum(values)
    if function == "mean":
        return sum(values) / len(values)
    if function == "max":
        return math.nan if len(numbers) < len(values) else max(numbers)
    return min(numbers, default=math.nan)


FUNCTIONS = [("rows", None)] + [(f, c) for c in "nx" for f in ("count", "sum", "min", "max", "mean")]
FUNCTIONS += [(f, c) for c in "td" for f in ("count", "min", "max")]
AGGREGATES = tuple(
    (f"{function}_{column}", agg.count() if column is None else agg.Aggregation(function, column))
    for function, column in FUNCTIONS
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
        st.one_of(st.none(), st.just(math.nan), st.integers(-100, 100).map(lambda i: i / 4)),
        st.one_of(
            st.none(),
            st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1)).map(
                lambda t: t.replace(microsecond=0, fold=0)
            ),
        ),
        st.one_of(st.none(), st.dates()),
    ),
    max_size=12,
)


def expected(seen: list[tuple], keyed: bool) -> list[object]:
    """The output row after the last of `seen`."""
    group = [row for row in seen if not keyed or row[0] == seen[-1][0]]
    values = [
        naive(function, [row[SCHEMA.names.index(column or "k")] for row in group]) for function, column in FUNCTIONS
    ]
    return ([seen[-1][0]] if keyed else []) + values


def opened(spec: RollingAggregate, subtask: int = 0, parallelism: int = 1, schema: pa.Schema = SCHEMA):
    operator = spec.create([schema])
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism))
    return operator


@pytest.mark.slow
@given(st.lists(ROWS, max_size=4), st.booleans())
def test_every_record_updates_its_group(batches, keyed):
    spec = RollingAggregate(("k",) if keyed else (), AGGREGATES)
    operator, out, seen = opened(spec), Collected(), []
    for rows in batches:
        operator.process(Records(batch(rows), np.arange(len(rows))), 0, out)
        result = out.records.pop()
        assert result.batch.schema == spec.output_schema([SCHEMA])
        assert result.timestamps.tolist() == list(range(len(rows)))
        for row, got in zip(rows, result.batch.to_pylist(), strict=True):
            seen.append(row)
            assert repr(list(got.values())) == repr(expected(seen, keyed))  # NaN equals NaN in text


@pytest.mark.slow
@given(st.lists(ROWS, min_size=1, max_size=5), st.lists(st.integers(1, 4), min_size=5, max_size=5))
def test_rescaled_between_batches_the_result_is_the_same(batches, parallelisms):
    spec = RollingAggregate(("k",), AGGREGATES)
    operators, seen = [opened(spec)], []
    for rows, parallelism in zip(batches, parallelisms, strict=False):
        parts = KeyPartitioner(["k"], SCHEMA, len(operators)).split(Records(batch(rows)))
        got, wanted = [], []
        for operator, part in zip(operators, parts, strict=True):
            out = Collected()
            if part is not None:
                operator.process(part, 0, out)
                got += [list(row.values()) for row in out.records[0].batch.to_pylist()]
        for row in rows:
            seen.append(row)
            wanted.append(expected(seen, True))
        assert sorted(map(repr, got)) == sorted(map(repr, wanted))
        snapshots = [operator.snapshot(1) for operator in operators]
        for operator in operators:  # what a snapshot holds does not change with the live state
            operator.process(Records(batch([("a", 1, 1.0, None, None)] * 3)), 0, Collected())
        operators = [opened(spec, subtask, parallelism) for subtask in range(parallelism)]
        for operator in operators:
            operator.restore(snapshots)


def test_sums_and_means_of_large_integers_are_exact():
    schema = pa.schema({"n": pa.int64()})
    spec = RollingAggregate((), (("s", agg.sum("n")), ("m", agg.mean("n"))))
    out = Collected()
    opened(spec, schema=schema).process(Records(pa.record_batch([[2**53, 1, 1]], schema=schema)), 0, out)
    assert out.records[0].batch.to_pydict() == {
        "s": [2**53, 2**53 + 1, 2**53 + 2],
        "m": [2.0**53, (2**53 + 1) / 2, (2**53 + 2) / 3],
    }


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (pa.int64(), [2**63 - 1, 1], r"sum\(n\) exceeded the range of int64: cast the column to float64"),
        (pa.uint64(), [2**63], "column 'n' holds 9223372036854775808, beyond int64: cast it to float64"),
    ],
)
def test_numbers_beyond_int64_are_an_error_never_a_wrong_sum(kind, values, message):
    schema = pa.schema({"n": kind})
    operator = opened(RollingAggregate((), (("s", agg.sum("n")),)), schema=schema)
    with pytest.raises(RecordError, match=message):
        operator.process(Records(pa.record_batch([values], schema=schema)), 0, Collected())


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()])
def test_integers_widen_to_int64(kind):
    schema = pa.schema({"n": kind})
    spec = RollingAggregate((), (("s", agg.sum("n")), ("x", agg.max("n"))))
    out = Collected()
    opened(spec, schema=schema).process(Records(pa.record_batch([pa.array([100, None, 27], kind)], ["n"])), 0, out)
    assert out.records[0].batch.schema.types == [pa.int64(), pa.int64()]
    assert out.records[0].batch.to_pydict() == {"s": [100, 100, 127], "x": [100, 100, 100]}


def test_key_columns_pass_uncopied_and_slices_are_respected():
    rows = batch([(k, i, None, None, None) for i, k in enumerate("abcab")]).slice(1, 3)
    out = Collected()
    opened(RollingAggregate(("k",), (("s", agg.sum("n")),))).process(Records(rows), 0, out)
    assert out.records[0].batch.to_pydict() == {"k": ["b", "c", "a"], "s": [1, 2, 3]}
    assert out.records[0].batch["k"].buffers()[2].address == rows["k"].buffers()[2].address


@pytest.mark.parametrize(
    ("aggregation", "kind", "error", "message"),
    [
        (agg.sum("m"), pa.int64(), ExpressionError, "sum(m): unknown column 'm':"),
        (
            agg.sum("n"),
            pa.bool_(),
            PlanError,
            "sum(n): column 'n' has type bool, but must contain integers, floats; cast",
        ),
        (
            agg.mean("n"),
            pa.string(),
            PlanError,
            "mean(n): column 'n' has type string, but must contain integers, floats",
        ),
        (agg.sum("n"), pa.timestamp("s"), PlanError, "sum(n): column 'n' has type timestamp[s], but must contain"),
        (
            agg.max("n"),
            pa.string(),
            PlanError,
            "max(n): column 'n' has type string, but must contain integers, floats, da",
        ),
        (
            agg.max("n"),
            pa.decimal128(3, 1),
            PlanError,
            "max(n): column 'n' has type decimal128(3, 1), but must contain",
        ),
    ],
)
def test_columns_that_cannot_be_aggregated_are_refused_with_the_reason(aggregation, kind, error, message):
    with pytest.raises(error) as raised:
        RollingAggregate((), (("a", aggregation),)).output_schema([pa.schema({"n": kind})])
    assert str(raised.value).startswith(message)


def test_output_names_must_differ():
    with pytest.raises(PlanError, match="two output columns are named 'k'"):
        RollingAggregate(("k",), (("k", agg.count()),)).output_schema([SCHEMA])
    with pytest.raises(PlanError, match="aggregate\\(\\) has no aggregates"):
        RollingAggregate(("k",), ()).output_schema([SCHEMA])


def test_state_of_other_aggregates_is_refused():
    snapshot = opened(RollingAggregate(("k",), (("s", agg.sum("n")),))).snapshot(1)
    changed = opened(RollingAggregate(("k",), (("s", agg.max("n")),)))
    with pytest.raises(CheckpointError, match=r"has no column max\(\"n\"\): its keys or aggregates have changed"):
        changed.restore([snapshot])


def test_accumulators_forget_cleared_slots():
    accumulators = Accumulators([agg.sum("n"), agg.min("x"), agg.count()], SCHEMA)
    accumulators.grow(3)
    accumulators.update(np.array([0, 1, 2]), batch([("a", i, i / 2, None, None) for i in (5, 6, 7)]))
    accumulators.clear(np.array([1]))
    results = accumulators.results(np.array([0, 1, 2]))
    assert [c.to_pylist() for c in results] == [[5, None, 7], [2.5, None, 3.5], [1, 0, 1]]
    accumulators.retain(np.array([2]))
    accumulators.grow(2)
    results = accumulators.results(np.array([0, 1]))
    assert [c.to_pylist() for c in results] == [[7, None], [3.5, None], [1, 0]]


def test_description():
    spec = RollingAggregate(("k",), (("n", agg.count()), ("m", agg.mean("x"))))
    assert (spec.kind, spec.describe()) == ("aggregate", "count(), mean(x)")
