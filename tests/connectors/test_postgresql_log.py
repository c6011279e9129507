"""PostgresLogSource with a real PostgreSQL server: every change once, in its order, or a sentence that helps."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, cast
from unittest.mock import ANY

import psycopg
import pyarrow as pa
import pytest
from postgresql_server import PostgresProcess, running
from waiting import until

import workbench as wb
from workbench.cli import main
from workbench.clock import SystemClock, VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.postgresql_log.background import Background
from workbench.connectors.postgresql_log.positions import lsn_of
from workbench.connectors.postgresql_log.retention import Retention
from workbench.connectors.postgresql_log.savepoints import copy_for
from workbench.connectors.postgresql_log.server import Server, SlotFacts
from workbench.errors import PlanError, SettingError, SourceError
from workbench.operators.changelogs.keyed_upserts import UNCHANGED
from workbench.operators.changelogs.row_kinds import BEFORE, DELETE, KIND
from workbench.operators.contract.base import OperatorContext

SCHEMA = {"id": pa.int64(), "v": pa.string(), "n": pa.int32()}
OPTIONS = ("wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_prepared_transactions=5")
SEGMENT = 16 * 2**20
NAMES = {2: "put", 3: "delete", 4: "clear"}


@pytest.fixture(scope="module")
def shared() -> Iterator[PostgresProcess]:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    with running(*OPTIONS) as server:
        yield server


@pytest.fixture
def server(shared: PostgresProcess) -> Iterator[Database]:
    database = Database(shared)
    try:
        yield database
    finally:
        database.close()


class Database:
    """A table of a test, with what is left of it removed at its end."""

    def __init__(self, process: PostgresProcess) -> None:
        self.process = process
        self.connection = self.connected()
        self.readers: list[Any] = []
        self.run("CREATE TABLE t (id bigint PRIMARY KEY, v text, n int)", "CREATE PUBLICATION p FOR TABLE t")

    def connected(self) -> Any:
        return psycopg.connect(self.process.url, autocommit=True)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            cursor = self.connection.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
        return rows

    def source(self, **rest: Any) -> wb.PostgresLogSource:
        given: dict[str, Any] = {"table": "t", "schema": SCHEMA, "slot": "s", "publication": "p"} | rest
        return wb.PostgresLogSource(self.process.url, **given)

    def reader(self, restored: Any = None, **rest: Any) -> Any:
        reader = self.source(**rest).create()
        reader.open(OperatorContext(clock=SystemClock()))
        if restored is not None:
            reader.restore(json.loads(json.dumps([restored])))
        self.readers.append(reader)
        return reader

    def table(self, columns: str = "id, v, n", name: str = "t") -> list[tuple[Any, ...]]:
        return self.run(f"SELECT {columns} FROM {name} ORDER BY id")

    def end(self) -> int:
        return lsn_of(self.run("SELECT pg_current_wal_flush_lsn()::text")[0][0])

    def slot(self) -> tuple[Any, ...]:
        return self.run("SELECT active, confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 's'")[0]

    def slot_is_read(self) -> bool:
        return bool(self.run("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self.connection.close()
        self.connection = self.connected()
        until(lambda: not self.run("SELECT 1 FROM pg_replication_slots WHERE active"))
        self.run(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
            "DROP PUBLICATION IF EXISTS p",
            "DROP TABLE IF EXISTS t, other CASCADE",
        )
        self.connection.close()


def taken(reader: Any, most: int = 1000) -> list[tuple[Any, ...]]:
    """What one poll gives."""
    fetched = reader.poll(most)
    if not isinstance(fetched, Fetched):
        return []
    rows = fetched.records.batch.to_pylist()
    return [(NAMES[row.pop(KIND)], *row.values()) for row in rows if row.pop(UNCHANGED, None) is None or True]


def read(reader: Any, count: int, most: int = 1000) -> list[tuple[Any, ...]]:
    """As many changes, and no more."""
    found: list[tuple[Any, ...]] = []

    def enough() -> bool:
        found.extend(taken(reader, most))
        return len(found) >= count

    until(enough)
    assert len(found) == count
    return found


def read_to(reader: Any, lsn: int, most: int = 1000) -> list[tuple[Any, ...]]:
    """All changes before a place in the log."""
    found: list[tuple[Any, ...]] = []

    def there() -> bool:
        found.extend(taken(reader, most))
        snapshot = reader.snapshot()
        return bool(snapshot) and snapshot["copied"] and snapshot["done"] >= lsn

    until(there)
    return found


def some(reader: Any, count: int, end: int) -> list[tuple[Any, ...]]:
    """More changes than this, or all before a place in the log."""
    found: list[tuple[Any, ...]] = []
    until(lambda: found.extend(taken(reader, 2)) or len(found) > count or reader.snapshot().get("done", 0) >= end)
    return found


def one_part(reader: Any) -> list[tuple[Any, ...]]:
    """What the first poll gives that finds rows."""
    found: list[tuple[Any, ...]] = []
    until(lambda: found.extend(taken(reader, 5)) or found)
    return found


def state_of(changes: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The table that changes lead to."""
    rows: dict[Any, tuple[Any, ...]] = {}
    for kind, *row in changes:
        if kind == "clear":
            rows.clear()
        elif kind == "put":
            rows[row[0]] = tuple(row)
        else:
            rows.pop(row[0], None)
    return [rows[key] for key in sorted(rows)]


class Followed:
    """A source and the operator that completes its changes, and the rows that these lead to."""

    def __init__(self, server: Database, **rest: Any) -> None:
        self._server, self._rest = server, rest
        self.rows: dict[Any, tuple[Any, ...]] = {}
        self.is_over = False
        self._start(None, None)

    def _start(self, saved: Any, kept: Any) -> None:
        self.reader = self._server.reader(saved, **self._rest)
        source = self._server.source(**self._rest)
        self._operator = source.completed_by.create([source.schema])
        self._operator.open(OperatorContext())
        if kept is not None:
            self._operator.restore([{"rows": kept}])

    def restart(self) -> None:
        """As after a failure right behind a checkpoint, which is the saved state and nothing else."""
        saved, rows = self.reader.snapshot(), cast("Any", self._operator.snapshot(1)["rows"])
        self.reader.close()
        until(lambda: not self._server.run("SELECT 1 FROM pg_replication_slots WHERE active"))
        self._start(saved or None, rows())

    def poll(self, most: int = 1000) -> int:
        """Take some changes; returns how many."""
        fetched = self.reader.poll(most)
        self.is_over = isinstance(fetched, Exhausted)
        if not isinstance(fetched, Fetched):
            return 0
        self._operator.process(fetched.records, 0, cast("Any", self))
        return fetched.records.batch.num_rows

    def emit(self, records: Any) -> None:
        """Changes of the operator: each removes a row that is there, and adds one that is not."""
        for row in records.batch.to_pylist():
            kind, cells = row.pop(KIND), tuple(row.values())
            if kind in (BEFORE, DELETE):
                assert self.rows.pop(cells[0]) == cells
            else:
                assert cells[0] not in self.rows
                self.rows[cells[0]] = cells

    def part(self) -> None:
        """Read the next part of the copy, if there is one."""
        until(lambda: self.poll() or self.reader.snapshot().get("copied"))

    def copy(self) -> None:
        """Read all that is left of the copy, and no change after it."""
        while not self.reader.snapshot()["copied"]:
            self.part()

    def read_to(self, lsn: int, most: int = 1000) -> None:
        """Read all changes before a place in the log."""

        def there() -> bool:
            self.poll(most)
            saved = self.reader.snapshot()
            return bool(saved) and saved["copied"] and not saved["missing"] and saved["done"] >= lsn

        until(there)


def refusal(reader: Any) -> str:
    """What the reader says when it gives up."""
    said: list[str] = []

    def refused() -> bool:
        try:
            reader.poll(100)
        except SourceError as error:
            said.append(str(error))
        return bool(said)

    until(refused)
    return said[0]


def test_a_job_has_the_table_as_it_is(server: Database) -> None:
    server.run("ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
    server.run("INSERT INTO t SELECT i, repeat('x', 3000), i FROM generate_series(1, 25) i")
    stream = wb.Stream.from_source(server.source(chunk_rows=10))
    job = (
        stream.sink_to(wb.TableSink("t")) + stream.group_by("n").aggregate(c=wb.count()).sink_to(wb.TableSink("c"))
    ).run("log", checkpoint_interval="100ms")

    def is_equal() -> bool:
        rows = sorted(tuple(row.values()) for row in job.table("t").to_pylist())
        groups = sorted((tuple(row.values()) for row in job.table("c").to_pylist()), key=repr)
        expected = server.run("SELECT n, count(*) FROM t GROUP BY n")
        return rows == server.table() and groups == sorted(expected, key=repr)

    until(is_equal)
    server.run(
        "UPDATE t SET n = 3 WHERE id < 7",  # v is not in the log
        "UPDATE t SET id = id + 100, n = 3 WHERE id > 20",
        "DELETE FROM t WHERE id = 9",
        "INSERT INTO t VALUES (-1, NULL, NULL)",
    )
    until(is_equal)
    server.run("TRUNCATE t", "INSERT INTO t VALUES (1, 'new', 1)")
    until(is_equal)
    until(lambda: (job.status()["retained"] or "").endswith(" MB (reserved)"))
    assert ", t: " in job.status()["retained"]
    job.cancel()


def test_a_bounded_source_ends_where_the_log_ended_at_the_start(server: Database) -> None:
    server.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)", "DELETE FROM t WHERE id = 1")
    found = wb.Stream.from_source(server.source(bounded=True)).collect()
    assert found.to_pylist() == [{"id": 2, "v": "b", "n": 2}]


def test_a_query_in_sql_reads_a_table_and_its_changes(server: Database) -> None:
    server.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 4)")
    rows = wb.sql(f"""
        CREATE TABLE t (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'postgres-cdc', 'url' = '{server.process.url.replace(":pa55word", "")}',
              'slot' = 's', 'publication' = 'p', 'bounded' = 'true');
        SELECT v, sum(n) AS total FROM t GROUP BY v
    """).collect()
    assert sorted(rows.to_pylist(), key=str) == [{"v": "a", "total": 5}, {"v": "b", "total": 2}]


def test_a_restart_at_any_row_loses_and_repeats_nothing(server: Database) -> None:
    first = server.reader()
    assert read_to(first, server.end()) == []
    begin = first.snapshot()
    first.close()
    expected: list[tuple[Any, ...]] = []
    for at in range(12):
        server.run(f"INSERT INTO t SELECT {at} * 10 + i, 'v', 0 FROM generate_series(1, {at % 4 + 1}) i")
        expected += [("put", at * 10 + i, "v", 0) for i in range(1, at % 4 + 2)]
    server.run("UPDATE t SET id = id + 1000, n = 1 WHERE id < 3")  # 1 of one change
    expected += [("delete", 1, None, None), ("put", 1001, "v", 1)]
    end, chance, found, saved = server.end(), Random(7), [], begin
    for _ in range(40):
        reader = server.reader(saved)
        count = chance.randrange(4)
        seen = some(reader, count, end)
        found += seen
        saved = reader.snapshot()
        taken(reader)  # lost in the crash
        reader.close()
        until(lambda: not server.slot()[0])
    assert found == expected
    assert saved["done"] >= end


@pytest.mark.parametrize("kind", ["bigint", "text", "numeric", 'text COLLATE "und-x-icu"', "uuid"])
def test_a_copy_in_parts_is_consistent_with_the_changes_between_them(server: Database, kind: str) -> None:
    if "icu" in kind and not server.process.query("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'"):
        pytest.skip("the server is built without ICU")
    made = "lpad((i)::text, 32, '0')::uuid" if kind == "uuid" else "i"
    server.run(
        f"ALTER TABLE t ALTER id TYPE {kind} USING NULL",
        f"INSERT INTO t SELECT {made}, 'v', i FROM generate_series(1, 40) i",
    )
    schema = SCHEMA | {"id": pa.int64() if kind == "bigint" else pa.string()}
    reader, saved, found, chance = server.reader(schema=schema, chunk_rows=7), None, [], Random(3)
    for _ in range(5):
        found += one_part(reader)
        saved = reader.snapshot()
        a, b = chance.sample(range(1, 41), 2)
        number = f"({1000 + a * 50 + b})"
        server.run(
            f"UPDATE t SET n = n + 100 WHERE n % 100 IN ({a}, {b})",
            f"DELETE FROM t WHERE n % 100 = {b} AND n > 150",
            f"INSERT INTO t SELECT {made.replace('(i)', number).replace('i', number, kind != 'uuid')}, 'late', {a}",
        )
        reader.close()
        reader = server.reader(saved, schema=schema, chunk_rows=7)
    found += read_to(reader, server.end())
    rows = server.run("SELECT id::text, v, n FROM t") if kind != "bigint" else server.run("SELECT id, v, n FROM t")
    assert state_of(found) == sorted(rows)
    puts = [row for row in found if row[0] == "put"]
    assert len(puts) < 40 + 5 * 3 + 10
    server.run("DELETE FROM t")
    read_to(reader, server.end())
    assert reader.snapshot()["parts"] == []


def test_keys_that_move_over_the_border_of_a_part_are_there_once(server: Database) -> None:
    server.run("INSERT INTO t SELECT i, 'v', i FROM generate_series(1, 20) i")
    reader, found = server.reader(chunk_rows=5), []
    found += one_part(reader)
    moves = ["id = 100 WHERE id = 2", "id = -3 WHERE id = 18", "id = 2 WHERE id = 17"]
    server.run(*(f"UPDATE t SET {move}" for move in moves))
    found += one_part(reader)
    server.run("UPDATE t SET id = 18 WHERE id = 100", "UPDATE t SET n = 0 WHERE id IN (7, 14)")
    found += read_to(reader, server.end())
    assert state_of(found) == server.table()
    assert [row[3] for row in found if row[:2] == ("put", 2)] == [2, 17]
    assert [row[3] for row in found if row[:2] == ("put", 18)] == [2]


MOVES = {
    "alone": ["UPDATE t SET id = -3, n = 0 WHERE id = 18"],
    "behind a deletion": ["BEGIN", "DELETE FROM t WHERE id = 4", "UPDATE t SET id = -3 WHERE id = 18", "COMMIT"],
    "to a key that is free since": ["DELETE FROM t WHERE id = 2", "UPDATE t SET id = 2 WHERE id = 18"],
    "and is changed": ["UPDATE t SET id = -3 WHERE id = 18", "UPDATE t SET n = 0 WHERE id = -3"],
    "and is removed": ["UPDATE t SET id = -3 WHERE id = 18", "DELETE FROM t WHERE id = -3"],
    "and its value changes": ["UPDATE t SET id = -3 WHERE id = 18", "UPDATE t SET v = 'small' WHERE id = -3"],
    "twice": ["UPDATE t SET id = -3 WHERE id = 18", "UPDATE t SET id = -4 WHERE id = -3"],
    "and back": ["UPDATE t SET id = -3 WHERE id = 18", "UPDATE t SET id = 18 WHERE id = -3"],
    "and leaves its key": [
        *("UPDATE t SET id = -3 WHERE id = 18", "UPDATE t SET id = 30 WHERE id = -3"),
        "UPDATE t SET id = -3 WHERE id = 17",
    ],
    "all at once": ["UPDATE t SET id = -id WHERE id > 5"],
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES.keys())
def test_a_row_that_moves_to_a_part_that_was_copied_keeps_its_large_value(server: Database, moves: list[str]) -> None:
    large(server, 20)
    followed = Followed(server, chunk_rows=5)
    followed.part()
    server.run(*moves)
    followed.copy()
    server.run("UPDATE t SET n = n + 100 WHERE id IN (-4, 3, 18)")
    followed.read_to(server.end())
    assert list_of(followed) == server.table()
    server.run("UPDATE t SET id = id + 1000, n = 7")
    followed.read_to(server.end())
    assert list_of(followed) == server.table()
    assert followed.reader.snapshot()["again"] == []


def large(server: Database, rows: int) -> None:
    """Fill the table with large values, each another."""
    server.run(
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
        f"INSERT INTO t SELECT i, repeat(chr(64 + i), 3000), i FROM generate_series(1, {rows}) i",
    )


def list_of(followed: Followed) -> list[tuple[Any, ...]]:
    return [followed.rows[key] for key in sorted(followed.rows)]


class Replaced:
    """An output that replaces rows by their key, and that a failure does not take back."""

    def __init__(self, key: str, told: Callable[[], None]) -> None:
        self._key, self._told = key, told
        self.rows: dict[Any, tuple[Any, ...]] = {}

    def __call__(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            kind, key = row.pop(KIND), row[self._key]
            if kind == DELETE:
                self.rows.pop(key, None)
            elif kind != BEFORE:
                self.rows[key] = tuple(row.values())
        self._told()


def test_a_row_that_is_deleted_before_a_copy_is_repeated_does_not_stay(server: Database, tmp_path: Path) -> None:
    """Between the first rows that come out and the first periodic checkpoint, the job fails. What it repeats may come
    with the deletions in one batch, of which groups that came and went give nothing."""
    server.run("INSERT INTO t SELECT i, 'v', i / 2 FROM generate_series(1, 9) i")
    failures: list[str] = []

    def fail() -> None:
        if failures == ["due"]:
            failures.append("over")
            raise ConnectionError("the output is gone")

    def grouped() -> list[tuple[int, int]]:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(tmp_path / "groups.db")) as database:
            return database.execute("SELECT n, c FROM groups ORDER BY n").fetchall()
        return []  # there is no table yet

    rows = Replaced("id", fail)
    stream = wb.Stream.from_source(server.source(chunk_rows=4))
    groups = wb.SqlSink(f"sqlite:///{tmp_path}/groups.db", "groups", upsert_key=["n"])
    job = (
        stream.sink_to(wb.CallbackSink(rows, "rows"))
        + stream.group_by("n").aggregate(c=wb.count()).sink_to(groups)
    ).run("repeated", checkpoint_interval="1h", restart=wb.restart.fixed_delay(3, "1ms"))  # fmt: skip
    until(lambda: (len(rows.rows), len(grouped())) == (9, 5))
    failures.append("due")
    server.run("DELETE FROM t WHERE id IN (1, 2, 3)")

    def is_equal() -> bool:
        found = sorted(rows.rows.values()), grouped()
        return found == (server.table(), server.run("SELECT n, count(*) FROM t GROUP BY n ORDER BY n"))

    until(lambda: failures == ["due", "over"] and is_equal())
    assert job.status()["restarts"] == 1
    job.cancel()


def test_copied_rows_wait_until_a_checkpoint_contains_them(server: Database) -> None:
    large(server, 10)
    reader = server.reader(chunk_rows=5)
    reader.hold_back(True)
    until(lambda: taken(reader) or reader.snapshot().get("parts"))
    server.run("UPDATE t SET id = -3 WHERE id = 8")
    until(lambda: taken(reader) or reader.wants_checkpoint)
    (waits,) = reader.progress().values()
    assert waits.position.endswith(": 9 rows of it wait for a checkpoint")
    saved = reader.snapshot()
    assert (taken(reader), reader.splits()) == ([], ("t",))
    server.run("DELETE FROM t WHERE id = 2")
    reader.durable({})  # of an earlier checkpoint
    assert taken(reader) == []

    again = server.source(chunk_rows=5).create()  # after a failure: the same rows, at once
    again.open(OperatorContext(clock=SystemClock()))
    server.readers.append(again)
    again.hold_back(True)
    again.restore([saved])
    assert [row[1] for row in read(again, 9, most=4)] == [1, 2, 3, 4, 5, 6, 7, 9, 10]
    found: list[tuple[Any, ...]] = []
    until(lambda: found.extend(taken(again)) or again.wants_checkpoint)  # a row that was copied again waits too
    saved = again.snapshot()
    assert (saved["held"].column("id").to_pylist(), saved["missing"]) == ([-3], [])
    again.durable({name: value for name, value in saved.items() if name != "held"})
    found += read_to(again, server.end())
    assert sorted(row[:2] for row in found) == [("delete", 2), ("put", -3)]

    assert taken(reader) == []
    reader.hold_back(False)  # checkpoints were switched off
    assert [row[1] for row in read(reader, 9)] == [1, 2, 3, 4, 5, 6, 7, 9, 10]


def test_a_bounded_job_ends_although_its_rows_wait(server: Database) -> None:
    server.run("INSERT INTO t SELECT i, 'v', i FROM generate_series(1, 9) i")
    stream = wb.Stream.from_source(server.source(bounded=True, chunk_rows=4))
    job = stream.sink_to(wb.TableSink("t")).run("waits", parallelism=2, checkpoint_interval="1h")
    assert job.wait("60s") == "FINISHED"
    assert sorted(tuple(row.values()) for row in job.table("t").to_pylist()) == server.table()


def test_a_truncation_keeps_what_was_copied_again_behind_it(server: Database) -> None:
    large(server, 20)
    followed = Followed(server, chunk_rows=5)
    followed.part()
    server.run("UPDATE t SET id = -3 WHERE id = 18")
    followed.copy()
    server.run("TRUNCATE t", "INSERT INTO t VALUES (-3, 'new', 1), (5, 'new', 1)", "UPDATE t SET n = 2")
    followed.read_to(server.end())
    assert list_of(followed) == server.table() == [(-3, "new", 2), (5, "new", 2)]


def test_a_row_is_copied_again_when_its_transactions_are_visible(server: Database) -> None:
    large(server, 20)
    followed = Followed(server, chunk_rows=5)
    followed.part()
    server.run("UPDATE t SET id = -3 WHERE id = 18")
    followed.copy()
    server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    with server.connected() as other:
        until(lambda: other.execute("SHOW synchronous_standby_names").fetchone() == ("nobody",))
        waiting = Thread(target=other.execute, args=("UPDATE t SET id = -4, n = 0 WHERE id = -3",))
        waiting.start()
        try:
            until(lambda: server.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
            end = server.end()
            until(lambda: followed.poll() < 0 or followed.reader.snapshot()["done"] >= end)
            for _ in range(5):
                assert sorted(followed.reader.snapshot()["missing"]) == sorted([[["-3"], ANY], [["-4"], ANY]])
                assert -3 not in followed.rows
                followed.poll()
                followed.restart()
        finally:
            server.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
            waiting.join()
    followed.read_to(server.end())
    assert list_of(followed) == server.table()
    assert followed.rows[-4][1] == "R" * 3000


@pytest.mark.parametrize(("kind", "seed"), [("bigint", 1), ("bigint", 2), ("numeric", 3), ("text", 4)])
def test_rows_that_move_at_random_are_read_exactly(server: Database, kind: str, seed: int) -> None:
    chance, keys = Random(seed), range(100, 140)
    server.run(f"ALTER TABLE t ALTER id TYPE {kind} USING NULL, ALTER v SET STORAGE EXTERNAL")
    server.run("INSERT INTO t SELECT i, repeat(chr(i), 3000), 0 FROM generate_series(100, 139, 2) i")
    schema = SCHEMA | ({} if kind == "bigint" else {"id": pa.string()})
    followed = Followed(server, chunk_rows=4, schema=schema)

    def changed(connection: Any) -> None:
        a, b = chance.sample(keys, 2)
        statement = chance.choice(
            (
                *(f"UPDATE t SET id = {b}, n = {a} WHERE id = '{a}'",) * 4,
                f"UPDATE t SET n = n + 1 WHERE n % 5 = {a % 5}",
                f"DELETE FROM t WHERE id = '{a}'",
                f"INSERT INTO t VALUES ({a}, repeat('{b % 10}', 3000), {a})",
                f"UPDATE t SET v = repeat(chr({b}), 3000) WHERE id = '{a}'",
            )
        )
        with suppress(psycopg.errors.UniqueViolation), connection.transaction():
            connection.execute(statement)

    def step() -> None:
        with server.connection.transaction():
            for _ in range(chance.randrange(1, 4)):
                changed(server.connection)

    for most in range(60):
        chance.choice((step, step, followed.part, lambda most=most: followed.poll(most + 1)))()
        if chance.random() < 0.05:
            followed.restart()
    followed.read_to(server.end(), 2)
    assert list_of(followed) == sorted(
        server.run(f"SELECT id::{'bigint' if kind == 'bigint' else 'text'}, v, n FROM t")
    )


def test_a_bounded_source_ends_behind_all_that_its_copy_has_seen(server: Database) -> None:
    large(server, 20)
    followed = Followed(server, chunk_rows=5, bounded=True)
    followed.part()
    server.run("UPDATE t SET id = 21 WHERE id = 2", "UPDATE t SET id = -3 WHERE id = 18")
    until(lambda: followed.poll() < 0 or followed.is_over)
    assert list_of(followed) == server.table()


def test_only_what_commits_comes_in_the_order_of_commits(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    other = server.connected()
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (1, 'first drawn', 1)")
    server.run("INSERT INTO t VALUES (2, 'first committed', 2)")
    other.execute("SAVEPOINT a")
    other.execute("INSERT INTO t VALUES (3, 'rolled back', 3)")
    other.execute("ROLLBACK TO a")
    other.execute("INSERT INTO t VALUES (4, 'kept', 4)")
    other.execute("COMMIT")
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (5, 'rolled back', 5)")
    other.execute("ROLLBACK")
    other.close()
    assert [row[1] for row in read_to(reader, server.end())] == [2, 1, 4]


def test_prepared_transactions_come_when_they_commit_and_only_then(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    for name, key in (("kept", 1), ("dropped", 3)):
        server.run(
            "BEGIN",
            f"INSERT INTO t VALUES ({key}, '{name}', 0)",
            "SAVEPOINT a",
            f"INSERT INTO t VALUES ({key + 1}, 'rolled back', 0)",
            "ROLLBACK TO a",
            f"UPDATE t SET n = 7 WHERE id = {key}",
            f"PREPARE TRANSACTION '{name}'",
        )
    server.run("INSERT INTO t VALUES (9, 'between', 0)")
    assert read_to(reader, server.end()) == [("put", 9, "between", 0)]
    saved = reader.snapshot()
    reader.close()
    until(lambda: not server.slot()[0])
    server.run("ROLLBACK PREPARED 'dropped'", "COMMIT PREPARED 'kept'", "INSERT INTO t VALUES (3, 'free again', 0)")
    changes = [("put", 1, "kept", 0), ("put", 1, "kept", 7), ("put", 3, "free again", 0)]
    assert read_to(server.reader(saved), server.end()) == changes


def test_savepoints_that_are_rolled_back_leave_no_change(server: Database) -> None:
    server.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    reader = server.reader()
    read_to(reader, server.end())
    server.run(
        *("BEGIN", "UPDATE t SET n = 10 WHERE id = 1", "SAVEPOINT a", "DELETE FROM t WHERE id = 2"),
        *("SAVEPOINT b", "UPDATE t SET id = 5 WHERE id = 1", "TRUNCATE t", "ROLLBACK TO b"),
        *("INSERT INTO t VALUES (3, 'c', 3)", "RELEASE b", "ROLLBACK TO a", "INSERT INTO t VALUES (3, 'd', 4)"),
        *("SAVEPOINT c", "DELETE FROM t WHERE id = 1", "RELEASE c", "COMMIT"),
    )
    changes = [("put", 1, "a", 10), ("put", 3, "d", 4), ("delete", 1, None, None)]
    assert read_to(reader, server.end()) == changes
    assert server.table() == [(2, "b", 2), (3, "d", 4)]


def test_what_the_server_keeps_is_measured_beside_reading(server: Database) -> None:
    clock = VirtualClock(10**15)
    reader: Any = server.source().create()
    reader.open(OperatorContext(clock=clock))
    server.readers.append(reader)

    def kept(least: int, most: int) -> bool:
        clock.advance_to(clock.now_us() + 100_000)
        taken(reader)
        return least <= (next(iter(reader.progress().values())).kept_bytes or -1 if reader.progress() else -1) < most

    until(lambda: kept(0, SEGMENT))
    server.run("CREATE TABLE other (n int)")
    for _ in range(3):
        server.run("INSERT INTO other VALUES (1)", "SELECT pg_switch_wal()")
    until(lambda: kept(2 * SEGMENT, 4 * SEGMENT))
    [split] = reader.progress().values()
    assert (split.kept_state, split.kept_safe) == ("reserved", None)
    server.run("ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
    try:
        until(lambda: kept(0, 2**40) and next(iter(reader.progress().values())).kept_safe is not None)
        assert 2**29 < next(iter(reader.progress().values())).kept_safe < 2**30 + SEGMENT
    finally:
        server.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_the_command_lists_slots_and_drops_those_without_a_reader(server: Database, capsys: Any) -> None:
    url = server.process.url.replace("pa55word", "${SLOTS_SECRET}")

    def command(*words: str) -> tuple[int, list[str]]:
        code = main(["slots", url, *words])
        printed = capsys.readouterr()
        assert "pa55word" not in printed.out + printed.err
        return code, (printed.err or printed.out).splitlines()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOTS_SECRET", "pa55word")
        assert command() == (0, ["There are no slots of the plug-in pgoutput in this database."])
        reader = server.reader()
        until(lambda: taken(reader) or server.slot_is_read())
        for made in ("'idle', 'pgoutput'", "'idle2', 'pgoutput'", "'other', 'test_decoding'"):
            server.run(f"SELECT pg_create_logical_replication_slot({made})")
        server.run("CREATE TABLE other (n int)")
        for _ in range(2):
            server.run("INSERT INTO other VALUES (1)", "SELECT pg_switch_wal()")
        code, lines = command()
        heads, *rows = (re.split(" {2,}", line) for line in lines)
        assert (code, heads) == (0, ["slot", "active", "reader", "confirmed", "keeps", "state"])
        assert [row[:3] for row in rows] == [
            ["idle", "no", "-"],
            ["idle2", "no", "-"],
            ["s", "yes", "workbench job, t"],
        ]
        places = dict(server.run("SELECT slot_name, confirmed_flush_lsn::text FROM pg_replication_slots"))
        assert rows[0][3] == places["idle"]
        assert all(SEGMENT < float(row[4].removesuffix(" MB")) * 1e6 < 4 * SEGMENT for row in rows)
        assert {row[5] for row in rows} == {"reserved"}
        refused = "workbench: the slot 's' is read by 'workbench job, t' (PID "
        code, [line] = command("--drop", "idle", "--drop", "s")
        assert (code, line.startswith(refused), line.endswith(": end its reader first")) == (2, True, True)
        code, [line] = command("--drop", "idle", "--drop", "other")
        assert (code, line.startswith("workbench: unknown slot 'other'")) == (2, True)
        assert len(command()[1]) == 4  # nothing was dropped
        dropped = [f"Dropped the slot {name!r}." for name in ("idle", "idle2")]
        assert command("--drop", "idle", "--drop", "idle2", "--drop", "idle") == (0, dropped)
        assert sorted(row[0] for row in server.run("SELECT slot_name FROM pg_replication_slots")) == ["other", "s"]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite:///shop", "the URL is 'sqlite:///shop': write postgresql://"),
        ("postgresql://ann:pa55word@localhost", "names no database"),
        ("postgresql://ann:pa55word@/shop?host=/nowhere", "the slots of postgresql://***@/shop?host=/nowhere: "),
        ("postgresql://ann:${NO_SUCH_SECRET}@localhost/shop", "NO_SUCH_SECRET"),
    ],
)
def test_a_database_that_cannot_be_asked_for_its_slots_is_one_line(url: str, sentence: str, capsys: Any) -> None:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    assert main(["slots", url]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert (printed.out, printed.err.count("\n"), "pa55word" in printed.err) == ("", 1, False)


def test_the_copy_nearest_to_a_position_is_taken() -> None:
    def slot(name: str, confirmed: int, status: str = "reserved") -> SlotFacts:
        return SlotFacts(name, "pgoutput", "d", 0, "", status, confirmed, 0, None)

    slots = [slot("s_at_1", 10), slot("s_at_2", 20), slot("s_at_3", 30), slot("s_at_4", 25, "lost"), slot("s", 5)]
    slots += [slot("s_at_x", 29), slot("r_at_9", 29), slot("s_at_5", 0), slot("s_s_at_6", 29)]
    found = [copy_for(slots, "s", done) for done in (9, 10, 19, 29, 30, 99)]
    names = [None if each is None else each.name for each in found]
    assert names == [None, "s_at_1", "s_at_1", "s_at_2", "s_at_3", "s_at_3"]


def test_a_measurement_that_hangs_is_not_waited_for() -> None:
    go, asked = Event(), []

    class Hanging:
        def slot(self, name: str) -> SlotFacts:
            asked.append(name)
            go.wait()
            if len(asked) > 1:
                raise ConnectionError
            return SlotFacts("s", "pgoutput", "d", 0, "", "reserved", 8, 16, None)

        def publication_mark(self, name: str, table: int) -> str:
            return f"{name} {table}"

    retention, background, server = Retention("s", "p"), Background(), cast("Server", Hanging())
    for now_us in (0, 1, 90_000_000):
        retention.look(now_us, background, server, 7)
    assert retention.known is None
    go.set()
    until(lambda: retention.look(91_000_000, background, server, 7) or retention.known)
    assert retention.known is not None
    assert (retention.known[0].retained_bytes, retention.known[1], asked) == (16, 91_000_000, ["s"])
    assert retention.publication == "p 7"
    until(lambda: retention.look(92_000_000, background, server, 7) or retention.known is None)
    assert asked == ["s", "s"]
    background.close()


def test_a_transaction_is_read_in_many_polls_and_resumed_within(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    server.run("INSERT INTO t SELECT i, 'v', i FROM generate_series(1, 20000) i")
    found: list[tuple[Any, ...]] = []
    until(lambda: found.extend(taken(reader, 700)) or len(found) > 9_000)
    saved = reader.snapshot()
    assert saved["commit"] > 0
    assert saved["index"] == len(found)
    reader.close()
    found += read_to(server.reader(saved), server.end())
    assert [row[1] for row in found] == list(range(1, 20_001))


def test_a_server_that_comes_back_is_read_on(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    assert read(reader, 1) == [("put", 1, "a", 1)]
    server.connection.close()
    server.process.crash()
    until(lambda: taken(reader) or reader.outage is not None)
    server.process.start()
    server.connection = server.connected()
    server.run("INSERT INTO t VALUES (2, 'b', 2)")
    assert read(reader, 1) == [("put", 2, "b", 2)]
    assert reader.outage is None


def test_a_connection_that_begins_anew_confirms_nothing_that_no_checkpoint_has(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    early = reader.snapshot()
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    read_to(reader, server.end())
    server.run("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
    until(lambda: taken(reader) or reader.outage is not None)
    server.run("INSERT INTO t VALUES (2, 'b', 2)")
    assert read(reader, 1) == [("put", 2, "b", 2)]
    reader.close()
    until(lambda: not server.slot()[0])
    assert lsn_of(server.slot()[1]) <= early["done"]
    assert read(server.reader(early), 2) == [("put", 1, "a", 1), ("put", 2, "b", 2)]


def test_the_slot_moves_behind_complete_checkpoints_and_never_back(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    early = reader.snapshot()
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    read_to(reader, server.end())
    late = reader.snapshot()
    assert lsn_of(server.slot()[1]) <= early["done"]
    reader.complete(late)
    until(lambda: lsn_of(server.slot()[1]) == late["done"])
    reader.close()
    until(lambda: not server.slot()[0])
    assert "the changes between them are gone" in refusal(server.reader(early))
    again = server.reader(late)
    server.run("INSERT INTO t VALUES (2, 'b', 2)")
    assert read(again, 1) == [("put", 2, "b", 2)]


def test_the_copy_of_a_slot_goes_back_behind_it(server: Database) -> None:
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    reader = server.reader()
    read_to(reader, server.end())
    early = reader.snapshot()
    reader.keep(7)
    server.run("INSERT INTO t VALUES (2, 'b', 2)", "UPDATE t SET n = 5 WHERE id = 1")
    changes = read_to(reader, server.end())
    assert changes == [("put", 2, "b", 2), ("put", 1, "a", 5)]
    for _ in range(2):
        late = reader.snapshot()
        reader.complete(late)
        assert read_to(reader, server.end()) == []
        until(lambda late=late: lsn_of(server.slot()[1]) == late["done"])
        places = dict(server.run("SELECT slot_name, confirmed_flush_lsn::text FROM pg_replication_slots"))
        assert lsn_of(places["s_at_7"]) <= early["done"] < late["done"]
        reader.close()
        until(lambda: not server.slot()[0])
        reader = server.reader(early)
        assert read_to(reader, server.end()) == changes
    reader.close()
    until(lambda: not server.slot()[0])
    server.run("SELECT pg_drop_replication_slot('s')")  # as a crash does between the two
    assert read_to(server.reader(early), server.end()) == changes
    server.source().create().forget(7)
    assert server.run("SELECT slot_name FROM pg_replication_slots") == [("s",)]


def test_a_slot_does_not_move_on_before_it_is_copied(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    early = reader.snapshot()
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    read_to(reader, server.end())
    go = Event()
    reader._background.begin(go.wait)
    reader.keep(7)
    reader.complete(late := reader.snapshot())
    taken(reader)
    assert reader._wire._confirmed < late["done"]
    go.set()
    until(lambda: taken(reader) or lsn_of(server.slot()[1]) == late["done"])
    place = server.run("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 's_at_7'")[0][0]
    assert lsn_of(place) <= early["done"]
    reader.give_up(7)
    until(lambda: server.run("SELECT slot_name FROM pg_replication_slots") == [("s",)])


def test_a_savepoint_without_a_slot_is_shown_and_the_job_goes_on(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    server.run("SELECT pg_create_logical_replication_slot('a' || i, 'pgoutput') FROM generate_series(1, 19) i")
    reader.keep(7)
    server.run("INSERT INTO t VALUES (1, 'a', 1)")
    read_to(reader, server.end())
    reader.complete(late := reader.snapshot())
    until(lambda: taken(reader) or lsn_of(server.slot()[1]) == late["done"])
    until(lambda: taken(reader) or "; " in reader.progress()["t"].kept_state)
    assert reader.progress()["t"].kept_state == (
        "reserved; the savepoint of checkpoint 7 has no slot: all replication slots are in use"
    )


def test_a_job_goes_back_to_any_of_its_savepoints(server: Database, tmp_path: Any) -> None:
    def is_equal() -> bool:
        return sorted(tuple(row.values()) for row in job.table("t").to_pylist()) == server.table()

    def names() -> list[str]:
        return [row[0] for row in server.run("SELECT slot_name FROM pg_replication_slots ORDER BY 1")]

    def confirmed() -> int:
        return lsn_of(server.slot()[1])

    server.run("INSERT INTO t SELECT i, 'v', i FROM generate_series(1, 5) i")
    settings: dict[str, Any] = {"checkpoint_dir": tmp_path, "checkpoint_interval": "50ms", "retained_checkpoints": 1}
    job = wb.Stream.from_source(server.source()).sink_to(wb.TableSink("t")).run("log", **settings)
    until(is_equal)
    job.savepoint("before")
    until(lambda: len(names()) == 2)
    before = lsn_of(
        server.run("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name > 's'")[0][0]
    )
    for at in range(2):
        server.run("DELETE FROM t WHERE id = 2", f"UPDATE t SET n = n + 10 + {at}", "INSERT INTO t VALUES (9, 'w', 9)")
        until(lambda: is_equal() and confirmed() > before)
        job = job.restore("before")
        until(is_equal)
        server.run("DELETE FROM t WHERE id = 9")
        until(is_equal)
    assert len(names()) == 2
    server.run("INSERT INTO t VALUES (10, 'x', 10)")
    until(lambda: is_equal() and job.status()["checkpoints"] > 1)
    job.delete_savepoint("before")
    assert names() == ["s"]
    job.cancel()


def test_an_idle_table_does_not_hold_the_log_of_a_busy_server(server: Database) -> None:
    server.run("CREATE TABLE other (b text)")
    reader = server.reader()
    read_to(reader, server.end())
    server.run("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    end = server.end()
    assert read_to(reader, end) == []
    reader.complete(reader.snapshot())
    until(lambda: lsn_of(server.slot()[1]) >= end)


def test_a_reader_that_takes_nothing_is_not_cut_off(server: Database) -> None:
    server.run("ALTER SYSTEM SET wal_sender_timeout = '1s'", "SELECT pg_reload_conf()")
    try:
        until(lambda: server.run("SHOW wal_sender_timeout")[0][0] == "1s")
        reader = server.reader()
        until(lambda: taken(reader) or server.slot_is_read())
        server.run("INSERT INTO t SELECT i, 'v', i FROM generate_series(1, 100) i")
        begin = server.run("SELECT clock_timestamp()")[0][0]
        late = "SELECT 1 FROM pg_stat_replication WHERE reply_time > %s::timestamptz + interval '2.5s'"
        until(lambda: server.connection.execute(late, (begin,)).fetchall())
        assert len(read(reader, 100)) == 100
        assert reader.outage is None
    finally:
        server.run("ALTER SYSTEM RESET wal_sender_timeout", "SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("ALTER TABLE t REPLICA IDENTITY DEFAULT", [("delete", 1, None, None)]),
        ("ALTER TABLE t REPLICA IDENTITY FULL", [("delete", 1, None, None)]),
        ("ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey", [("delete", 1, None, None)]),
    ],
)
def test_every_identity_gives_the_same_changes(server: Database, statement: str, changes: list[Any]) -> None:
    server.run("INSERT INTO t VALUES (1, 'a', 1)", statement)
    reader = server.reader()
    read_to(reader, server.end())
    server.run("UPDATE t SET n = 2", "UPDATE t SET id = 5", "UPDATE t SET id = 1", "DELETE FROM t")
    assert read(reader, 6) == [
        ("put", 1, "a", 2),
        *(("delete", 1, None, None), ("put", 5, "a", 2)),
        *(("delete", 5, None, None), ("put", 1, "a", 2)),
        *changes,
    ]


def test_a_full_identity_fills_large_values_and_allows_another_key(server: Database) -> None:
    server.run(
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ALTER n SET NOT NULL, ADD UNIQUE (n), ALTER v SET STORAGE EXTERNAL",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, repeat('x', 3000), 7)",
    )
    reader = server.reader(key="n")
    read_to(reader, server.end())
    server.run("UPDATE t SET id = 2")
    assert read(reader, 1) == [("put", 2, "x" * 3000, 7)]


def test_a_table_with_partitions_is_one(server: Database) -> None:
    server.run(
        "DROP PUBLICATION p",
        "DROP TABLE t",
        "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "CREATE PUBLICATION p FOR TABLE t",
        "INSERT INTO t VALUES (1, 'a', 1)",
    )
    assert "SET (publish_via_partition_root)" in refusal(server.reader())
    server.run("ALTER PUBLICATION p SET (publish_via_partition_root)")
    reader = server.reader()
    found = read_to(reader, server.end())
    server.run(
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30)",
        "INSERT INTO t VALUES (12, 'b', 2), (25, 'c', 3)",
        "UPDATE t SET id = 15 WHERE id = 1",
    )
    found += read_to(reader, server.end())
    assert state_of(found) == [(12, "b", 2), (15, "a", 1), (25, "c", 3)]


def test_other_tables_of_a_publication_are_left_out(server: Database) -> None:
    server.run("CREATE TABLE other (id bigint PRIMARY KEY)", "ALTER PUBLICATION p ADD TABLE other")
    reader = server.reader()
    read_to(reader, server.end())
    server.run("INSERT INTO other VALUES (1)", "INSERT INTO t VALUES (2, 'b', 2)", "TRUNCATE other", "DELETE FROM t")
    assert read_to(reader, server.end()) == [("put", 2, "b", 2), ("delete", 2, None, None)]
    server.run("INSERT INTO t VALUES (3, 'c', 3)", "TRUNCATE other, t")
    assert read_to(reader, server.end()) == [("put", 3, "c", 3), ("clear", None, None, None)]


def test_columns_that_come_go_or_grow_while_reading(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    server.run(
        "INSERT INTO t VALUES (1, 'a', 1)",
        "ALTER TABLE t ADD w int DEFAULT 5",
        "INSERT INTO t VALUES (2, 'b', 2)",
        "ALTER TABLE t DROP w",
        "ALTER TABLE t ALTER n TYPE bigint",
        "INSERT INTO t VALUES (3, 'c', 3)",
    )
    assert read(reader, 3) == [("put", 1, "a", 1), ("put", 2, "b", 2), ("put", 3, "c", 3)]
    saved = reader.snapshot()
    reader.close()
    until(lambda: not server.slot()[0])
    server.run("ALTER TABLE t ALTER v TYPE varchar(9) USING upper(v)", "INSERT INTO t VALUES (4, 'd', 4)")
    assert "type of the column 'v' of 't' was changed" in refusal(server.reader(saved))
    server.run("ALTER TABLE t DROP v", "INSERT INTO t VALUES (5, 5)")
    assert "unknown column 'v'" in refusal(server.reader(saved)).replace("there is no", "unknown")


STARTS = {
    "there is no table 'nope'": ("", {"table": "nope"}),
    "there is no publication 'q': CREATE PUBLICATION q FOR TABLE t": ("", {"publication": "q"}),
    "does not contain 't'.*ADD TABLE t": ("ALTER PUBLICATION p DROP TABLE t", {}),
    "leaves out delete, truncate": ("ALTER PUBLICATION p SET (publish = 'insert, update')", {}),
    "leaves out rows of 't'": ("ALTER PUBLICATION p SET TABLE t WHERE (id > 3)", {}),
    "leaves out the column 'n'": ("ALTER PUBLICATION p SET TABLE t (id, v)", {}),
    "is unlogged": ("ALTER PUBLICATION p DROP TABLE t; ALTER TABLE t SET UNLOGGED", {}),
    "replica identity of 't' is NOTHING": ("ALTER TABLE t REPLICA IDENTITY NOTHING", {}),
    "key .v. of 't' is neither": ("", {"key": "v"}),
    "by its primary key, and the key is .n.": ("ALTER TABLE t ALTER n SET NOT NULL, ADD UNIQUE (n)", {"key": "n"}),
    "column": ("", {"schema": {"id": pa.int64(), "w": pa.string()}}),
    "'n' of 't' is integer, whose values are not exact as double": (
        "",
        {"schema": {"id": pa.int64(), "n": pa.float64()}},
    ),
    "'g' of 't' is generated": (
        "ALTER TABLE t ADD g int GENERATED ALWAYS AS (n) STORED",
        {"schema": {"id": pa.int64(), "g": pa.int32()}},
    ),
    "belongs to the plug-in 'test_decoding'|belongs to the database": (
        "SELECT pg_create_logical_replication_slot('s', 'test_decoding')",
        {},
    ),
}


@pytest.mark.parametrize("sentence", STARTS)
def test_what_cannot_be_read_is_refused_with_the_fix(server: Database, sentence: str) -> None:
    statements, given = STARTS[sentence]
    if "test_decoding" in statements:
        server.run("CREATE DATABASE elsewhere")
        with psycopg.connect(server.process.url.replace("/postgres?", "/elsewhere?"), autocommit=True) as other:
            other.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    else:
        server.run(*(each for each in statements.split("; ") if each))
    try:
        with pytest.raises(AssertionError, match=sentence):
            raise AssertionError(refusal(server.reader(**given)))
    finally:
        if "test_decoding" in statements:
            server.run("SELECT pg_drop_replication_slot('s')", "DROP DATABASE elsewhere")
    assert not server.run("SELECT 1 FROM pg_replication_slots")  # nothing is made before all is checked


def test_users_without_rights_are_refused(server: Database) -> None:
    server.run("CREATE ROLE reads LOGIN", "CREATE ROLE replicates LOGIN REPLICATION")
    url = server.process.url.replace("wb:pa55word@", "reads@")
    given: dict[str, Any] = {"schema": SCHEMA, "slot": "s", "publication": "p"}
    try:
        server.run("GRANT SELECT ON t TO reads")
        assert "ALTER ROLE reads REPLICATION" in refused_of(server, wb.PostgresLogSource(url, "t", **given))
        url = url.replace("reads@", "replicates@")
        assert "GRANT SELECT ON t" in refused_of(server, wb.PostgresLogSource(url, "t", **given))
    finally:
        server.run("DROP OWNED BY reads", "DROP ROLE reads", "DROP ROLE replicates")


def test_no_server_and_a_refused_login_are_named_without_the_password(server: Database) -> None:
    given: dict[str, Any] = {"schema": SCHEMA, "slot": "s", "publication": "p", "retries": 1}
    nowhere = refused_of(server, wb.PostgresLogSource("postgresql://wb:s3cret@127.0.0.1:1/postgres", "t", **given))
    assert "Connection refused; start the server, or check host and port" in nowhere
    url = server.process.url.replace("wb:pa55word@", "nobody:s3cret@")
    unknown = refused_of(server, wb.PostgresLogSource(url, "t", **given))
    assert 'role "nobody" does not exist' in unknown
    assert "s3cret" not in nowhere + unknown


def refused_of(server: Database, source: wb.PostgresLogSource) -> str:
    reader: Any = source.create()
    reader.open(OperatorContext(clock=SystemClock()))
    server.readers.append(reader)
    return refusal(reader)


def test_a_slot_in_use_lost_or_gone_is_refused(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    until(lambda: taken(reader) or server.slot_is_read())
    saved = reader.snapshot()
    assert "is active for PID" in (said := refusal(server.reader(retries=1)))
    assert "end the other job" in said
    reader.close()
    until(lambda: not server.slot()[0])
    server.run(
        "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()", "CREATE TABLE other (n int)"
    )
    lost = "SELECT 1 FROM pg_replication_slots WHERE wal_status = 'lost'"
    try:
        until(
            lambda: server.run("INSERT INTO other VALUES (1)", "SELECT pg_switch_wal()", "CHECKPOINT", lost),
        )
        assert "max_slot_wal_keep_size" in refusal(server.reader(saved))
        assert "pg_drop_replication_slot" in refusal(server.reader())
    finally:
        server.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    server.run("SELECT pg_drop_replication_slot('s')")
    assert "'s' does not exist: it was dropped" in refusal(server.reader(saved))
    server.run("SELECT pg_create_logical_replication_slot('a' || i, 'pgoutput') FROM generate_series(1, 20) i")
    assert "all 20 replication slots of the server are in use" in refusal(server.reader())


def test_another_table_or_an_older_log_is_refused(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    saved = reader.snapshot()
    reader.close()
    until(lambda: not server.slot()[0])
    assert "another server, or was set back" in refusal(server.reader(saved | {"done": saved["done"] + 2**40}))
    server.run(
        "DROP TABLE t", "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int)", "ALTER PUBLICATION p ADD TABLE t"
    )
    assert "another table than that of the checkpoint" in refusal(server.reader(saved))


def test_a_publication_that_was_made_again_is_named(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    saved = reader.snapshot()
    reader.close()
    until(lambda: not server.slot()[0])
    server.run("DROP PUBLICATION p", "INSERT INTO t VALUES (1, 'a', 1)", "CREATE PUBLICATION p FOR TABLE t")
    assert "publication that was dropped and made again" in refusal(server.reader(saved))


def test_a_table_that_was_taken_out_of_its_publication_meanwhile_is_named(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    saved = reader.snapshot()
    reader.close()
    until(lambda: not server.slot()[0])
    server.run(
        "ALTER PUBLICATION p DROP TABLE t", "INSERT INTO t VALUES (1, 'a', 1)", "ALTER PUBLICATION p ADD TABLE t"
    )
    assert "the publication 'p', or 't' in it, was dropped or made again" in refusal(server.reader(saved))


@pytest.mark.slow
def test_a_publication_that_is_made_again_meanwhile_is_named(server: Database) -> None:
    reader = server.reader()
    read_to(reader, server.end())
    server.run("DROP PUBLICATION p", "CREATE PUBLICATION p FOR TABLE t")  # no change that a server could refuse
    assert "publication that was dropped and made again" in refusal(reader)


def test_a_value_that_does_not_fit_is_named(server: Database) -> None:
    server.run("ALTER TABLE t ADD at timestamp DEFAULT 'infinity'", "INSERT INTO t VALUES (1, 'a', 1)")
    schema = {"id": pa.int64(), "at": pa.timestamp("us")}
    assert "the column 'at': 'infinity' is no timestamp" in refusal(server.reader(schema=schema))


def test_a_server_without_logical_decoding_is_refused(tmp_path: Any) -> None:
    with running() as process:
        database = Database(process)
        assert "wal_level is 'replica': ALTER SYSTEM SET wal_level = 'logical'" in refusal(database.reader())
        database.close()


def test_wrong_arguments_are_refused() -> None:
    given: dict[str, Any] = {"slot": "s", "publication": "p"}
    with pytest.raises(SettingError, match="url is"):
        wb.PostgresLogSource("sqlite:///a.db", "t", SCHEMA, **given)
    with pytest.raises(SettingError, match="slot is 'S-1': write up to 50 lower-case"):
        wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA, slot="S-1", publication="p")
    with pytest.raises(SettingError, match="slot is 's_at_1', and names that end so are those of savepoints"):
        wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA, slot="s_at_1", publication="p")
    with pytest.raises(PlanError, match="idd"):
        wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA, key="idd", **given)
    with pytest.raises(PlanError, match=r"names that begin with \$"):
        wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA | {"$kind": pa.int8()}, **given)
    source = wb.PostgresLogSource("postgresql://u:pa55@h/d", "t", SCHEMA, **given)
    assert "pa55" not in f"{source} {source.describe()}"


def test_only_the_first_subtask_reads() -> None:
    source = wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA, slot="s", publication="p")
    reader = source.create()
    reader.open(OperatorContext(subtask=1, parallelism=2))
    assert isinstance(reader.poll(5), Exhausted)
    assert reader.splits() == ()
    assert reader.snapshot() == {}
    reader.close()
