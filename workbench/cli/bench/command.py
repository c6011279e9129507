"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from workbench.cli.bench.grouping import grouping
from workbench.cli.bench.measure import Result
from workbench.cli.command import Commands, count, duration, one_of, say

NAMES = ("grouping",)
DETAILS = """\
grouping: int64 keys, a hash exchange, a running count and sum per key, an updated row out for every record in (E2).

The machine's other work disturbs the figures: compare events per CPU second (eps_cpu_s), as ratios of one run.
"""


def register(commands: Commands) -> None:
    """Add ``workbench bench``."""
    parser = commands.add("bench", run, about="measure the runtime; every result is checked", details=DETAILS)
    parser.add_argument("name", metavar="NAME", type=one_of("benchmark", NAMES), help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="print one JSON line per result and nothing else")
    parser.add_argument("--keys", type=count("--keys"), default=10_000, help="distinct keys (default: 10000)")
    parser.add_argument("--parallelism", type=count("--parallelism"), default=2, help="subtasks (default: 2)")
    parser.add_argument("--seconds", type=count("--seconds"), default=6, help="of each repeat (default: 6)")
    parser.add_argument("--repeats", type=count("--repeats"), default=3, help="number of runs (default: 3)")
    parser.add_argument("--buffer-timeout", type=duration("--buffer-timeout"), default="100ms", help="default: 100ms")
    parser.add_argument(
        "--checkpoint-interval",
        type=duration("--checkpoint-interval"),
        default="disabled",
        help="with a time, checkpoints are written to a temporary folder (default: disabled)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the benchmark; exit code 1 when a result is wrong."""
    results: list[Result] = []
    interval = None if options.checkpoint_interval == "disabled" else options.checkpoint_interval
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=options.json or not sys.stderr.isatty()) as bars:
        for repeat in range(options.repeats):
            bar = bars.add_task(f"{options.name}, run {repeat + 1} of {options.repeats}", total=1.0)
            with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
                result = grouping(
                    keys=options.keys,
                    parallelism=options.parallelism,
                    seconds=options.seconds,
                    buffer_timeout=options.buffer_timeout,
                    checkpoint_interval=interval,
                    checkpoint_dir=None if interval is None else Path(folder) / "checkpoints",
                    on_progress=partial(_advance, bars, bar),
                )
            bars.remove_task(bar)
            results.append(result)
            say(result.to_json() if options.json else _line(result))
    if not options.json:
        say(f"median {statistics.median(r.eps_cpu_s for r in results):,.0f} events per CPU second")
    return 0 if all(result.checked for result in results) else 1


def _advance(bars: Progress, bar: TaskID, share: float) -> None:
    bars.update(bar, completed=share)


def _line(result: Result) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in result.config.items())
    verdict = "result exact" if result.checked else "RESULT WRONG"
    return (
        f"{result.workload} ({settings}): {result.eps:,} events/s, {result.eps_cpu_s:,} per CPU second, "
        f"{result.rss_mb:,} MB, {verdict}"
    )
