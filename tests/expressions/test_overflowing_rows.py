"""Rows that overflow are null, whichever way finds them, and change no other row."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from workbench.expressions import compile_expression
from workbench.expressions.tree.text_times import days_of_text

BOUNDS = {kind: 2 ** (kind.bit_width - 1) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}


def edges(kind: pa.DataType, rng: random.Random) -> int:
    bound = BOUNDS[kind]
    near = rng.choice((-bound, bound - 1, 0, -1, 1, 2, bound // 2, -bound // 2, int(bound**0.5), -int(bound**0.5)))
    return max(-bound, min(bound - 1, near + rng.randint(-2, 2)))


@pytest.mark.parametrize("kind", BOUNDS, ids=str)
@pytest.mark.parametrize(
    "operation", ["a + b", "a - b", "a * b", "-a", "abs(a)", "a DIV b", "a + 100", "a - 100", "a * 3"]
)
def test_whole_numbers_are_exact_or_null(kind: pa.DataType, operation: str) -> None:
    rng = random.Random(f"{kind} {operation}")
    pairs = [(edges(kind, rng), edges(kind, rng)) for _ in range(300)]
    pairs[7] = (None, 1)
    batch = pa.RecordBatch.from_arrays([pa.array(side, kind) for side in zip(*pairs, strict=True)], ["a", "b"])
    batch = batch.slice(3)  # with an offset
    compiled = compile_expression(operation, batch.schema)
    limit = BOUNDS[compiled.type]
    expected = [exact(operation, *pair, limit) for pair in pairs[3:]]
    for _ in range(2):  # the first batch is found to overflow, the second one is expected to
        found = compiled(batch)
        found.validate(full=True)
        assert found.to_pylist() == expected


def exact(operation: str, a: int | None, b: int, limit: int) -> int | None:
    if a is None or (operation == "a DIV b" and b == 0):
        return None
    value = {
        "a + b": lambda: a + b,
        "a - b": lambda: a - b,
        "a * b": lambda: a * b,
        "-a": lambda: -a,
        "abs(a)": lambda: abs(a),
        "a DIV b": lambda: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "a + 100": lambda: a + 100,
        "a - 100": lambda: a - 100,
        "a * 3": lambda: a * 3,
    }[operation]()
    return value if -limit <= value < limit else None


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()], ids=str)
def test_numbers_and_texts_cast_to_less_bits_are_exact_or_null(kind: pa.DataType) -> None:
    rng, limit = random.Random(5), BOUNDS[kind]
    numbers = [edges(pa.int64(), rng) if rng.random() < 0.5 else edges(kind, rng) for _ in range(300)] + [None]
    name = {8: "TINYINT", 32: "INT", 64: "BIGINT"}[kind.bit_width]
    texts = [None if number is None else f"{rng.choice(('', '0000000000000000000000'))}{number}" for number in numbers]
    texts = [
        text if text is None or "0-" not in text else str(number) for text, number in zip(texts, numbers, strict=True)
    ]
    texts += ["9" * 30, "x", "-" + "9" * 30]
    expected = [None if number is None or not -limit <= number < limit else number for number in numbers]
    for values, given in ((pa.array(numbers, pa.int64()), "CAST(v AS {})"), (pa.array(texts), "CAST(v AS {})")):
        compiled = compile_expression(given.format(name), pa.schema([("v", values.type)]))
        for _ in range(2):
            found = compiled(pa.RecordBatch.from_arrays([values], ["v"]))
            found.validate(full=True)
            assert found.to_pylist()[: len(expected)] == expected
            assert found[len(expected) :].null_count == len(values) - len(expected)


def test_texts_of_days_that_do_not_exist_are_null_beside_those_that_do() -> None:
    texts = ["2024-02-29", "2023-02-29", "2024-13-01", None, "2024-1-5", "x"]
    batch = pa.RecordBatch.from_pydict({"s": texts, "t": [text and f"{text} 10:00:00" for text in texts]})
    for text, hours in (("CAST(CAST(s AS DATE) AS STRING)", ""), ("CAST(CAST(t AS TIMESTAMP) AS STRING)", " 10:00:00")):
        compiled = compile_expression(text, batch.schema)
        expected = [f"2024-02-29{hours}", None, None, None, f"2024-01-05{hours}", None]
        assert [compiled(batch).to_pylist() for _ in range(2)] == [expected, expected]


def test_days_of_texts_exist_or_are_null() -> None:
    years = ("0000", "0004", "1900", "1999", "2000", "2024", "2100", "9999")
    texts = [f"{year}-{month:02}-{day:02}" for year in years for month in range(14) for day in range(33)]
    expected = [days_of_text(text) for text in texts]
    batch = pa.RecordBatch.from_pydict({"s": texts, "t": [f"{text}T23:59:59" for text in texts]})
    days = compile_expression("CAST(s AS DATE)", batch.schema)
    moments = compile_expression("CAST(t AS TIMESTAMP)", batch.schema)
    for _ in range(2):
        assert days(batch).cast(pa.int32()).to_pylist() == expected
        seconds = [None if value is None else value // 1_000_000 for value in moments(batch).cast("int64").to_pylist()]
        assert seconds == [None if day is None else day * 86_400 + 86_399 for day in expected]


def test_times_of_texts_exist_or_are_null() -> None:
    texts = [f"2024-05-06 {text}" for text in ("23:59:59", "24:00:00", "10:60:00", "10:00:60", "10:00:59.5", "1:2:3")]
    compiled = compile_expression("CAST(t AS TIMESTAMP)", pa.schema({"t": pa.string()}))
    found = compiled(pa.RecordBatch.from_pydict({"t": texts}))
    assert [value is None for value in found.to_pylist()] == [False, True, True, True, False, False]


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (5, 3), (12, 4), (18, 2), (30, 2)])
def test_decimals_of_less_digits_are_exact_or_null(precision: int, scale: int) -> None:
    rng, kind = random.Random(precision), pa.decimal128(34, 2)
    units = [rng.randint(-1, 1) * 10 ** rng.randint(0, 33) + rng.randint(-1, 1) for _ in range(300)]
    numbers = [*(Decimal(unit).scaleb(-2) for unit in units), None]
    batch = pa.RecordBatch.from_arrays([pa.array(numbers, kind)], ["d"]).slice(3)
    compiled = compile_expression(f"CAST(d AS DECIMAL({precision}, {scale}))", batch.schema)
    most = Decimal(10) ** (precision - scale)
    for _ in range(2):
        found = compiled(batch)
        found.validate(full=True)
        assert found.to_pylist() == [
            value if value is not None and abs(value) < most else None for value in numbers[3:]
        ]


def test_a_batch_without_overflow_after_one_with_it() -> None:
    schema = pa.schema([("d", pa.decimal128(20, 2)), ("t", pa.timestamp("us")), ("n", pa.int32())])
    rows = {"d": [10**10, None, 5], "t": [2**63 - 1, None, 5], "n": [2**31 - 1, None, 5]}
    few = {"d": [1, 2], "t": [1, 2], "n": [1, 2]}
    for text, odd, plain in (
        ("CAST(d AS DECIMAL(5, 2))", [None, None, 5], [1, 2]),
        ("CAST(d AS TINYINT)", [None, None, 5], [1, 2]),
        ("CAST(t + INTERVAL '1' SECOND AS BIGINT)", [None, None, 1], [1, 1]),
        ("n + n", [None, None, 10], [2, 4]),
    ):
        compiled = compile_expression(text, schema)
        for given, expected in ((rows, odd), (few, plain), (rows, odd), (few, plain)):
            assert compiled(pa.RecordBatch.from_pydict(given, schema)).to_pylist() == expected
