"""``workbench serve``: runs a script and serves the dashboards of its jobs, or serves a recording."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb

from rich.console import Console

import workbench as wb
from workbench.cli.command import Parser, count, readable_file
from workbench.cli.scripts.program import main_program
from workbench.errors import JobError, SettingError, WorkbenchError
from workbench.origin import Origin, line_text
from workbench.packages import needed
from workbench.raised import described

DETAILS = """\
Runs a Python script that starts jobs with '.run(...)' and serves their dashboards on a web page until you press Ctrl-C.
The jobs then end with this process; you can resume a job that has a checkpoint_dir. The page is served on this machine
only, to anyone with the token in the printed URL; a cookie then replaces the token. Requests for host names other than
localhost and 127.0.0.1 are refused unless --host allows them. If FILE is a recording that job.recording(path) wrote, it
is shown with a time slider.
"""


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench serve``."""
    parser.does(run, DETAILS)
    parser.add_argument(
        "script", type=readable_file("FILE"), metavar="FILE", help="a script (.py) that starts jobs, or a recording"
    )
    parser.add_argument("arguments", nargs="*", default=[], metavar="ARGUMENT", help="arguments of the script")
    parser.add_argument("--port", type=count("--port", least=0), default=0, help="port (default: 0, any free port)")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        dest="hosts",
        metavar="NAME",
        help="an additional host name of the page, such as that of a proxy; repeatable",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(options: argparse.Namespace) -> int:
    """Run the script and serve its jobs until an interrupt; returns the exit code.

    Raises:
        SettingError: there is no such script, the port cannot be opened, or a host name is invalid.
        JobError: the script failed or started no job.
    """
    script: Path = options.script
    if not script.is_file():
        raise SettingError(f"there is no script {str(script)!r}: name a Python file that starts jobs, or a recording")
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if script.suffix != ".py":
        if options.arguments:
            raise SettingError(
                f"{options.arguments[0]!r} is for a script, but {str(script)!r} is a recording: leave it out"
            )
        return _play(script, options, console)
    pages = wb.serve(port=options.port, hosts=options.hosts)
    console.print(f"The dashboards of {script.name}: {pages.url}")
    if options.open:
        webbrowser.open(pages.url)
    try:
        with main_program(script, options.arguments) as main:
            _run(script, main)
        if not wb.jobs():
            raise JobError(
                f"{script.name} started no job, so there is nothing to show: start one with"
                " stream.sink_to(wb.TableSink('rows')).run('job')"
            )
        console.print("The script has ended. The page stays available until you press Ctrl-C.")
        pages.wait()
    finally:
        pages.stop()
    return 0


def _run(script: Path, main: Callable[[], None]) -> None:
    """Run the script as the main program.

    Raises:
        JobError: it raised anything but a WorkbenchError; the message names the script's line.
    """
    try:
        main()
    except WorkbenchError:
        raise
    except SyntaxError as error:
        where = f"{Path(error.filename or script).name}, line {error.lineno}: {(error.text or '').strip()}"
        raise JobError(f"{script.name} cannot be run: {error.msg} ({where})") from error
    except Exception as error:
        file = str(script.absolute())
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        where = f" ({Origin(file, lines[-1], line_text(file, lines[-1]))})" if lines else ""
        raise JobError(f"{script.name} raised {described(error)}{where}") from error


def _play(path: Path, options: argparse.Namespace, console: Console) -> int:
    """Serve a recording until an interrupt; returns the exit code."""
    recording = wb.Recording.open(path)
    if not isinstance(recording, wb.Recording):
        raise SettingError(
            f"{str(path)!r} is of a job on Spark, which has no views of the kernel's dashboard: in a notebook, "
            "wb.Recording.open(path) shows it"
        )
    serve_recording = needed("workbench.dashboard.shown.serve", "a dashboard").serve_recording
    pages = serve_recording(recording, options.port, options.hosts)
    console.print(f"The recording of job {recording.name}: {pages.url}")
    if options.open:
        webbrowser.open(pages.url)
    try:
        pages.wait()
    finally:
        pages.stop()
    return 0
