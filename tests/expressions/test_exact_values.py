"""Values that no conversion changes silently: decimals, unsigned numbers, literals, arguments and declared types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import ExpressionError, JobError, QueryError
from workbench.expressions import col, compile_expression, expr
from workbench.spark.expression_text import spark_text

LARGEST = 2**64 - 1


def computed(text: str, **columns: pa.Array) -> list[Any]:
    batch = pa.RecordBatch.from_pydict(columns)
    return list(compile_expression(text, batch.schema)(batch).to_pylist())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("u > 100", [True, False, None]),
        ("u IN (7, -1)", [False, False, None]),
        ("CAST(u AS STRING)", [str(LARGEST), "5", None]),
        ("CAST(u AS BIGINT)", [None, 5, None]),
        ("u - 6", [LARGEST - 6, -1, None]),
        ("u / 2", [Decimal(LARGEST) / 2, Decimal("2.5"), None]),
        ("coalesce(u, 0)", [LARGEST, 5, 0]),
    ],
)
def test_an_unsigned_number_keeps_its_value(text: str, wanted: list[Any]) -> None:
    values = pa.array([LARGEST, 5, None], pa.uint64())
    assert computed(text, u=values) == wanted
    assert computed(text, u=values.dictionary_encode()) == wanted


def _half_up(value: Fraction, scale: int) -> Decimal:
    sign = -1 if value < 0 else 1
    whole = int(abs(value) * 10**scale + Fraction(1, 2))
    return Decimal(sign * whole).scaleb(-scale)


@pytest.mark.parametrize(
    ("symbol", "scale"),
    # precision and scale of decimal(12, 2) with decimal(9, 4) in Spark: + (15, 4), * (22, 6), / (26, 12)
    [("+", 4), ("-", 4), ("*", 6), ("/", 12)],
)
def test_decimals_are_computed_exactly_and_rounded_half_up(symbol: str, scale: int) -> None:
    chance = Random(7)
    lefts = [Decimal(chance.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-2) for _ in range(300)]
    rights = [Decimal(chance.randint(1, 10**9 - 1) * chance.choice((1, -1))).scaleb(-4) for _ in range(300)]
    found = computed(f"a {symbol} b", a=pa.array(lefts, pa.decimal128(12, 2)), b=pa.array(rights, pa.decimal128(9, 4)))
    exact = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
    }[symbol]
    pairs = zip(lefts, rights, strict=True)
    assert found == [_half_up(exact(Fraction(a), Fraction(b)), scale) for a, b in pairs]


def test_a_decimal_becomes_the_nearest_double() -> None:
    for scale in (1, 2, 4, 10, 18):
        values = [Decimal(n).scaleb(-2).quantize(Decimal(1).scaleb(-max(scale, 2))) for n in range(1, 2_000)]
        column = pa.array(values, pa.decimal128(38, max(scale, 2)))
        assert computed("CAST(price AS DOUBLE)", price=column) == [float(value) for value in values]
        assert computed("price = 4.31", price=column).count(True) == 1
        assert computed("price IN (4.31, 0.35)", price=column).count(True) == 2


def test_the_same_by_methods() -> None:
    ids = pa.table({"id": pa.array([Decimal(2**53), Decimal(2**53 + 1)], pa.decimal128(20, 0))})
    stream = wb.Stream.from_table(ids).filter(col("id") == 2**53 + 1).with_columns(more=col("id") + 1)
    assert stream.collect()["more"].to_pylist() == [Decimal(2**53 + 2)]


@pytest.mark.parametrize("symbol", ["=", "<", "<=", ">", ">="])
def test_a_bigint_is_compared_exactly_with_a_literal(symbol: str) -> None:
    numbers = [2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, None]
    for literal in ("9007199254740992.5", "9007199254740991.9", "9223372036854775806.5"):
        wanted = [
            n
            if n is None
            else eval(f"n {symbol.replace('=', '==') if symbol == '=' else symbol} x", {"n": n, "x": Decimal(literal)})
            for n in numbers
        ]
        assert computed(f"n {symbol} {literal}", n=pa.array(numbers, pa.int64())) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("d > DATE '2023-02-30'", "DATE '2023-02-30' is never a value"),
        ("d > TIMESTAMP '2016-33-11 20:54:00'", "TIMESTAMP '2016-33-11 20:54:00' is never a value"),
        ("128Y", "128Y is never a value: it is no tinyint"),
        ("-129Y", "-129Y is never a value"),
        ("32768S", "32768S is never a value"),
        ("1E309", "1E309 is too large for a double"),
        ("1e40F", "1e40F is never a value"),
        ("TIME '00:01:52'", "TIME '00:01:52' is not supported"),
        ("CAST('10:00' AS TIME)", "the type TIME is not supported"),
        ("nvl(n, 1, 2)", "nvl has 3 arguments, and takes 2: no argument is ignored"),
        ("mod(n, 2, 1)", "mod has 3 arguments"),
        ("string(n, 2)", "string has 2 arguments"),
        ("upper(concat('a', 'b'), 'c')", "upper has 2 arguments"),
        ("date_trunc('DAY', t, 'Asia/Tokyo')", "date_trunc has 3 arguments"),
        ("regexp_replace('a', 'a', 'b', 0)", "regexp_replace begins at the position 0"),
        ("regexp_replace('a', 'a', '$1')", "refers to no group"),
        ("get_json_object('{}', 'a')", "'a', which is none: it begins with $"),
        ("t - t", "take its seconds since 1970, CAST(t AS double)"),
        ("CAST(n AS decimal(39, 0))", "decimal(39, 0)"),
    ],
)
def test_what_would_change_silently_is_refused(text: str, said: str) -> None:
    schema = pa.schema({"d": pa.date32(), "t": pa.timestamp("us"), "n": pa.int64()})
    stream = wb.Stream.from_table(schema.empty_table())
    with pytest.raises(ExpressionError) as raised:
        stream.select(x=text)
    assert said in raised.value.message
    with pytest.raises(QueryError) as asked:
        wb.sql(f"SELECT {text} AS x FROM s", s=stream)
    assert said in asked.value.message


def test_literals_at_the_ends_of_their_types() -> None:
    one = pa.array([1])
    assert computed("-128Y", x=one) == [-128]
    assert computed("-32768S", x=one) == [-32768]
    assert computed("-9223372036854775808L", x=one) == [-(2**63)]
    assert computed("12.50BD", x=one) == [Decimal("12.50")]
    assert computed("x -1", x=one) == [0]


def test_two_expressions_with_one_text_are_not_taken_for_each_other() -> None:
    schema = pa.schema({"n": pa.int64()})
    compile_expression(col("n").cast("string"), schema)
    with pytest.raises(ExpressionError):
        wb.Stream.from_table(schema.empty_table()).select(x="to_char(n, '999')")


def test_a_date_is_compared_with_text_as_a_date() -> None:
    days = pa.array([dt.date(2009, 7, 30), None], pa.date32())
    for symbol, wanted in ((">=", True), ("<", False), ("=", True), ("<=>", True)):
        found = computed(f"day {symbol} '2009-07-30 04:17:52'", day=days)
        assert found[0] is wanted


def _rows(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    a = wb.Stream.from_table(pa.table({"v1": [1, 2, 3], "k": ["one", "two", "three"]}))
    b = wb.Stream.from_table(pa.table({"k": ["one", "two", "four"], "v2": [1, 22, 4]}))
    made = wb.sql(query, a=a, b=b).collect()
    names = [name for name in made.column_names if name != "$kind"]
    return names, sorted(zip(*(made[name].to_pylist() for name in names), strict=True), key=str)


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("SELECT k FROM a FULL JOIN b USING (k)", ["k"], [("four",), ("one",), ("three",), ("two",)]),
        (
            "SELECT * FROM a FULL JOIN b USING (k)",
            ["k", "v1", "v2"],
            [("four", None, 4), ("one", 1, 1), ("three", 3, None), ("two", 2, 22)],
        ),
        (
            "SELECT a.k AS x, b.k AS y FROM a FULL JOIN b USING (k)",
            ["x", "y"],
            [("one", "one"), ("three", None), ("two", "two"), (None, "four")],
        ),
        (
            "SELECT * FROM a RIGHT JOIN b USING (k)",
            ["k", "v1", "v2"],
            [("four", None, 4), ("one", 1, 1), ("two", 2, 22)],
        ),
        ("SELECT * FROM a JOIN b USING (k)", ["k", "v1", "v2"], [("one", 1, 1), ("two", 2, 22)]),
        ("SELECT b.* FROM a JOIN b USING (k)", ["k", "v2"], [("one", 1), ("two", 22)]),
        (
            "SELECT * FROM a RIGHT JOIN (SELECT k AS j, v2 FROM b) c ON a.k = c.j",
            ["v1", "k", "j", "v2"],
            [(1, "one", "one", 1), (2, "two", "two", 22), (None, None, "four", 4)],
        ),
    ],
)
def test_using_keeps_the_key_and_the_order_of_the_sides(
    query: str, names: list[str], rows: list[tuple[Any, ...]]
) -> None:
    assert _rows(query) == (names, rows)


def test_a_sum_over_a_frame_never_wraps_around() -> None:
    rows = pa.table({"t": pa.array([1, 2, 3, 4], pa.timestamp("us")), "n": [2**62, 2**62 - 1, 2**62, -(2**62)]})
    stream = wb.Stream.from_table(rows, event_time="t")
    query = "SELECT SUM(n) OVER (ORDER BY t ROWS BETWEEN {} PRECEDING AND CURRENT ROW) AS s FROM s"
    with pytest.raises(JobError, match=r"sum\(n\) exceeded the range of int64"):
        wb.sql(query.format(2), s=stream).collect()
    few = wb.Stream.from_table(rows.slice(0, 2), event_time="t")
    assert wb.sql(query.format(2), s=few).collect()["s"].to_pylist() == [2**62, 2**63 - 1]


def test_a_declared_decimal_stays_one(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,price\n9007199254740993,0.10\n", encoding="utf-8")
    table = "CREATE TABLE {} (id NUMERIC(20, 0), price {}) WITH ({})"
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'x.csv'}', 'format' = 'csv'"
    memory = "'connector' = 'memory'"
    script = ";".join((table.format("i", "DECIMAL(10, 2)", files), table.format("o", "DECIMAL(12, 2)", memory)))
    job = wb.sql_script(f"{script}; INSERT INTO o SELECT id, price * 3 FROM i").run("declared", replace=True)
    job.wait("60s")
    assert job.table("o").to_pylist() == [{"id": Decimal(9007199254740993), "price": Decimal("0.30")}]
    with pytest.raises(QueryError, match="the column 'price' has the type TIME"):
        wb.sql_script(f"{table.format('i', 'TIME', files)}; SELECT id FROM i")


def test_the_text_for_spark_tries_what_could_overflow() -> None:
    schema = pa.schema(
        {"n": pa.int64(), "i": pa.int32(), "d": pa.float64(), "s": pa.string(), "p": pa.decimal128(9, 2)}
    )
    assert spark_text(col("n") * 4 + 1, schema) == "TRY_ADD(TRY_MULTIPLY(n, 4), 1)"
    assert spark_text(col("s").cast("int"), schema) == "TRY_CAST(s AS INT)"
    assert spark_text(-col("i"), schema) == "TRY_SUBTRACT(CAST(0 AS INT), i)"
    assert spark_text(col("n") * 1.5, schema) == "n * CAST(1.5 AS DOUBLE)"
    assert spark_text(expr("CASE WHEN n > 1.5 THEN d ELSE 0.5 END"), schema) == (
        "CASE WHEN n > 1.5 THEN d ELSE CAST(0.5 AS DOUBLE) END"
    )
    assert spark_text(expr("p * 1.5"), schema) == "TRY_MULTIPLY(p, 1.5)"


def test_doubles_are_rounded_as_they_are_written() -> None:
    chance = Random(3)
    numbers = [n / 1000 for n in range(-3_000, 3_000)] + [chance.uniform(-1e9, 1e9) for _ in range(1_000)]
    numbers += [2.675, 1.005, -1.005, 1e22, 5e-324, -0.0]
    for places in (1, 2, 4):
        step = Decimal(1).scaleb(-places)
        wanted = [float(_half_up(Fraction(Decimal(repr(x))), places).quantize(step)) for x in numbers if abs(x) < 1e20]
        kept = [x for x in numbers if abs(x) < 1e20]
        assert computed(f"round(x, {places})", x=pa.array(kept)) == wanted
    odd = computed("round(x, 2)", x=pa.array([float("inf"), None, 1e22, 1.005]))
    assert odd == [float("inf"), None, 1e22, 1.01]


def test_letters_that_become_several_in_capitals() -> None:
    words = pa.array(["Straße", "abc", None, "ﬁ", "é"])
    assert computed("upper(s)", s=words) == ["STRASSE", "ABC", None, "FI", "É"]
    assert computed("upper(s)", s=words.slice(1, 2)) == ["ABC", None]
    assert computed("lower(s)", s=pa.array(["ΑΣ", "İ"])) == ["ας", "i̇"]


def test_floats_are_written_with_the_digits_that_they_need() -> None:
    assert computed("CAST(f AS string)", f=pa.array([0.1, 1.1, 16777216.0], pa.float32())) == [
        "0.1",
        "1.1",
        "1.6777216E7",
    ]
