"""The same expressions on Spark give the same results; Spark's own text of each expression is what runs there."""

from __future__ import annotations

import datetime as dt
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from expression_table import EXPRESSIONS, TABLE

from workbench.expressions import compile_expression, expr

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

_JSON = """concat('{"a": {"b": [1.50, ', a, ', "', s, '", null, true, 1e20]}, "c d": [ ]} x')"""

_PLACES = [f"$.a.b[{at}]" for at in range(7)]

# Where DuckDB differs from Spark, only Spark can be asked.
SPARK_ONLY = [
    "a DIV b",
    "dayofweek(t)",
    *(f"extract({part} FROM t)" for part in ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "DAYOFWEEK", "HOUR", "MINUTE")),
    "date_trunc('hour', t)",
    "date_trunc('week', t)",
    "CAST(f AS string)",
    "CAST(f * 1e9 AS string)",
    "CAST(f / 1e6 AS string)",
    "CAST(f AS int)",
    "CAST(f AS bigint)",
    "TRY_CAST(n AS int)",
    "TRY_CAST(n AS double)",
    "CAST(t AS string)",
    "CAST(t AS bigint)",
    "TRY_CAST(n AS boolean)",
    "TRY_CAST(concat('2013-0', n) AS timestamp)",
    "CAST('2013-01-01T06:00:00+02:00' AS timestamp)",
    "CAST(a AS timestamp)",
    "unix_timestamp(t)",
    "to_date(t)",
    "round(ln(a), 9)",
    "round(exp(b), 9)",
    "s LIKE '%100\\\\%'",
    "s LIKE '%100!%' ESCAPE '!'",
    "s NOT LIKE '%100!%' ESCAPE '!'",
    "s NOT RLIKE '^[a-z]'",
    "n RLIKE '\\\\d'",
    "'it\\'s' = 'x'",
    "coalesce(s, 'it''s ''')",
    """coalesce(s, "it''s ""x")""",
    "coalesce(s, 'a' 'b')",
    "-5 % 3",
    "a IS DISTINCT FROM b",
    "isnan(f)",
    "date_format(t, 'yyyy-MM-dd')",
    "date_format(t, 'HH:mm:ss')",
    "date_format(d, 'dd.MM.yyyy')",
    "split(n, '[.]')[0]",
    "split(s, 'b')[1]",
    "NULLIF(regexp_extract(s, '([a-z])([a-z])', 2), '')",
    "NULLIF(regexp_extract(s, '[A-Z][a-z]', 0), '')",
    "regexp_count(s, '[a-z]')",
    *(f"get_json_object({_JSON}, '{path}')" for path in ("$", "$.a", "$.a.b", "$.b", *_PLACES)),
    "get_json_object(concat('{\"c d\": {\"e\": ', n, '}'), '$[\\'c d\\'].e')",
    "get_json_object(concat('[', a, ', {\"x\":\"', s, '\"}]'), '$[1].x')",
    "get_json_object(s, '$.a')",
    "get_json_object(n, '$')",
    "json_array_length(concat('[', a, ', ', n, ']'))",
    "json_array_length(n)",
]


@pytest.fixture(scope="module")
def spark_rows() -> Iterator[dict[str, list[Any]]]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("expressions")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "768m",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    frame = session.createDataFrame(TABLE).coalesce(1)
    texts = [*EXPRESSIONS, *SPARK_ONLY]
    table = frame.selectExpr(*[f"{expr(text).sql} AS `{index}`" for index, text in enumerate(texts)]).toArrow()
    yield {text: table.column(str(index)).to_pylist() for index, text in enumerate(texts)}
    session.stop()


def plain(value: Any) -> Any:
    """A value in a form that is equal exactly when the results are: times in UTC, numbers as floats."""
    if isinstance(value, dt.datetime) and value.tzinfo:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "NaN" if math.isnan(value) else float(value)
    if type(value).__name__ == "Decimal":
        return float(value)
    return value


@pytest.mark.parametrize("text", [*EXPRESSIONS, *SPARK_ONLY])
def test_spark_gives_the_same(text: str, spark_rows: dict[str, list[Any]]) -> None:
    ours = compile_expression(text, TABLE.schema)(TABLE.to_batches()[0]).to_pylist()
    assert [plain(value) for value in ours] == [plain(value) for value in spark_rows[text]]
