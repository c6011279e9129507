"""The arguments of a user's function are determined by the method and its arguments, never by parameter names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb

BERLIN = pa.timestamp("us", "Europe/Berlin")
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "n": (pa.int64(), 7),
    "small": (pa.int8(), 3),
    "real": (pa.float64(), 0.5),
    "flag": (pa.bool_(), True),
    "text": (pa.string(), "a"),
    "naive": (pa.timestamp("ms"), datetime(2026, 1, 2, 3, 4, 5)),
    "utc": (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    "berlin": (BERLIN, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    "day": (pa.date32(), date(2026, 1, 2)),
    "span": (pa.duration("s"), timedelta(seconds=90)),
    "price": (pa.decimal128(9, 2), Decimal("1.25")),
    "parts": (pa.list_(pa.int64()), [1, None]),
}
NAMES = list(VALUES)
TABLE = pa.table({"k": ["a", "a"]} | {name: pa.array([value, None], kind) for name, (kind, value) in VALUES.items()})
NOTHING = {"nothing": pa.int64()}


def stream() -> wb.Stream:
    return wb.Stream.from_table(TABLE)


def of_records(note: Callable[..., Any], way: str) -> wb.Stream:
    def record(record: dict[str, Any], *_: Any) -> Any:
        note(*(record[name] for name in NAMES))
        return {"nothing": None}

    class Both(wb.functions.CoProcessFunction):
        def process1(self, element, state):
            return record(element)

        def process2(self, element, state):
            return None

    nobody = stream().filter("false")
    return {
        "map": lambda: stream().map(lambda n: record(n), NOTHING),
        "filter": lambda: stream().filter(lambda k: record(k) is None),
        "flat_map": lambda: stream().flat_map(lambda text: [record(text)], NOTHING),
        "reduce": lambda: stream().key_by("k").reduce(lambda held, new: record(held) and record(new) and held),
        "process": lambda: stream().key_by("k").process(lambda day, state: record(day), NOTHING),
        "connect": lambda: stream().connect(nobody).map(record, record, NOTHING),
        "connect process": lambda: stream().connect(nobody, on="k").process(Both(), NOTHING),
    }[way]()


def of_columns(note: Callable[..., Any], way: str) -> wb.Stream:
    def values(*values: Any) -> Any:
        note(*values)

    return {
        "map of columns": lambda: stream().map(values, NOTHING, columns=NAMES),
        "filter of columns": lambda: stream().filter(values, columns=NAMES),
        "flat_map of columns": lambda: stream().flat_map(lambda *all: [values(*all)], NOTHING, columns=NAMES),
    }[way]()


WAYS = {
    **dict.fromkeys(("map", "filter", "flat_map", "reduce", "process", "connect", "connect process"), of_records),
    **dict.fromkeys(("map of columns", "filter of columns", "flat_map of columns"), of_columns),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_function_gets_the_same_values_nulls_and_instants(way: str) -> None:
    seen: list[tuple[Any, ...]] = []
    made = WAYS[way](lambda *values: seen.append(values), way)
    assert made.sink_to(wb.DiscardSink()).run(f"seen-{way.replace(' ', '-')}").wait("60s") == "FINISHED"
    expected = tuple(value for _, value in VALUES.values())
    assert seen == [expected, (None,) * len(NAMES)]
    assert list(map(type, seen[0])) == list(map(type, expected))
    zones = [None if value.tzinfo is None else str(value.tzinfo) for value in seen[0] if isinstance(value, datetime)]
    assert zones == [None, "UTC", "Europe/Berlin"]


def test_a_lookup_gets_its_key_as_other_functions_get_columns() -> None:
    seen: list[tuple[Any, ...]] = []
    keys = ["n", "flag", "text", "naive", "berlin", "day"]

    def answer(*values: Any) -> dict[str, Any]:
        seen.append(values)
        return {"nothing": None}

    made = stream().lookup_async(answer, key=keys, schema=NOTHING)
    assert made.sink_to(wb.DiscardSink()).run("seen-lookup").wait("60s") == "FINISHED"
    assert seen == [tuple(VALUES[name][1] for name in keys)]
    assert list(map(type, seen[0])) == [type(VALUES[name][1]) for name in keys]


def test_a_parameter_s_name_changes_nothing() -> None:
    failed = wb.Stream.from_table(pa.table({"n": [0]})).map(
        lambda record: {"n": 1 // record["n"]}, on_error="dead_letter"
    )
    schema = {"who": pa.string()}
    letters = failed.dead_letters()
    assert "record" in letters.columns
    for same in (
        letters.map(lambda record: {"who": record["operator"]}, schema),
        letters.map(lambda r: {"who": r["operator"]}, schema),
        letters.map(lambda record: record, schema, columns="operator"),
        letters.map(lambda operator: operator, schema, columns="operator"),
        letters.map(str, schema, columns="operator"),
        letters.filter(lambda record: record["subtask"] == 0).select(who="operator"),
        letters.filter(lambda record: record == 0, columns="subtask").select(who="operator"),
    ):
        assert same.collect()["who"].to_pylist() == ["map"]


def test_columns_are_given_in_the_order_in_which_they_are_named() -> None:
    pairs = wb.Stream.from_table(pa.table({"a": [7], "b": [2]}))
    schema = {"c": pa.int64()}
    assert pairs.map(lambda x, y: x - y, schema, columns=["b", "a"]).collect()["c"].to_pylist() == [-5]
    assert pairs.map(lambda a, b: a - b, schema, columns=["b", "a"], compiled=True).collect()["c"].to_pylist() == [-5]
    assert pairs.filter(lambda x, y: x < y, columns=["b", "a"]).columns == ["a", "b"]


def test_kept_columns_stand_beside_what_the_function_gives() -> None:
    lines = wb.Stream.from_table(pa.table({"id": [1, 2, 3], "line": ["a b", "", "c"]}))
    words = lines.flat_map(str.split, {"word": pa.string()}, columns="line", keep="id")
    assert words.collect().to_pydict() == {"id": [1, 1, 3], "word": ["a", "b", "c"]}
    lengths = lines.map(lambda record: {"length": len(record["line"])}, {"length": pa.int64()}, keep="id")
    assert lengths.collect().to_pydict() == {"id": [1, 2, 3], "length": [3, 0, 1]}


def test_a_function_of_columns_that_fails_is_named_with_its_line() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1, None], "unread": [1, 2]}))

    def doubled(n):
        return n * 2

    with pytest.raises(wb.errors.JobError) as caught:
        numbers.map(doubled, {"m": pa.int64()}, columns="n").collect()
    assert "doubled' raised TypeError: unsupported operand" in str(caught.value)
    assert "on record {'n': None}" in str(caught.value)
    assert "(test_calling_convention.py, line" in str(caught.value)
