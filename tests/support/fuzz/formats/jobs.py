"""Real jobs with every kind of operator, source and sink, stopped half-way: what their checkpoint directories hold."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipelines.draft import Draft
from pipelines.generator import OPERATORS, draw
from pipelines.running import with_files

from workbench.api.job.job import Job
from workbench.api.running.pipeline import Pipeline

CHECKPOINTS = Path("checkpoints")
SAVEPOINT = "kept"
"""Paths are relative, as they are in a project that is moved: each input lies in the folder that is the current one."""
STEPS_MAX = 20_000
SEEDS = 6
"""Of some the records are so few that the job ends before it can be stopped."""


@dataclass(frozen=True)
class RealJob:
    """A pipeline that is drawn around one kind of operator, the same each time.

    Attributes:
        operator: its place in the list of all.
        seed: of the other things in it.
    """

    operator: int
    seed: int

    def __str__(self) -> str:
        return f"{self.operator}-{self.seed}"

    def drawn(self) -> tuple[Pipeline, Draft]:
        """The pipeline, with its files in the current folder."""
        draft = Draft(Random(f"fuzz {self.operator} {self.seed}"), Path(), (1,))
        return draw(draft, 1, {list(OPERATORS)[self.operator]: 1}), draft

    def run_half(self) -> bool:
        """Let it run in the current folder until it has some checkpoints and a savepoint; whether it got so far."""
        pipeline, _ = self.drawn()
        mode = "unaligned" if self.operator % 3 == 0 else "exactly-once"
        job = pipeline.run(
            "job", driver="stepping", checkpoint_dir=CHECKPOINTS, checkpoint_interval="2ms", buffer_size=7,
            checkpoint_mode=mode,
        )  # fmt: skip
        with suppress(Exception):
            job.stepper.until_checkpoint()
            job.stepper.until_checkpoint()
            if not job.over:
                job.savepoint(SAVEPOINT)
                job.stepper.until_checkpoint()
        if not job.over:
            job.cancel()
            job.wait()
        return (CHECKPOINTS / "savepoints" / SAVEPOINT / "manifest.json").exists() and any(CHECKPOINTS.glob("chk-*"))


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """Have a folder as the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_some(operators: Sequence[int], folder: Path) -> None:
    """Run a job of each operator, which is stopped half-way, in a folder that is named by it."""
    for operator in operators:
        for seed in range(SEEDS):
            job = RealJob(operator, seed)
            place = folder / str(job)
            place.mkdir()
            with within(place):
                half = job.run_half()
            if half:
                break
            shutil.rmtree(place)


def jobs_in(folder: Path) -> tuple[RealJob, ...]:
    """The jobs that were run there."""
    return tuple(RealJob(*map(int, place.name.split("-"))) for place in sorted(folder.iterdir()))


def copied(folder: Path, job: RealJob, target: Path) -> None:
    """Put a job's files into a folder."""
    shutil.copytree(folder / str(job), target, dirs_exist_ok=True)


def to_the_end(job: Job) -> str:
    """The state in which a stepping job ends; TimeoutError if it does not."""
    for _ in range(STEPS_MAX // 500):
        if job.over:
            return job.state
        job.stepper.step(500)
    raise TimeoutError(f"{STEPS_MAX:,} steps do not end it")


def problems(job: Job, draft: Draft) -> list[str]:
    """What the sinks hold and should not, or the other way round."""
    tables = {table: job.table(table) for table in draft.tables}
    return [text for one in draft.expected if (text := one.problem(with_files(draft, tables)))]
