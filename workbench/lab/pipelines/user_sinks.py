"""Where the sinks of a user's pipeline write in a simulation, and how their rows are read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.api.running.pipeline import Pipeline
from workbench.connectors.contract.base import Sink
from workbench.errors import SettingError
from workbench.lab.pipelines.committed import counted
from workbench.lab.pipelines.comparing import Outputs, Rows

ROWS = "rows"
"""The name of the rows from the user's own function."""
_NO_ROWS = "define rows(folder), which returns the rows that it has written, leave out the sink, or use wb.TableSink"
_ELSEWHERE = "define stream(folder), which writes to the folder that it is given, or use wb.TableSink"


@dataclass(frozen=True, slots=True)
class UserSinks:
    """The sinks of a pipeline.

    Attributes:
        folders: of those that write files, by uid.
        readers: of those that write outside of the job, by a name for each.
        upserts: names of those whose rows may replace one another.
    """

    folders: tuple[tuple[str, Path], ...]
    readers: tuple[tuple[str, Callable[[], Rows]], ...]
    upserts: tuple[str, ...]

    def read(self) -> Outputs:
        """The rows that are visible outside of the job."""
        return {name: read() for name, read in self.readers}


def sinks_of(pipeline: Pipeline, folder: Path, rows: Callable[[Path], Any] | None, file: Path) -> UserSinks:
    """The sinks of a pipeline that may write to a folder.

    Args:
        pipeline: of the user.
        folder: of one run.
        rows: the user's own function that reads the rows written there; None: there is none.
        file: the file that defines the pipeline, for errors.

    Raises:
        SettingError: a sink writes elsewhere, or its rows cannot be read.
    """
    folders: list[tuple[str, Path]] = []
    readers: dict[str, Callable[[], Rows]] = {}
    upserts = [ROWS]
    graph = pipeline.logical_graph()
    for node in graph.nodes:
        sink = node.spec
        if not isinstance(sink, Sink) or not sink.writes_outside:
            upserts += [sink.name] if isinstance(sink, Sink) and sink.upsert_key else []
            continue
        place = sink.place()
        if place is not None and place.path is not None and _is_in(Path(place.path), folder):
            name = f"table {place.table} of {Path(place.path).name}" if place.table else f"files of {graph.uids[node]}"
            readers[name] = partial(_read, sink)
            upserts += [name] if sink.upsert_key else []
            folders += [] if place.table else [(graph.uids[node], Path(place.path))]
        elif place is not None or rows is None:
            raise SettingError(
                f"a simulation runs the pipeline of {file} many times, and would write to {sink.describe()!r} each"
                f" time: {_NO_ROWS if place is None else _ELSEWHERE}"
            )
    if rows is not None:
        readers[ROWS] = lambda: _told(rows(folder))
    return UserSinks(tuple(folders), tuple(readers.items()), tuple(upserts))


def _read(sink: Sink) -> Rows:
    """The rows of a sink.

    Raises:
        SettingError: it does not report them.
    """
    rows = sink.committed()
    if rows is None:
        raise SettingError(f"the sink {sink.name!r} does not report what it has committed: define its committed()")
    return _told(rows)


def _is_in(path: Path, folder: Path) -> bool:
    return path.expanduser().resolve().is_relative_to(folder.resolve())


def _told(rows: pa.Table | Iterable[object]) -> Rows:
    return counted(rows) if isinstance(rows, pa.Table) else Counter((repr(row),) for row in rows)
