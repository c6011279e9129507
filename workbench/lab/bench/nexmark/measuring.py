"""Nexmark: each query in its public text on the same events, its rows compared with those of DuckDB."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

import workbench as wb
from workbench.lab.bench.measuring.measure import Meter, Result
from workbench.lab.bench.nexmark.answers import ANSWERS, COMPARED
from workbench.lab.bench.nexmark.events import events, side_input
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
        rows: how many rows were compared.
        result: the figures of the measured run; checked if its rows are those of DuckDB.
    """

    query: str
    rows: int
    result: Result

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self.result) | {"rows": self.rows})

    def describe(self) -> str:
        """One line."""
        right = f"{self.rows:,} rows as DuckDB" if self.result.checked else "WRONG ROWS"
        per_cpu_s, per_s = (self.result.eps_cpu_s or 0) / 1e6, self.result.eps / 1e6
        return f"{self.query:4} {per_cpu_s:7.2f} M events per CPU second, {per_s:6.2f} M/s; {right}"


def nexmark(queries: Sequence[str] = (), parallelism: int = 1, count: int = EVENTS) -> Iterator[Measured]:
    """Run queries one after the other.

    Args:
        queries: their names; none: all.
        parallelism: of the measured runs.
        count: of events, in the measured runs.
    """
    whole, part = events(count), events(min(CHECKED, count))
    for name in queries or tuple(ANSWERS):
        rows, exact = compared(name, part)
        yield Measured(name, rows, _measured(name, whole, parallelism, exact))


def stream_of(name: str, tables: Mapping[str, pa.Table]) -> wb.Stream:
    """The stream of a query; columns of equal names get others, and of equal bids in q6 the first one counts."""
    streams: dict[str, wb.Stream | pa.Table] = {
        table: wb.Stream.from_table(rows, event_time="dateTime", out_of_orderness=_DISORDER)
        for table, rows in tables.items()
    }
    if name == "q13":
        streams["side_input"] = side_input()
    text = Q[name].replace("A.`dateTime`, expires, seller", "A.`dateTime` AS opened, expires, seller")
    text = text.replace("ORDER BY B.price)", "ORDER BY B.price, B.`dateTime`)")
    return wb.sql(text.replace("category, A.extra\n", "category, A.extra AS auction_extra\n"), **streams)


def compared(name: str, tables: Mapping[str, pa.Table], parallelism: int = 2) -> tuple[int, bool]:
    """The number of rows of a query, and whether they are those of DuckDB."""
    job = stream_of(name, tables).sink_to(wb.TableSink("rows")).run(f"nexmark-{name}", parallelism=parallelism)
    job.wait()
    rows = job.table("rows")
    rows = rows.rename_columns([f"c{at}" for at in range(rows.num_columns)])
    with needed("duckdb", "comparing the rows of Nexmark").connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, given in {**tables, "side_input": side_input(), "read": rows}.items():
            connection.register(table, given)
        columns = ", ".join(
            f"{field.name}::TIMESTAMP AS {field.name}" if pa.types.is_timestamp(field.type) else field.name
            for field in rows.schema
        )
        connection.execute(f"CREATE VIEW found AS SELECT {columns} FROM read")
        connection.execute(f"CREATE TABLE got AS {COMPARED.get(name, 'FROM found')}")
        connection.execute(f"CREATE TABLE wanted AS {ANSWERS[name]}")
        different = sum(
            connection.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchone()[0]
            for one, other in (("got", "wanted"), ("wanted", "got"))
        )
    return rows.num_rows, different == 0


def _measured(name: str, tables: Mapping[str, pa.Table], parallelism: int, exact: bool) -> Result:
    """The second of two runs."""
    for _ in range(2):
        stream = stream_of(name, tables)
        with Meter() as meter:
            job = stream.sink_to(wb.DiscardSink()).run(f"nexmark-{name}", parallelism=parallelism)
            job.wait()
    count = sum(table.num_rows for table in tables.values())
    return meter.result("nexmark", {"query": name, "p": parallelism}, count, exact)
