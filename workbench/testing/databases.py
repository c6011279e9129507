"""What a job has committed to a database, as another program reads it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any


def read_database(path: Path, table: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table of an SQLite file; none where there is no such table yet."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        return Counter(connection.execute(f"SELECT * FROM {table}").fetchall()) if found else Counter()
