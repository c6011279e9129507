"""Queries of the Nexmark benchmark in their public texts: DuckDB computes the same rows from random events."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from nexmark_texts import Q
from sql_queries import counted

import workbench as wb

SECOND = 1_000_000
_TIME = pa.timestamp("us")

_HOPS = """SELECT auction, count(*) AS num, epoch_us(dateTime) // 2000000 - i AS start FROM bid, range(5) AS r(i)
    GROUP BY auction, start"""

DUCK = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908::DOUBLE * price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q5": f"""WITH c AS ({_HOPS}) SELECT auction, num FROM c
        JOIN (SELECT start AS s, max(num) AS most FROM c GROUP BY start) ON start = s AND num = most""",
    "q7": """SELECT auction, price, bidder, dateTime, extra FROM bid
        JOIN (SELECT epoch_us(dateTime) // 10000000 AS w, max(price) AS most FROM bid GROUP BY w) ON price = most
        WHERE dateTime BETWEEN make_timestamp(w * 10000000) AND make_timestamp((w + 1) * 10000000)""",
    "q8": """SELECT DISTINCT person.id, name, make_timestamp(epoch_us(person.dateTime) // 10000000 * 10000000)
        FROM person JOIN auction ON person.id = seller
        AND epoch_us(person.dateTime) // 10000000 = epoch_us(auction.dateTime) // 10000000""",
    "q11": """WITH opened AS (
            SELECT bidder, dateTime, COALESCE(dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime)
                > INTERVAL 10 SECOND, false)::INT AS opens FROM bid),
        numbered AS (
            SELECT *, sum(opens) OVER (PARTITION BY bidder ORDER BY dateTime RANGE UNBOUNDED PRECEDING) AS n
            FROM opened)
        SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECOND FROM numbered GROUP BY bidder, n""",
}


def events() -> dict[str, pa.Table]:
    """Persons, auctions and bids of two minutes: few bidders, so that sessions and hot auctions come up."""
    random = Random(1)

    def times(count: int) -> pa.Array:
        moments = [(at * 120 * SECOND) // count + random.randint(0, 3 * SECOND) for at in range(count)]
        return pa.array(moments, _TIME)

    persons, auctions, bids = 60, 120, 900
    return {
        "person": pa.table(
            {
                "id": pa.array([1000 + at for at in range(persons)], pa.int64()),
                "name": [f"person {at}" for at in range(persons)],
                "dateTime": times(persons),
            }
        ),
        "auction": pa.table(
            {
                "id": pa.array([1000 + at for at in range(auctions)], pa.int64()),
                "seller": [1000 + max(0, at // 2 - random.randint(0, 3)) for at in range(auctions)],
                "dateTime": times(auctions),
            }
        ),
        "bid": pa.table(
            {
                "auction": pa.array([984 + random.randint(0, 25) * 41 for _ in range(bids)], pa.int64()),
                "bidder": pa.array([1000 + random.randint(0, 60) for _ in range(bids)], pa.int64()),
                "price": pa.array([random.randint(100, 9_000) for _ in range(bids)], pa.int64()),
                "extra": [f"extra {at}" for at in range(bids)],
                "dateTime": times(bids),
            }
        ),
    }


def planned(name: str, rate: float | None = None) -> wb.Stream:
    streams = {
        table: wb.Stream.from_table(rows, event_time="dateTime", out_of_orderness="3s", rate=rate)
        for table, rows in events().items()
    }
    return wb.sql(Q[name], **streams)


def of_duckdb(name: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for table, rows in events().items():
            connection.register(table, rows)
        return counted(connection.execute(DUCK[name]).fetchall())


def of_job(job: wb.types.Job) -> Counter[tuple[Any, ...]]:
    assert job.wait("60s") == "FINISHED"
    return counted([tuple(row.values()) for row in job.table("rows").to_pylist()])


@pytest.mark.parametrize("name", DUCK)
def test_a_query_in_its_public_text_gives_the_rows_of_duckdb(name: str) -> None:
    expected = of_duckdb(name)
    assert len(expected) > 5
    for parallelism in (1, 2, 3):
        assert of_job(planned(name).sink_to(wb.TableSink("rows")).run(name, parallelism=parallelism)) == expected


@pytest.mark.parametrize("name", ["q5", "q7", "q8", "q11"])
def test_a_query_continues_at_another_parallelism(name: str) -> None:
    job = planned(name, rate=60 if name == "q8" else 400).sink_to(wb.TableSink("rows")).run(name, parallelism=2)
    time.sleep(0.7)
    assert job.state == "RUNNING"
    job.rescale(3)
    assert of_job(job) == of_duckdb(name)
    assert job.status()["parallelism"] == 3
