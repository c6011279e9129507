"""A table read from PostgreSQL's log under kill -9 at random moments, while others write to it: nothing is lost or
there twice.

A few kills run with the slow tests; ``make log-kills`` runs 300. Every four have a table of their own: rows that move
between the parts of a copy are the hardest.
"""

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
KILLS_PER_TABLE = 4
WRITERS = 4
KEYS = 3_000

RUN = """
# Imports everything once, and runs each job in a process that it forks: lines in are jobs, lines out their news.
import json, os, sys, time
from pathlib import Path
import psycopg
import pyarrow as pa
import workbench as wb
from workbench.compiled import warm_up

def run(url, folder, chunk_rows, parallelism, bounded):
    schema = {"id": pa.int64(), "g": pa.int32(), "n": pa.int64(), "large": pa.string()}
    rows = wb.Stream.from_source(
        wb.PostgresLogSource(url, "t", schema, slot="kills", publication="p", bounded=bounded, chunk_rows=chunk_rows)
    ).uid("rows")
    groups = rows.group_by("g").aggregate(c=wb.count(), total=wb.sum("n")).uid("groups")
    job = (rows.sink_to(wb.TableSink("t")) + groups.sink_to(wb.TableSink("groups"))).run(
        "kills", parallelism=parallelism, checkpoint_interval="50ms", checkpoint_dir=Path(folder), resume=True
    )
    known = 0
    while not bounded and job.status()["state"] == "RUNNING":
        if (found := job.status()["checkpoints"]) > known:
            known = found
            print("checkpoint", flush=True)
        time.sleep(0.005)
    state = job.wait()
    tables = {name: [list(row.values()) for row in job.table(name).to_pylist()] for name in ("t", "groups")}
    print(json.dumps([state, tables]), flush=True)

warm_up()
for line in sys.stdin:
    if (child := os.fork()) == 0:
        run(*json.loads(line))
        os._exit(0)
    print(child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Writers:
    """Threads that change the table, each transaction in another way."""

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._over = url, threading.Event()
        self.transactions = 0
        self._threads = [threading.Thread(target=self._write, args=(f"{seed} {at}",)) for at in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, seed: str) -> None:
        chance = Random(seed)
        with psycopg.connect(self._url, autocommit=True) as database:
            while not self._over.is_set():
                with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected, _BackOutError):
                    with database.transaction():
                        self._change(database, chance)
                        if chance.random() < 0.15:
                            raise _BackOutError
                    self.transactions += 1
                self._over.wait(chance.random() * 0.05)

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


class Jobs:
    """One process after the other, each of which continues the job."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def start(self, *job: object) -> int:
        """Start a process; returns its ID."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{json.dumps(job)}\n")
        self._program.stdin.flush()
        return int(self.line())

    def line(self) -> str:
        """What the process prints."""
        assert self._program.stdout is not None
        return self._program.stdout.readline()

    def kill(self, process: int) -> None:
        """Kill it, however far it is; it is not this process's own child, and nobody else has its number."""
        os.kill(process, signal.SIGKILL)
        while (line := self.line()) == "checkpoint\n":
            pass
        assert line == "ended -9\n"


@contextmanager
def started() -> Iterator[Jobs]:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        yield Jobs(program)


@pytest.mark.slow
def test_a_table_that_others_write_to_is_read_exactly_under_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transactions = rows = 0
    with started() as jobs:
        for begin in range(0, KILLS, KILLS_PER_TABLE):
            with running("wal_level=logical") as server:
                kills = min(KILLS_PER_TABLE, KILLS - begin)
                transactions += job_under_kills(jobs, server, tmp_path / str(begin), SEED + begin, kills)
                rows += server.query("SELECT count(*) FROM t")[0][0]
    if "WORKBENCH_KILLS" in os.environ:
        with capsys.disabled():
            sys.stdout.write(f"{KILLS} kills, {transactions:,} transactions, {rows:,} rows: none lost, none twice\n")


def job_under_kills(jobs: Jobs, server: PostgresProcess, folder: Path, seed: int, kills: int) -> int:
    """Kill a job so often, and compare what it has at the end; returns the number of transactions meanwhile."""
    chance = Random(seed)
    place = server.url, str(folder), chance.choice((25, 150))
    for statement in (
        "CREATE TABLE t (id bigint PRIMARY KEY, g int, n bigint, large text)",
        "ALTER TABLE t ALTER large SET STORAGE EXTERNAL",
        "CREATE PUBLICATION p FOR TABLE t",
        f"INSERT INTO t SELECT i, i % 7, 0, repeat(chr(97 + i % 23), 3000) FROM generate_series(0, {KEYS - 1}) i",
    ):
        server.query(statement)
    writers = Writers(server.url, seed)
    try:
        for _ in range(kills):
            process = jobs.start(*place, chance.choice((1, 2)), False)
            for _ in range(chance.randrange(1, 11)):
                assert jobs.line() == "checkpoint\n"
            time.sleep(chance.uniform(0, 0.1))
            jobs.kill(process)
    finally:
        writers.end()
    until(lambda: not server.query("SELECT 1 FROM pg_replication_slots WHERE active"))
    jobs.start(*place, 2, True)
    state, tables = json.loads(jobs.line())
    assert jobs.line() == "ended 0\n"
    assert state == "FINISHED"
    rows = server.query("SELECT id, g, n, large FROM t ORDER BY id")
    read = [tuple(row) for row in sorted(tables["t"])]
    ids = [row[0] for row in read]
    assert {row[0] for row in rows} - {*ids} == set(), "rows are lost"
    assert len(ids) == len(rows), "rows are there twice, or were removed"
    assert [row for row in read if row not in set(rows)] == [], "rows have wrong values"
    groups = server.query("SELECT g, count(*), sum(n)::bigint FROM t GROUP BY g ORDER BY g")
    assert [tuple(row) for row in sorted(tables["groups"])] == groups
    return writers.transactions
