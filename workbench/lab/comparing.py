"""The run of ``workbench compare``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.api.pictures.documents_table import COLUMNS
from workbench.api.pictures.verdicts import keeps, sentences
from workbench.api.running.architectures_compared import ArchitectureComparison, file_for
from workbench.api.running.compare import compare
from workbench.lab.simulation.user_pipeline import load_pipeline

RESULTS = {"claimed": "claimed", "observed": "observed", "lost": "lost", "doubled": "doubled"} | {
    "too_low": "too low",
    "too_high": "too high",
}
COSTS = {
    "failures": "failures",
    "records_again": "read again",
    "recovery_ms": "recovery ms",
    "records_per_second": "records/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
}
MECHANISMS = {
    "messages": "messages",
    "bytes": "bytes",
    "stall_ms": "stalls ms",
    "timed_out": "timed out",
    "queued": "queued",
    "refused": "zombies",
}
"""The columns of the three printed tables, with their titles."""


def run(options: argparse.Namespace, architectures: Sequence[str]) -> int:
    """Run the pipeline of a file under each architecture; 1 if one breaks the guarantee that it claims."""
    settings = {
        name: getattr(options, name)
        for name in ("parallelism", "checkpoint_interval")
        if getattr(options, name) is not None
    }
    if options.save is not None:
        file_for(options.save)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    with TemporaryDirectory(prefix="workbench-compare-") as folder:
        pipeline = load_pipeline(options.file).trial(Path(folder), lambda _: []).pipeline
        lanes: Any = compare(pipeline, list(architectures), faults=options.faults or None, **settings)
        rows = _rows(lanes, console, quiet=options.json)
        documents = lanes.documents().to_pylist() if options.documents else []
        if options.save is not None:
            lanes.save(options.save)
    if options.json:
        for row in rows:
            console.print(json.dumps(row))
    else:
        console.print(_table(rows, RESULTS))
        console.print(_table(rows, COSTS))
        console.print(_table(rows, MECHANISMS))
        if documents:
            console.print(_documents(documents))
        for sentence in sentences(rows):
            console.print(sentence)
    return int(not all(keeps(row) for row in rows))


def _rows(lanes: ArchitectureComparison, console: Console, *, quiet: bool) -> list[dict[str, Any]]:
    try:
        if not quiet and console.is_terminal:
            with console.status(f"running {len(lanes)} jobs: {', '.join(lanes)}"):
                lanes.wait()
        else:
            lanes.wait()
        rows: list[dict[str, Any]] = lanes.table().to_pylist()
        return rows
    finally:
        lanes.cancel()


def _table(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, title in {"architecture": "", **columns}.items():
        is_text = name in ("architecture", "claimed", "observed")
        table.add_column(title, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in ("architecture", *columns)))
    return table


def _documents(rows: Sequence[dict[str, str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "", "claimed", "observed"):
        table.add_column(title)
    for row in rows:
        for name, title in COLUMNS.items():
            first = row["architecture"] if title == "guarantee" else ""
            table.add_row(first, title, row[f"{name}_claimed"], row[f"{name}_observed"])
    return table


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}" if value < 1_000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
