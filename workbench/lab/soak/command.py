"""The command line of the soak."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

from rich.console import Console
from rich.progress import Progress

from workbench.cli.command import Parser, count, folder, say
from workbench.cli.scratch import scratch_folder
from workbench.errors import SettingError, told_by
from workbench.lab.soak.faults import KINDS
from workbench.lab.soak.resources import malloc_gives_back
from workbench.lab.soak.result import Suffered
from workbench.lab.soak.watch import Soak

SECONDS = 1_800
FAULT_EVERY_S = 10
RATE = 100_000
DETAILS = f"""\
Runs a live job with keyed state, event-time windows, tables and Parquet files, and a checkpoint every second. Every few
seconds it injects a fault, drawn from a seed:
{", ".join(KINDS)}.

Once a second, and at the end, all committed rows are compared with the exact expectation for the records that were
read. The exit code is 1 if a row is lost, wrong, duplicated or taken back, if the job stops making progress, if it
leaves a thread, an open file or a socket behind, or if memory grows by more than 5 % after the warm-up: from the first
quarter of the time to the last, at equal parallelism, without the free memory that allocators keep.
"""


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench soak``."""
    parser.does(run, DETAILS)
    parser.add_argument(
        "--seconds", type=count("--seconds"), default=SECONDS, help=f"duration of the faults (default: {SECONDS:,})"
    )
    parser.add_argument(
        "--fault-every",
        type=count("--fault-every"),
        default=FAULT_EVERY_S,
        metavar="SECONDS",
        help=f"time between two faults (default: {FAULT_EVERY_S})",
    )
    parser.add_argument("--rate", type=count("--rate"), default=RATE, help=f"records per second (default: {RATE:,})")
    parser.add_argument("--seed", type=count("--seed", least=0), default=0, help="seed of the faults (default: 0)")
    parser.add_argument(
        "--directory",
        type=folder("--directory"),
        metavar="DIR",
        help="an empty folder for checkpoints and files (default: a temporary one)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line on stdout, and the faults on stderr")


def run(options: argparse.Namespace) -> int:
    """Run the soak; exit code 1 when a check failed."""
    malloc_gives_back()
    console = Console(stderr=options.json, highlight=False, soft_wrap=True, markup=False)
    with ExitStack() as stack:
        place = _folder(options.directory, stack)
        soak = Soak(
            place, seconds=options.seconds, fault_every_s=options.fault_every, rate=options.rate, seed=options.seed
        )
        progress = stack.enter_context(Progress(console=console, disable=not console.is_terminal, transient=True))
        bar = progress.add_task("soaking", total=options.seconds)

        def on_fault(suffered: Suffered) -> None:
            console.print(str(suffered))

        soaked = soak.run(on_fault, lambda seconds: progress.update(bar, completed=seconds))
    if options.json:
        say(soaked.to_json())
    for line in soaked.describe():
        (sys.stderr if options.json else sys.stdout).write(f"{line}\n")
    return 0 if soaked.ok else 1


def _folder(wanted: Path | None, stack: ExitStack) -> Path:
    if wanted is None:
        return Path(stack.enter_context(scratch_folder("workbench-soak-")))
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        filled = any(wanted.iterdir())
        TemporaryFile(dir=wanted).close()
    except OSError as error:
        raise SettingError(
            f"--directory is {str(wanted)!r}, which cannot be used ({told_by(error)}): name another folder"
        ) from None
    if filled:
        raise SettingError(f"--directory is {str(wanted)!r}, which is not empty: name another folder")
    return wanted
