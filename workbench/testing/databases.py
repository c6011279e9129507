"""What a job has committed to a database, as another program reads it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any


def read_database(path: Path, tables: Iterable[str]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of tables of an SQLite file; none of those that are not there yet."""
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return {
            table: Counter(connection.execute(f"SELECT * FROM {table}") if table in there else ()) for table in tables
        }
