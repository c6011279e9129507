"""Parquet files of users, read by row groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.connectors.files.file_source import FileSource

from ..mutations import folders, octets, tables
from ..trial import Format, Trial
from .text_files import read_all

ROWS = 40


class ParquetFiles(Format):
    """A folder of files is read whole, with the columns of its first file or with declared ones."""

    name = "parquet"
    share = 8

    def make(self, trial: Trial) -> Any:
        chance = trial.chance
        table = pa.table(
            {
                "n": np.arange(ROWS),
                "t": pa.array(np.arange(ROWS) * 10**6, pa.timestamp("us", "UTC")),
                "word": [None if n % 9 == 4 else f"w{n % 5}é" for n in range(ROWS)],
                "tags": [["a"] * (n % 3) for n in range(ROWS)],
                "kind": pa.array([f"k{n % 2}" for n in range(ROWS)]).dictionary_encode(),
            }
        )
        schema = table.schema
        folder = trial.folder / "data"
        folder.mkdir()
        how = {"row_group_size": 16, "compression": chance.choice(("zstd", "none", "snappy"))}
        for name in ("a.parquet", "b.parquet"):
            pq.write_table(table, folder / name, **how)
        for _ in trial.changes():
            paths = sorted(path for path in folder.glob("*.parquet") if path.is_file() and not path.is_symlink())
            if not paths:
                break
            path = chance.choice(paths)
            match chance.randrange(4):
                case 0:
                    table = trial.changed(tables.changed, table, path.name)
                    try:
                        pq.write_table(table, path, **how)
                    except (pa.ArrowException, ValueError, OSError):
                        pq.write_table(pa.table({"n": [1]}), path)
                case 1 if chance.random() < 0.3:
                    trial.story.append(folders.changed(chance, folder, trial.folder))
                case _:
                    path.write_bytes(trial.changed(octets.changed, path.read_bytes(), path.name))
        if chance.random() < 0.3:
            at = chance.randrange(len(schema))
            schema = schema.set(at, pa.field(schema.names[at], chance.choice(tables.TYPES)))
            trial.story.append(f"the column {schema.names[at]!r} is declared as {schema.field(at).type}")
        elif chance.random() < 0.5:
            schema = None
        return folder, schema

    def read(self, trial: Trial, made: Any) -> None:
        folder, schema = made
        source = FileSource(folder, columns=schema, event_time="t" if trial.chance.random() < 0.5 else None)
        batches, _ = read_all(source)
        for batch in batches:
            batch.validate(full=True)
            trial.must(batch.schema.equals(source.schema), f"a batch is {batch.schema}, declared {source.schema}")
