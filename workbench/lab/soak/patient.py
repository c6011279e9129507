"""The job under soak: the pipeline continues under a new handle when it is stopped or restored from a savepoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import workbench as wb
from workbench.errors import JobError
from workbench.lab.soak.work import Work

NAME = "soak"
PATIENCE_S = 60.0
CHECKPOINT_INTERVAL = "1s"
PARALLELISM = 2
LOOK_S = 0.01


class Patient:
    """Runs the job, and performs actions of several calls.

    Args:
        work: its pipeline and records.
        folder: of its checkpoints.
        meanwhile: called repeatedly while it waits.

    Attributes:
        job: the running job.
    """

    def __init__(self, work: Work, folder: Path, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._work = work
        self._pipeline = work.pipeline()
        self._folder = folder
        self._savepoints = 0
        self._meanwhile = meanwhile
        self._never = threading.Event()
        self.job = self._run(resume=False, parallelism=PARALLELISM)

    def wait(self, seconds: float) -> None:
        """Wait without acting on the job."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._never.wait(min(left, LOOK_S))
            self._meanwhile()

    def tasks(self) -> Sequence[str]:
        """Names of its tasks, sorted."""
        return sorted(task for tasks in self.job.graph().slots.values() for task in tasks)

    def slots(self) -> Sequence[str]:
        """Names of its slots that have tasks, sorted."""
        return sorted(slot for slot, tasks in self.job.graph().slots.items() if tasks)

    def parallelism(self) -> int:
        """Subtasks of each operator."""
        return int(self.job.status()["parallelism"])

    def expect_restart(self, fail: Callable[[wb.types.Job], None]) -> None:
        """Make it fail, and wait until it has restarted.

        Raises:
            JobError: it has not, within a minute.
        """
        before = int(self.job.status()["restarts"])
        fail(self.job)
        self.until(lambda: int(self.job.status()["restarts"]) > before and self.job.state == "RUNNING", "run again")

    def go_on_from_a_savepoint(self) -> str:
        """Take a savepoint and resume from it; the one before it is deleted. Returns the name of the savepoint.

        No checkpoint is taken in between, because what it commits would be after the savepoint.
        """
        interval = self.job.status()["checkpoint_interval"]
        self.job.tune(checkpoint_interval="disabled")
        self._savepoints += 1
        name = f"soak-{self._savepoints}"
        self.job.savepoint(name)
        self.job = self.job.restore(name)
        self.job.tune(checkpoint_interval=interval)
        for older in self.job.savepoints():
            if older != name:
                self.job.delete_savepoint(older)
        return name

    def stop_and_resume(self) -> None:
        """End with a last checkpoint, and continue from it."""
        parallelism = self.parallelism()
        self.end()
        self.job = self._run(resume=True, parallelism=parallelism)

    def end(self) -> None:
        """End with a last checkpoint; in the middle of a restart there is none, so this waits for the restart."""
        self.until(lambda: self.job.state == "RUNNING", "run")
        self.job.stop(wait=False)
        self.job.wait(f"{PATIENCE_S:g}s")

    def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds.

        Raises:
            JobError: it failed, or it is not so within a minute.
        """
        for _ in range(round(PATIENCE_S / LOOK_S)):  # counted, so that a machine that slept does not fail the check
            if reached():
                return
            if self.job.over:
                self.job.wait("1s")  # raises the reason why it failed
            self.wait(LOOK_S)
        raise JobError(f"the job is {self.job.state} and does not {what} within {PATIENCE_S:g} s")

    def _run(self, *, resume: bool, parallelism: int) -> wb.types.Job:
        return self._pipeline.run(
            NAME,
            parallelism=parallelism,
            buffer_timeout="20ms",
            checkpoint_interval=CHECKPOINT_INTERVAL,
            checkpoint_dir=self._folder,
            resume=resume,
        )
