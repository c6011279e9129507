"""Queries of the Nexmark benchmark in their public texts: DuckDB computes the same rows from random events."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from rescaled import rescaled
from sql_queries import counted

import workbench as wb
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.nexmark.queries import Q

SECOND = 1_000_000
_TIME = pa.timestamp("us")

SIDE = pa.table({"key": pa.array(range(1200, 1800), pa.int64()), "value": [f"value {at}" for at in range(600)]})
DUCK = {name: ANSWERS[name] for name in ("q0", "q1", "q2", "q5", "q7", "q8", "q11", "q12", "q13")}


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
    return wb.sql(Q[name], **streams, side_input=SIDE)


def of_duckdb(name: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for table, rows in {**events(), "side_input": SIDE}.items():
            connection.register(table, rows)
        return counted(connection.execute(DUCK[name]).fetchall())


def of_job(name: str, job: wb.types.Job) -> Counter[tuple[Any, ...]]:
    assert job.wait("60s") == "FINISHED"
    if name == "q12":
        return of_clock(job.table("rows"))
    return counted([tuple(row.values()) for row in job.table("rows").to_pylist()])


def of_clock(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """The bids of each bidder over all windows of the clock, which are ten seconds long."""
    lengths = {
        end - start for start, end in zip(rows["starttime"].to_pylist(), rows["endtime"].to_pylist(), strict=True)
    }
    assert lengths == {dt.timedelta(seconds=10)}
    assert {start.second % 10 for start in rows["starttime"].to_pylist()} == {0}
    totals: Counter[int] = Counter()
    for row in rows.to_pylist():
        totals[row["bidder"]] += row["bid_count"]
    return counted(list(totals.items()))


@pytest.mark.parametrize("name", DUCK)
def test_a_query_in_its_public_text_gives_the_rows_of_duckdb(name: str) -> None:
    expected = of_duckdb(name)
    assert len(expected) > 5
    for parallelism in (1, 2, 3):
        assert of_job(name, planned(name).sink_to(wb.TableSink("rows")).run(name, parallelism=parallelism)) == expected


@pytest.mark.parametrize("name", ["q5", "q7", "q8", "q11", "q12", "q13"])
def test_a_query_continues_at_another_parallelism(name: str) -> None:
    job = rescaled(planned(name, rate=30).sink_to(wb.TableSink("rows")), name)
    assert of_job(name, job) == of_duckdb(name)
