"""``workbench simulate``: searches for a schedule or a fault that breaks a promise."""

from __future__ import annotations

import argparse

from workbench.cli.command import Parser, count, one_of, refuse_given
from workbench.drivers.faults.fault_names import FAULTS

DETAILS = """\
Runs pipelines under a scheduler that draws every choice from a seed, with virtual time and injected faults, and checks
every promise of the runtime all the time and the results at the end. The same seed always gives the same run. A seed
that fails is printed with the smallest set of faults, deeds and records that still fails; '--replay SEED' shows its
last steps, and in Python 'workbench.lab.replay(SEED)' is the job right before, to be stepped by hand.

With '--pipeline FILE.py' your own pipeline is run instead: the file defines 'stream', a bounded one whose records are
never late, and what an undisturbed run gives is what every other one must give. Sinks are left away or wb.TableSink, or
'stream' is a function of the run's folder and they write to it: wb.ParquetSink, wb.FileSink, wb.SqlSink. For
wb.CallbackSink the file defines 'rows', too, a function of that folder: all that was written, as a table or as a list.

When no seed has failed, another process runs it once more, where hash() of a text is another number, and must give the
same rows. The exit code is 1 when a seed fails or those rows differ, and with '--exhaustive' also when a crash did not
happen or a place was not found.
"""

SEEDS = 200
OF_SEEDS = "is for a search through seeds"
OF_SEARCH = ("seeds", "first", "pace")


def declare(parser: Parser) -> None:
    """What ``workbench simulate`` takes."""
    parser.does(run, DETAILS)
    parser.add_argument("--seeds", type=count("--seeds"), metavar="N", help=f"how many seeds (default: {SEEDS})")
    parser.add_argument(
        "--first", "--first-seed", type=count("--first", least=0), metavar="SEED", help="where to begin (default: 0)"
    )
    parser.add_argument(
        "--fault",
        action="extend",
        nargs="+",
        default=[],
        type=lambda text: one_of("fault", FAULTS)(text.replace("_", " ") if text not in FAULTS else text),
        metavar="NAME",
        help=f"only these faults, out of: {', '.join(FAULTS)}",
    )
    parser.add_argument("--pipeline", metavar="FILE", help="a Python file that defines 'stream'")
    parser.add_argument("--replay", type=count("--replay", least=0), metavar="SEED", help="show one seed step by step")
    parser.add_argument("--exhaustive", action="store_true", help="every crash point in every task of eight pipelines")
    parser.add_argument("--pairs", action="store_true", help="all pairs of crashes in a graph of five tasks")
    parser.add_argument("--pace", action="store_true", help="tell how fast each pipeline was simulated")
    parser.add_argument("--jobs", type=count("--jobs"), metavar="N", help="processes that share the work (default: 1)")


def run(options: argparse.Namespace) -> int:
    """Simulate; the exit code.

    Raises:
        SettingError: an option that goes with another kind of search.
    """
    if options.exhaustive or options.pairs:
        every = (*OF_SEARCH, "fault", "pipeline", "replay")
        refuse_given(options, every, f"{OF_SEEDS}, and --exhaustive and --pairs try every crash: leave one of them out")
    if options.replay is not None:
        refuse_given(options, (*OF_SEARCH, "jobs"), f"{OF_SEEDS}, and --replay shows one: leave one of them out")
    from workbench.lab import simulating  # the runtime, which the help does without

    options.pipeline = options.pipeline or ""
    options.seeds, options.first, options.jobs = options.seeds or SEEDS, options.first or 0, options.jobs or 1
    return simulating.run(options)
