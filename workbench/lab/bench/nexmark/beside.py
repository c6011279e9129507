"""Nexmark compared with other SQL systems: the same events as files, the queries in their words, and the ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.report import OURS, Report
from workbench.lab.bench.measuring.shared_tables import SharedTable, share
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.nexmark.events import events, side_input
from workbench.lab.bench.nexmark.measuring import EVENTS
from workbench.lab.bench.nexmark.queries import Q

_COUNT_CHAR = "count_char(extra, 'c')", "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))"
"""In Flink it is a function that the benchmark brings along."""
_OUT_OF_ORDERNESS_S = 4
DEFAULT = ("flink_sql",)
"""The scripts that know this work."""


def write(folder: Path, queries: Sequence[str] = (), count: int = EVENTS) -> None:
    """Write events and queries.

    Args:
        folder: for the files.
        queries: their names; none: all.
        count: of events.
    """
    texts = {name: Q[name].rstrip(";").replace(*_COUNT_CHAR) for name in queries or tuple(ANSWERS)}
    tables = {name: SharedTable(rows, "dateTime", _OUT_OF_ORDERNESS_S) for name, rows in events(count).items()}
    tables["side_input"] = SharedTable(side_input())
    share(folder, tables, texts, dict.fromkeys(texts, count))


def summaries(results: Sequence[Result]) -> list[str]:
    """A line for each system, and for its figures with and without reading: the least ratio and the median."""
    medians = Report(results).medians()
    ours = {result.config["query"]: result.eps_cpu_s for result in medians if result.peer == OURS}
    ratios: dict[str, dict[str, float]] = {}
    for result in medians:
        mine, name = ours.get(result.config["query"]), str(result.config["query"])
        if result.peer != OURS and mine and result.eps_cpu_s:
            reading = result.config.get("reading")
            system = result.peer if reading is None else f"{result.peer}, reading {reading}"
            ratios.setdefault(system, {})[name] = mine / result.eps_cpu_s
    lines = []
    for system, found in ratios.items():
        least = min(found, key=found.__getitem__)
        middle = statistics.median(found.values())
        lines.append(
            f"{len(found)} queries beside {system}: {found[least]:.1f}x at the least ({least}), "
            f"{middle:.1f}x in the median"
        )
    return lines
