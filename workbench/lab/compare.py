"""``workbench compare``: runs one pipeline under several architectures of fault tolerance, with the same faults."""

from __future__ import annotations

import argparse

from workbench.cli.command import Parser, count, new_file, readable_file
from workbench.lab.simulation.architecture_names import ARCHITECTURES

DETAILS = """\
Runs the pipeline of a Python file under each architecture, all at the same time, next to a run without faults, whose
results are the truth. The same faults happen to each at the same record. Then it prints what each architecture claims,
what was observed, and what it cost. The file defines 'stream' (a bounded stream or pipeline), or a function of a folder
that returns one, as for 'workbench simulate --pipeline'; results in wb.TableSink are compared.

Faults: task-dies:at=10000, zombie:at=10000,wakes=5000 (a task that is replaced and then wakes up) and
slow-receiver:at=10000,records=10000,rest=500ms; several can be given. The exit code is 1 if the results of an
architecture break the guarantee that it claims.
"""

USUAL = ("snapshots", *ARCHITECTURES)


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench compare``."""
    parser.does(run, DETAILS)
    parser.add_argument("file", type=readable_file("FILE"), metavar="FILE", help="a Python file that defines 'stream'")
    parser.add_argument(
        "architectures",
        nargs="*",
        metavar="ARCHITECTURE",
        help=f"such as changelog:offset_interval=2s (default: {', '.join(USUAL)})",
    )
    parser.add_argument("--faults", action="extend", nargs="+", default=[], metavar="FAULT", help="default: none")
    parser.add_argument("--parallelism", type=count("--parallelism"), metavar="N", help="subtasks (default: 1)")
    parser.add_argument(
        "--checkpoint-interval", metavar="TIME", help="of architectures without an interval of their own (default: 5s)"
    )
    parser.add_argument(
        "--save",
        type=new_file("--save"),
        metavar="FILE",
        help="also write a page (.html) or a table (.arrow, .parquet)",
    )
    parser.add_argument(
        "--documents", action="store_true", help="also print the claims of papers about each, next to the observations"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line per architecture and nothing else")


def run(options: argparse.Namespace) -> int:
    """Compare; returns the exit code."""
    from workbench.lab.comparing import run as compare  # imports the runtime, which the help does not need

    return compare(options, options.architectures or USUAL)
