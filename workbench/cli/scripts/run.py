"""``workbench run``: runs a script, waits for its jobs, and returns an exit code that tells how they ended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import workbench as wb
from workbench.cli.command import Parser, readable_file
from workbench.cli.interruption import SIGNALLED, Asked, interruption
from workbench.cli.scripts.program import main_program, traceback_of
from workbench.errors import SettingError, WorkbenchError

DETAILS = """\
Runs a Python script as the main program, and waits until every job that it has started has ended, whether or not the
script calls job.wait(). The exit code is 0 if all went well, 1 if the script or a job failed, 130 after Ctrl-C and 143
after SIGTERM; a script that ends with sys.exit(CODE) keeps its code. After Ctrl-C or SIGTERM the jobs stop with a last
checkpoint; a second Ctrl-C ends them at once.
"""
LOOK_S = 0.05
PATIENCE_S = 60.0


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench run``."""
    parser.does(run, DETAILS)
    parser.add_argument(
        "--savepoint",
        metavar="NAME",
        help="after Ctrl-C or SIGTERM, take a savepoint of this name of each job before it stops",
    )
    parser.add_argument("script", type=readable_file("FILE"), metavar="FILE", help="a script (.py) that starts jobs")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="arguments of the script, and its options"
    )


def run(options: argparse.Namespace) -> int:
    """Run the script and wait for its jobs; returns the exit code.

    Raises:
        SettingError: there is no such script.
        CheckpointError: the savepoint's name cannot be that of a file.
    """
    from workbench.runtime.storage.manifest import check_name  # imports Arrow, which the help does not need

    script: Path = options.script
    if not script.is_file():
        raise SettingError(f"there is no script {str(script)!r}: name a Python file that starts jobs")
    if options.savepoint is not None:
        check_name(options.savepoint, "savepoint")
    with main_program(script, options.arguments) as main:
        code = _run(main)
        with interruption() as asked:
            if code == 0:
                code = _wait(asked)
            if code >= SIGNALLED and not _save(options.savepoint):
                code = 1
            _stop()
    return code or int(any(job.state == "FAILED" for job in wb.jobs().values()))


def _run(main: Callable[[], None]) -> int:
    """Run the script; returns the exit code that it asks for."""
    try:
        main()
    except KeyboardInterrupt:
        return Asked.code
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        sys.stderr.write(f"{leaving.code}\n")
        return 1
    except BaseException as error:  # noqa: BLE001  whatever the script raises, its traceback is printed
        sys.stderr.write(traceback_of(error))
        return 1
    return 0


def _wait(asked: Asked) -> int:
    """Wait until all jobs have ended, or an interrupt asks for it; returns the exit code for that, or 0."""
    from workbench.api.job.script_end import running

    while running(wb.jobs().values()):
        if asked.wait(LOOK_S):
            return asked.code
    return 0


def _save(name: str | None) -> bool:
    """Take a savepoint of each running job, if there is a name; returns whether all were taken."""
    from workbench.api.job.script_end import running

    taken = True
    if name is None:
        return taken
    for job in running(wb.jobs().values()):
        try:
            folder = job.savepoint(name)
            sys.stderr.write(f"workbench: savepoint of the job {job.name!r}: {folder or 'kept in memory only'}\n")
        except WorkbenchError as error:
            sys.stderr.write(f"workbench: {error}\n")
            taken = False
    return taken


def _stop() -> None:
    """Stop the jobs that still run, each with a last checkpoint."""
    from workbench.api.job.endings import end_all
    from workbench.api.job.script_end import running

    if left := running(wb.jobs().values()):
        sys.stderr.write("workbench: the jobs stop with a last checkpoint; Ctrl-C ends them at once\n")
        end_all(left, PATIENCE_S)
