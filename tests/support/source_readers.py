"""Readers of a source that tests drive by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader
from workbench.operators.contract.base import OperatorContext, Snapshot


def readers(source: Source, parallelism: int, clock: VirtualClock | None = None) -> list[SourceReader]:
    """One for each subtask, open."""
    made = [source.create() for _ in range(parallelism)]
    for subtask, reader in enumerate(made):
        reader.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=clock or VirtualClock()))
    return made


def read_in_runs(
    source: Source, runs: Sequence[tuple[int, Sequence[int]]], values: Callable[[Fetched], list[int]]
) -> list[int]:
    """What a job reads that is stopped and started at another parallelism again and again, and then runs to the end.

    Args:
        runs: the parallelism of each, and how many records are asked for at each poll, of the readers by turns.
        values: of what a poll gave.
    """
    seen: list[int] = []
    snapshots: list[Snapshot] = []
    for parallelism, polls in runs:
        made = readers(source, parallelism)
        for reader in made:
            reader.restore(json.loads(json.dumps(snapshots)))
        for number, size in enumerate(polls):
            fetched = made[number % parallelism].poll(size)
            seen += values(fetched) if isinstance(fetched, Fetched) else []
        snapshots = [reader.snapshot() for reader in made]
        for reader in made:  # what is read after the snapshot is lost in the crash, and read again
            reader.poll(7)
            reader.close()
    for reader in readers(source, 2):
        reader.restore(snapshots)
        while isinstance(fetched := reader.poll(100), Fetched):
            seen += values(fetched)
        assert isinstance(fetched, Exhausted)
        assert list(reader.splits()) == []
        reader.close()
    return seen
