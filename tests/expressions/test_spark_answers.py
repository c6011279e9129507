"""Expressions with the answers of PySpark 4.3 (ANSI off and on), each of which is given exactly, refused, or another
by choice. A state that changes fails: an expression that becomes exact is listed as such."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.expressions import compile_expression

_FILES = Path(__file__).parents[1] / "support" / "golden"
_TS, _NTZ, _DATE, _TEXT = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32(), pa.string()
_T: list[tuple[str, pa.DataType, Any]] = [
    ("i", pa.int32(), 2**31 - 1),
    ("imin", pa.int32(), -(2**31)),
    ("l", pa.int64(), 2**63 - 1),
    ("lmin", pa.int64(), -(2**63)),
    ("sh", pa.int16(), 2**15 - 1),
    ("b", pa.int8(), -(2**7)),
    ("z", pa.int32(), 0),
    ("n7", pa.int32(), 7),
    ("m7", pa.int32(), -7),
    ("f", pa.float32(), 0.1),
    ("d", pa.float64(), 0.1),
    ("nan", pa.float64(), math.nan),
    ("inf", pa.float64(), math.inf),
    ("nz", pa.float64(), -0.0),
    ("big", pa.float64(), 1e20),
    ("h25", pa.float64(), 2.5),
    ("hm25", pa.float64(), -2.5),
    ("p", pa.decimal128(10, 2), Decimal("0.35")),
    ("q", pa.decimal128(10, 3), Decimal("12.345")),
    ("x38", pa.decimal128(38, 0), Decimal("9" * 38)),
    ("y38", pa.decimal128(38, 18), Decimal("1.234567890123456789")),
    ("id20", pa.decimal128(20, 0), Decimal("9007199254740993")),
    ("s", _TEXT, "Straße"),
    ("sp", _TEXT, " 12 "),
    ("bad", _TEXT, "abc"),
    ("dot", _TEXT, "1.23"),
    ("sd", _TEXT, "2009-7-3"),
    ("sy", _TEXT, "2009"),
    ("csv", _TEXT, "a,b,,c"),
    ("e", _TEXT, ""),
    ("fb", _TEXT, "foobar"),
    ("rg", _TEXT, "100-200"),
    ("uni", _TEXT, "e\u0301\U0001f600x"),
    ("ns", _TEXT, None),
    ("ni", pa.int32(), None),
    ("tr", _TEXT, "true"),
    ("dt", _DATE, dt.date(2024, 1, 31)),
    ("leap", _DATE, dt.date(2024, 2, 29)),
    ("d1", _DATE, dt.date(1, 1, 1)),
    ("ts", _TS, dt.datetime(2024, 3, 31, 0, 30, 15, 123456)),
    ("tb", _TS, dt.datetime(2024, 10, 27, 0, 30)),
    ("ntz", _NTZ, dt.datetime(2024, 3, 31, 2, 30)),
    ("old", _TS, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("sun", _DATE, dt.date(2021, 1, 3)),
    (
        "js",
        _TEXT,
        '{"a":1,"b":"x","c":[1,2,null],"d":{"e":2.50},"f":null,"g":12345678901234567890}',
    ),
    ("jbad", _TEXT, '{"a":'),
    ("arr", pa.list_(pa.int32()), [3, 1, None, 2]),
    ("arrd", pa.list_(pa.float64()), [math.nan, 1.0, None]),
    ("arrs", pa.list_(_TEXT), ["b", "a", None]),
    ("m", pa.map_(_TEXT, pa.int32()), [("k", 1), ("j", 2)]),
    ("st", pa.struct([("x", pa.int32()), ("y", _TEXT)]), {"x": 1, "y": "u"}),
    ("bin", pa.binary(), "ABé".encode()),
    ("t", pa.bool_(), True),
    ("nb", pa.bool_(), None),
]
_G = {
    "k": pa.array([1, 1, 2, 2], pa.int32()),
    "p": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("0.05")], pa.decimal128(10, 2)),
    "l": pa.array([2**63 - 1, 1, None, -5], pa.int64()),
    "d": pa.array([math.nan, 1.0, None, -0.0], pa.float64()),
    "s": pa.array(["b", "a", None, "a"]),
    "t": pa.array([True, False, None, True]),
    "dt": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 3), None, dt.date(2023, 12, 31)], _DATE),
}
_WHOLE = ("tinyint", "smallint", "int", "bigint")
"""The files, and how many of their expressions are in which state."""
"""The files, and how many of their expressions are in which state."""


COUNTED = [
    ("spark_expressions.csv", {"choice": 5, "exact": 109, "refused": 145}),
    ("spark_siblings.csv", {"choice": 36, "exact": 904, "refused": 290}),
]
"""The files, and how many of their expressions are in which state."""


def _batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array([value], kind) for name, kind, value in _T})


def _computed(batch: pa.RecordBatch, row: dict[str, str]) -> Any:
    if row["table"] == "t":
        return compile_expression(row["expression"], batch.schema)(batch).to_pylist()[0]
    stream = wb.Stream.from_table(pa.table(_G)).with_parallelism(1)
    return wb.sql(f"SELECT {row['expression']} AS c FROM g", g=stream).collect()["c"].to_pylist()[-1]


def _is(value: Any, kind: str, text: str) -> bool:
    """Whether a value is Spark's, which is given by its type and its text."""
    if value is None or text == "NULL":
        return value is None and text == "NULL"
    if kind == "string":
        return bool(value == text)
    if kind == "boolean":
        return value is (text == "true")
    if kind.startswith("decimal"):
        return isinstance(value, Decimal) and value == Decimal(text)
    if kind in _WHOLE:
        return type(value) is int and value == int(text)
    if kind in ("double", "float"):
        return isinstance(value, float) and (
            value == float(text)
            or math.isclose(value, float(text), rel_tol=1e-12 if kind == "double" else 1e-7)
            or (math.isnan(value) and text == "NaN")
        )
    if kind == "date":
        return type(value) is dt.date and value.isoformat() == text
    if kind.startswith("timestamp"):
        written = value.replace(tzinfo=None).isoformat(" ") if isinstance(value, dt.datetime) else ""
        return (written.rstrip("0") if "." in written else written) == text
    if kind == "binary":
        return isinstance(value, bytes) and f"X{value.hex().upper()}" == text
    return bool(json.loads(text)["c"] == value)


def _state(batch: pa.RecordBatch, row: dict[str, str]) -> str:
    off, on = row["value_ansi_off"], row["value_ansi_on"]
    try:
        value = _computed(batch, row)
    except WorkbenchError:
        return "refused"
    if on.startswith("refused") and not off.startswith("refused"):
        return "exact" if value is None else "wrong"  # never the value that wrapped around
    kind = row["spark_type"]
    answers = [(kind, off)] if on == "same" else [(kind, off), (kind, on)]
    if ": " in on and not on.startswith("refused"):
        answers.append((on.partition(": ")[0], on.partition(": ")[2]))
    exact = any(_is(value, *answer) for answer in answers if not answer[1].startswith("refused"))
    return "exact" if exact else "other"


@pytest.mark.parametrize(("name", "counted"), COUNTED)
def test_each_expression_has_sparks_answer_or_is_refused(name: str, counted: dict[str, int]) -> None:
    with (_FILES / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    batch = _batch()
    found = {row["expression"]: _state(batch, row) for row in rows}
    listed = {row["expression"]: row["state"] for row in rows}
    assert {text: state for text, state in found.items() if state != listed[text].replace("choice", "other")} == {}
    assert Counter(listed.values()) == counted
