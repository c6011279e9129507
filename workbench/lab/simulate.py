"""``workbench simulate``: searches for a schedule or a fault that violates an invariant."""

from __future__ import annotations

import argparse

from workbench.cli.command import Parser, count, one_of, readable_file, refuse_given
from workbench.drivers.faults.fault_names import FAULTS
from workbench.lab.simulation.architecture_names import ARCHITECTURES

DETAILS = """\
Runs pipelines under a scheduler that draws every choice from a seed, with virtual time and injected faults. It checks
the invariants of the runtime after every step, and the results at the end. The same seed always gives the same run. A
seed that fails is printed with the smallest set of faults, actions and records that still fails. '--replay SEED' shows
its last steps; in Python, 'workbench.lab.replay(SEED)' returns the job right before the failure, to be stepped by hand.

With '--pipeline FILE.py', the command runs your own pipeline. The file defines 'stream', which must be bounded and have
no late records; every run must give the rows of an undisturbed run. 'stream' has no sink or a wb.TableSink, or it is a
function of the run's folder whose sinks (wb.ParquetSink, wb.FileSink, wb.SqlSink) write to that folder. For a
wb.CallbackSink, the file also defines 'rows', a function of the folder that returns all written rows as a table or
list.

If no seed fails, another process, in which hash() of a text differs, runs your pipeline once more and must give the
same rows. The exit code is 1 if a seed fails or those rows differ, and with '--exhaustive' also if a crash did not
happen or a place was not found.
"""

SEEDS = 200
OF_SEEDS = "is for a search through seeds"
OF_SEARCH = ("seeds", "first", "pace")


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench simulate``."""
    parser.does(run, DETAILS)
    parser.add_argument("--seeds", type=count("--seeds"), metavar="N", help=f"number of seeds (default: {SEEDS})")
    parser.add_argument(
        "--first", "--first-seed", type=count("--first", least=0), metavar="SEED", help="first seed (default: 0)"
    )
    parser.add_argument(
        "--fault",
        action="extend",
        nargs="+",
        default=[],
        type=lambda text: one_of("fault", FAULTS)(text.replace("_", " ") if text not in FAULTS else text),
        metavar="NAME",
        help=f"inject only these faults, from: {', '.join(FAULTS)}",
    )
    parser.add_argument(
        "--pipeline", type=readable_file("--pipeline"), metavar="FILE", help="a Python file that defines 'stream'"
    )
    parser.add_argument(
        "--fault-tolerance",
        type=one_of("architecture", ARCHITECTURES),
        metavar="NAME",
        help=f"in place of checkpoints, one of: {', '.join(ARCHITECTURES)}",
    )
    parser.add_argument("--replay", type=count("--replay", least=0), metavar="SEED", help="show the steps of one seed")
    parser.add_argument("--exhaustive", action="store_true", help="every crash point in every task of eight pipelines")
    parser.add_argument("--pairs", action="store_true", help="every pair of crashes in a graph of five tasks")
    parser.add_argument("--pace", action="store_true", help="print how fast each pipeline was simulated")
    parser.add_argument("--jobs", type=count("--jobs"), metavar="N", help="number of parallel processes (default: 1)")


def run(options: argparse.Namespace) -> int:
    """Simulate; returns the exit code.

    Raises:
        SettingError: an option of another kind of search.
    """
    if options.exhaustive or options.pairs:
        every = (*OF_SEARCH, "fault", "fault_tolerance", "pipeline", "replay")
        refuse_given(options, every, f"{OF_SEEDS}, and --exhaustive and --pairs try every crash: leave one of them out")
    if options.replay is not None:
        refuse_given(options, (*OF_SEARCH, "jobs"), f"{OF_SEEDS}, and --replay shows one: leave one of them out")
    from workbench.lab import simulating  # imports the runtime, which the help does not need

    options.pipeline = str(options.pipeline or "")
    options.fault_tolerance = options.fault_tolerance or ""
    options.seeds, options.first, options.jobs = options.seeds or SEEDS, options.first or 0, options.jobs or 1
    return simulating.run(options)
