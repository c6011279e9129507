"""The body of a ``%%stream_sql`` cell: a script over the variables that hold streams and tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from IPython.display import display

import workbench as wb
from workbench.connectors.contract.base import Sink
from workbench.errors import QueryError
from workbench.queries.reading.places import Text
from workbench.queries.scripts import Script, script


def tables_of(namespace: dict[str, Any]) -> dict[str, Any]:
    """The variables that a query can name: streams, pyarrow tables and sinks; those that begin with _ are IPython's."""
    return {
        name: value
        for name, value in namespace.items()
        if isinstance(value, wb.Stream | pa.Table | Sink) and not name.startswith("_")
    }


def run_query(shell: Any, body: str) -> wb.Stream | wb.types.Pipeline:
    """Plan a cell, and return the stream of its query, or the pipeline of its INSERT INTO.

    Raises:
        QueryError: the script has a mistake, or no query; lines count from the top of the cell.
    """
    done = _run(shell, body)
    if done.result is not None and done.inserted is not None:
        raise QueryError("the cell has both INSERT INTO and a query, but a job runs only one of them: use two cells")
    made = done.inserted if done.result is None else done.result
    if made is None:
        raise QueryError("the cell has no query to run: end it with a SELECT, or remove the name")
    return made


def run_views(shell: Any, body: str) -> None:
    """Plan a cell that starts no job.

    Raises:
        QueryError: the script has a mistake, or a query.
    """
    done = _run(shell, body)
    if done.result is not None or done.inserted is not None:
        raise QueryError("the job of the query has no name: write '%%stream_sql NAME'")


def _run(shell: Any, body: str) -> Script:
    """Make the variables of CREATE VIEW, and show the plans of EXPLAIN."""
    done = script(Text(body, above=1), tables_of(shell.user_ns))
    shell.user_ns.update(done.views)
    for stream in done.explained:
        display(stream.sink_to(wb.DiscardSink()).explain())
    return done
