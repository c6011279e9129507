"""Runs the benchmarks that are not a suite of cases, and prints their results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from workbench.cli.command import say
from workbench.datasets import flights_history
from workbench.lab.bench.looking import looking
from workbench.lab.bench.measuring import chaos, full_speed, orderings, percentiles, stalls, starting
from workbench.lab.bench.measuring.suites import KEYS
from workbench.lab.bench.on_spark import campaigns, delays, histories, watching
from workbench.lab.bench.sql_runs import run_nexmark, run_patterns
from workbench.lab.bench.works import architectures, batch_intervals, crowd, idle, memory, odd_rows
from workbench.lab.bench.works.connectors import redis_watched
from workbench.lab.bench.works.connectors.beside import Beside
from workbench.lab.bench.works.connectors.kafka_speed import kafka_speeds
from workbench.lab.bench.works.connectors.postgresql_speed import postgresql_speeds


def redis_watched_too(options: argparse.Namespace) -> bool:
    """E6 as another client sees it, as a picture; whether its counts are exact in the end."""
    watched = redis_watched.watch(seconds=options.seconds or redis_watched.SECONDS, on_phase=_tell)
    say(watched.to_json() if options.json else watched.describe())
    place = redis_watched.save(watched, Path(options.html or "redis.html"))
    sys.stderr.write(f"The picture is in {place}\n")
    return watched.exact


def _start(options: argparse.Namespace) -> int:
    found: list[tuple[str, starting.Start]] = []
    for kind, start in starting.starts(options.repeats):
        found.append((kind, start))
        if options.json:
            say(json.dumps({"peer": "workbench", "workload": "start", "config": {"kernels": kind}, **asdict(start)}))
    if not options.json:
        starting.table(found, say)
    return 0


def _memory(options: argparse.Namespace) -> int:
    def show(sample: memory.Sample) -> None:
        (sys.stderr if options.json else sys.stdout).write(f"{sample.describe()}\n")

    watched = memory.watch(options.seconds or memory.SECONDS, options.keys or KEYS[0], show)
    say(watched.to_json() if options.json else watched.describe())
    return 0 if watched.exact and watched.flat else 1


def _chaos(options: argparse.Namespace) -> int:
    runs: list[chaos.Chaos] = []
    for snapshots in (True, False):
        runs.append(chaos.run_chaos(snapshots=snapshots, seconds=options.seconds or chaos.SECONDS))
        say(runs[-1].to_json() if options.json else runs[-1].describe())
    sys.stderr.write(f"The picture is in {chaos.save(runs, options.html or Path('chaos.html'))}\n")
    return 0 if all(run.as_told for run in runs) else 1


def _architectures(options: argparse.Namespace) -> int:
    kept = True
    for _ in range(options.repeats):
        for architecture in architectures.ARCHITECTURES:
            found = architectures.compare_one(architecture, seconds=options.seconds or architectures.SECONDS)
            say(found.to_json() if options.json else found.describe())
            kept &= found.kept
        speeds: list[full_speed.FullSpeed] = []
        for speed in full_speed.full_speeds():
            speeds.append(speed)
            figures = orderings.documented(speed)
            say(speed.to_json() if options.json else f"{speed.describe()}{figures and f'; {figures}'}")
            kept &= speed.checked
        for ordering in orderings.orderings(speeds):
            say(ordering.to_json() if options.json else ordering.describe())
    return 0 if kept else 1


def _crowd(options: argparse.Namespace) -> int:
    exact = True
    for _ in range(options.repeats):
        for found in crowd.crowds(options.seconds or crowd.SECONDS, wide=options.parallelism or crowd.WIDE):
            say(found.to_json() if options.json else found.describe())
            exact &= found.checked
    return 0 if exact else 1


def _idle(options: argparse.Namespace) -> int:
    kept_up = True
    for _ in range(options.repeats):
        for found in idle.idles(options.seconds or idle.SECONDS):
            say(found.to_json() if options.json else found.describe())
            kept_up &= found.kept_up
    return 0 if kept_up else 1


def _odd_rows(options: argparse.Namespace) -> int:
    exact = True
    for _ in range(options.repeats):
        for found in odd_rows.costs():
            say(found.to_json() if options.json else found.describe())
            exact &= found.exact
    return 0 if exact else 1


def _intervals(options: argparse.Namespace) -> int:
    runs: list[batch_intervals.Answered] = []
    try:
        for found in batch_intervals.intervals(_tell):
            runs.append(found)
            say(found.to_json() if options.json else found.describe())
    finally:  # without Spark, it has the others
        place = batch_intervals.save(runs, options.html or Path("intervals.html"))
        sys.stderr.write(f"The picture is in {place}\n")
    return 0 if all(run.as_told for run in runs) else 1


def _beside(speeds: Callable[[int], Iterator[Beside]]) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        exact = True
        for found in speeds(options.repeats):
            say(found.to_json() if options.json else found.describe())
            exact &= found.exact
        return 0 if exact else 1

    return run


def _percentiles(options: argparse.Namespace) -> int:
    for _ in range(options.repeats):
        for found in percentiles.percentiles():
            say(found.to_json() if options.json else found.describe())
    return 0


def _stalls(options: argparse.Namespace) -> int:
    found: list[stalls.Stalled] = []
    for one in stalls.stalls(lambda passed: None, seconds=options.seconds or stalls.SECONDS):
        found.append(one)
        say(one.to_json() if options.json else one.describe())
    sys.stderr.write(f"The picture is in {stalls.save(found, options.html or Path('stalls.html'))}\n")
    return 0 if all(one.exact for one in found) else 1


def _history(options: argparse.Namespace) -> int:
    written = histories.write(options.rows or histories.ROWS, _tell)
    say(written.to_json() if options.json else written.describe())
    return 0 if written.exact else 1


def _spark(options: argparse.Namespace) -> int:
    found: list[delays.Answer] = []
    for one in delays.answers(flights_history().path, options.repeats):
        found.append(one)
        say(one.to_json() if options.json else one.describe())
    for line in delays.ratios(found):
        (sys.stderr if options.json else sys.stdout).write(f"{line}\n")
    exact = all(one.exact for one in found)
    for counted in campaigns.lanes(options.repeats, _tell):
        say(counted.to_json() if options.json else counted.describe())
        exact &= counted.exact
    return 0 if exact else 1


def _watch(options: argparse.Namespace) -> int:
    found: list[watching.Watched] = []
    for one in watching.watching(flights_history().log, options.repeats):
        found.append(one)
        say(one.to_json() if options.json else one.describe())
    if told := watching.ratios(found):
        (sys.stderr if options.json else sys.stdout).write(f"{told}\n")
    return 0 if all(one.complete for one in found) else 1


def _dashboard(options: argparse.Namespace) -> int:
    exact = True
    for _ in range(options.repeats):
        looked = looking.look(options.page or "served", options.seconds or looking.SECONDS, on_phase=_tell)
        say(looked.to_json() if options.json else looked.describe())
        exact = exact and looked.checked
    return 0 if exact else 1


def _tell(phase: str) -> None:
    sys.stderr.write(f"{phase} ...\n")


APART_RUNS: dict[str, Callable[[argparse.Namespace], int]] = {
    "architectures": _architectures,
    "chaos": _chaos,
    "crowd": _crowd,
    "dashboard": _dashboard,
    "history": _history,
    "idle": _idle,
    "intervals": _intervals,
    "kafka": _beside(kafka_speeds),
    "nexmark": run_nexmark,
    "odd-rows": _odd_rows,
    "patterns": run_patterns,
    "percentiles": _percentiles,
    "postgresql": _beside(postgresql_speeds),
    "spark": _spark,
    "stalls": _stalls,
    "start": _start,
    "watch": _watch,
    "memory": _memory,
}
"""The benchmarks that are no suite of cases."""
