"""Benchmarks of queries, compared with other systems on the same tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from workbench.cli.command import say
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.peers import open_folder
from workbench.lab.bench.measuring.report import OURS, WIDTH, Report
from workbench.lab.bench.nexmark import beside, measuring, patterns


def run_nexmark(options: argparse.Namespace) -> int:
    """``workbench bench nexmark``; exit code 1 when rows are wrong."""
    chosen, count = options.query or (), options.rows or measuring.EVENTS

    def ours() -> Iterator[Result]:
        for found in measuring.nexmark(chosen, options.parallelism or 1, count):
            say(found.to_json() if options.json else found.describe())
            yield found.result

    return _in_rounds(options, "nexmark", ours, lambda folder: beside.write(folder, chosen, count))


def run_patterns(options: argparse.Namespace) -> int:
    """``workbench bench patterns``; exit code 1 when matches are wrong."""
    count = options.rows or patterns.EVENTS

    def ours() -> Iterator[Result]:
        for found in patterns.patterns(options.parallelism or 1, count):
            if options.json:
                say(found.to_json())
            yield found

    return _in_rounds(options, patterns.WORK, ours, lambda folder: patterns.write(folder, count))


def _in_rounds(
    options: argparse.Namespace, work: str, ours: Callable[[], Iterator[Result]], write: Callable[[Path], None]
) -> int:
    """Rounds of our runs, and of those of other systems on what is written for them; then the table."""
    results: list[Result] = []
    with ExitStack() as stack:
        folder = None
        if options.peers:
            folder = stack.enter_context(open_folder(options.peers, options.peer or beside.DEFAULT))
            write(folder.inputs / work)
        for _ in range(options.repeats):
            results += ours()
            for result in () if folder is None else folder.run(work, options.seconds or 1):
                results.append(result)
                if options.json:
                    say(result.to_json())
    report = Report(results)
    if any(result.peer != OURS for result in results):
        out = sys.stderr if options.json else sys.stdout
        Console(file=out, width=None if out.isatty() else WIDTH).print(report.table())
        out.writelines(f"{line}\n" for line in beside.summaries(results))
    return 0 if report.exact else 1
