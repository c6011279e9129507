"""``workbench lessons``: writes the notebooks of the course and opens one in JupyterLab."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from workbench.cli.command import Parser, folder, refuse_given
from workbench.errors import SettingError
from workbench.lessons.building.notebooks import build, lecture
from workbench.lessons.course import COURSE, SOURCES, numbered, plan_of, questions_of
from workbench.raised import described

FOLDER = "streaming-course"
LECTURES = "lectures"

DETAILS = """\
Writes the notebooks of the course into a folder, those with solutions into the folder 'solved' in it, and opens a
lesson in JupyterLab. A notebook that is there already stays as it is, with what you wrote in it.

With --lecture, run the one cell of the notebook that opens: the lesson fills the window in large type, and the arrow
keys go through its steps.
"""


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench lessons``."""
    parser.does(run, DETAILS)
    parser.add_argument("lesson", nargs="?", metavar="LESSON", help="number of the lesson to open (default: 1)")
    parser.add_argument(
        "--directory",
        type=folder("--directory"),
        metavar="DIR",
        help=f"folder for the notebooks (default: {FOLDER})",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="only list the lessons")
    what.add_argument(
        "--lecture", action="store_true", help="open a notebook whose only cell begins the lesson as a lecture"
    )
    what.add_argument("--copy", action="store_true", help="only write the notebooks, do not open JupyterLab")
    parser.add_argument("--replace", action="store_true", help="write notebooks again that are there already")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code.

    Raises:
        SettingError: there is no such lesson, or the folder cannot be written.
    """
    console = Console(highlight=False, soft_wrap=True, markup=False)
    number = numbered(options.lesson or "01")
    if options.list:
        refuse_given(options, ("directory", "lesson", "replace"), "has no effect with --list: leave it out")
        for each in COURSE:
            plan = plan_of(each)
            console.print(f"{int(each):2}  {plan.title}\n    {plan.promise}")
        return 0
    into = Path(options.directory or FOLDER)
    try:
        written = build(SOURCES, into, questions_of, replace=options.replace)
        begins = into / LECTURES / f"{number}_{COURSE[number]}.ipynb"
        if options.lecture:
            begins.parent.mkdir(exist_ok=True)
            begins.write_text(lecture(number), encoding="utf-8")
    except OSError as error:
        raise SettingError(f"the notebooks cannot be written to {str(into)!r}, {described(error)}") from error
    console.print(f"{len(written) // 2} lessons are in {into}, with solutions in {into / 'solved'}.")
    if options.copy:
        return 0
    opened = begins.relative_to(into).as_posix() if options.lecture else f"{number}_{COURSE[number]}.ipynb"
    _open(into.absolute(), opened, ())


def _open(root: Path, name: str, lab_options: Sequence[str]) -> NoReturn:
    """Replace this process by JupyterLab with a lesson."""
    command = [
        *(sys.executable, "-m", "jupyterlab", "-y", f"--ServerApp.root_dir={root}"),
        f"--LabApp.default_url=/lab/tree/{name}",
    ]
    if os.geteuid() == 0:  # as in a container, where JupyterLab would refuse; its port is open on loopback only
        command.append("--allow-root")
    os.execv(sys.executable, [*command, *lab_options])
