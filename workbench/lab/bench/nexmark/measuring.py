"""Nexmark: each query in its public text on the same events, its rows compared with those of DuckDB."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

import workbench as wb
from workbench.lab.bench.nexmark.answers import ANSWERS, COMPARED
from workbench.lab.bench.nexmark.events import events
from workbench.lab.bench.nexmark.queries import Q
from workbench.packages import needed

EVENTS = 1_000_000
CHECKED = 100_000
"""Events of the run whose rows are compared, at parallelism 2."""
_DISORDER = "4s"


@dataclass(frozen=True, slots=True)
class Measured:
    """One query.

    Attributes:
        query: its name.
        events: of all kinds.
        p: the parallelism.
        eps: events per second.
        eps_cpu_s: events per CPU second of the process.
        rows: how many rows were compared.
        exact: whether they are those of DuckDB.
    """

    query: str
    events: int
    p: int
    eps: int
    eps_cpu_s: int
    rows: int
    exact: bool

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {"query": found.pop("query"), "p": found.pop("p")}
        return json.dumps({"peer": "workbench", "workload": "nexmark", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        right = f"{self.rows:,} rows as DuckDB" if self.exact else "WRONG ROWS"
        return f"{self.query:4} {self.eps_cpu_s / 1e6:7.2f} M events per CPU second, {self.eps / 1e6:6.2f} M/s; {right}"


def nexmark(queries: Sequence[str] = (), parallelism: int = 1) -> Iterator[Measured]:
    """Run queries one after the other.

    Args:
        queries: their names; none: all.
        parallelism: of the measured runs.
    """
    whole, part = events(EVENTS), events(CHECKED)
    for name in queries or tuple(ANSWERS):
        rows, exact = compared(name, part)
        seconds, cpu_s = _seconds(name, whole, parallelism)
        yield Measured(name, EVENTS, parallelism, round(EVENTS / seconds), round(EVENTS / cpu_s), rows, exact)


def stream_of(name: str, tables: Mapping[str, pa.Table]) -> wb.Stream:
    """The stream of a query; columns of equal names get others."""
    streams = {
        table: wb.Stream.from_table(rows, event_time="dateTime", out_of_orderness=_DISORDER)
        for table, rows in tables.items()
    }
    text = Q[name].replace("A.`dateTime`, expires, seller", "A.`dateTime` AS opened, expires, seller")
    return wb.sql(text.replace("category, A.extra\n", "category, A.extra AS auction_extra\n"), **streams)


def compared(name: str, tables: Mapping[str, pa.Table], parallelism: int = 2) -> tuple[int, bool]:
    """The number of rows of a query, and whether they are those of DuckDB."""
    job = stream_of(name, tables).sink_to(wb.TableSink("rows")).run(f"nexmark-{name}", parallelism=parallelism)
    job.wait()
    rows = job.table("rows")
    rows = rows.select(list(COMPARED[name])) if name in COMPARED else rows
    rows = rows.rename_columns([f"c{at}" for at in range(rows.num_columns)])
    with needed("duckdb", "comparing the rows of Nexmark").connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, given in {**tables, "found": rows}.items():
            connection.register(table, given)
        columns = ", ".join(
            f"{field.name}::TIMESTAMP AS {field.name}" if pa.types.is_timestamp(field.type) else field.name
            for field in rows.schema
        )
        connection.execute(f"CREATE TABLE got AS SELECT {columns} FROM found")
        connection.execute(f"CREATE TABLE wanted AS {ANSWERS[name]}")
        different = sum(
            connection.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchone()[0]
            for one, other in (("got", "wanted"), ("wanted", "got"))
        )
    return rows.num_rows, different == 0


def _seconds(name: str, tables: Mapping[str, pa.Table], parallelism: int) -> tuple[float, float]:
    """Wall time and CPU time of the second of two runs."""
    for _ in range(2):
        stream = stream_of(name, tables)
        wall, cpu = time.perf_counter(), time.process_time()
        job = stream.sink_to(wb.DiscardSink()).run(f"nexmark-{name}", parallelism=parallelism)
        job.wait()
        found = time.perf_counter() - wall, time.process_time() - cpu
    return found
