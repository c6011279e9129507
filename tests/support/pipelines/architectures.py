"""Runs drawn pipelines under an architecture of fault tolerance, and compares what its guarantee allows."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Literal

import pyarrow as pa

from workbench.api.running.architectures_compared import Difference, difference

from .draft import Draft
from .expected import Exactly, counted
from .generator import OPERATORS, STATELESS, draw
from .running import MEMORY, PARALLELISMS, SimulatedRun, Tables, small_limits, with_files

MOST = 5
Outcome = Literal["refused", "equal", "never below", "never above", "may be anything"]
"""What became of a pipeline: what was compared, if it ran."""


def check_under(architecture: str, seed: int) -> Outcome:
    """Draw a pipeline and run it under this architecture with faults, every other one without state.

    Raises:
        AssertionError: a sink holds what the architecture's guarantee forbids; tells the pipeline.
    """
    chance = Random(f"{architecture} {seed}")
    parallelisms = chance.choice(PARALLELISMS)
    stateless = seed % 2 == 0
    with ExitStack() as process:
        folder = process.enter_context(tempfile.TemporaryDirectory(prefix="workbench-pipeline-", dir=MEMORY))
        process.enter_context(small_limits(chance.choice((None, 2, 5))))
        draft = Draft(chance, Path(folder), parallelisms)
        pipeline = draw(draft, MOST, STATELESS if stateless else OPERATORS)
        checkpoints = Path(folder) / "checkpoints"
        groups = Random(f"groups {seed}")
        run = SimulatedRun(pipeline, Random(f"run {seed}"), parallelisms, checkpoints, groups, architecture)
        if run.refusal():
            return "refused"
        try:
            tables = with_files(draft, run.tables())
            outcome, problems = _compared(draft, run, tables, stateless=stateless)
            assert not problems, "\n".join(problems)
        except Exception as error:
            story = "\n".join(draft.story)
            error.add_note(f"{architecture} {seed}, parallelism {parallelisms}:\n{story}\n{run.words}")
            raise
    return outcome


def _compared(draft: Draft, run: SimulatedRun, tables: Tables, *, stateless: bool) -> tuple[Outcome, list[str]]:
    guarantee = run.settings.policy.guarantee
    doubled = guarantee == "at-least-once" and run.counted_twice > 0
    lost = guarantee == "at-most-once" and run.failures > 0
    if not doubled and not lost:
        return "equal", [text for one in draft.expected if (text := one.problem(tables))]
    exact = [one for one in draft.expected if isinstance(one, Exactly)]
    told = [text for one in exact if (text := _told(one, tables[one.sink]))]
    if told:
        return "may be anything", told
    if not stateless or len(exact) < len(draft.expected):
        return "may be anything", []
    if doubled:
        return "never below", [text for one in exact if (text := _below(one, tables[one.sink]))]
    return "never above", [text for one in exact if (text := _above(one, tables[one.sink]))]


def _told(claim: Exactly, got: pa.Table) -> str:
    """Whether `wb.compare` would tell exactly the rows that this sink lacks and has too much."""
    right = counted(claim.rows)
    had = counted(got)
    expected = Difference((right - had).total(), (had - right).total())
    found = difference(got, claim.rows.cast(got.schema), None)
    return "" if found == expected else f"{claim.sink} differs by {expected}, and compare tells {found}"


def _below(claim: Exactly, got: pa.Table) -> str:
    lacking = counted(claim.rows) - counted(got)
    return f"{claim.sink} lacks {list(lacking.items())[:4]}" if lacking else ""


def _above(claim: Exactly, got: pa.Table) -> str:
    surplus = counted(got) - counted(claim.rows)
    return f"{claim.sink} has too much: {list(surplus.items())[:4]}" if surplus else ""
