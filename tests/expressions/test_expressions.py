"""Expressions: the text they build, the values they give (by hand and by DuckDB), and what their errors say."""

from __future__ import annotations

import datetime as dt
import math
import operator as op
import re
from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from expression_table import EXPRESSIONS, TABLE
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import ExpressionError
from workbench.expressions import Expression, coalesce, col, compile_expression, expr, lit, when
from workbench.origin import Origin

BATCH = TABLE.to_batches()[0]


def values(expression: Expression | str, batch: pa.RecordBatch = BATCH) -> list[object]:
    compiled = compile_expression(expression, batch.schema)
    result = compiled(batch)
    assert result.type == compiled.type
    assert len(result) == batch.num_rows
    return list(result.to_pylist())


def message(expression: Expression | str, schema: pa.Schema = TABLE.schema) -> str:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression, schema)
    return str(caught.value)


@pytest.mark.parametrize(
    ("built", "sql"),
    [
        (col("dep_delay") > 15, "dep_delay > 15"),
        (15 < col("dep_delay"), "dep_delay > 15"),  # noqa: SIM300 - Python reflects the comparison
        ((col("a") + 1) * 2, "(a + 1) * 2"),
        (1 - col("a") / 2, "1 - (a / 2)"),
        (-col("a") % 3, "(-a) % 3"),
        ((col("a") == 1) & ~(col("b") != 2), "(a = 1) AND (NOT (b <> 2))"),
        (col("p") | col("q"), "p OR q"),
        (col("Dep Delay").is_null(), "`Dep Delay` IS NULL"),
        (col("select").is_not_null(), "`select` IS NOT NULL"),
        (~col("s").is_in(["a", "b"]), "NOT (s IN ('a', 'b'))"),
        (col("a").between(1, 2.5), "a BETWEEN 1 AND 2.5"),
        (col("a").cast("bigint"), "CAST(a AS BIGINT)"),
        ((col("a") / 2).alias("half"), "a / 2 AS half"),
        (abs(col("a")), "ABS(a)"),
        (col("f").round(2), "ROUND(f, 2)"),
        (col("s").lower().length(), "LENGTH(LOWER(s))"),
        (col("s").contains("it's"), "CONTAINS(s, 'it\\'s')"),
        (col("s").rlike(r"\d+"), r"s RLIKE '\\d+'"),
        (col("s").like("a%"), "s LIKE 'a%'"),
        (coalesce(col("a"), col("b"), 0), "COALESCE(a, b, 0)"),
        (col("a").eq_null_safe(None), "a <=> NULL"),
        (when(col("a") > 1).then("x").when("b > 2").then("y"), "CASE WHEN a > 1 THEN 'x' WHEN b > 2 THEN 'y' END"),
        (when(col("a") > 1).then(1).otherwise(col("b")), "CASE WHEN a > 1 THEN 1 ELSE b END"),
        (lit(dt.datetime(2013, 1, 1, 6)), "CAST('2013-01-01 06:00:00' AS TIMESTAMP)"),
    ],
)
def test_python_builds_spark_sql(built: Expression, sql: str) -> None:
    assert built.sql == sql
    assert expr(sql).sql == sql


def test_columns_are_named_once_in_order() -> None:
    assert expr("b > a AND b < `Dep Delay`").columns == ("b", "a", "Dep Delay")


def test_repr_and_name() -> None:
    assert repr(col("a") > 1) == "expr('a > 1')"
    assert [col("a").name, (col("a") + 1).alias("next").name, (col("a") + 1).name] == ["a", "next", "a + 1"]


def test_truth_value_is_refused() -> None:
    with pytest.raises(
        ExpressionError, match=r"expression 'a > 1' has no truth value: use & \| ~ instead of and or not"
    ):
        bool(col("a") > 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1", [False, None, True, False, False, True]),
        ("p AND q", [True, None, False, False, None, False]),
        ("p OR q", [True, True, None, True, None, False]),
        ("a / b", [0.5, None, None, -7 / 3, None, -25.0]),
        ("a % b", [1, None, None, -1, None, 0]),
        ("a DIV b", [0, None, None, -2, None, -25]),
        ("a + 9223372036854775807", [None, None, None, 9223372036854775800, 9223372036854775807, None]),
        ("-9223372036854775808 % -1", [0] * 6),
        ("f * 2 <=> 3", [True, False, False, False, False, False]),
        ("a IN (1, NULL)", [True, None, None, None, None, None]),
        ("TRY_CAST(n AS int)", [12, -3, None, None, None, 7]),
        ("CAST(f AS int)", [1, None, 0, -2, 1234, 0]),
        ("CAST(1e300 AS int)", [None] * 6),
        ("hour(t)", [5, None, 23, 23, 0, 12]),
        ("dayofweek(t)", [3, None, 3, 4, 4, 1]),
        ("extract(dayofweek FROM t)", [3, None, 3, 4, 4, 1]),
        ("CAST(f AS string)", ["1.5", None, "0.0", "-2.5", "1234.75", "-0.25"]),
        ("substring(s, -2, 1)", ["a", None, "y", "1", "", "0"]),
        ("'x'", ["x"] * 6),
        ("concat('it''s', '''', \"a''b\", \"c\"\"d\")", ["it's'a''bc\"d"] * 6),
        ("1 + 1", [2] * 6),
        ("NULL", [None] * 6),
    ],
)
def test_values_by_hand(text: str, expected: list[object]) -> None:
    assert values(text) == expected


def plain(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


# DuckDB's concat skips nulls.
DUCKDB_DIFFERS = {"concat(s, '-', n)"}


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if text not in DUCKDB_DIFFERS])
def test_duckdb_gives_the_same(text: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("records", TABLE)
        statement = sqlglot.transpile(f"SELECT {text} AS value FROM records", read="spark", write="duckdb")[0]
        expected = [row[0] for row in connection.execute(statement).fetchall()]
    assert [plain(value) for value in values(text)] == [plain(value) for value in expected]


def test_python_and_text_give_the_same() -> None:
    built = when(col("a") > 1).then(col("a") * 2).otherwise(coalesce(col("b"), 0))
    assert values(built) == values("CASE WHEN a > 1 THEN a * 2 ELSE COALESCE(b, 0) END") == [2, 5, 6, 3, 0, 200]


@pytest.mark.parametrize(
    "stored", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.string()], ids=str
)
def test_text_is_text_however_it_is_stored(stored: pa.DataType) -> None:
    batch = pa.record_batch({"s": pa.array(["a", None, "b"]).cast(stored)})
    assert values("s = 'a'", batch) == [True, None, False]
    assert compile_expression("s", batch.schema).type == stored


@pytest.mark.parametrize(
    "stored", [pa.timestamp("ns"), pa.timestamp("s"), pa.timestamp("ms", "America/New_York")], ids=str
)
def test_parts_of_time_are_those_of_utc(stored: pa.DataType) -> None:
    per_second = {"s": 1, "ms": 1_000, "ns": 1_000_000_000}[stored.unit]
    batch = pa.record_batch({"t": pa.array([7 * 3_600 * per_second], pa.int64()).cast(stored)})
    assert values("hour(t)", batch) == [7]
    assert values("t = TIMESTAMP '1970-01-01 07:00:00'", batch) == [True]


def test_unsigned_and_small_numbers_do_not_wrap() -> None:
    batch = pa.record_batch({"u": pa.array([0, 255], pa.uint8()), "i": pa.array([-128, 127], pa.int8())})
    assert values("u - 1", batch) == [-1, 254]
    assert values("i + i", batch) == [None, None]
    assert values("-u", batch) == [0, -255]


def test_a_bare_column_is_not_copied() -> None:
    result = compile_expression("a", BATCH.schema)(BATCH)
    assert result.buffers()[1].address == BATCH.column("a").buffers()[1].address


def test_an_empty_batch_gives_an_empty_array() -> None:
    assert values("a / b > 1 AND s LIKE 'x%'", BATCH.slice(0, 0)) == []
    assert values("f % 2", BATCH.slice(0, 0)) == []


def test_a_slice_gives_its_own_rows() -> None:
    assert values("f % 2", BATCH.slice(3, 2)) == [-0.5, 0.75]
    assert values("a + 9223372036854775807", BATCH.slice(2, 2)) == [None, 9223372036854775800]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("dep_dely > 15", ": unknown column 'dep_dely': did you mean 'dep_delay'? Valid: at, carrier, dep_delay, list"),
        (
            "Dep_Delay > 15",
            ": unknown column 'Dep_Delay': did you mean 'dep_delay'? Valid: at, carrier, dep_delay, list",
        ),
        (
            "carrier > 15",
            ": cannot compare carrier (string) and 15 (int): convert one, for example CAST(carrier AS int)",
        ),
        (
            "15 > carrier",
            ": cannot compare 15 (int) and carrier (string): convert one, for example CAST(carrier AS int)",
        ),
        (
            "carrier IN (1, 2)",
            ": cannot compare carrier (string) and 1 (int): convert one, for example CAST(carrier AS int)",
        ),
        ("carrier + 1", ": + needs a number, but carrier is string: convert it with CAST(carrier AS double)"),
        (
            "at + 1",
            ": + needs a number, but at is timestamp: take its seconds since 1970, CAST(at AS double), with their "
            "fraction, or shift it by an INTERVAL",
        ),
        (
            "at > 'soon'",
            ": 'soon' is compared with at (timestamp) but is not a time: write it as '2013-01-31 06:00:00'",
        ),
        (
            "at + INTERVAL 1 MONTH",
            ": INTERVAL '1' MONTH is not supported: write INTERVAL '1' HOUR with one of MICROSECOND, MILLISECOND, "
            "SECOND, MINUTE, HOUR, DAY, WEEK",
        ),
        (
            "carrier IN (SELECT 1)",
            ": carrier IN (SELECT 1) contains a subquery, which is not supported: pass a list of values, or use join",
        ),
        (
            "list = list",
            ": cannot compare values of type list<item: int64> in list = list: use map to extract values from them "
            "first",
        ),
        (
            "greatest(list, list)",
            ": it cannot be computed for list (list<item: int64>): use map to extract simple values first",
        ),
        ("list.x", ": list.x reads a field of a struct, which is not supported: use map to extract it first"),
        ("carrier LIKE carrier", ": LIKE needs constant text, but got carrier"),
        (
            "substring(carrier)",
            ": SUBSTRING(carrier) needs the position of the first character: substring(text, position, length)",
        ),
        ("carrier AND TRUE", ": AND needs true or false, but carrier is string: compare it with a value"),
        ("lower(dep_delay)", ": lower needs text, but dep_delay is bigint: convert it with CAST(dep_delay AS string)"),
        ("CAST(dep_delay AS date)", ": dep_delay (bigint) cannot be converted to date"),
        (
            "carrier RLIKE '(?=x)'",
            ": the regular expression '(?=x)' is not valid: write it in RE2's syntax, without look-around",
        ),
        ("sum(dep_delay)", ": SUM(dep_delay) is an aggregate, which needs a window: use it in aggregate(...)"),
        ("dep_delay >", " is incomplete after '>' at position 11: something is missing here"),
        ("floor(", ": an operand is missing"),
        ("date_trunc(", " cannot be read: check for a missing operand, quote or parenthesis"),
        ("least(TRUE)", ": least has 1 arguments, and takes 2 or more: no argument is ignored"),
        ("least(TRUE, FALSE)", ": it cannot be computed for these types: use map to extract simple values first"),
        ("(dep_delay", " lacks ')' after 'dep_delay' at position 2"),
        (
            "dep_delay dep_delay 15",
            " cannot be read at '15', position 21: check for a missing operator, quote or parenthesis",
        ),
        ("carrier = 'AA", " has a quote that is not closed"),
        ("dep_delay, carrier", " is not a single condition or value: leave out SELECT, FROM, WHERE and commas"),
        ("1 FROM t", " is not a single condition or value: leave out SELECT, FROM, WHERE and commas"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_do(text: str, fact: str) -> None:
    schema = pa.schema(
        {
            "dep_delay": pa.int64(),
            "carrier": pa.string(),
            "at": pa.timestamp("us", "UTC"),
            "list": pa.list_(pa.int64()),
        }
    )
    assert message(text, schema) == f"expression {text!r}{fact}"


def test_an_empty_expression_says_what_to_write() -> None:
    assert message(" ") == 'the expression is empty: write a condition or value such as "dep_delay > 15"'


def test_an_expression_that_is_nested_too_deeply_says_so() -> None:
    limits = (
        "nested too deeply: the maximum is 50 levels of brackets, and 100 terms of a sum or a UNION; use IN for many"
    )
    for deep in (" + ".join(1_000 * "a"), f"{1_000 * '('}a{1_000 * ')'}", f"{1_000 * 'NOT '}a", f"{1_000 * 'abs('}a"):
        assert limits in message(deep)
    many = " OR ".join(f"a = {value}" for value in range(1_000))
    assert "it has 1,000 conditions of OR, more than the maximum of 500: use IN for many values" in message(many)


def test_a_long_chain_of_conditions_keeps_its_text_and_its_values() -> None:
    text = " AND ".join(f"a <> {value}" for value in range(500))
    assert expr(text).sql == text
    batch = pa.RecordBatch.from_pydict({"a": [7, 500, None]})
    assert compile_expression(text, batch.schema)(batch).to_pylist() == [False, True, None]


def test_a_text_that_is_too_long_is_not_read() -> None:
    """sqlglot would be busy with it for minutes."""
    said = message("a = 1 OR " * 111_111 + "a = 2")
    assert said == (
        f"the expression {('a = 1 OR ' * 34)[:300]!r}... has 1,000,004 characters, more than the maximum of 100,000: "
        "use col(...).is_in for many values, or join"
    )
    assert message("a + " * 200).startswith(f"expression {('a + ' * 75)!r}... is incomplete after '+'")


@pytest.mark.parametrize("given", ["a = '\ud800'", col("a") == "\ud800", col("\ud800")])
def test_half_of_a_surrogate_pair_is_no_text(given: str | Expression) -> None:
    with pytest.raises(ExpressionError, match="has an unpaired surrogate, which is not a character: remove it"):
        compile_expression(given, pa.schema({"a": pa.string()}))


def test_what_is_built_too_deeply_says_so_whoever_asks_for_its_text() -> None:
    built = col("a")
    for _ in range(600):
        built = -built
    with pytest.raises(ExpressionError, match="nested too deeply"):
        _ = built.sql


def test_a_part_of_a_time_that_extract_does_not_take_names_those_it_does() -> None:
    assert "takes the part 'SECOND': use second(...), which has no fraction" in message("extract(SECOND FROM t)")
    assert "takes the part 'ERA': valid are YEAR, QUARTER, " in message("extract(era FROM t)")


def test_an_unsupported_function_lists_those_that_are() -> None:
    said = message("soundex(s)")
    assert said.startswith("expression 'soundex(s)': SOUNDEX(s) is not supported: supported are arithmetic (+ - * /")
    assert said.endswith("trim, try_divide, unix_timestamp, upper, year")


@pytest.mark.parametrize(
    "text",
    ["to_date(s, 'yyyy')", "CAST(s AS date FORMAT 'yyyy')", "row_number() OVER (ORDER BY a)", "s[0]", "a.b", "*"],
)
def test_what_is_not_understood_whole_is_refused(text: str) -> None:
    assert text.split("(")[0].split(".")[0] in message(text)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_supported_functions_survive_their_own_text(text: str) -> None:
    assert [plain(value) for value in values(expr(text).sql)] == [plain(value) for value in values(text)]


def test_errors_carry_the_users_line() -> None:
    origin = Origin("flights.py", 12, 'flights.filter("nope > 1")')
    with pytest.raises(ExpressionError, match=r"\(flights\.py, line 12: flights\.filter\(\"nope > 1\"\)\)$"):
        compile_expression("nope > 1", BATCH.schema, origin)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: col(""), "col takes a column's name, not ''"),
        (lambda: lit({"a": 1}), "{'a': 1} (dict) cannot be part of an expression"),
        (lambda: col("a").is_in("AA"), "is_in takes a list of values, not the text 'AA': write is_in(['AA'])"),
        (lambda: list(col("a")), "expression 'a' cannot be iterated"),
        (lambda: col("a").cast("nonsense"), "nonsense"),
    ],
)
def test_building_errors(build: Callable[[], object], said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        build()
    assert said in str(caught.value)


numbers = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=30)


@given(numbers, st.integers(-(2**31), 2**31 - 1))
def test_integer_arithmetic_is_exact_or_null(column: list[int | None], other: int) -> None:
    batch = pa.record_batch({"x": pa.array(column, pa.int64())})

    def exact(function: Callable[[int], int | None]) -> list[int | None]:
        results = [None if x is None else function(x) for x in column]
        return [y if y is not None and -(2**63) <= y < 2**63 else None for y in results]

    assert values(col("x") + other, batch) == exact(lambda x: x + other)
    assert values(col("x") * other, batch) == exact(lambda x: x * other)
    assert values(col("x") % other, batch) == exact(
        lambda x: int(math.copysign(1, x)) * (abs(x) % abs(other)) if other else None
    )


@given(st.lists(st.one_of(st.none(), st.text(max_size=6)), max_size=20), st.text("ab%_.*", max_size=5))
def test_like_matches_as_its_two_wildcards_say(column: list[str | None], pattern: str) -> None:
    def matches(text: str, rest: str) -> bool:
        if not rest:
            return not text
        if rest[0] == "%":
            return any(matches(text[start:], rest[1:]) for start in range(len(text) + 1))
        return bool(text) and rest[0] in ("_", text[0]) and matches(text[1:], rest[1:])

    batch = pa.record_batch({"s": pa.array(column, pa.string())})
    assert values(col("s").like(pattern), batch) == [
        None if text is None else matches(text, pattern) for text in column
    ]


@pytest.mark.parametrize("name", ["", 3])
def test_an_alias_is_a_name(name: object) -> None:
    with pytest.raises(ExpressionError, match="alias takes a column's name"):
        col("n").alias(name)  # type: ignore[arg-type]


COMPARE = {"=": op.eq, "<>": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
FLOAT = st.one_of(st.none(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0]), st.floats())


def rank(value: float) -> tuple[bool, float]:
    """Spark's order: NaN is larger than any number."""
    return (True, 0.0) if math.isnan(value) else (False, value)


@given(st.lists(st.tuples(FLOAT, FLOAT), min_size=1, max_size=30))
def test_floats_are_ordered_as_spark_orders_them(pairs: list[tuple[float | None, float | None]]) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    batch = pa.record_batch({"a": pa.array(first, pa.float64()), "b": pa.array(second, pa.float64())})
    for word, compare in COMPARE.items():
        expected = [None if a is None or b is None else compare(rank(a), rank(b)) for a, b in pairs]
        assert values(f"a {word} b", batch) == expected, word


@given(st.lists(FLOAT, min_size=1, max_size=30), st.floats())
def test_floats_are_compared_with_a_number_on_either_side(column: list[float | None], number: float) -> None:
    batch = pa.record_batch({"a": pa.array(column, pa.float64())})
    for word, compare in COMPARE.items():
        right = [None if a is None else compare(rank(a), rank(number)) for a in column]
        left = [None if a is None else compare(rank(number), rank(a)) for a in column]
        assert values(f"a {word} {lit(number).sql}", batch) == right, word
        assert values(f"{lit(number).sql} {word} a", batch) == left, word


def test_replacing_no_text_at_all_gives_the_text_as_it_is() -> None:
    """As Spark's UTF8String.replace does; Arrow's kernel takes memory until there is none."""
    words = wb.Stream.from_table(pa.table({"w": ["abc", "", None]}))
    found = words.select(r="replace(w, '', 'x')").collect().column("r").to_pylist()
    assert found == ["abc", "", None]


def test_parts_of_json_as_text() -> None:
    texts = [
        '{"a": {"b": [1, 2.50, "x"]}, "c": true}',
        "[1, 2",
        "[1, 2] ",
        None,
        '{"a": null}',
        '{"a": NaN}',
        "9" * 5_000,
    ]
    batch = pa.record_batch({"s": texts})

    def found(text: str) -> list[object]:
        made: list[object] = compile_expression(text, batch.schema)(batch).to_pylist()
        return [value for value in made if value is not None]

    assert found("get_json_object(s, '$.a.b[1]')") == ["2.5"]
    assert found("get_json_object(s, '$.a')") == ['{"b":[1,2.5,"x"]}']
    assert found("json_value(s, '$.a')") == []
    assert found("get_json_object(concat('[null, ', length(s), ']'), '$[0]')") == ["null"] * 6  # as in Spark
    assert found("json_value(concat('[null, ', length(s), ']'), '$[0]')") == []
    assert found("json_value(s, '$.a.b[2]')") == ["x"]
    assert found("json_array_length(s)") == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("get_json_object(s, s)", "needs a constant path"),
        ("get_json_object(s, '$[*].a')", "a path has names and places from 0"),
        ("json_value(s)", "takes text and a path"),
        ("json_array_length(s, 1)", "takes one text"),
    ],
)
def test_a_path_that_cannot_be_followed_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        compile_expression(text, pa.schema({"s": pa.string()}))
