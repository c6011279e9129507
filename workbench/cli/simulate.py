"""``workbench simulate``: searches for a schedule or a crash that breaks a promise."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.progress import track

from workbench.cli.command import Commands, count
from workbench.testing import SimulationResult, simulate

DETAILS = """\
Runs pipelines under a scheduler that draws every choice from a seed, with virtual time and injected crashes, and checks
every promise of the runtime all the time and the results at the end. The same seed always gives the same run, so one
that fails can be repeated with '--first-seed SEED --seeds 1'. The exit code is 1 when a seed fails.
"""


def register(commands: Commands) -> None:
    """Add ``workbench simulate``."""
    about = "search for schedules and crashes that break a promise"
    parser = commands.add("simulate", run, about=about, details=DETAILS)
    parser.add_argument("--seeds", type=count("--seeds"), default=200, help="how many seeds (default: 200)")
    parser.add_argument(
        "--first-seed", type=count("--first-seed", least=0), default=0, help="where to begin (default: 0)"
    )


def run(options: argparse.Namespace) -> int:
    """Simulate seed after seed until one fails; the exit code."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    begun = time.monotonic()
    steps = crashes = 0
    for seed in track(seeds, "simulating", console=console, disable=not console.is_terminal):
        result = simulate(seed)
        if not result.ok:
            print_failure(console, result)
            return 1
        steps += result.steps
        crashes += len(result.faults)
    console.print(
        f"{options.seeds} seeds from {options.first_seed} passed: {steps:,} steps with {crashes:,} crashes and other"
        f" faults in {time.monotonic() - begun:.1f} s."
    )
    return 0


def print_failure(console: Console, result: SimulationResult) -> None:
    """Print what was violated, the last steps before it, and how to see it again."""
    for line in result.story:
        console.print(f"  {line}")
    console.print(str(result))
    console.print(f"Repeat it with 'workbench simulate --first-seed {result.seed} --seeds 1'.")
