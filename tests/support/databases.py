"""Reads databases as another program would."""

from __future__ import annotations

import sqlite3
from typing import Any

import duckdb


def query(address: str, sql: str) -> list[tuple[Any, ...]]:
    """What another program reads."""
    engine, _, path = address.partition(":///")
    connection: Any = sqlite3.connect(path) if engine == "sqlite" else duckdb.connect(path)
    try:
        return list(connection.execute(sql).fetchall())
    finally:
        connection.close()
