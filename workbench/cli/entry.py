"""Runs a command line and returns its exit code: 0 success, 1 a check failed, 2 an error, 129 SIGHUP, 130 Ctrl-C, 143
SIGTERM."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from workbench.cli.command import Parser
from workbench.cli.help_text import Help
from workbench.cli.interruption import terminated
from workbench.errors import WorkbenchError, sentence_of
from workbench.packages import needed
from workbench.raised import described

COMMANDS = {
    "demo": "open the first notebook, or run its job in the terminal",
    "lessons": "write the notebooks of the course, and open one",
    "run": "run a script and wait for its jobs; the exit code tells how they ended",
    "serve": "show the dashboards of a script's jobs, or a recording, in a browser",
    "compare": "run a pipeline under several architectures of fault tolerance, with faults",
    "bench": "run benchmarks and check their results",
    "doctor": "check this machine and suggest fixes",
    "slots": "list the replication slots of a PostgreSQL database, and drop some",
    "simulate": "search for schedules and faults that violate an invariant",
    "soak": "run a job for half an hour with a fault every ten seconds, and check it",
}
"""The commands in the order of the help, with one line each; each is a module with ``declare(parser)``."""

_ROOMS = {
    **dict.fromkeys(("bench", "compare", "simulate", "soak"), "lab"),
    **dict.fromkeys(("run", "serve"), "cli.scripts"),
}
"""Where commands are, if not in this room; the product knows those of the laboratory only by name."""

EXAMPLES = """\
examples:
  workbench demo                    open the first notebook in JupyterLab
  workbench demo --headless         run its job in the terminal, with a progress bar
  workbench lessons 4               open the fourth lesson of the course
  workbench run job.py              run a script; exit code 1 if it or one of its jobs fails
  workbench serve lesson.py         show the jobs that a script starts in a browser
  workbench bench grouping          measure a keyed aggregation
  workbench compare own.py --faults task-dies:at=20000   what failures do to results
  workbench doctor                  check this machine
  workbench slots postgresql://localhost/shop   what PostgreSQL keeps for sources that read its log
  workbench simulate --seeds 200    search for schedules and crashes that violate an invariant
  workbench soak --seconds 60       run a job with a fault every ten seconds, and check it

An error prints one line and exits with code 2. Set WORKBENCH_DEBUG=1 for the traceback.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process); returns the exit code."""
    _open_standard_streams()
    try:
        words = sys.argv[1:] if argv is None else argv
        options = parser(words).parse_args(words)
        with terminated():
            return int(options.run(options))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python's flush at exit fails
        return 1
    except WorkbenchError as error:
        return _failed(sentence_of(error))
    except Exception as error:  # noqa: BLE001 - every failure becomes one line; WORKBENCH_DEBUG shows the traceback
        return _failed(f"unexpected {described(error)} (WORKBENCH_DEBUG=1 shows where)")


def parser(words: Sequence[str]) -> Parser:
    """A parser with all commands; only the command in `words` has its options, so only its module is imported."""
    top = Parser(
        prog="workbench",
        description="An interactive streaming workbench for Jupyter.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    top.add_argument("--version", action="version", version=f"workbench {version('streaming-workbench')}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    named = next((word for word in words if word in COMMANDS), "")
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, formatter_class=Help)
        if name == named:
            needed(f"workbench.{_ROOMS.get(name, 'cli')}.{name}", f"'workbench {name}'").declare(command)
    return top


def _open_standard_streams() -> None:
    """Replace streams that the caller closed (``>&-``) by the null device; else the next opened file became one."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  as long as the process


def _failed(sentence: str) -> int:
    if os.environ.get("WORKBENCH_DEBUG"):
        raise
    sys.stderr.write(f"workbench: {' '.join(sentence.split())}\n")
    return 2
