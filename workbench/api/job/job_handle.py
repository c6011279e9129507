"""What every part of a job's handle needs: the job's master, to be asked and told, and its driver, to be waited for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from workbench.api.kept.journal import Journal
from workbench.api.pictures.state_view import StateView, state_view
from workbench.drivers.contract.driver import Driver
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.errors import JobError, SettingError
from workbench.runtime.job.master import Master
from workbench.runtime.storage import Holder
from workbench.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from workbench.api.job.job import Job


APPLY_TIMEOUT_S = 2.0
"""How long a command waits until the master has applied it while a task is in a step that does not end: the master may
be waiting for that to start the job again, or to end it."""
PATIENCE_S = 10.0
"""How long it waits otherwise: the master itself never does, so this is only for a busy machine."""


class JobHandle:
    """Who the job is and whether it lives; the parts of `Job` inherit it.

    Attributes:
        recorder: its telemetry frames.
    """

    def __init__(
        self,
        name: str,
        master: Master,
        driver: Driver,
        recorder: Recorder,
        rerun: Callable[[str | None, bool], Job],
        watch: Callable[[Master], None],
        holder: Callable[[], Holder | None],
        again: Callable[[str, int], Job] | str,
    ) -> None:
        self._name = name
        self._master = master
        self._driver = driver
        self._rerun = rerun
        self._watch = watch
        self._holder = holder
        self._again = again
        self._process = os.getpid()
        self._journal = Journal(lambda: driver.taken) if isinstance(driver, SteppingDriver) else None
        self.recorder = recorder

    @property
    def name(self) -> str:
        """The job's name."""
        return self._name

    @property
    def state(self) -> str:
        """Flink's job state: CREATED, INITIALIZING, RUNNING, FAILING, RESTARTING, CANCELLING, CANCELED, FINISHED,
        FAILED, SUSPENDED (it stands by).

        Source: Flink's ``JobStatus``.
        """
        return self._master.state

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self._master.over

    def operator_state(self, operator: str) -> StateView:
        """What an operator of the running job holds by key: ``job.operator_state("aggregate").get("JFK")``.

        Source: Flink's queryable state.

        Args:
            operator: its name.

        Raises:
            JobError: no such operator, or the job has ended.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"k": ["a"], "n": [1]}), rate=1)
            >>> job = numbers.key_by("k").aggregate(total=wb.sum("n")).run("held")
            >>> job.operator_state("aggregate")
            StateView of 'aggregate'; get(k), keys(limit), size()
            >>> _ = job.cancel()
        """
        self._check_running()
        master = self._master
        return state_view(
            operator,
            master.logical,
            lambda question: master.call(lambda: master.query(question)),
            lambda event, seconds: self._driver.wait_for(event, seconds),
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the job {self._name!r} runs in this process, and its handle cannot be pickled or copied: pass what "
            "is to be known of it, such as its status or the rows of a table"
        )

    def _check_process(self) -> None:
        """Refuse to wait for what nobody does: of a process that is forked, threads are not."""
        if self._process != os.getpid():
            raise JobError(
                f"the job {self._name!r} runs in process {self._process}, from which this one was forked: ask for it "
                "there"
            )

    def _check_running(self) -> None:
        self._check_process()
        if self.over:
            raise JobError(f"the job {self._name!r} has ended ({self.state}): run its pipeline again")
        if self._master.state == "SUSPENDED":
            raise JobError(
                f"the job {self._name!r} is SUSPENDED, because its checkpoint directory is held by "
                f"{self._holder() or 'another process'}: cancel() ends the waiting"
            )

    def _check_outside(self) -> None:
        """Refuse to wait for the job within one of its steps, for which the job waits, or in another process."""
        self._check_process()
        if self._driver.within():
            raise JobError(
                f"this call waits for the job {self._name!r}, and comes from one of its functions, sinks or sources, "
                "for which the job waits in turn: make it where the job is run, or on a thread of your own"
            )

    def _hand_over(self, master: Master) -> None:
        """Another master runs the job from now on."""
        self._master = master
        self._watch(master)
        self._driver.hand_over(master)

    def _become(self, twin: Job) -> None:
        """Go on in the place of another run of this job."""
        self._master, self._driver, self._rerun = twin._master, twin._driver, twin._rerun
        self._holder = twin._holder
        self._watch, self._again, self._journal, self.recorder = twin._watch, twin._again, twin._journal, twin.recorder

    def _held_up(self) -> str:
        """What an answer may be waiting for, to be put behind the sentence that says that there is none; or nothing."""
        if stalled := self._driver.stalled():
            return f": {stalled}; job.cancel() ends the job without waiting for it"
        if on_purpose := self._master.settings.shown().get("stall"):
            return f": {on_purpose} is stalled on purpose, which job.stall(OPERATOR, False) ends"
        return ""

    def _apply(self, action: Callable[[], None]) -> None:
        """Have the master run `action`, and wait until it has.

        Raises:
            SettingError: `action` refuses what is asked for.
            JobError: the job has ended before, or the master is too busy to do it now.
        """
        done = threading.Event()
        refused: list[SettingError] = []

        def run() -> None:
            try:
                action()
            except SettingError as error:
                refused.append(error)
            finally:
                done.set()

        self._master.call(run)
        self._answered(done)
        for error in refused:
            raise error

    def _answered(self, done: threading.Event) -> None:
        """Wait until the master has done what it was asked for; raises as `_apply`."""
        wait_for = self._driver.wait_for
        if wait_for(done, APPLY_TIMEOUT_S) or (not self._driver.stalled() and wait_for(done, PATIENCE_S)):
            return
        self._check_running()
        raise JobError(
            f"the job {self._name!r} ({self._master.state}) is too busy to do this now, and does it as soon as it "
            f"can{self._held_up()}"
        )
