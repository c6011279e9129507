"""Arroyo's tests of SQL: the rows of its golden outputs, also after a job continues with another parallelism.

Source of inputs and rows: ArroyoSystems/arroyo, crates/arroyo-sql-testing (MIT or Apache-2.0). `arroyo_cars.parquet`
has its cars without their locations, `arroyo_rows.json` the rows that no formula here gives. The protocol is Arroyo's
as well: a run at once; then a run that takes three checkpoints, and another that goes on from the last of them with
three subtasks in place of two. There each query is a job of its own, here all are one.

Translated from Arroyo's dialect: windows in SELECT (``tumble(interval '1 hour') as window``) are window table
functions here, and ``window.start`` is ``window_start``. A table without a connector, which one statement fills and the
next one reads, is a view. A sink of Debezium's format is a table with the key that Arroyo names in a comment. The
operator ``->`` gives JSON, `get_json_object` the text in it. Functions in Rust are functions in Python, called by
methods of the stream: `map_batches`, `lookup_async` and `window(...).apply(...)`. So is `array_agg`, which SQL here
does not have.

Left out: debezium_agg and debezium_pass_through, since no source here reads Debezium's format; nexmark_q5, whose bids
are not in the repository; of every_aggregate all but avg, count, max, min, sum and what they can express. Arroyo
refuses the joins with groups and a hop that does not divide its size: they work here, and give the rows of its golden
outputs. The inner join with groups has no golden output; its rows are those of the right join.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb

Row = tuple[Any, ...]
_HERE = Path(__file__).parent
_GOLDEN = json.loads((_HERE / "arroyo_rows.json").read_text(encoding="utf-8"))
_CARS = pq.read_table(_HERE / "arroyo_cars.parquet")
_BEGIN = dt.datetime(2023, 10, 9, 17, 13, 20)
_COUNTERS = range(100)


def _at(second: float) -> dt.datetime:
    """A time of the impulses, of which there are five in a second."""
    return _BEGIN + dt.timedelta(seconds=second)


_IMPULSES = pa.table(
    {
        "timestamp": pa.array([_at(n / 5) for n in _COUNTERS], pa.timestamp("ms")),
        "counter": pa.array(_COUNTERS, pa.int64()),
        "subtask_index": pa.array([0] * len(_COUNTERS), pa.int64()),
    }
)


class Query(NamedTuple):
    """What a table declares, the query that fills it, and the rows that remain."""

    columns: str
    text: str
    rows: list[Row]


def golden(name: str) -> list[Row]:
    return [tuple(_read(value) for value in row) for row in _GOLDEN[name]]


def _read(value: Any) -> Any:
    return dt.datetime.fromisoformat(value) if isinstance(value, str) and value.startswith("20") else value


def hopping(step: str, size: str, rows: list[Row]) -> Query:
    """The driver with most events of each window."""
    return Query(
        "start_time TIMESTAMP, driver_id BIGINT, events BIGINT",
        f"""SELECT window_start, driver_id, events FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY events DESC, driver_id DESC)
                AS place
            FROM (
                SELECT window_start, window_end, driver_id, COUNT(*) AS events
                FROM HOP(cars, timestamp, INTERVAL {step}, INTERVAL {size})
                GROUP BY window_start, window_end, driver_id))
        WHERE place = 1""",
        rows,
    )


def of_hours(side: str, hour: str, rows: list[Row]) -> Query:
    """How many drivers drop somebody off in an hour, beside those who pick somebody up."""
    drivers = """(
        SELECT window_start, window_end, COUNT(DISTINCT driver_id) AS drivers
        FROM TUMBLE(cars, timestamp, INTERVAL '1' HOUR) WHERE event_type = '{}' GROUP BY window_start, window_end)"""
    return Query(
        "hour_start TIMESTAMP, dropoffs BIGINT, pickups BIGINT",
        f"""SELECT {hour}, d.drivers, p.drivers AS others FROM {drivers.format("dropoff")} AS d
        {side} JOIN {drivers.format("pickup")} AS p
        ON d.window_start = p.window_start AND d.window_end = p.window_end""",
        rows,
    )


def with_groups(side: str, rows: list[Row]) -> Query:
    """The first impulses, beside groups that count as many."""
    return Query(
        "left_counter BIGINT, counter_mod_2 BIGINT, right_count BIGINT",
        f"""SELECT counter, counter_mod_2, right_count FROM impulse {side} JOIN (
            SELECT counter % 2 AS counter_mod_2, COUNT(*) AS right_count FROM impulse WHERE counter < 3 GROUP BY 1)
        ON counter = right_count WHERE counter < 3""",
        rows,
    )


_SIZES = [10, 20, 30, 40, *[50] * 6, 40, 30, 20, 10]
_DRIVERS, _TYPES = _CARS["driver_id"].to_pylist(), _CARS["event_type"].to_pylist()
_TIMES = _CARS["timestamp"].to_pylist()
_MATCHED = [(1, 1, 1), (2, 0, 2)]
_HOUR = "INTERVAL '1' HOUR"

QUERIES = {
    "aggregates": Query(
        "least BIGINT, most BIGINT, total BIGINT, rows_read BIGINT, mean DOUBLE",
        "SELECT MIN(counter), MAX(counter), SUM(counter), COUNT(*), AVG(counter) FROM impulse",
        [(0, 99, 4950, 100, 49.5)],
    ),
    "grouped_aggregates": Query(
        "counter_mod BIGINT PRIMARY KEY, least BIGINT, most BIGINT, total BIGINT, rows_read BIGINT, mean DOUBLE",
        """SELECT counter % 5, MIN(counter), MAX(counter), SUM(counter), COUNT(*), AVG(counter) FROM impulse
        GROUP BY 1""",
        [(n, n, 95 + n, 950 + 20 * n, 20, 47.5 + n) for n in range(5)],
    ),
    "filter_updating_aggregates": Query(
        "subtasks BIGINT",
        """SELECT * FROM (SELECT COUNT(DISTINCT subtask_index) AS subtasks FROM impulse) WHERE subtasks >= 1""",
        [(1,)],
    ),
    "global_session_window": Query(
        "start_time TIMESTAMP, end_time TIMESTAMP, rows_read BIGINT",
        """SELECT window_start, window_end, COUNT(*)
        FROM SESSION(TABLE impulse, timestamp, INTERVAL '20' SECOND) GROUP BY window_start, window_end""",
        [(_at(0), _at(39.8), 100)],
    ),
    "session_window": Query(
        "start_time TIMESTAMP, end_time TIMESTAMP, user_id BIGINT, rows_read BIGINT",
        """SELECT SESSION_START(timestamp, INTERVAL '20' SECOND), SESSION_END(timestamp, INTERVAL '20' SECOND),
            CASE WHEN counter % 10 = 0 THEN 0 ELSE counter END AS user_id, COUNT(*)
        FROM impulse GROUP BY SESSION(timestamp, INTERVAL '20' SECOND), user_id""",
        [(_at(0), _at(38), 0, 10), *((_at(n / 5), _at(n / 5 + 20), n, 1) for n in _COUNTERS if n % 10)],
    ),
    "sliding_window_end": Query(
        "rows_read BIGINT, least BIGINT, most BIGINT, start_time TIMESTAMP, end_time TIMESTAMP",
        """SELECT COUNT(*), MIN(counter), MAX(counter), window_start, window_end
        FROM HOP(impulse, timestamp, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY window_start, window_end""",
        [
            (size, max(10 * at - 40, 0), min(10 * at + 9, 99), _at(2 * at - 8), _at(2 * at + 2))
            for at, size in enumerate(_SIZES)
        ],
    ),
    "offset_impulse_join": Query(
        "start_time TIMESTAMP, counter BIGINT",
        """SELECT a.window_start, a.counter FROM (
            SELECT window_start, counter, COUNT(*) AS n FROM TUMBLE(impulse, timestamp, INTERVAL '1' SECOND)
            GROUP BY window_start, window_end, counter) AS a
        JOIN (
            SELECT counter, COUNT(*) AS n FROM TUMBLE(delayed, timestamp, INTERVAL '1' SECOND)
            GROUP BY window_start, window_end, counter) AS b
        ON a.counter = b.counter""",
        [(_at(n // 5), n) for n in _COUNTERS],
    ),
    "union_all": Query(
        "counter BIGINT, source STRING",
        """SELECT counter, 'first' AS source FROM impulse UNION ALL SELECT counter, 'second' AS source FROM impulse""",
        [(n, source) for n in _COUNTERS for source in ("first", "second")],
    ),
    "debezium_coercion": Query("counter BIGINT PRIMARY KEY", "SELECT counter FROM impulse", [(n,) for n in _COUNTERS]),
    "unnest_in_view": Query("counter BIGINT", "SELECT counter FROM unnested", [(n,) for n in _COUNTERS]),
    "double_negative_udf": Query("counter BIGINT", "SELECT counter FROM negatives", [(-2 * n,) for n in _COUNTERS]),
    "async_udf": Query("counter BIGINT", "SELECT twice FROM slow_negatives", [(-2 * n,) for n in _COUNTERS]),
    "udaf": Query(
        "median BIGINT, none_value DOUBLE, max_product BIGINT",
        "SELECT CAST(median AS BIGINT), none_value, max_product FROM medians",
        [(49, None, 0)],
    ),
    "updating_inner_join": Query(
        "left_count BIGINT, right_count BIGINT",
        "SELECT a.counter, b.counter AS other FROM impulse AS a JOIN impulse_odd AS b ON a.counter = b.counter",
        [(n, n) for n in _COUNTERS if n % 2],
    ),
    "updating_inner_join_with_updating": with_groups("INNER", _MATCHED),
    "updating_left_join": with_groups("LEFT", [(0, None, None), *_MATCHED]),
    "updating_right_join": with_groups("RIGHT", _MATCHED),
    "updating_full_join": with_groups("FULL OUTER", [(0, None, None), *_MATCHED]),
    "active_drivers": Query(
        "drivers BIGINT",
        "SELECT COUNT(*) FROM (SELECT driver_id, COUNT(*) AS n FROM cars GROUP BY driver_id HAVING COUNT(*) > 85)",
        [(8,)],
    ),
    "cast_to_sink_type": Query(
        "event_time TIMESTAMP, driver_id STRING",
        "SELECT timestamp, driver_id FROM cars",
        [(time, str(driver)) for time, driver in zip(_TIMES, _DRIVERS, strict=True)],
    ),
    "every_aggregate": Query(
        """event_type STRING PRIMARY KEY, mean DOUBLE, every_one BOOLEAN, any_one BOOLEAN, n BIGINT, most BIGINT,
        least BIGINT, total BIGINT, drivers BIGINT""",
        """SELECT event_type, ROUND(AVG(driver_id), 4), COUNT(*) FILTER (WHERE NOT driver_id > 0) = 0,
            COUNT(*) FILTER (WHERE driver_id > 0) > 0, COUNT(*), MAX(driver_id), MIN(driver_id), SUM(driver_id),
            COUNT(DISTINCT driver_id)
        FROM cars GROUP BY event_type""",
        [(kind, 150.2736, True, True, 3966, 200, 100, 595985, 101) for kind in ("pickup", "dropoff")],
    ),
    "hourly_by_event_type": Query(
        "event_type STRING, hour_start TIMESTAMP, n BIGINT",
        f"""SELECT event_type, window_start, COUNT(*) FROM TUMBLE(cars, timestamp, {_HOUR})
        GROUP BY event_type, window_start, window_end""",
        golden("hourly_by_event_type"),
    ),
    "json_operators": Query(
        "a STRING, b STRING, c STRING, d STRING",
        """SELECT 'test', get_json_object(value, '$.driver_id'), get_json_object(value, '$.event_type'),
            get_json_object(value, '$.not_a_field') FROM texts""",
        [("test", str(driver), kind, None) for driver, kind in zip(_DRIVERS, _TYPES, strict=True)],
    ),
    "memory_table": Query(
        "driver_id BIGINT, event_type STRING",
        "SELECT driver_id AS other_driver_id, event_type FROM memory",
        list(zip(_DRIVERS, _TYPES, strict=True)),
    ),
    "month_loose_watermark": Query(
        "month_start TIMESTAMP, n BIGINT",
        """SELECT window_start, COUNT(*) FROM TUMBLE(cars, timestamp, INTERVAL '30' DAY)
        GROUP BY window_start, window_end""",
        [(dt.datetime(2023, 8, 21), 7932)],
    ),
    "most_active_driver_last_hour": hopping(
        "'1' MINUTE",
        "'1' HOUR",
        [
            (dt.datetime(2023, 9, 18, 13, 24) + dt.timedelta(minutes=at), driver, events)
            for at, (driver, events) in enumerate(_GOLDEN["most_active_driver_last_hour"])
        ],
    ),
    "most_active_driver_last_hour_unaligned": hopping(
        "'40' MINUTE", "'60' MINUTE", golden("most_active_driver_last_hour_unaligned")
    ),
    "reinvoke_window_function": Query(
        "start_time TIMESTAMP, end_time TIMESTAMP, drivers BIGINT",
        f"""SELECT window_start, window_end, COUNT(DISTINCT driver_id) FROM (
            SELECT window_start, window_end, driver_id, COUNT(*) AS pickups
            FROM TUMBLE(cars, timestamp, {_HOUR}) WHERE event_type = 'pickup'
            GROUP BY window_start, window_end, driver_id)
        WHERE pickups > 2 GROUP BY window_start, window_end""",
        golden("reinvoke_window_function"),
    ),
    "select_star": Query(
        "event_time TIMESTAMP, driver_id BIGINT, event_type STRING",
        "SELECT * FROM cars",
        list(zip(_TIMES, _DRIVERS, _TYPES, strict=True)),
    ),
    "test_merge_sink": Query(
        "event_time TIMESTAMP, driver_id BIGINT, event_type STRING",
        """SELECT * FROM cars WHERE driver_id = 100 AND event_type = 'pickup';
        INSERT INTO test_merge_sink SELECT * FROM cars WHERE driver_id = 101 AND event_type = 'dropoff'""",
        golden("test_merge_sink"),
    ),
    "tight_watermark": Query("end_time TIMESTAMP, n BIGINT", "SELECT * FROM by_hour", golden("tight_watermark")),
    "windowed_inner_join": of_hours("INNER", "d.window_start", golden("windowed_inner_join")),
    "windowed_outer_join": of_hours(
        "FULL OUTER", "COALESCE(d.window_start, p.window_start)", golden("windowed_outer_join")
    ),
}

VIEWS = f"""
    CREATE VIEW impulse_odd AS SELECT * FROM impulse WHERE counter % 2 == 1;
    CREATE VIEW unnested AS SELECT counter FROM lists CROSS JOIN UNNEST(counters) AS c (counter);
    CREATE VIEW memory (event_type, location, driver_id) AS SELECT event_type, 'somewhere', driver_id FROM cars;
    CREATE VIEW by_hour AS SELECT window_end, COUNT(*) AS n FROM TUMBLE(cars, timestamp, {_HOUR})
        GROUP BY window_start, window_end;
    CREATE VIEW texts AS SELECT CONCAT('{{"driver_id": ', driver_id, ', "event_type": "', event_type, '"}}') AS value
        FROM cars;
"""


def negative(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"counter": [-2 * n for n in batch["counter"].to_pylist()]})


async def slow_negative(counter: int) -> dict[str, int]:
    return {"twice": -2 * counter}


def listed(key: object, window: object, records: pa.Table) -> dict[str, Any]:
    return {"counters": records["counter"].to_pylist()}


def of_lists(key: object, window: object, records: pa.Table) -> dict[str, Any]:
    values = sorted(records["counter"].to_pylist())
    products = [a * b for a, b in zip(values, records["subtask_index"].to_pylist(), strict=True)]
    return {"median": (values[49] + values[50]) / 2, "none_value": None, "max_product": max(products)}


@cache
def planned(fast: bool = True) -> wb.types.Pipeline:
    """All queries as one script; otherwise its sources take about a second."""
    rate = None if fast else 100.0
    impulse = wb.Stream.from_table(_IMPULSES, event_time="timestamp", rate=rate)
    longer = impulse.window(wb.tumbling("30d"))
    streams = {
        "impulse": impulse,
        "delayed": wb.Stream.from_table(_IMPULSES, event_time="timestamp", out_of_orderness="10min", rate=rate),
        "cars": wb.Stream.from_table(_CARS, event_time="timestamp", out_of_orderness="1min", rate=rate and 80 * rate),
        "negatives": impulse.map_batches(negative, schema={"counter": pa.int64()}),
        "slow_negatives": impulse.lookup_async(slow_negative, key="counter", schema={"twice": pa.int64()}),
        "lists": impulse.window(wb.tumbling("1d")).apply(listed, {"counters": pa.list_(pa.int64())}),
        "medians": longer.apply(
            of_lists, {"median": pa.float64(), "none_value": pa.float64(), "max_product": pa.int64()}
        ),
    }
    script = [VIEWS]
    for name, query in QUERIES.items():
        script.append(f"CREATE TABLE {name} ({query.columns}) WITH ('connector' = 'memory');")
        script.append(f"INSERT INTO {name} {query.text};")
    return wb.sql_script("\n".join(script), **streams)


def compare(job: wb.types.Job) -> None:
    assert job.wait("120s") == "FINISHED"
    for name, query in QUERIES.items():
        found = [tuple(_plain(value) for value in row.values()) for row in job.table(name).to_pylist()]
        assert Counter(found) == Counter(query.rows), name


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_queries_give_the_rows_of_arroyo(parallelism: int) -> None:
    compare(planned().run("arroyo", parallelism=parallelism))


def test_the_queries_go_on_from_a_checkpoint_at_another_parallelism(tmp_path: Path) -> None:
    job = planned(fast=False).run("arroyo", parallelism=2, checkpoint_dir=tmp_path / "two", checkpoint_interval=None)
    for _ in range(3):
        job.checkpoint()
    saved = job.savepoint("third")
    assert job.state == "RUNNING"
    job.cancel()
    job.wait("60s")
    compare(planned().run("on", restore=saved, parallelism=3, checkpoint_dir=tmp_path / "three"))
