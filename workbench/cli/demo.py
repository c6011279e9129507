"""``workbench demo``: the first notebook in JupyterLab, or the main job in the terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from workbench.cli.command import Parser, count, duration, folder, refuse_given, speed
from workbench.errors import HistoryError, SettingError

NOTEBOOK = "01_first_stream.ipynb"
CHECKOUT = Path(__file__).parents[2]
SPEED = "2592000x"
PARALLELISM = 2
BUFFER_TIMEOUT = "50ms"
CHECKPOINT_INTERVAL = "1s"
OF_RUN = ("speed", "parallelism", "buffer_timeout", "checkpoint_interval", "fresh")
"""Options that need --headless."""

DETAILS = """\
Without options, opens the first notebook in JupyterLab. A year of real flights streams through a dataflow in the
notebook's kernel, next to a live dashboard.

With --headless, runs the same job in the terminal and prints its progress, then the table, the checkpoints and the
throughput. Kill it, even with 'kill -9', and run the same command again: it resumes from the last complete checkpoint.
Ctrl-C takes a final checkpoint before it exits. After a finished run, the command starts a new one.
"""


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench demo``."""
    parser.does(run, DETAILS)
    parser.add_argument(
        "lab_options",
        nargs="*",
        metavar="LAB_OPTION",
        help="options for JupyterLab, after '--', for example: workbench demo -- --no-browser --port 8890",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--headless", action="store_true", help="run in this terminal, without JupyterLab")
    what.add_argument("--prepare", action="store_true", help="only write the history, to make the next start faster")
    options = parser.add_argument_group("with --headless or --prepare")
    options.add_argument(
        "--directory",
        type=folder("--directory"),
        metavar="DIR",
        help="folder for the history, the checkpoints and the output (default: workbench-data); with --prepare "
        "the default is beside the notebook, which reads it",
    )
    options = parser.add_argument_group("with --headless")
    options.add_argument(
        "--speed",
        type=speed,
        metavar="SPEED",
        help=f"replay speed: 600x is ten minutes per second, max does not wait (default: {SPEED}, a month per second)",
    )
    options.add_argument(
        "--parallelism",
        type=count("--parallelism"),
        metavar="N",
        help=f"subtasks of each operator (default: {PARALLELISM})",
    )
    options.add_argument(
        "--buffer-timeout",
        type=duration("--buffer-timeout"),
        metavar="TIME",
        help=f"maximum time that a record waits for its buffer to fill (default: {BUFFER_TIMEOUT})",
    )
    options.add_argument(
        "--checkpoint-interval",
        type=duration("--checkpoint-interval"),
        metavar="TIME",
        help=f"time between checkpoints, or disabled (default: {CHECKPOINT_INTERVAL})",
    )
    options.add_argument("--fresh", action="store_true", help="discard an earlier run instead of resuming it")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code.

    Raises:
        SettingError: options for JupyterLab are given together with --headless or --prepare, or options that have no
            effect without them.
    """
    if not options.headless:
        refuse_given(options, OF_RUN, "needs --headless: add that, or leave it out")
    if not options.headless and not options.prepare:
        refuse_given(options, ("directory",), "needs --headless or --prepare: add one of them, or leave it out")
        open_notebook(options.lab_options)
    if options.lab_options:
        raise SettingError(
            f"{options.lab_options[0]!r} is for JupyterLab, which --headless and --prepare do not start: leave it out"
        )
    from workbench.cli import headless  # imports the runtime, which JupyterLab and the help do not need
    from workbench.datasets.package import DATA_FOLDER

    console = Console(highlight=False, soft_wrap=True)
    if options.prepare:
        headless.prepare(console, options.directory or notebook().parent / DATA_FOLDER)
        return 0
    return headless.run(
        console,
        headless.Options(
            options.directory or DATA_FOLDER,
            options.speed or SPEED,
            options.parallelism or PARALLELISM,
            options.buffer_timeout or BUFFER_TIMEOUT,
            options.checkpoint_interval or CHECKPOINT_INTERVAL,
            options.fresh,
        ),
    )


def open_notebook(lab_options: Sequence[str]) -> NoReturn:
    """Replace this process by JupyterLab with the first notebook; a child process would share Ctrl-C with this one.

    The printed URL opens the notebook, as the browser does, and Ctrl-C ends JupyterLab without asking for confirmation.
    """
    opened = notebook().absolute()
    command = [
        sys.executable, "-m", "jupyterlab", "-y", f"--ServerApp.root_dir={opened.parent}",
        f"--LabApp.default_url=/lab/tree/{opened.name}",
    ]  # fmt: skip
    if os.geteuid() == 0:  # as in a container, where JupyterLab would refuse; its port is open on loopback only
        command.append("--allow-root")
    os.execv(sys.executable, [*command, *lab_options])


def notebook(here: Path | None = None) -> Path:
    """The first notebook: that of the checkout, or else a copy of the installed one in the current folder.

    The other installed notebooks are copied next to it, unless they exist.

    Raises:
        HistoryError: there is neither.
    """
    checkout = CHECKOUT / "notebooks" / NOTEBOOK
    if checkout.is_file():
        return checkout
    folder = here or Path.cwd()
    installed = Path(sysconfig.get_path("data")) / "share" / "workbench" / "notebooks"
    for path in sorted(installed.glob("*.ipynb")):
        if not (folder / path.name).exists():
            shutil.copyfile(path, folder / path.name)
    if not (folder / NOTEBOOK).is_file():
        raise HistoryError(f"the notebook {NOTEBOOK} is not installed: install streaming-workbench again")
    return folder / NOTEBOOK
