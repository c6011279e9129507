"""From the words of a command line to an exit code: 0 done, 1 not as it should be, 2 a mistake, 130 interrupted, 129
hung up, 143 terminated."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from workbench.cli.command import Parser
from workbench.cli.help_text import Help
from workbench.cli.interruption import terminated
from workbench.errors import WorkbenchError
from workbench.raised import described

COMMANDS = {
    "demo": "run the main job on real flights",
    "serve": "show the dashboards of a script's jobs, or a recording, in a browser",
    "bench": "measure the runtime; every result is checked",
    "doctor": "check this machine and say how to mend what is missing",
    "simulate": "search for schedules and faults that break a promise",
    "soak": "run a job for half an hour with a fault every ten seconds, and check it",
}
"""The commands in the order of the help, with a line on each; each is a module here, with ``declare(parser)``."""

_LAB = dict.fromkeys(("bench", "simulate", "soak"), "lab")
"""The commands of the laboratory, which the product knows by name only."""

EXAMPLES = """\
examples:
  workbench demo                    open the first notebook in JupyterLab
  workbench demo --headless         run the main job here, with a progress bar
  workbench serve lesson.py         show the jobs that a script starts in a browser
  workbench bench grouping          measure a keyed aggregation
  workbench doctor                  check this machine
  workbench simulate --seeds 200    search for schedules and crashes that break a promise
  workbench soak --seconds 60       run a job with a fault every ten seconds, and check it

An error is one line and exit code 2; WORKBENCH_DEBUG=1 shows where it came from.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return the exit code."""
    _open_standard_streams()
    try:
        words = sys.argv[1:] if argv is None else argv
        options = parser(words).parse_args(words)
        with terminated():
            return int(options.run(options))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes at exit
        return 1
    except WorkbenchError as error:
        return _failed(str(error))
    except Exception as error:  # noqa: BLE001 - the person gets a line, whatever went wrong; the story is one setting away
        return _failed(f"unexpected {described(error)} (WORKBENCH_DEBUG=1 shows where)")


def parser(words: Sequence[str]) -> Parser:
    """The parser with every command; the one that `words` name knows its options, since only its module is imported."""
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
            import_module(f"workbench.{_LAB.get(name, 'cli')}.{name}").declare(command)
    return top


def _open_standard_streams() -> None:
    """Write to nowhere what a caller closed (``>&-``), where Python has no stream and the next file would be it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  as long as the process


def _failed(sentence: str) -> int:
    if os.environ.get("WORKBENCH_DEBUG"):
        raise
    sys.stderr.write(f"workbench: {' '.join(sentence.split())}\n")
    return 2
