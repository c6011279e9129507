"""Functions of columns: the same text gives the same results in the interpreter and compiled; what it may not do.

Machine code has neither None nor datetimes. Without these the results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs import Collected

import workbench as wb
from workbench.compiled.machinery import row_compiler
from workbench.elements import Records
from workbench.errors import PlanError, RecordError
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.functions.called_function import CalledFunction
from workbench.operators.functions.user_function import SchemaLike
from workbench.operators.stateless.filter_function import FilterFunction
from workbench.operators.stateless.map import Map

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
US = pa.timestamp("us")


def run(spec: OperatorSpec, batch: pa.RecordBatch, times: list[int] | None = None) -> Records | None:
    out = Collected()
    schemas = [batch.schema]
    spec.create(schemas).process(Records(batch, None if times is None else np.array(times, np.int64)), 0, out)
    if not out.records:
        return None
    [made] = out.records
    made.batch.validate(full=True)
    assert made.batch.schema.equals(spec.output_schema(schemas))
    return made


def computed(function: Callable[..., Any], schema: SchemaLike, batch: pa.RecordBatch, *, compiled: bool) -> list[Any]:
    """What a function of all columns gives for a batch, as tuples or, for one column, as values."""
    made = run(Map(function, schema, tuple(batch.schema.names), compiled=compiled), batch)
    assert made is not None
    columns = [column.to_pylist() for column in made.batch.columns]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def fare(distance, minutes):
    return distance * 1.2 + minutes * 0.3


def everything(whole, small, real, single, flag, instant, span):
    later = instant + span
    if flag and small > 0:
        return whole // small, later, real / small, True, None
    return whole - small, instant, math.sqrt(abs(real)) + single, real > single, small % 7


INPUTS = pa.schema(
    {
        "whole": pa.int64(),
        "small": pa.uint8(),
        "real": pa.float64(),
        "single": pa.float32(),
        "flag": pa.bool_(),
        "instant": pa.timestamp("ms", "UTC"),
        "span": pa.duration("s"),
    }
)
OUTPUTS = pa.schema({"a": pa.int64(), "t": US, "x": pa.float64(), "yes": pa.bool_(), "n": pa.int16()})
EVERYTHING = Map(everything, OUTPUTS, tuple(INPUTS.names), compiled=True)

ROWS = st.tuples(
    st.integers(-(2**40), 2**40),
    st.integers(0, 255),
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6, width=32),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.integers(-(10**6), 10**6),
)


@given(st.lists(st.tuples(ROWS, st.sets(st.integers(0, 6), max_size=2)), min_size=1, max_size=30))
def test_the_same_text_gives_the_same_compiled(rows: list[tuple[tuple[Any, ...], set[int]]]) -> None:
    values = [[None if at in nulls else value for at, value in enumerate(row)] for row, nulls in rows]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column).cast(item.type) for column, item in zip(zip(*values, strict=True), INPUTS, strict=True)],
        schema=INPUTS,
    )
    expected = []
    for row in values:
        if None in row:
            expected.append([None] * 5)
            continue
        whole, small, real, single, flag, instant_ms, span_s = row
        expected.append([*everything(whole, small, real, single, flag, instant_ms * 1_000, span_s * 1_000_000)])
    made = run(EVERYTHING, batch)
    assert made is not None
    columns = [made.batch.column(at) for at in range(5)]
    columns[1] = columns[1].cast(pa.int64())
    assert [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)] == expected


@BOTH
def test_a_function_of_columns(compiled: bool) -> None:
    trips = pa.record_batch({"distance": [10.0, 2.5], "minutes": pa.array([20, 0], pa.int32())})
    assert computed(fare, {"fare": pa.float64()}, trips, compiled=compiled) == [18.0, 3.0]


@BOTH
def test_kept_columns_come_first_and_event_times_stay(compiled: bool) -> None:
    trips = pa.record_batch({"cab": ["a", "b"], "distance": [10.0, None], "minutes": [20, 5]})

    def known(distance, minutes):
        return None if distance is None else distance * 1.2 + minutes * 0.3

    spec = Map(known, {"fare": pa.float64()}, ("distance", "minutes"), ("minutes", "cab"), compiled=compiled)
    made = run(spec, trips, [7, 8])
    assert made is not None
    assert made.batch.to_pydict() == {"minutes": [20, 5], "cab": ["a", "b"], "fare": [18.0, None]}
    assert made.timestamps is not None
    assert made.timestamps.tolist() == [7, 8]


@BOTH
def test_a_filter_drops_false_none_and_nulls(compiled: bool) -> None:
    def late(delay):
        if delay is None or delay < 0:
            return None
        return delay > 15

    flights = pa.record_batch(
        {"origin": ["a", "b", "c", "d", "e"], "delay": pa.array([20, 3, None, -1, 99], pa.int16())}
    )
    made = run(FilterFunction(CalledFunction("filter", late, ("delay",), compiled)), flights, [1, 2, 3, 4, 5])
    assert made is not None
    assert made.batch.to_pydict() == {"origin": ["a", "e"], "delay": [20, 99]}
    assert made.timestamps is not None
    assert made.timestamps.tolist() == [1, 5]
    assert run(FilterFunction(CalledFunction("filter", late, ("delay",), compiled)), flights.slice(1, 2)) is None


def test_instants_are_microseconds_to_machine_code_both_ways() -> None:
    def shifted(at, by):
        return at + by, at - at % 1_000_000

    batch = pa.record_batch(
        {"at": pa.array([1_500, -1], pa.timestamp("ms")), "by": pa.array([2, 3], pa.duration("us"))}
    )
    schema = {"later": US, "second": pa.timestamp("s", "UTC")}
    made = run(Map(shifted, schema, ("at", "by"), compiled=True), batch)
    assert made is not None
    assert made.batch.column(0).cast(pa.int64()).to_pylist() == [1_500_002, -997]
    assert made.batch.column(1).cast(pa.int64()).to_pylist() == [1, -1]
    with pytest.raises(RecordError, match=r"returned 1500002 for column 'later', which is declared as timestamp\[s\]"):
        run(Map(shifted, {**schema, "later": pa.timestamp("s")}, ("at", "by"), compiled=True), batch)


@BOTH
def test_parameters_with_defaults_need_no_column(compiled: bool) -> None:
    rate = 3

    def price(distance, factor=2, rate_of=rate):
        return rate_of * distance * factor

    batch = pa.record_batch({"distance": [1.5, 2.0], "factor": [10, 1]})
    assert computed(price, {"price": pa.float64()}, batch, compiled=compiled) == [45.0, 6.0]


@BOTH
def test_what_does_not_fit_its_column_is_an_error(compiled: bool) -> None:
    batch = pa.record_batch({"n": pa.array([100, 100, 200], pa.int64())})
    with pytest.raises(RecordError) as caught:
        computed(lambda n: n + 28, {"n": pa.int8()}, batch, compiled=compiled)
    assert str(caught.value).endswith("returned 128 for column 'n', which is declared as int8, on record {'n': 100}")
    with pytest.raises(RecordError, match=r"returned 33\.33.* for column 'n', which is declared as int64, on record"):
        computed(lambda n: n / 3, {"n": pa.int64()}, batch, compiled=compiled)
    assert computed(lambda n: n / 4, {"n": pa.int64()}, batch, compiled=compiled) == [25, 25, 50]
    assert computed(lambda n: n > 100, {"n": pa.int8()}, batch, compiled=compiled) == [0, 0, 1]


@BOTH
@pytest.mark.parametrize("at", [0, 1, 2_500, 4_999])
def test_the_record_on_which_a_function_raises_is_named(compiled: bool, at: int) -> None:
    divisors = [1] * at + [0] + [1] * (4_999 - at)
    batch = pa.record_batch(
        {
            "row": list(range(5_001)),
            "by": pa.array([7, *divisors], pa.int32()),
        }
    )
    with pytest.raises(RecordError) as caught:
        computed(lambda row, by: row // by, {"q": pa.int64()}, batch, compiled=compiled)
    assert "raised ZeroDivisionError: " in str(caught.value)
    assert str(caught.value).endswith(f"on record {{'row': {at + 1}, 'by': 0}}")


def test_compiled_integers_wrap_around_and_interpreted_ones_do_not() -> None:
    batch = pa.record_batch({"n": [2**62, 3]})
    assert computed(lambda n: n * 4, {"n": pa.int64()}, batch, compiled=True) == [0, 12]
    with pytest.raises(RecordError, match="returned 18446744073709551616 for column 'n'"):
        computed(lambda n: n * 4, {"n": pa.int64()}, batch, compiled=False)


def test_narrow_columns_do_not_make_narrow_results() -> None:
    batch = pa.record_batch({"a": pa.array([200], pa.uint8()), "b": pa.array([250], pa.uint8())})
    assert computed(lambda a, b: a - b, {"d": pa.int64()}, batch, compiled=True) == [-50]
    single = pa.record_batch({"x": pa.array([0.1], pa.float32())})
    assert computed(lambda x: x * 3, {"x": pa.float64()}, single, compiled=True) == [float(np.float32(0.1)) * 3]


def test_a_slice_of_a_batch() -> None:
    batch = pa.record_batch({"n": list(range(10)), "odd": [n % 2 == 1 for n in range(10)]}).slice(3, 4)
    assert computed(lambda n, odd: -n if odd else n, {"n": pa.int64()}, batch, compiled=True) == [-3, 4, -5, 6]


def test_an_interpreted_function_takes_anything() -> None:
    batch = pa.record_batch({"word": ["Ab", None], "times": [2, 3]})
    made = computed(
        lambda word, times: (word and word * times, {"n": times}),
        {"w": pa.string(), "s": pa.struct({"n": pa.int64()})},
        batch,
        compiled=False,
    )
    assert made == [("AbAb", {"n": 2}), (None, {"n": 3})]


@pytest.mark.parametrize("result", [1, (1,), [1, 2], (1, 2, 3)])
def test_several_columns_need_a_tuple_of_as_many(result: object) -> None:
    with pytest.raises(RecordError) as caught:
        computed(lambda n: result, {"a": pa.int64(), "b": pa.int64()}, pa.record_batch({"n": [5]}), compiled=False)
    assert f"returned {result!r} ({type(result).__name__}), expected a tuple of 2 values" in str(caught.value)
    assert str(caught.value).endswith("for the columns a, b, on record {'n': 5}")


# streams -------------------------------------------------------------------------------------------------------------

TRIPS = wb.Stream.from_table(
    pa.table({"cab": ["a", "b", "a"], "distance": [10.0, 2.5, 1.0], "minutes": [20, 0, 10], "unread": [1, 2, 3]})
)
PAIR = ["distance", "minutes"]


@BOTH
def test_in_a_pipeline(compiled: bool) -> None:
    stream = (
        TRIPS.filter(lambda distance: distance > 1, columns="distance", compiled=compiled)
        .map(fare, {"fare": pa.float64()}, columns=PAIR, keep=["cab"], compiled=compiled)
        .key_by("cab")
        .aggregate(total=wb.sum("fare"))
    )
    job = stream.sink_to(wb.TableSink("out")).run(f"fares-{compiled}")
    job.wait("120s")
    assert sorted(map(tuple, (row.values() for row in job.table("out").to_pylist()))) == [("a", 18.0), ("b", 3.0)]


def test_a_function_is_compiled_once_when_its_stream_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile_it = row_compiler.compile_rows

    def noted(function: Any, columns: Any) -> Any:
        compiled.append(columns)
        return compile_it(function, columns)

    monkeypatch.setattr(row_compiler, "compile_rows", noted)
    stream = TRIPS.filter(lambda distance, unread: distance * unread > 3, columns=["distance", "unread"], compiled=True)
    assert len(compiled) == 1
    job = stream.select("cab").sink_to(wb.TableSink("out")).run("once", parallelism=2)
    job.wait("120s")
    assert sorted(job.table("out")["cab"].to_pylist()) == ["a", "b"]
    assert len(compiled) == 1


def test_without_columns_the_function_gets_the_record() -> None:
    assert TRIPS.map(lambda record: {"n": record["minutes"]}, {"n": pa.int64()}).columns == ["n"]
    job = TRIPS.map(lambda r, by=2: {"n": r["minutes"] * by}, {"n": pa.int64()}).sink_to(wb.TableSink("out")).run("r")
    job.wait("120s")
    assert job.table("out").to_pydict() == {"n": [40, 0, 20]}


def test_who_waits_for_the_compiler_sees_what_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    TRIPS.map(fare, {"fare": pa.float64()}, columns=PAIR)
    assert capfd.readouterr().err == ""
    TRIPS.map(fare, {"fare": pa.float64()}, columns=PAIR, compiled=True)
    assert "compiling: fare" in capfd.readouterr().err


def shout(distance):
    louder = distance + 1
    return louder.upper()


def text_of(distance):
    return str(distance)


REFUSED: list[tuple[Callable[..., Any], list[str] | None, str]] = [
    (shout, ["distance"], "'shout' cannot be compiled: Unknown attribute 'upper' of type float64; rewrite it"),
    (text_of, ["distance"], "'text_of' cannot be compiled: it returns unicode_type instead of numbers or booleans;"),
    (lambda distance: input(), ["distance"], "cannot be compiled: Untyped global name 'input'"),
    (lambda distance: (1.0, 2.0), ["distance"], "cannot be compiled: it returns 2 values for the columns fare: return"),
    (lambda distance: distance > 1, ["distance"], "it returns bool for 'fare', which is declared as double"),
    (lambda cab: 1.0, ["cab"], "cannot be compiled: column 'cab' is string, and compiled functions take integers"),
    (lambda distance: 1.0, ["distnce"], "unknown column 'distnce': did you mean 'distance'"),
    (lambda record: 1.0, None, "cannot be compiled: it takes a record: name the columns that it takes, such as"),
    (lambda: 1.0, ["distance"], "cannot be called with the columns distance (too many positional arguments)"),
    (math.sqrt, ["distance"], "'sqrt' cannot be compiled: it is not a plain function"),
]


@pytest.mark.parametrize(("function", "columns", "message"), REFUSED)
def test_what_cannot_be_compiled_is_refused_when_the_stream_is_built(
    function: Callable[..., Any], columns: list[str] | None, message: str
) -> None:
    with pytest.raises(PlanError) as caught:
        TRIPS.map(function, {"fare": pa.float64()}, columns=columns, compiled=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.origin is not None
    assert caught.value.origin.file == __file__


def test_the_line_at_fault_is_shown() -> None:
    with pytest.raises(PlanError, match=r"\(test_compiled_functions.py, line \d+: return louder.upper\(\)\)$"):
        TRIPS.map(shout, {"fare": pa.float64()}, columns="distance", compiled=True)


def test_refused_at_once_without_compiling() -> None:
    money = {"fare": pa.float64()}
    with pytest.raises(PlanError, match="unknown column 'distnce': did you mean 'distance'"):
        TRIPS.map(fare, money, columns=["distnce", "minutes"])
    with pytest.raises(PlanError, match=r"'fare' cannot be called with the columns distance \(missing a required arg"):
        TRIPS.map(fare, money, columns="distance")
    with pytest.raises(PlanError, match=r"'fare' cannot be called with a record \(missing a .*: name the columns"):
        TRIPS.map(fare, money)
    with pytest.raises(PlanError, match="cannot be called with no column"):
        TRIPS.map(fare, money, columns=[])
    with pytest.raises(PlanError, match="map got 'fare': pass a function"):
        TRIPS.map("fare", money)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="unknown column 'cap': did you mean 'cab'"):
        TRIPS.map(fare, money, columns=PAIR, keep=["cap"])
    with pytest.raises(PlanError, match="map keeps the column 'cab' and computes it too: leave it out of keep"):
        TRIPS.map(fare, {"cab": pa.float64()}, columns=PAIR, keep=["cab"])
    with pytest.raises(PlanError, match="filter compiles functions of columns; expressions are always compiled"):
        TRIPS.filter("distance > 1", compiled=True)
    with pytest.raises(PlanError, match="columns is 'distance', but it applies only to functions"):
        TRIPS.filter("distance > 1", columns="distance")
    with pytest.raises(PlanError, match="returns float64 for 'condition', which is declared as bool"):
        TRIPS.filter(lambda distance: distance + 1, columns="distance", compiled=True)
