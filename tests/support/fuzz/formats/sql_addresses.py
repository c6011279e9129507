"""Addresses of databases, names in them, and database files that something else has changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.sql.database import DatabaseFile
from workbench.connectors.sql.sink import SqlSink

from ..mutations import octets, texts, values
from ..trial import Format, Trial

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
_FILES = {"sqlite": "real.sqlite", "duckdb": "real.duckdb"}
_WORDS = (
    "sqlite",
    "duckdb",
    "postgresql",
    ":///",
    "://",
    ":memory:",
    "%2e%2e",
    "%00",
    "?mode=ro",
    "#x",
    "file:",
    "user:pass@",
)


class SqlAddresses(Format):
    """A sink is made for an address; where that leads into the input's folder, its database is looked at."""

    name = "sql-address"
    share = 6

    def prepare(self, folder: Path) -> None:
        table = pa.table({"k": ["a", "b"] * 20, "n": range(40)})
        for engine, name in _FILES.items():
            sink = SqlSink(f"{engine}:///{folder / name}", "counts")
            wb.Stream.from_table(table).with_parallelism(1).sink_to(sink).run(engine, driver="stepping").wait()

    def load(self, folder: Path, outside: Path) -> None:
        self.folder = folder

    def make(self, trial: Trial) -> Any:
        chance = trial.chance
        engine = chance.choice(sorted(_FILES))
        url, table, keys = f"{engine}:///{_FILES[engine]}", "counts", None
        path = trial.folder / _FILES[engine]
        shutil.copy(self.folder / path.name, path)
        for _ in trial.changes():
            match chance.randrange(4):
                case 0:
                    table = chance.choice((*values.NAMES, texts.changed(chance, table)))
                    trial.story.append(f"the table is {table[:80]!r}")
                case 1:
                    path.write_bytes(trial.changed(octets.changed, path.read_bytes(), path.name))
                case 2:
                    keys = [chance.choice(("k", "n", "no", *values.NAMES[:30]))]
                    trial.story.append(f"the key is {keys[0]!r}")
                case _:
                    url = texts.changed(chance, url, _WORDS)
                    trial.story.append(f"the address is {url[:80]!r}")
        return url, table, keys

    def read(self, trial: Trial, made: Any) -> None:
        url, table, keys = made
        sink = SqlSink(url, table, upsert_key=keys or ())
        sink.check(SCHEMA)
        sink.describe()
        database = sink.target.database  # of a server: nothing is to be connected to
        if isinstance(database, DatabaseFile) and database.path.resolve().is_relative_to(trial.folder):
            sink.check_fresh(SinkContext("another job", "out", SCHEMA))
            with database.transaction("look") as connection:
                connection.execute("SELECT 1")
