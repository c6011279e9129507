"""The master of one job: its life cycle, its recovery, and the only entry point for changes (F2-1, F2-7).

Like a task it is passive: a driver calls ``step()`` on one thread (or one actor) of its own. Commands and reports
arrive in its inbox; to act on a running attempt, it calls its driver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import CheckpointError, JobError, sentence_of
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.barriers.snapshots import SnapshotTaken
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord, Kind, Restore
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.checkpoints.requests import CheckpointRequests, Request
from workbench.runtime.checkpoints.rescaling import Rescale
from workbench.runtime.job.attempts import Attempts, Door
from workbench.runtime.job.ending import Ending
from workbench.runtime.job.inquiry import Inquiry
from workbench.runtime.job.kinds import attempts_of
from workbench.runtime.job.life_cycle import LifeCycle
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.job.restarts import Restarts, is_final
from workbench.runtime.job.source_control import SourceControl
from workbench.runtime.messages.messages import (
    Answered,
    Apply,
    Collected,
    Command,
    Complete,
    Crash,
    Drained,
    Failed,
    Finish,
    Finished,
    Report,
    Wanted,
)
from workbench.runtime.messages.queries import Question
from workbench.runtime.settings.settings import HOLD, Settings
from workbench.runtime.storage import CheckpointStorage, Manifest
from workbench.runtime.tasks.execution import Execution, JobServices
from workbench.runtime.tasks.stage import Stage


class Master:
    """One job.

    Args:
        logical, graph: the plan.
        settings: in force at the start.
        services: clock, tables, paces.
        storage: of its checkpoints.
        coordinator: of its checkpoints.
        stage: the driver.
        observer: receives the job's events.
        restore_from: a complete checkpoint or savepoint to start from.
        standby: it starts when it gets a successor; until then the job is SUSPENDED.
        predecessor: the master that ran the job before; what belongs to the job and not to its master is taken over.

    Attributes:
        settings: in force.
        graph: the plan.
        life: the job's state and log.
        sources: what users have set for them.
        begin: called when the next attempt is due; None while another master is being started.
    """

    def __init__(
        self,
        *,
        logical: LogicalGraph,
        graph: PhysicalGraph,
        settings: Settings,
        services: JobServices,
        storage: CheckpointStorage,
        coordinator: CheckpointCoordinator,
        stage: Stage,
        observer: JobObserver,
        restore_from: Manifest | None = None,
        standby: bool = False,
        predecessor: Master | None = None,
    ) -> None:
        self.logical = logical
        self.graph = graph
        self.settings = settings
        self.services = services
        self.storage = storage
        self.coordinator = coordinator
        self.stage = stage
        if predecessor is None:
            self.life = LifeCycle(services.clock, observer)
            self.sources = SourceControl(logical, services, self.life)
            self._restarts = Restarts(settings.restart, services.job)
            self._inbox: deque[Callable[[], None]] = deque()
            self._ending, self.requests = Ending(), CheckpointRequests(coordinator)
        else:
            self.life, self.sources = predecessor.life, predecessor.sources
            self._restarts = predecessor._restarts
            self._inbox = predecessor._inbox  # so that late commands to the predecessor are not lost
            self._ending, self.requests = predecessor._ending, predecessor.requests.succeeded_by(coordinator)
        self._attempts: Attempts = attempts_of(settings.policy)(
            services,
            storage,
            coordinator,
            self.sources,
            stage,
            open_door=lambda: Door(self.call, self._on_report),
            tell=self.life.tell,
            mishap=self.life.mishap,
            audit=self.life.audit,
            restore_from=restore_from,
            predecessor=None if predecessor is None else predecessor._attempts,
        )
        self._standby = standby
        self._succeeds = predecessor is not None
        self.begin: Callable[[], None] | None = self._begin_attempt
        self._inquiry = Inquiry(stage)
        coordinator.on_savepoint = self._savepoint_complete
        coordinator.on_complete = self._checkpoint_complete
        coordinator.on_failed = self._checkpoint_failed

    # facts: telemetry, the handle and the checkers read only these ---------------------------------------------------

    def shown(self) -> dict[str, Any]:
        """The settings in force as users write them, including those of the sources."""
        groups = {"max_parallelism": self.graph.max_parallelism}
        return {**self.settings.shown(), **groups, **self.sources.shown()}

    @property
    def execution(self) -> Execution | None:
        """The tasks that run, or that ran last; None before the first attempt."""
        return self._attempts.execution

    @property
    def restart_point(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job would resume after a failure."""
        return self._attempts.restart_point

    @property
    def restores(self) -> int:
        """How often tasks were restored from a checkpoint or savepoint; a master that takes over starts at 0."""
        return self._attempts.restores

    @property
    def last_restore(self) -> Restore | None:
        """The last restore."""
        return self._attempts.last_restore

    @property
    def state(self) -> str:
        """Flink's job state (see `LifeCycle`)."""
        return self.life.state

    @property
    def over(self) -> bool:
        """Whether the job has ended for good."""
        return self.life.over

    @property
    def failure(self) -> Exception | None:
        """The last failure; the job may have recovered from it."""
        return self.life.failure

    @property
    def restarts(self) -> int:
        """How often the job has restarted after a failure, as a whole or in a region."""
        return self._restarts.count

    @property
    def restart_due_us(self) -> int | None:
        """When the next attempt starts, while a restart is pending."""
        return self._restarts.due_us

    @property
    def paused(self) -> bool:
        """Whether a user has paused the sources."""
        return self.sources.paused

    @property
    def all_committed(self) -> bool:
        """Whether the job has committed everything that there was to read; one that was stopped has not."""
        return self.state == "FINISHED" and self._ending.all_committed

    @property
    def held_open(self) -> bool:
        """Whether everything is read, and the job is to stay open."""
        return self._ending.held and not self._ending.stopping

    @property
    def reading(self) -> bool:
        """Whether all sources have tasks that are stepped, no restart is pending, and no checkpoint is halfway through
        the sources (some have sent its barrier and others have not)."""
        if self.state != "RUNNING" or self._attempts.down or self.execution is None:
            return False
        return self.coordinator.taken_by(task.name for task in self.execution.sources)

    # entry points --------------------------------------------------------------------------------------------------

    def call(self, action: Callable[[], None]) -> None:
        """Run `action` on the master's turn; callable from any thread, returns at once."""
        self._inbox.append(action)
        self.stage.wake()

    def next_due_us(self) -> int | None:
        """When ``step`` has something to do even if nothing arrives."""
        if self.begin is None or not self.coordinator.settled:
            return None  # a result from the background will wake the master
        restart_us = self._restarts.due_us
        if self.life.state != "RUNNING" or self._ending.agreed:
            return restart_us
        due_us = self.coordinator.next_due_us(self.settings)
        return min((each for each in (restart_us, due_us) if each is not None), default=None)

    @property
    def has_news(self) -> bool:
        """Whether the inbox holds anything."""
        return bool(self._inbox)

    def step(self) -> None:
        """Handle everything in the inbox, then what is due."""
        while self._inbox:
            self._inbox.popleft()()
        now = self._now()
        may_begin = self.coordinator.settled and self._restarts.is_due(now)
        if self.state == "RUNNING" and self._attempts.down:
            if may_begin:
                self._bring_back()
        elif self.state == "RUNNING" and not self._ending.agreed:
            if self.sources.sought:
                self.sources.go_where_sought(reading=self.reading)
            # Requests go first: periodic checkpoints without a gap would keep them waiting.
            if (begun := self.requests.trigger(self.settings, now)) is not None and begun.rescale is not None:
                self.sources.hold(True)  # records read behind this barrier would have to be read again
            self.coordinator.step(self.settings, now)
        elif self.state == "RESTARTING" and may_begin and self.begin is not None:
            self.begin()

    # commands: called on the master's turn -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the first attempt, unless it is to wait or the job was canceled before this master's first turn."""
        if self.over:
            return
        if self._standby:
            self.life.enter("SUSPENDED")
        elif self._restarts.due_us is None:
            self._begin_attempt()
        else:
            self.life.enter("RESTARTING")

    def apply(self, settings: Settings, text: str) -> None:
        """Apply new settings."""
        interval_changed = settings.periodic_interval_us != self.settings.periodic_interval_us
        self.settings = settings
        if interval_changed:
            self.coordinator.reschedule(settings, self._now())
        self._to_all(Apply(settings))
        self._attempts.use(settings)
        self.life.tell("tune", text)
        if self._ending.held and settings.at_end != HOLD:
            self._all_read()

    def checkpoint(self, kind: Kind = "manual", savepoint: str | None = None) -> None:
        """Take a checkpoint as soon as another one may be in progress."""
        self.requests.ask(Request(kind, savepoint))

    def rescale(self, rescale: Rescale) -> None:
        """Resume at another parallelism, from a checkpoint that is taken for it as soon as possible."""
        if self._ending.agreed or self._ending.stopping or self.over:
            rescale.done("the job is about to end")
        else:
            self.requests.ask(Request("manual", rescale=rescale))

    def query(self, question: Question) -> None:
        """Ask the tasks that own the state."""
        if self.execution is None or self.state != "RUNNING":
            question.refuse(f"the job is {self.state}")
        else:
            self._inquiry.ask(question, self.graph, self.execution)

    def crash(self, *tasks: str) -> None:
        """Let tasks fail, each in its next step."""
        if self.execution is not None and self.state == "RUNNING":
            for task in self.execution.tasks:
                if task.name in tasks:
                    task.post(Crash())

    def lose(self, place: str, tasks: Sequence[str]) -> None:
        """A slot or a TaskManager dies, and all its tasks with it (F2-2)."""
        self._attempts.note_failed(tasks)
        self._on_failed(tasks, place, JobError(f"{place} was failed on purpose, with {', '.join(tasks) or 'no tasks'}"))

    def stop(self) -> None:
        """Take a last checkpoint, so that what was processed is committed, then end."""
        if self.state == "RUNNING":
            self._ending.stopping = True
            self._attempts.hurry()
            self.requests.stop()
        else:
            self.cancel()

    def cancel(self) -> None:
        """End immediately; what is not committed is lost to this run."""
        if self.over:
            return
        self.life.enter("CANCELLING")
        self._end_attempt("the job was canceled")
        self._end("CANCELED")

    def retire(self, what: str, error: Exception) -> bool:
        """This master has failed and does nothing more for the job; returns whether another one may take over."""
        if self.state != "RUNNING":
            return False
        self.requests.give_up(f"{what} failed in the meantime", completing=False)
        self._on_failed((), what, error, whole=True)
        if not self.over:
            self.forget()
        return not self.over

    def forget(self) -> None:
        """Release tasks that have ended for good, so that a reference to this master keeps no state or buffers
        alive."""
        self._attempts.forget()

    def abandon(self, error: Exception) -> None:
        """A turn of the master itself has failed, which is a bug: end the job and report it instead of hanging."""
        self.life.failed(error, "the job's master failed")
        if not self.over:
            self._end_attempt("the job's master failed")
            self._end("FAILED")

    # attempts ----------------------------------------------------------------------------------------------------

    def _begin_attempt(self) -> None:
        try:
            self._launch()
        except Exception as error:  # noqa: BLE001  whatever opening or restoring raises is for the job to handle
            again = self.life.has_run or self._succeeds  # at the first start the caller waits, and gets the error
            in_vain = self._attempts.in_vain()
            self.life.failed(error, ("could not start again" if again else "could not start") + in_vain)
            self.restart_or_end(error, "it could not start", final=bool(in_vain) or not again or is_final(error))

    def _launch(self) -> None:
        self.life.enter("INITIALIZING")
        self._attempts.launch(self.graph, self.settings)
        self._restarts.begun()
        self.life.observer.on_deployed(self._now())
        self.life.enter("RUNNING")

    def _bring_back(self) -> None:
        """Restart the failed regions from the latest checkpoint, next to those that never stopped."""
        what = f"starting {' and '.join(map(str, self._attempts.down))} again"
        try:
            self._attempts.bring_back(self.graph, self.settings)
        except Exception as error:  # noqa: BLE001  as above
            if is_final(error):
                self.life.failed(error, "could not start again")
                self.restart_or_end(error, f"{what} failed", final=True)
            else:
                self._on_failed((), what, error)
            return
        self._restarts.begun()
        self.life.observer.on_deployed(self._now())
        if self._ending.all_drained(self.graph):  # its last checkpoint was aborted, and no source will ask again
            self.call(self._all_read)

    def _go_on_at(self, rescale: Rescale) -> None:
        """The checkpoint of a rescaling is complete: end this attempt and resume from there with the new plan."""
        graph, settings = self.graph, self.settings
        self.life.enter("RESTARTING")
        self.requests.attempt_over("the job was rescaled in the meantime")
        self._end_attempt("the job is rescaled")
        self._use(rescale.graph, replace(settings, parallelism=rescale.parallelism))
        try:
            self._launch()
        except Exception as error:  # noqa: BLE001  whatever the new plan cannot do, the old one could
            self._use(graph, settings)
            self.life.mishap(f"could not continue at parallelism {rescale.parallelism}", error)
            self._begin_attempt()
            rescale.done(sentence_of(error))
            return
        self.life.tell("tune", f"parallelism = {rescale.parallelism}, it was {settings.parallelism}")
        rescale.done(None)

    def _use(self, graph: PhysicalGraph, settings: Settings) -> None:
        self.graph = graph
        self.settings = settings
        self.coordinator.plan_changed(graph)

    def _end_attempt(self, reason: str, *, failed: bool = False) -> None:
        self.coordinator.stop(reason, self._now())
        self._inquiry.attempt_over(reason)
        self._attempts.end(failed=failed)
        self._ending.start_over()

    def _on_failed(self, tasks: Sequence[str], what: str, error: Exception, *, whole: bool = False) -> None:
        if self.state != "RUNNING":
            return
        in_vain = self._attempts.in_vain(tasks)
        self.life.failed(error, f"{what} failed{in_vain}")
        self.requests.attempt_over(f"{what} failed in the meantime")
        regions = () if whole or self._ending.begun else self._attempts.apart(tasks)
        if regions and self._may_restart(error):
            reason = f"{what} failed"
            self.coordinator.stop(reason, self._now())
            self._inquiry.attempt_over(reason)
            self.sources.hold(False, reading=False)
            self._ending.start_over([task for region in regions for task in region.tasks])
            self._attempts.take_down(regions)
            self.life.tell("notice", f"only {' and '.join(map(str, regions))} restarts, the rest continues")
            return
        self.restart_or_end(error, f"{what} failed", final=bool(in_vain), gave_up=bool(regions))

    def restart_or_end(self, error: Exception, reason: str, *, final: bool, gave_up: bool = False) -> None:
        """The attempt is over; another one follows unless it would be futile, or the restart strategy gives up."""
        self.life.enter("FAILING")
        self._end_attempt(reason, failed=True)
        if not final and not gave_up and self._may_restart(error):
            self.life.enter("RESTARTING")
            return
        if not final:
            self.life.tell("notice", f"gave up at failure {self._restarts.failures} (restart={self.settings.restart})")
        self._end("FAILED")

    def _may_restart(self, error: Exception) -> bool:
        return self._restarts.allowed(error, self._now(), self.settings.restart_delay_us)

    # reports -----------------------------------------------------------------------------------------------------

    def _on_report(self, report: Report) -> None:
        execution = self.execution
        if execution is None or self.state != "RUNNING":
            return  # from an attempt that is over
        match report:
            case SnapshotTaken():
                self.coordinator.snapshot_taken(report, self._now)
            case Collected():
                self._attempts.collected(report)
            case Drained(task):
                if self._ending.drained(task, self.graph):
                    self._all_read()
            case Wanted():
                self.requests.ask_once(Request("periodic"))
            case Finished(task):
                if self._ending.finished(task, self.graph):
                    self._end_attempt("the job has ended")
                    self._end("FINISHED")
            case Failed(task, error):
                self._attempts.note_failed([task])
                self._on_failed([task], task, error)
            case Answered(task, question, found):
                self._inquiry.answered(task, question, found)

    def _all_read(self) -> None:
        """Every source has read everything: take the last checkpoint, unless the job is to stay open."""
        self._ending.held = self.settings.at_end == HOLD
        if self._ending.held:
            self.life.tell("notice", "all input has been read, and the job stays open: at_end = finish ends it")
        else:
            self.requests.ask(Request("final", last=True))

    def _checkpoint_complete(self, record: CheckpointRecord) -> None:
        request = self.requests.completed(record)
        self._to_all(Complete(record.checkpoint_id))
        self._attempts.committed(record)
        self.coordinator.retain(self.settings)
        self.life.observer.on_checkpoint(self._now(), record.checkpoint_id)
        if request is None or self.execution is None:
            return
        if request.rescale is not None:
            self._go_on_at(request.rescale)
        elif request.last:
            # What a job that is being stopped has read after its last barrier is not committed, even if it is the rest.
            self._ending.agree(all_committed=record.kind == "final")
            self.execution.tell_sources(Finish())

    def _savepoint_complete(self, record: CheckpointRecord) -> None:
        self.requests.tell(record)
        if record.savepoint is not None:
            self.life.observer.on_savepoint(record.savepoint, self.coordinator.path_of(record))

    def _checkpoint_failed(self, record: CheckpointRecord) -> None:
        self.life.checkpoint_failed(record.checkpoint_id, record.reason, own_fault=record.own_fault)
        given_up = self.requests.failed(record)
        if given_up is not None and given_up.rescale is not None:
            self.sources.hold(False)
            given_up.rescale.done(f"its checkpoint failed: {record.reason}")
        elif given_up is not None and given_up.last and self.state == "RUNNING":
            error = CheckpointError(f"the final checkpoint could not be taken: {record.reason}")
            self.life.failed(error, "the job was about to end")
            self._end_attempt("the last checkpoint failed")
            self._end("FAILED")
        if (failure := self.coordinator.intolerable(self.settings)) is not None:
            self._on_failed(record.tasks, "checkpointing", failure)

    # helpers -----------------------------------------------------------------------------------------------------

    def _to_all(self, command: Command) -> None:
        if self.execution is not None and self.state in ("RUNNING", "INITIALIZING"):
            self.execution.tell(command)

    def _now(self) -> int:
        return self.services.clock.now_us()

    def _end(self, state: str) -> None:
        self._restarts.begun()  # no further restart
        self.life.end(state)
        self.requests.give_up()
        self.life.observer.on_end(self._now())
