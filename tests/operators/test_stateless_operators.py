"""Operators without state: results, event times, and errors about user mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs import Collected

from workbench.durations import NO_TIME
from workbench.elements import Records
from workbench.errors import ExpressionError, PlanError, RecordError, WorkbenchError
from workbench.expressions import col, expr, lit
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.map import FlatMap, Map
from workbench.operators.stateless.map_batches import MapBatches
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.union import Union
from workbench.operators.stateless.with_columns import WithColumns

SCHEMA = pa.schema({"origin": pa.string(), "delay": pa.int64()})


def records(delays: list[int | None], times: list[int] | None = None) -> Records:
    batch = pa.record_batch(
        [pa.array([f"o{d}" for d in delays], pa.string()), pa.array(delays, pa.int64())], schema=SCHEMA
    )
    return Records(batch, None if times is None else np.array(times, np.int64))


def run(
    spec: OperatorSpec, given_records: Records, port: int = 0, inputs: list[pa.Schema] | None = None
) -> list[Records]:
    schemas = inputs or [given_records.batch.schema]
    out = Collected()
    spec.create(schemas).process(given_records, port, out)
    for part in out.records:
        part.batch.validate(full=True)
        assert part.batch.schema.equals(spec.output_schema(schemas))
        assert part.timestamps is None or len(part.timestamps) == len(part)
    return out.records


def failure(spec: OperatorSpec, given_records: Records) -> RecordError:
    with pytest.raises(RecordError) as caught:
        run(spec, given_records)
    return caught.value


def test_filter_keeps_rows_and_their_times() -> None:
    (kept,) = run(Filter(expr("delay > 15")), records([3, None, 20, 99], [10, 11, NO_TIME, 13]))
    assert kept.batch.column("delay").to_pylist() == [20, 99]
    assert kept.timestamps is not None
    assert kept.timestamps.tolist() == [NO_TIME, 13]


def test_filter_passes_a_whole_batch_uncopied_and_an_empty_one_not_at_all() -> None:
    all_late = records([16, 20], [1, 2])
    assert run(Filter(expr("delay > 15")), all_late)[0] is all_late
    assert run(Filter(expr("delay > 99")), all_late) == []
    assert run(Filter(expr("delay > NULL")), all_late) == []


def test_filter_by_a_constant() -> None:
    both = records([16, 20], [1, 2])
    assert run(Filter(lit(True)), both)[0] is both
    assert run(Filter(lit(False)), both) == []


def test_filter_needs_a_condition() -> None:
    with pytest.raises(ExpressionError) as caught:
        Filter(col("delay") + 1).output_schema([SCHEMA])
    expected = "filter needs a condition that is true or false, but 'delay + 1' is bigint: compare it with a value"
    assert str(caught.value) == expected


delays = st.lists(st.one_of(st.none(), st.integers(-100, 100)), max_size=40)


@given(delays, st.integers(-100, 100), st.booleans())
def test_filter_equals_a_list_comprehension(column: list[int | None], bound: int, timed: bool) -> None:
    times = list(range(len(column))) if timed else None
    parts = run(Filter(col("delay") > bound), records(column, times))
    wanted = [(d, i) for i, d in enumerate(column) if d is not None and d > bound]
    kept = parts[0] if parts and len(parts[0]) else records([], [] if timed else None)
    assert kept.batch.column("delay").to_pylist() == [d for d, _ in wanted]
    assert (kept.timestamps is not None) == timed
    if kept.timestamps is not None:
        assert kept.timestamps.tolist() == [i for _, i in wanted]


@given(delays, st.integers(-100, 100))
def test_with_columns_equals_python(column: list[int | None], by: int) -> None:
    spec = WithColumns((("delay", col("delay") + by), ("late", col("delay") > 15), ("one", lit(1))))
    (out,) = run(spec, records(column, list(range(len(column)))))
    assert out.batch.to_pylist() == [
        {
            "origin": f"o{d}",
            "delay": None if d is None else d + by,  # replaced where it stands
            "late": None if d is None else d > 15,  # sees the input's delay, not the replaced one
            "one": 1,
        }
        for d in column
    ]
    assert out.timestamps is not None
    assert out.timestamps.tolist() == list(range(len(column)))


def test_select_chooses_orders_and_computes() -> None:
    spec = Select((("hours", col("delay") / 60), ("origin", col("origin"))))
    (out,) = run(spec, records([30, None], [5, 6]))
    assert out.batch.to_pylist() == [{"hours": 0.5, "origin": "o30"}, {"hours": None, "origin": "oNone"}]
    assert out.timestamps is not None
    assert out.timestamps.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Select(()), "select needs at least one column"),
        (
            Select((("a", col("delay")), ("a", col("origin")))),
            "select names the column 'a' twice: give one of them another name",
        ),
        (
            WithColumns((("late", col("dely") > 1),)),
            "expression 'dely > 1': unknown column 'dely': did you mean 'delay'? Valid: delay, origin",
        ),
    ],
)
def test_columns_are_checked_when_the_graph_is_built(spec: OperatorSpec, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        spec.output_schema([SCHEMA])
    assert str(caught.value) == said


def doubled(record: dict[str, Any]) -> dict[str, Any]:
    return {"origin": record["origin"], "delay": record["delay"] * 2}


def test_map_calls_the_function_for_each_record() -> None:
    (out,) = run(Map(doubled), records([1, 2], [7, 8]))
    assert out.batch.column("delay").to_pylist() == [2, 4]
    assert out.timestamps is not None
    assert out.timestamps.tolist() == [7, 8]


def test_map_with_a_declared_schema() -> None:
    (out,) = run(Map(lambda r: {"hours": r["delay"] / 60}, {"hours": pa.float64()}), records([30]))
    assert out.batch.to_pylist() == [{"hours": 0.5}]
    assert out.timestamps is None


def test_map_says_which_record_the_function_raised_on() -> None:
    error = failure(Map(doubled), records([1, None]))
    assert str(error) == (
        "map function 'doubled' raised TypeError: unsupported operand type(s) for *: 'NoneType' and 'int' "
        "on record {'origin': 'oNone', 'delay': None}"
    )
    assert isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, "returned None (NoneType), expected a dict with the columns origin, delay"),
        ({"origin": "x"}, "returned a dict that lacks delay, expected a dict with the columns origin, delay"),
        (
            {"origin": "x", "delay": 1, "dely": 2},
            "returned a dict that has also dely, expected a dict with the columns origin, delay",
        ),
        ({"origin": "x", "delay": "soon"}, "returned 'soon' for column 'delay', which is declared as int64"),
        ({"origin": "x", "delay": 2**70}, f"returned {2**70} for column 'delay', which is declared as int64"),
    ],
)
def test_map_says_what_was_expected(result: Any, said: str) -> None:
    def answer(record: dict[str, Any]) -> Any:
        return result if record["delay"] == 2 else record

    error = failure(Map(answer), records([1, 2, 3]))
    name = "test_map_says_what_was_expected.<locals>.answer"
    assert str(error) == f"map function '{name}' {said}, on record {{'origin': 'o2', 'delay': 2}}"


def test_a_long_record_is_shortened() -> None:
    def fail(record: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no")

    batch = pa.record_batch({"text": ["x" * 10_000]})
    assert len(str(failure(Map(fail), Records(batch)))) < 400


def split(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for index in range(record["delay"]):
        yield {"word": f"{record['origin']}.{index}"}


def test_flat_map_gives_each_result_the_time_of_its_record() -> None:
    (out,) = run(FlatMap(split, {"word": pa.string()}), records([2, 0, 1], [10, 11, 12]))
    assert out.batch.column("word").to_pylist() == ["o2.0", "o2.1", "o1.0"]
    assert out.timestamps is not None
    assert out.timestamps.tolist() == [10, 10, 12]


def test_flat_map_that_returns_nothing_emits_nothing() -> None:
    assert run(FlatMap(split, {"word": pa.string()}), records([0, 0], [1, 2])) == []


def test_flat_map_catches_what_a_generator_raises() -> None:
    error = failure(FlatMap(split, {"word": pa.string()}), records([1, None]))
    assert str(error).startswith("flat_map function 'split' raised TypeError: 'NoneType' object cannot be")
    assert str(error).endswith("on record {'origin': 'oNone', 'delay': None}")


@pytest.mark.parametrize("result", [{"word": "x"}, None, "text"])
def test_flat_map_needs_an_iterable_of_dicts(result: Any) -> None:
    error = failure(FlatMap(lambda record: result, {"word": pa.string()}), records([1]))
    assert "expected an iterable of dicts, on record {'origin': 'o1', 'delay': 1}: return a list or use yield" in str(
        error
    )


def test_flat_map_names_the_record_of_a_bad_row() -> None:
    error = failure(FlatMap(lambda r: [{"word": 1.5}] * (r["delay"] == 2), {"word": pa.int64()}), records([1, 2]))
    assert str(error).endswith(
        "returned 1.5 for column 'word', which is declared as int64, on record {'origin': 'o2', 'delay': 2}"
    )


def negated(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "delay", pc.negate(batch.column("delay")))


def halved(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, batch.num_rows // 2)


def test_map_batches_keeps_times_row_by_row() -> None:
    (out,) = run(MapBatches(negated), records([1, 2], [7, 8]))
    assert out.batch.column("delay").to_pylist() == [-1, -2]
    assert out.timestamps is not None
    assert out.timestamps.tolist() == [7, 8]


def test_map_batches_may_change_the_rows_without_event_times() -> None:
    (out,) = run(MapBatches(halved), records([1, 2, 3, 4]))
    assert out.batch.column("delay").to_pylist() == [1, 2]


def test_map_batches_may_change_the_rows_when_a_column_holds_their_times() -> None:
    (out,) = run(MapBatches(halved, event_time="delay"), records([1, 2, 3, 4], [7, 8, 9, 10]))
    assert out.timestamps is not None
    assert out.timestamps.tolist() == [1, 2]


def test_map_batches_refuses_rows_whose_times_are_unknown() -> None:
    assert str(failure(MapBatches(halved), records([1, 2, 3, 4], [7, 8, 9, 10]))) == (
        "map_batches function 'halved' returned 2 rows for 4, so their event times are unknown: keep the "
        "number of rows, or name the column that holds them with event_time=..."
    )


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda batch: batch.to_pylist(), "(list), expected a pyarrow.RecordBatch"),
        (
            lambda batch: batch.select(["delay"]),
            "returned the columns delay int64, expected origin string, delay int64: declare the output with schema=...",
        ),
        (lambda batch: batch.column("nope"), "raised KeyError: "),
    ],
)
def test_map_batches_says_what_was_expected(function: Callable[..., Any], said: str) -> None:
    assert said in str(failure(MapBatches(function), records([1, 2])))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (MapBatches(halved, event_time="t"), "unknown event-time column 't': Valid: delay, origin"),
        (
            MapBatches(halved, event_time="origin"),
            "event-time column 'origin' is string: use a timestamp, a date or int64 microseconds",
        ),
        (FlatMap(split, {}), "flat_map declares no columns"),
        (Map(doubled, 5), "map got the schema 5: pass a pyarrow.Schema or a dict such as {'a': pyarrow.string()}"),
        (Map(doubled, {"a": "no type"}), "map got the schema {'a': 'no type'}"),
    ],
)
def test_declarations_are_checked_when_the_graph_is_built(spec: OperatorSpec, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        spec.output_schema([SCHEMA])
    assert said in str(caught.value)


def test_union_passes_records_on() -> None:
    first = records([1, 2], [3, 4])
    assert run(Union(), first, port=1, inputs=[SCHEMA, SCHEMA])[0] is first


def test_union_makes_one_schema_of_all() -> None:
    strict = pa.schema(
        [pa.field("origin", pa.string(), nullable=False), pa.field("delay", pa.int64())], metadata={"a": "b"}
    )
    given_records = Records(records([1], [5]).batch.cast(strict), np.array([5], np.int64))
    (out,) = run(Union(), given_records, inputs=[strict, SCHEMA])
    assert out.batch.schema.equals(SCHEMA, check_metadata=True)
    Records.concat([out, records([2], [6])])


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([SCHEMA], "union needs at least 2 streams and got 1: pass the other stream to union(...)"),
        (
            [SCHEMA, SCHEMA, pa.schema({"origin": pa.string(), "delay": pa.float64()})],
            "union needs equal columns, but column 2 is 'delay' (int64) in the first stream and 'delay' (double) "
            "in stream 3: make them equal with select",
        ),
        (
            [SCHEMA, pa.schema({"origin": pa.string()})],
            "union needs equal columns, but column 2 is 'delay' (int64) in the first stream and missing in stream 2: "
            "make them equal with select",
        ),
    ],
)
def test_union_names_the_first_difference(inputs: list[pa.Schema], said: str) -> None:
    with pytest.raises(WorkbenchError) as caught:
        Union().output_schema(inputs)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Filter(col("delay").is_not_null()), "delay IS NOT NULL"),
        (WithColumns((("late", col("delay") > 15), ("delay", col("delay")))), "delay > 15 AS late, delay"),
        (Select((("origin", col("origin")), ("d", col("delay")))), "origin, delay AS d"),
        (Map(doubled), "doubled"),
        (FlatMap(split, {"word": pa.string()}), "split"),
        (MapBatches(halved), "halved"),
        (Union(), "all records of all inputs"),
    ],
)
def test_describe(spec: OperatorSpec, text: str) -> None:
    assert spec.describe() == text


def test_an_empty_batch_is_handled() -> None:
    empty = records([], [])
    for spec in (WithColumns((("late", col("delay") > 15),)), Map(doubled), MapBatches(negated)):
        assert sum(len(part) for part in run(spec, empty)) == 0
