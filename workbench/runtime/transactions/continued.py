"""Which rows of a store continue the checkpoints of a directory.

A small file beside the checkpoints names them. A job that goes on there in another way, from a savepoint or with
another architecture, leaves the rows behind: what it does is not in them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from workbench.from_json import made, parsed
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.storage import CheckpointStorage

FILE = "transactions.json"
"""The name of the file next to the checkpoints."""


@dataclass(frozen=True, slots=True)
class Continued:
    """The rows of a job.

    Attributes:
        rows: names them in the store.
        store: the URL of the store, without secrets.
        current: nothing was done since without them.
    """

    rows: str
    store: str
    current: bool = True


def rows_of(storage: CheckpointStorage, store: str, run: str) -> tuple[str, str]:
    """The name of the rows that continue the checkpoints, and that of rows to forget, empty if there are none.

    Args:
        storage: of the checkpoints.
        store: the URL of the store, without secrets.
        run: names new rows; unique for each run.
    """
    found = _read(storage)
    if found is not None and found.current and found.store == store:
        return found.rows, ""
    storage.keep(FILE, _bytes(Continued(run, store)))
    return run, "" if found is None or found.store != store else found.rows


def leave(storage: CheckpointStorage) -> None:
    """Note that the job continues without the rows."""
    found = _read(storage)
    if found is not None and found.current:
        storage.keep(FILE, _bytes(Continued(found.rows, found.store, current=False)))


def plan_of(graph: PhysicalGraph) -> str:
    """Identifies the ranges of a plan: the tasks, their operators and channels, and the number of key groups."""
    parts = [[vertex.name, list(vertex.tasks), list(vertex.uids)] for vertex in graph.vertices]
    edges = [[edge.id, len(edge.pairs)] for edge in graph.edges]
    text = json.dumps([parts, edges, sorted(graph.kinds.items()), graph.max_parallelism])
    return hashlib.sha256(text.encode()).hexdigest()


def _read(storage: CheckpointStorage) -> Continued | None:
    content = storage.kept(FILE)
    try:
        return made(Continued, parsed(content), "it") if content else None
    except ValueError:
        return None  # begin anew: the checkpoints hold everything


def _bytes(continued: Continued) -> bytes:
    return json.dumps(asdict(continued)).encode()
