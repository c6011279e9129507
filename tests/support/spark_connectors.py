"""Sources and sinks of every kind that a job on Spark reads and writes in one query, and what they hold at the end.

The servers belong to the test. The job finds their addresses in a file, and the password in the environment.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import kafka_server
import nats_server
import postgresql_server
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import redis_server

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.connectors.replay.log import write_log

ROWS = 700
"""Of each source."""
COLUMNS = {"source": pa.string(), "n": pa.int64()}
SOURCES = ("files", "parquet", "log", "postgresql", "kafka", "redis", "nats")
EXPECTED = Counter((source, n) for source in SOURCES for n in range(ROWS))
PLACES = "places.json"
PASSWORDS = {"WB_PG_PASSWORD": "pa55word"}


class Servers:
    """The servers, with rows to read.

    Args:
        folder: of the job.
        until_end: stops the servers.
    """

    def __init__(self, folder: Path, until_end: ExitStack) -> None:
        self.folder = folder
        self.postgresql = until_end.enter_context(postgresql_server.running())
        self.kafka = until_end.enter_context(kafka_server.running())
        self.redis = until_end.enter_context(redis_server.running())
        self.nats = until_end.enter_context(nats_server.running())
        self._fill()
        places = {
            "postgresql": self.postgresql.url.replace(PASSWORDS["WB_PG_PASSWORD"], "${WB_PG_PASSWORD}"),
            "kafka": self.kafka.servers,
            "redis": self.redis.url,
            "nats": self.nats.url,
        }
        (folder / PLACES).write_text(json.dumps(places))

    def _fill(self) -> None:
        def messages(source: str) -> list[bytes | None]:
            return [b'{"source": "%s", "n": %d}' % (source.encode(), n) for n in range(ROWS)]

        table = pa.table({"source": ["files"] * ROWS, "n": range(ROWS)})
        (self.folder / "in").mkdir()
        for part in range(2):
            pc.write_csv(table.slice(part * ROWS // 2, ROWS // 2), self.folder / "in" / f"{part}.csv")
        pq.write_table(pa.table({"source": ["parquet"] * ROWS, "n": range(ROWS)}), self.folder / "in.parquet")
        times = pa.array(range(ROWS), pa.timestamp("us", "UTC"))
        logged = pa.table({"source": ["log"] * ROWS, "n": range(ROWS), "t": times})
        write_log(logged, self.folder / "log", event_time="t", arrival_time="t", channels=2)
        self.postgresql.query("CREATE TABLE numbers (id bigint PRIMARY KEY, source text NOT NULL, n bigint NOT NULL)")
        self.postgresql.query(f"INSERT INTO numbers SELECT g, 'postgresql', g - 1 FROM generate_series(1, {ROWS}) AS g")
        self.kafka.topic(2, "in")
        self.kafka.topic(2, "out")
        self.kafka.send("in", messages("kafka"), 2)
        self.nats.stream("in")
        self.nats.stream("out")
        self.nats.send("in", [each for each in messages("nats") if each is not None])
        with redis_server.client_of(self.redis) as client:
            pipe = client.pipeline()
            for n in range(ROWS):
                pipe.xadd("in", {"source": "redis", "n": n})
            pipe.execute()

    def written(self) -> dict[str, Counter[tuple[str, int]]]:
        """The rows of each sink."""
        folder, found = self.folder, {}
        query = "SELECT source, n FROM numbers"
        with sqlite3.connect(folder / "out.sqlite") as database:
            found["sqlite"] = Counter(database.execute(query).fetchall())
            found["sqlite by key"] = Counter(database.execute("SELECT source, n FROM latest").fetchall())
        with duckdb.connect(str(folder / "out.duckdb"), read_only=True) as connection:
            found["duckdb"] = Counter(connection.execute(query).fetchall())
        found["postgresql"] = Counter(self.postgresql.query("SELECT source, n FROM out"))
        files = pa.concat_tables(pc.read_csv(part) for part in sorted((folder / "csv").glob("part-*")))
        found["files"] = _counted(files.to_pylist())
        parts = pa.concat_tables(pq.read_table(part) for part in sorted((folder / "parquet").glob("part-*")))
        found["parquet"] = _counted(parts.to_pylist())
        found["kafka"] = _counted([json.loads(message.value()) for message in self.kafka.messages("out", 2)])
        with redis_server.client_of(self.redis) as client:
            rows = [{key.decode(): value.decode() for key, value in row.items()} for _, row in client.xrange("out")]
            found["redis"] = Counter((row["source"], int(row["n"])) for row in rows)
        found["nats"] = _counted([json.loads(value) for _, value in self.nats.messages("out")])
        return found


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """All of them; skips the test where one is missing."""
    with ExitStack() as until_end:
        yield Servers(folder, until_end)


def _counted(rows: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((row["source"], row["n"]) for row in rows)


def everything(folder: Path) -> Pipeline:
    """Each row of each source in each sink."""
    places = json.loads((folder / PLACES).read_text())
    key = {"id": pa.int64()}
    options = {"fetch.wait.max.ms": "10"}
    read = [
        wb.Stream.from_files(folder / "in", COLUMNS),
        wb.Stream.from_files(folder / "in.parquet"),
        wb.Stream.replay(folder / "log").select("source", "n"),
        wb.Stream.from_source(wb.SqlSource(places["postgresql"], "numbers", {**key, **COLUMNS}, bounded=True)),
        wb.Stream.from_source(wb.KafkaSource(places["kafka"], "in", COLUMNS, bounded=True, options=options)),
        wb.Stream.from_source(wb.RedisSource(places["redis"], "in", COLUMNS, bounded=True)),
        wb.Stream.from_source(wb.NatsSource(places["nats"], "in", COLUMNS, bounded=True)),
    ]
    first, *others = [each.select("source", "n") for each in read]
    rows = first.union(*others)

    def noted(batch: pa.RecordBatch) -> None:
        with (folder / "called.jsonl").open("a") as lines:
            lines.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())

    sinks = [
        wb.SqlSink(f"sqlite:///{folder}/out.sqlite", "numbers"),
        wb.SqlSink(f"sqlite:///{folder}/out.sqlite", "latest", upsert_key=("source", "n")),
        wb.SqlSink(f"duckdb:///{folder}/out.duckdb", "numbers"),
        wb.SqlSink(places["postgresql"], "out"),
        wb.FileSink(folder / "csv", format="csv"),
        wb.ParquetSink(folder / "parquet"),
        wb.KafkaSink(places["kafka"], "out", key="n", delivery="exactly-once"),
        wb.RedisSink(places["redis"], "out"),
        wb.NatsSink(places["nats"], "out", "out.rows", delivery="exactly-once"),
        wb.CallbackSink(noted),
    ]
    whole, *more = [rows.sink_to(sink) for sink in sinks]
    for each in more:
        whole = whole + each
    return whole
