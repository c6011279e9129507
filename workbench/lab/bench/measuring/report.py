"""The report of a benchmark: medians of its runs, next to those of other systems."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import StringIO

from rich.console import Console
from rich.table import Table

from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.peers import OUTCOMES, comparable

OURS = "workbench"
WIDTH = 150
"""The width of a table without a terminal."""


class Report:
    """The results of some runs.

    Args:
        results: ours and others', in any order.

    Example:
        A cell that ends in ``report`` shows it as a table; ``report.results`` has every run.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = tuple(results)

    @property
    def exact(self) -> bool:
        """Whether every result of ours is correct."""
        return all(result.checked for result in self.results if result.peer == OURS)

    def medians(self) -> list[Result]:
        """One result for each system, work and settings, with the medians of its figures."""
        groups: dict[tuple[str, str, str], list[Result]] = {}
        for result in self.results:
            settings = {name: value for name, value in result.config.items() if name not in OUTCOMES}
            groups.setdefault((result.peer, result.workload, json.dumps(settings)), []).append(result)
        return [_median(group) for group in groups.values()]

    def table(self) -> Table:
        """Medians, with the ratios to other systems, if there are any, and to the runs without checkpoints."""
        medians = self.medians()
        ours = [result for result in medians if result.peer == OURS]
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("work", "settings", "by"):
            table.add_column(title, no_wrap=title != "settings")
        for title in ("M events/s", "M per CPU s", "ours is", "p50 ms", "p99 ms", "MB", "load"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("result")
        for mine in ours:
            share = self.share_without_checkpoints(mine)
            _add(table, mine, mine, "-" if share is None else f"{share:.1%} of no checkpoints")
            for theirs in medians:
                if theirs.peer != OURS and comparable(mine, theirs):
                    ratio = mine.eps_cpu_s / theirs.eps_cpu_s if mine.eps_cpu_s and theirs.eps_cpu_s else None
                    _add(table, theirs, mine, "-" if ratio is None else f"{ratio:.2f}x")
        return table

    def share_without_checkpoints(self, mine: Result) -> float | None:
        """The speed of runs with checkpoints as a share of that without; None if there is nothing to compare.

        It is the median over the rounds of each round's share: a temporary slowdown of the machine affects both.
        """
        if not mine.config.get("checkpoint"):
            return None
        settings = _settings(mine)
        with_them = [each for each in self.results if each.peer == OURS and _settings(each) == settings]
        settings |= {"checkpoint": 0}
        without = [each for each in self.results if each.peer == OURS and _settings(each) == settings]
        pairs = zip(with_them, without, strict=False)
        shares = [one.eps_cpu_s / other.eps_cpu_s for one, other in pairs if one.eps_cpu_s and other.eps_cpu_s]
        return statistics.median(shares) if shares else None

    def __repr__(self) -> str:
        console = Console(width=WIDTH, no_color=True, force_jupyter=False)
        with console.capture() as captured:
            console.print(self.table())
        return captured.get()

    def _repr_html_(self) -> str:
        console = Console(width=WIDTH, record=True, force_jupyter=False, file=StringIO())
        console.print(self.table())
        return console.export_html(inline_styles=True, code_format="<pre style='overflow-x:auto'>{code}</pre>")


def _median(group: Sequence[Result]) -> Result:
    def median(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    first = group[0]
    speed = median(result.eps_cpu_s for result in group)
    return replace(
        first,
        eps=round(statistics.median(result.eps for result in group)),
        eps_core=round(statistics.median(result.eps_core for result in group)),
        eps_cpu_s=None if speed is None else round(speed),
        p50_ms=median(result.p50_ms for result in group),
        p90_ms=median(result.p90_ms for result in group),
        p99_ms=median(result.p99_ms for result in group),
        rss_mb=max(result.rss_mb for result in group),
        load1=max(result.load1 for result in group),
        checked=all(result.checked for result in group),
    )


def _settings(result: Result) -> dict[str, object]:
    """The requested settings, without results; results of different works differ in them too."""
    settings = {name: value for name, value in result.config.items() if name not in OUTCOMES}
    return settings | {"workload": result.workload}


def _add(table: Table, shown: Result, mine: Result, relation: str) -> None:
    own = shown is mine
    settings = shown.config if own else {n: v for n, v in shown.config.items() if n not in mine.config}
    table.add_row(
        shown.workload if own else "",
        ", ".join(f"{name} {value:,}" if type(value) is int else f"{name} {value}" for name, value in settings.items()),
        shown.peer,
        f"{shown.eps / 1e6:,.2f}",
        "-" if shown.eps_cpu_s is None else f"{shown.eps_cpu_s / 1e6:,.2f}",
        relation,
        *("-" if value is None else f"{value:,.2f}" for value in (shown.p50_ms, shown.p99_ms)),
        f"{shown.rss_mb:,}",
        f"{shown.load1:.1f}",
        "exact" if shown.checked else "WRONG",
    )
