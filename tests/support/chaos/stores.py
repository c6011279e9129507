"""PostgreSQL, and the folder with files and databases of a process; see `systems`."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import postgresql_server
import pyarrow as pa
import pyarrow.parquet as pq
from relay import Relay

from .judge import Found, Unreadable
from .messages import message, read_message, read_texts
from .rows import KEYS, Row, change, row
from .systems import System, by_part

_TYPES = {int: "BIGINT", str: "TEXT"}
_GHOSTS = range(9_000_000, 9_000_003)
"""Rows of a transaction that never commits."""


class PostgresSystem(System):
    """It crashes in the middle of a transaction that adds rows to each input."""

    def __init__(self, server: postgresql_server.PostgresProcess) -> None:
        super().__init__(server)
        self.relay = Relay(server.folder / ".s.PGSQL.5432")
        options = "sslmode=disable&gssencmode=disable"
        self.place = f"postgresql://wb:pa55word@127.0.0.1:{self.relay.port}/postgres?{options}"
        self._inputs: set[str] = set()
        self._connection: Any = None

    def create_input(self, kind: str, number: int) -> None:
        table = f"in_{number}"
        self._execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, key BIGINT, value BIGINT, text TEXT)")
        if kind == "postgresql-log":
            self._execute(f"CREATE PUBLICATION publication_{number} FOR TABLE {table}")
        self._inputs.add(table)

    def create_output(self, kind: str, number: int, columns: Mapping[str, type]) -> None:
        if kind == "postgresql":
            names = ", ".join(f"{name} {_TYPES[type_]}" for name, type_ in columns.items())
            self._execute(f"CREATE TABLE out_{number} ({names}, arrival BIGSERIAL)")  # rows fill gaps in older pages

    def drop(self, kind: str, number: int) -> None:
        self._inputs.discard(f"in_{number}")
        if kind == "postgresql-log":
            self._execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                f"WHERE slot_name ~ '^slot_{number}(_at_|$)' AND NOT active"
            )

    def feed(self, kind: str, number: int, numbers: range) -> None:
        table = f"in_{number}"
        if kind == "postgresql":
            self._add(self._connected(), table, map(row, numbers))
            return
        with self._connected().transaction():
            for each in map(change, numbers):
                self._add(self._connection, table, [row(each.added)])
                for other in each.replaced:
                    self._execute(
                        f"UPDATE {table} SET key = (key + 1) % {KEYS}, value = value + 1, text = text || '+' "
                        f"WHERE id = {other}"
                    )
                for other in each.deleted:
                    self._execute(f"DELETE FROM {table} WHERE id = {other}")

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        table, order = (f"out_{number}", "arrival") if kind == "postgresql" else (f"last_{number}", "1")
        if self._execute(f"SELECT to_regclass('{table}')::text") == [(None,)]:
            return []
        names = list(columns)
        rows = self._execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY {order}")
        return [dict(zip(names, each, strict=True)) for each in rows]

    def down(self) -> None:
        self._execute("BEGIN")
        for table in self._inputs:
            self._add(self._connection, table, map(row, _GHOSTS))
        self._server.crash()
        self.close()

    def close(self) -> None:
        """End the producer's connection."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    def _add(self, connection: Any, table: str, rows: Any) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", [tuple(each.values()) for each in rows])

    def _execute(self, sql: str) -> list[Any]:
        found = self._connected().execute(sql)
        return list(found.fetchall()) if found.description else []

    def _connected(self) -> Any:
        if self._connection is None:
            import psycopg

            self._connection = psycopg.connect(self._server.url, autocommit=True)
        return self._connection


class FilesSystem(System):
    """A folder; its files are all there when the job starts."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.place = str(folder)
        self._folder = folder

    def feed(self, kind: str, number: int, numbers: range) -> None:
        for part, rows in by_part(numbers):
            path = self._folder / f"in-{number}-{part}.{kind}"
            match kind:
                case "jsonl":
                    path.write_bytes(b"".join(message(each) + b"\n" for each in rows))
                case "csv":
                    with path.open("w", newline="") as file:
                        writer = csv.DictWriter(file, rows[0])
                        writer.writeheader()
                        writer.writerows(rows)
                case _:
                    pq.write_table(pa.Table.from_pylist(rows), path)

    def found(self, kind: str, number: int, columns: Mapping[str, type]) -> list[Found]:
        if kind.startswith(("sqlite", "duckdb")):
            return list(self._stored(kind, number, columns))
        files = sorted((self._folder / f"out-{number}").glob("part-*"))
        return [each for path in files for each in _rows_of(path, columns)]

    def _stored(self, kind: str, number: int, columns: Mapping[str, type]) -> Iterator[Row]:
        engine, _, upsert = kind.partition("-")
        path = self._folder / f"{number}.{engine}"
        if not path.exists():
            return
        table, names = f"{'last' if upsert else 'out'}_{number}", list(columns)
        connection: Any = sqlite3.connect(path) if engine == "sqlite" else duckdb.connect(str(path))
        with closing(connection):
            there = "sqlite_master WHERE name" if engine == "sqlite" else "duckdb_tables() WHERE table_name"
            if connection.execute(f"SELECT count(*) FROM {there} = '{table}'").fetchone()[0]:
                sql = f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid"
                for each in connection.execute(sql).fetchall():
                    yield dict(zip(names, each, strict=True))


def _rows_of(path: Path, columns: Mapping[str, type]) -> list[Found]:
    """The rows of a committed file, which must be whole."""
    try:
        match path.suffix:
            case ".parquet":
                return list(pq.read_table(path).to_pylist())
            case ".csv":
                with path.open(newline="") as file:
                    return [read_texts(each, columns) for each in csv.DictReader(file, strict=True)]
            case _:
                return [read_message(line) for line in path.read_bytes().split(b"\n") if line]
    except (pa.ArrowInvalid, csv.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
        return [Unreadable(f"{path.name}: {error}")]


@contextmanager
def postgresql() -> Iterator[PostgresSystem]:
    with postgresql_server.running("wal_level=logical", "max_replication_slots=50", "max_wal_senders=50") as server:
        system = PostgresSystem(server)
        try:
            yield system
        finally:
            system.close()


@contextmanager
def files() -> Iterator[FilesSystem]:
    with TemporaryDirectory(prefix="chaos-") as folder:
        yield FilesSystem(Path(folder))
