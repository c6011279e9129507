"""Tables as files and queries as text, from which scripts for SQL systems read what they run.

A folder for each work in PEER_DATA has a CSV file without a header for each table, and ``work.json``: the tables with
their columns, the queries in the dialect of Flink, the number of events that each query reads, and, where a script can
compare them, its rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_KINDS = {
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
}
_MS = "TIMESTAMP(3)"


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table that other systems read.

    Attributes:
        rows: without nulls.
        event_time: its column of event time; None: it has none.
        out_of_orderness_s: how far a row may be behind.
    """

    rows: pa.Table
    event_time: str | None = None
    out_of_orderness_s: int = 0


def in_milliseconds(rows: pa.Table) -> pa.Table:
    """The rows with instants rounded down to milliseconds, as other systems read them."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rounded = rows[column.name].cast(pa.timestamp("ms"), safe=False).cast(column.type)
            rows = rows.set_column(at, column.name, rounded)
    return rows


def share(
    folder: Path,
    tables: Mapping[str, SharedTable],
    queries: Mapping[str, str],
    events: Mapping[str, int],
    answers: Mapping[str, pa.Table] | None = None,
) -> None:
    """Write a work.

    Args:
        folder: a new folder, or one that such a work replaces.
        tables: by name. Instants are rounded down to milliseconds, the precision of Flink's event time.
        queries: by name; semicolons separate statements, the last of which gives the rows.
        events: how many each query reads.
        answers: the rows of queries, in any order; instants become text with milliseconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described = {}
    for name, table in tables.items():
        columns = {}
        for column in table.rows.schema:
            columns[column.name] = _KINDS.get(column.type, _MS)
        options = pa.csv.WriteOptions(include_header=False, quoting_style="needed")
        pa.csv.write_csv(_told(table.rows), folder / f"{name}.csv", options)
        kept = {"event_time": table.event_time, "out_of_orderness_s": table.out_of_orderness_s}
        described[name] = {"file": f"{name}.csv", "columns": columns, **kept}
    rows_of = {name: [list(row.values()) for row in _told(rows).to_pylist()] for name, rows in (answers or {}).items()}
    work = {"tables": described, "queries": dict(queries), "events": dict(events), "answers": rows_of}
    (folder / "work.json").write_text(json.dumps(work, indent=2), encoding="utf-8")


def _told(rows: pa.Table) -> pa.Table:
    """The rows with instants as text."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            instants = pc.strftime(rows[column.name].cast(pa.timestamp("ms"), safe=False), "%Y-%m-%d %H:%M:%S")
            rows = rows.set_column(at, column.name, instants)
    return rows
