"""The work of ``workbench simulate``: runs the seeds, or every crash, and prints failures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.table import Table

from workbench.api.job.job import Job
from workbench.cli.outcome import right_align
from workbench.cli.progress_bar import ProgressBar
from workbench.lab.simulation.exhaustive import pairs_of_crashes, places_missed, run_cases, single_crashes
from workbench.lab.simulation.pace import SMALL, Graphs, Pace, Paces, of_all, together
from workbench.lab.simulation.replaying import replay
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.search import Search, run_blocks
from workbench.lab.simulation.shrinking import shrink
from workbench.lab.simulation.simulation import run_scenario
from workbench.lab.simulation.user_pipeline import unlike_elsewhere


def run(options: argparse.Namespace) -> int:
    """Simulate seed after seed until one fails; returns the exit code."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if options.exhaustive or options.pairs:
        return enumerate_crashes(console, pairs=options.pairs, jobs=options.jobs)
    search = Search(options.pipeline, tuple(options.fault), options.fault_tolerance)
    search.scenario(0)  # so that an error in the pipeline appears before the bar
    if options.replay is not None:
        return show(console, search, options.replay)
    seeds = range(options.first, options.first + options.seeds)
    steps = faults = 0
    paces: dict[Graphs, Pace] = {}
    failed: SimulationResult | None = None
    with ProgressBar(console, "simulating", len(seeds)) as progress:
        for block in run_blocks(search, seeds, jobs=options.jobs):
            failed = block.failed
            if failed is not None:
                break
            steps += block.steps
            faults += block.faults
            paces = together([paces, block.paces])
            progress.advance(block.seeds)
    if failed is not None:
        print_failure(console, failed, search)
        return 1
    if options.pipeline.endswith(".py") and (problems := unlike_elsewhere(Path(options.pipeline))):
        console.print("\n  ".join(["No seed failed, but another process returned different rows:", *problems]))
        console.print(
            "The result of a function must not depend on hash(), the order of a set, the clock or randomness."
        )
        return 1
    seconds = progress.seconds
    whole = of_all(paces)
    console.print(
        f"{options.seeds} seeds from {options.first} passed: {steps:,} steps with {faults:,} crashes and other faults "
        f"in {seconds:.1f} s, {options.seeds / seconds:.0f} seeds per second, {whole.per_cpu_s:.0f} per CPU second."
    )
    if options.pace:
        console.print(pace_table(paces))
    return 0


def pace_table(paces: Paces) -> Table:
    """The speed of the simulation of each pipeline: with graphs of any size, and with small ones."""
    shown = Table("pipeline", "runs", "steps", "per CPU s", "small", "steps", "per CPU s", caption_justify="left")
    shown.caption = f"Steps per run, and runs per CPU second; small: graphs of at most {SMALL} tasks."
    shown.columns[0].no_wrap = True
    right_align(shown)
    for name in sorted({graphs.pipeline for graphs in paces}):
        shown.add_row(name, *_told(of_all(paces, name)), *_told(of_all(paces, name, small=True)))
    shown.add_section()
    shown.add_row("all", *_told(of_all(paces)), *_told(of_all(paces, small=True)))
    return shown


def _told(pace: Pace) -> tuple[str, str, str]:
    if not pace.simulations:
        return "", "", ""
    return f"{pace.simulations:,}", f"{pace.steps / pace.simulations:,.0f}", f"{pace.per_cpu_s:,.0f}"


def enumerate_crashes(console: Console, *, pairs: bool, jobs: int) -> int:
    """Run every single crash, or every pair; returns the exit code."""
    with ProgressBar(console, "looking for the places") as progress:
        cases = pairs_of_crashes() if pairs else single_crashes()
        missed = [] if pairs else places_missed()
        progress.expect("simulating", len(cases))
        reached = broken = 0
        for outcome in run_cases(cases, jobs=jobs):
            reached += outcome.reached
            broken += bool(outcome.violations)
            progress.advance()
            if outcome.violations:
                console.print("\n  ".join([outcome.case, *outcome.violations]))
            if not (pairs or outcome.reached):
                console.print(f"{outcome.case}: this crash did not happen.")
    what = "pairs of crashes" if pairs else "crashes"
    console.print(
        f"{len(cases):,} {what}: {reached:,} were reached, {broken} violated an invariant; {progress.seconds:.0f} s."
    )
    if pairs:  # the first crash may end the run before the place of the second one
        return 1 if broken else 0
    for place in missed:
        console.print(f"No run reaches this place: {place}.")
    if missed or reached < len(cases):
        console.print(
            f"Not everything was tried: {len(cases) - reached} crashes did not happen, and {len(missed)} places were"
            " not found; see the lines above."
        )
    return 1 if broken or missed or reached < len(cases) else 0


def print_failure(console: Console, failed: SimulationResult, search: Search) -> None:
    """Print the violation, the last steps before it, the result of shrinking, and how to reproduce it."""
    for line in failed.story:
        console.print(f"  {line}")
    console.print(str(failed))
    scenario, result = shrink(search.scenario(failed.seed), failed)
    actions = ", ".join(map(str, result.actions)) or "no user actions"
    rows = "" if scenario.rows_max is None else f"; at most {scenario.rows_max} records in each input"
    console.print(f"It still fails with: {result.plan}; {actions}{rows}. Then: {result.violations[0]}")
    console.print(f"Reproduce it with: workbench simulate{_again(search)} --replay {failed.seed}")


def show(console: Console, search: Search, seed: int) -> int:
    """Print a seed's last steps and the job's picture before the last one, and continue interactively in a terminal;
    returns the exit code."""
    scenario = search.scenario(seed)
    result = run_scenario(scenario)
    for line in result.story:
        console.print(f"  {line}")
    console.print(str(result))
    job = replay(scenario)
    console.print(f"The job is {job.state!s} and stands {'at its start' if result.ok else 'before that step'}:")
    for row in job.metrics():
        console.print(f"  {row['task']}: {row['numRecordsIn']} records in, {row['numRecordsOut']} out")
    if console.is_terminal and sys.stdin.isatty():
        _step_by_hand(console, job)
    given = [str(seed)]
    given += [f"pipeline={search.pipeline!r}"] if search.pipeline else []
    given += [f"faults={search.only!r}"] if search.only else []
    given += [f"fault_tolerance={search.architecture!r}"] if search.architecture else []
    console.print(f"In Python: job = workbench.lab.replay({', '.join(given)}); job.stepper.step()")
    return 0 if result.ok else 1


def _step_by_hand(console: Console, job: Job) -> None:
    while not job.over and input("Enter: next step, q: quit ").strip() != "q":
        for step in job.stepper.step():
            console.print(f"  {step} at {step.time_us} us")


def _again(search: Search) -> str:
    pipeline = f" --pipeline {quote(search.pipeline)}" if search.pipeline else ""
    architecture = f" --fault-tolerance {search.architecture}" if search.architecture else ""
    return pipeline + architecture + "".join(f" --fault {quote(name)}" for name in search.only)
