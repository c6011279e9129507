"""A table read from PostgreSQL's log under kill -9 at random moments, while others write to it: nothing is lost or
there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import psycopg
import pytest
from postgresql_server import PostgresProcess, running
from waiting import until

KILLS = int(os.environ.get("WORKBENCH_KILLS", "4"))
SEED = int(os.environ.get("WORKBENCH_SEED", "1"))
WRITERS = 4
KEYS = 3_000

RUN = """
import json, sys
from pathlib import Path
import pyarrow as pa
import workbench as wb

url, folder, parallelism, bounded = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "bounded"
schema = {"id": pa.int64(), "g": pa.int32(), "n": pa.int64(), "large": pa.string()}
rows = wb.Stream.from_source(
    wb.PostgresLogSource(url, "t", schema, slot="kills", publication="p", bounded=bounded, chunk_rows=150)
).uid("rows")
groups = rows.group_by("g").aggregate(c=wb.count(), total=wb.sum("n")).uid("groups")
job = (rows.sink_to(wb.TableSink("t")) + groups.sink_to(wb.TableSink("groups"))).run(
    "kills", parallelism=parallelism, checkpoint_interval="50ms", checkpoint_dir=folder, resume=True
)
print("started", flush=True)
state = job.wait()
tables = {name: [list(row.values()) for row in job.table(name).to_pylist()] for name in ("t", "groups")}
print(json.dumps([state, tables]), flush=True)
"""


class Writers:
    """Threads that change the table, each transaction in another way."""

    def __init__(self, url: str) -> None:
        self._url, self._over = url, threading.Event()
        self.transactions = 0
        self._threads = [threading.Thread(target=self._write, args=(seed,)) for seed in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, seed: int) -> None:
        chance = Random(f"{SEED} {seed}")
        with psycopg.connect(self._url, autocommit=True) as database:
            while not self._over.is_set():
                with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, _BackOutError):
                    with database.transaction():
                        self._change(database, chance)
                        if chance.random() < 0.15:
                            raise _BackOutError
                    self.transactions += 1
                self._over.wait(chance.random() * 0.01)

    def _change(self, database: psycopg.Connection, chance: Random) -> None:
        for _ in range(chance.randrange(1, 4)):
            key, kind = chance.randrange(KEYS), chance.random()
            if kind < 0.3:
                database.execute(
                    "INSERT INTO t VALUES (%s, %s, 1, repeat('y', 3000)) ON CONFLICT DO NOTHING", (key, key % 7)
                )
            elif kind < 0.6:
                database.execute("UPDATE t SET n = n + 1 WHERE id BETWEEN %s AND %s", (key, key + 20))
            elif kind < 0.75:
                database.execute("DELETE FROM t WHERE id BETWEEN %s AND %s", (key, key + 5))
            elif kind < 0.9:
                database.execute("UPDATE t SET id = %s, g = %s WHERE id = %s", (chance.randrange(KEYS), key % 7, key))
            else:
                with suppress(_BackOutError), database.transaction():
                    database.execute("DELETE FROM t WHERE id BETWEEN %s AND %s", (key, key + 300))
                    raise _BackOutError

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


class _BackOutError(Exception):
    """Rolls a transaction back."""


@contextmanager
def job(server: PostgresProcess, folder: Path, parallelism: int, kind: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUN, server.url, str(folder), str(parallelism), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process


@pytest.mark.slow
def test_a_table_that_others_write_to_is_read_exactly_under_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(SEED)
    with running("wal_level=logical") as server:
        for statement in (
            "CREATE TABLE t (id bigint PRIMARY KEY, g int, n bigint, large text)",
            "ALTER TABLE t ALTER large SET STORAGE EXTERNAL",
            "CREATE PUBLICATION p FOR TABLE t",
            f"INSERT INTO t SELECT i, i % 7, 0, repeat('x', 3000) FROM generate_series(0, {KEYS - 1}) i",
        ):
            server.query(statement)
        writers = Writers(server.url)
        try:
            for _ in range(KILLS):
                with job(server, tmp_path, chance.choice((1, 2)), "unbounded") as process:
                    time.sleep(chance.uniform(0.1, 1.5))
                    assert process.poll() is None
                    os.kill(process.pid, signal.SIGKILL)
        finally:
            writers.end()
        until(lambda: not server.query("SELECT 1 FROM pg_replication_slots WHERE active"))
        with job(server, tmp_path, 2, "bounded") as process:
            assert process.stdout is not None
            state, tables = json.loads(process.stdout.readline())
        assert state == "FINISHED"
        rows = server.query("SELECT id, g, n, large FROM t ORDER BY id")
        assert [tuple(row) for row in sorted(tables["t"])] == rows
        groups = server.query("SELECT g, count(*), sum(n)::bigint FROM t GROUP BY g ORDER BY g")
        assert [tuple(row) for row in sorted(tables["groups"])] == groups
    if "WORKBENCH_KILLS" in os.environ:
        with capsys.disabled():
            sys.stdout.write(f"{KILLS} kills, {writers.transactions:,} transactions, {len(rows):,} rows: equal\n")
