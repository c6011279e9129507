"""``workbench doctor``: checks this machine and prints one line per check."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from workbench.cli.checks import Check, connectors, machine, packages, space
from workbench.cli.command import Parser

DETAILS = """\
Checks Python, the packages, Java and Spark, the compiled kernels, JupyterLab and its extension, the clients and servers
of connectors, the browser for tests, the current folder and the disk. The exit code is 1 if something required is
missing.
"""
MARKS = {"ok": "green", "missing": "red", "optional": "yellow"}


def declare(parser: Parser) -> None:
    """Declare the options of ``workbench doctor``."""
    parser.does(run, DETAILS)
    parser.add_argument(
        "--space", action="store_true", help="show what takes up the disk space of the installation instead"
    )
    parser.add_argument("--quick", action="store_true", help="skip the slow check, which starts a Spark session")


def run(options: argparse.Namespace) -> int:
    """Print each check as it completes; returns 1 if something required is missing."""
    console = Console(highlight=False, soft_wrap=True)
    if options.space:
        return _space(console)
    missing = _missing(console, checks())
    told = f"Not ready for a lesson. {_listed(missing)}" if missing else "This machine is ready for a lesson."
    console.print(f"\n{told}")
    if not options.quick:
        from workbench.cli.checks import runtime

        console.print("\nStarting a Spark session, which only the last lesson and histories need (--quick skips this)")
        missing += _missing(console, runtime.spark_session())
        console.print(f"\n{_listed(missing) if missing else 'All required checks passed.'}")
    return 1 if missing else 0


def _missing(console: Console, made: Iterator[Check]) -> list[Check]:
    return [check for check in shown(console, made) if check.needed and not check.ok]


def _listed(missing: list[Check]) -> str:
    return f"{len(missing)} missing: {', '.join(check.name for check in missing)}."


def _space(console: Console) -> int:
    found = list(space.taken())
    for each in found:
        console.print(f"{each.purpose:<12}{each.describe()}", markup=False)
    console.print(f"{'all':<12}{sum(each.size for each in found) / 1e6:7,.0f} MB")
    console.print("\nThe engine runs without the others: see docs/installing.md.")
    return 0


def checks() -> Iterator[Check]:
    """The checks that take seconds, each made when the iterator reaches it."""
    from workbench.cli.checks import runtime  # imports the kernels and Spark, which the help does not need

    yield from machine.python_version()
    yield from packages.requirements()
    yield from runtime.java()
    yield from runtime.compiled_kernels()
    yield from packages.lab_extension()
    yield from connectors.clients()
    yield from connectors.servers()
    yield from machine.browser()
    yield from machine.folder()
    yield from machine.disk()


def shown(console: Console, made: Iterator[Check]) -> Iterator[Check]:
    """Print each check and pass it on."""
    for check in made:
        mark = "ok" if check.ok else "missing" if check.needed else "optional"
        line = Text.assemble((f"{mark:<9}", MARKS[mark]), f"{check.name:<22}", check.found)
        if not check.ok:
            line.append(f" - {check.mend}")
        console.print(line)
        sys.stdout.flush()
        yield check
