"""The rows that a job has committed to a database, as another program reads them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

_TABLES = {"sqlite": "SELECT name FROM sqlite_master", "duckdb": "SELECT table_name FROM information_schema.tables"}


def read_database(path: Path, tables: Iterable[str]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of tables of an SQLite file; none for tables that do not exist yet."""
    return {table: read_table(path, table, "sqlite") for table in tables}


def read_table(path: Path, table: str, engine: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table of an SQLite or DuckDB file, with nested values as text; none if it does not exist yet."""
    if not path.exists():
        return Counter()
    connect: Any = sqlite3.connect if engine == "sqlite" else import_module("duckdb").connect
    with closing(connect(str(path))) as connection:
        if (table,) not in connection.execute(_TABLES[engine]).fetchall():
            return Counter()
        rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
    return Counter(tuple(repr(value) if isinstance(value, list | dict) else value for value in row) for row in rows)
