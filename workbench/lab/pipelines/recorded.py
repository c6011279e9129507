"""Recorded histories for simulated replays: a process writes each of them once, and copies it for every run."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from random import Random

import pyarrow as pa

from workbench.clock import VirtualClock
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.connectors.replay.manifest import Manifest
from workbench.lab.pipelines.inputs import SCHEMA, STEP_US, Chance, Row, draw_rows, input_columns
from workbench.lab.pipelines.run_folder import make_run_folder, remove_run_folder

HISTORIES = 12
"""The number of histories to choose from: writing one takes half as long as a run on it, and no fault precedes it."""


def recorded(
    chance: Random, folder: Path, disorder: int, *, long: bool = False, most: int | None = None
) -> tuple[ReplayLog, list[Row]]:
    """A history in its own folder, and its records.

    Args:
        chance: draws one of the histories.
        folder: its place.
        disorder: by how many microseconds event times are out of order.
        long: whether it has many records.
        most: the maximum number; None: no limit.
    """
    always, rows_max = (chance.long, chance.rows_max) if isinstance(chance, Chance) else (False, None)
    if most is not None:
        rows_max = most if rows_max is None else min(most, rows_max)
    rows, manifest, files = _history(chance.randrange(HISTORIES), disorder, rows_max, long or always)
    place = folder / "history.log"
    for below in sorted({os.path.dirname(name) for name, _ in files}):
        os.makedirs(f"{place}/{below}")
    for name, content in files:
        with open(f"{place}/{name}", "wb") as file:
            file.write(content)
    return ReplayLog(place, manifest), rows


@lru_cache(maxsize=256)
def _history(
    number: int, disorder: int, rows_max: int | None, long: bool
) -> tuple[list[Row], Manifest, tuple[tuple[str, bytes], ...]]:
    """The records of a history, its parameters, and its files."""
    chance = Chance(f"history {number}", rows_max, long=long)
    rows = draw_rows(chance, disorder)
    arrivals = pa.array([row.n * STEP_US for row in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    instant = pa.timestamp("us", "UTC")
    columns = [column.cast(instant) if name == "t" else column for name, column in input_columns(rows)]
    folder = make_run_folder()
    try:
        log = write_log(
            pa.table([*columns, arrivals], names=[*SCHEMA.names, "arrived"]),
            folder / "history.log",
            event_time="t",
            arrival_time="arrived",
            channels=chance.choice((1, 2, 3)),
            row_group_rows=8,
            compression="none",  # loading zstd takes longer than everything else for eight rows
            clock=VirtualClock(),
        )
        files = tuple((file.name, (log.path / file.name).read_bytes()) for file in log.manifest.files)
    finally:
        remove_run_folder(folder)
    return rows, log.manifest, files
