"""Where the sinks of a user's pipeline write in a simulation, and what can be read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.api.running.pipeline import Pipeline
from workbench.connectors.live.callback_sink import CallbackSink
from workbench.connectors.parts.file_sink import FileSink
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.sql.database import Database
from workbench.connectors.sql.sink import ENGINES, SqlSink
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import SettingError
from workbench.lab.pipelines.committed import counted
from workbench.lab.pipelines.comparing import Outputs, Rows
from workbench.lab.pipelines.databases import read_table

ROWS = "rows"
"""Under this name stands what the user's own function tells."""


@dataclass(frozen=True, slots=True)
class UserSinks:
    """The sinks of a pipeline.

    Attributes:
        folders: of those that commit Parquet files, by uid.
        readers: of those that write elsewhere, by a name for each.
        upserts: names of those whose rows may replace one another.
    """

    folders: tuple[tuple[str, Path], ...]
    readers: tuple[tuple[str, Callable[[], Rows]], ...]
    upserts: tuple[str, ...]

    def read(self) -> Outputs:
        """What is to be seen outside of the job."""
        return {name: read() for name, read in self.readers}


def sinks_of(pipeline: Pipeline, folder: Path, rows: Callable[[Path], Any] | None, file: Path) -> UserSinks:
    """The sinks of a pipeline that may write to a folder.

    Args:
        pipeline: of the user.
        folder: of one run.
        rows: the user's own function that tells what is written there; None: there is none.
        file: that defines the pipeline, for errors.

    Raises:
        SettingError: a sink writes elsewhere, or what it does cannot be seen.
    """
    folders: list[tuple[str, Path]] = []
    readers: dict[str, Callable[[], Rows]] = {}
    upserts = [ROWS]
    graph = pipeline.logical_graph()
    for node in graph.nodes:
        sink: Any = node.spec
        if node.role != "sink" or (isinstance(sink, CallbackSink) and rows is not None):
            continue
        if isinstance(sink, TableSink):
            upserts += [sink.name] if sink.upsert else []
        elif isinstance(sink, ParquetSink | FileSink) and _is_in(Path(sink.path), folder):
            if (suffix := sink.part_format.suffix) == ".parquet":
                folders.append((graph.uids[node], Path(sink.path)))
            else:
                readers[f"files of {graph.uids[node]}"] = partial(_lines, Path(sink.path), suffix)
        elif isinstance(sink, SqlSink) and _is_in(path := Database.at(sink.url, ENGINES).path, folder):
            name = f"table {sink.table} of {path.name}"
            readers[name] = partial(read_table, path, sink.table, sink.url.partition(":")[0])
            upserts += [name] if sink.mode == "upsert" else []
        else:
            raise SettingError(
                f"a simulation runs the pipeline of {file} many times, and would write to {sink.describe()!r} each"
                f" time: {_remedy(sink)}"
            )
    if rows is not None:
        readers[ROWS] = lambda: _told(rows(folder))
    return UserSinks(tuple(folders), tuple(readers.items()), tuple(upserts))


def _remedy(sink: object) -> str:
    if isinstance(sink, CallbackSink):
        return "define rows(folder), which returns the rows that it has written, or use wb.TableSink"
    if isinstance(sink, ParquetSink | FileSink | SqlSink):
        return "define stream(folder), which writes to the folder that it is given, or use wb.TableSink"
    return "leave the sink away, or use wb.TableSink"


def _is_in(path: Path, folder: Path) -> bool:
    return path.expanduser().resolve().is_relative_to(folder.resolve())


def _lines(folder: Path, suffix: str) -> Rows:
    """The lines of all committed files of text, without the names of the columns."""
    begin = 1 if suffix == ".csv" else 0
    parts = sorted(folder.glob(f"part-*{suffix}"))
    return Counter((line,) for part in parts for line in part.read_text().splitlines()[begin:])


def _told(rows: pa.Table | Iterable[object]) -> Rows:
    return counted(rows) if isinstance(rows, pa.Table) else Counter((repr(row),) for row in rows)
