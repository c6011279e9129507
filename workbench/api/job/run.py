"""One run of a pipeline: its master, which takes commands, and its driver."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.api.kept.journal import Journal
from workbench.drivers.contract.driver import Driver
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.errors import JobError, SettingError
from workbench.runtime.job.master import Master
from workbench.runtime.storage import Holder
from workbench.telemetry.recorder import Recorder
from workbench.wire.head import Head, head_of

if TYPE_CHECKING:
    from workbench.api.job.job import Job
    from workbench.api.kept.job_record import Cell


APPLY_TIMEOUT_S = 2.0
"""How long a command waits for the master if a task is in a step that does not end: the master may be waiting for that
step to restart the job, or to end it."""
PATIENCE_S = 10.0
"""How long it waits otherwise: the master itself never blocks, so this only matters on a busy machine."""


class Run:
    """The internals that a job's handle refers to.

    Args:
        name: of the job.
        master: of the job.
        driver: steps it.
        recorder: its telemetry frames.
        rerun: runs the pipeline again from a savepoint, or from the latest checkpoint; takes whether state that no
            operator takes is dropped.
        record: runs the pipeline on with a recording of a source in a folder.
        watch: makes telemetry follow another master.
        holder: returns the process that owns the checkpoint directory.
        again: starts the run again under a name, with frames from a step on; or says why that is impossible.
        beside: returns the pipeline and the current settings, to run it again next to this run; or says why
            that is impossible.
        cell: of a notebook that started it; None: a call of ``run``.

    Attributes:
        journal: the commands that users gave to a stepping job.
        told: whether its failure has been raised where a user sees it.
    """

    def __init__(
        self,
        name: str,
        master: Master,
        driver: Driver,
        recorder: Recorder,
        *,
        rerun: Callable[[str | None, bool], Job],
        record: Callable[[str | Path, str | None], Job],
        watch: Callable[[Master], None],
        holder: Callable[[], Holder | None],
        again: Callable[[str, int], Job] | str,
        beside: Callable[[], tuple[Any, dict[str, Any]]] | str,
        cell: Cell | None = None,
    ) -> None:
        self.name = name
        self.master = master
        self.driver = driver
        self.recorder = recorder
        self.rerun = rerun
        self.record = record
        self.holder = holder
        self.again = again
        self.beside = beside
        self.cell = cell
        self.journal = Journal(lambda: driver.taken) if isinstance(driver, SteppingDriver) else None
        self.told = False
        self._watch = watch
        self._process = os.getpid()

    @property
    def state(self) -> str:
        """Flink's job state."""
        return self.master.state

    @property
    def over(self) -> bool:
        """Whether the job has ended and will not restart."""
        return self.master.over

    def head(self) -> Head:
        """The job at a glance: its newest frame, in its present state."""
        is_stepped = isinstance(self.driver, SteppingDriver)
        return head_of(self.recorder.latest(), self.state, paused=self.master.paused, stepped=is_stepped)

    def become(self, twin: Run) -> None:
        """Continue in place of another run of this job."""
        self.__dict__.update({**vars(twin), "name": self.name})

    def hand_over(self, master: Master) -> None:
        """Another master runs the job from now on."""
        self.master = master
        self._watch(master)
        self.driver.hand_over(master)

    def check_process(self) -> None:
        """Reject waiting in a forked process, which has no threads of its parent.

        Raises:
            JobError: this is another process than the job's.
        """
        if self._process != os.getpid():
            raise JobError(
                f"the job {self.name!r} runs in process {self._process}, from which this one was forked: use it there"
            )

    def check_running(self) -> None:
        """Reject commands to a job that has ended or does not run yet.

        Raises:
            JobError: it has ended, is on standby, or runs in another process.
        """
        self.check_process()
        if self.over:
            raise JobError(f"the job {self.name!r} has ended ({self.state}): run its pipeline again")
        if self.state == "SUSPENDED":
            raise JobError(
                f"the job {self.name!r} is SUSPENDED, because its checkpoint directory is held by "
                f"{self.holder() or 'another process'}: cancel() stops waiting"
            )

    def check_outside(self) -> None:
        """Reject waiting for the job within one of its steps, which the job is waiting for, or in another process.

        Raises:
            JobError: one of the job's own functions, sinks or sources calls this.
        """
        self.check_process()
        if self.driver.within():
            raise JobError(
                f"this call waits for the job {self.name!r}, but was made by one of its own functions, sources or "
                "sinks, for which the job waits in turn: make it in the code that runs the job, or on a separate "
                "thread"
            )

    def held_up(self) -> str:
        """What an answer may be waiting for, to be appended to the message that there is none; or empty."""
        if stalled := self.driver.stalled():
            return f": {stalled}; job.cancel() ends the job without waiting for it"
        if on_purpose := self.master.settings.shown().get("stall"):
            return f": {on_purpose} is stalled on purpose: job.faults.stall(OPERATOR, False) ends this"
        if self.master.held_open:
            return ": all input has been read, and at_end is 'hold': job.tune(at_end='finish') ends it"
        return ""

    def waits_for_server(self) -> bool:
        """Whether a task, or the operator that is opened, waits for an unreachable server."""
        execution = self.master.execution
        tasks = () if execution is None else execution.tasks
        return self.master.services.opening.is_open or any(task.outage is not None for task in tasks)

    def apply(self, action: Callable[[Master], None]) -> None:
        """Let the present master run `action`, and wait until it has.

        Raises:
            SettingError: `action` rejects the request.
            JobError: the job has ended before, or the master is too busy to do it now.
        """
        done = threading.Event()
        refused: list[SettingError] = []

        def run() -> None:
            try:
                action(self.master)
            except SettingError as error:
                refused.append(error)
            finally:
                done.set()

        self.master.call(run)
        wait_for = self.driver.wait_for
        if not (wait_for(done, APPLY_TIMEOUT_S) or (not self.driver.stalled() and wait_for(done, PATIENCE_S))):
            self.check_running()
            raise JobError(
                f"the job {self.name!r} ({self.state}) is too busy to do this now, and will do it as soon as it "
                f"can{self.held_up()}"
            )
        for error in refused:
            raise error
