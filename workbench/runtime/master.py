"""The master of one job: its life cycle, its recovery, and the one door through which it is changed (F2-1, F2-7).

Like a task it is passive: a driver calls ``step()`` on one thread (or one actor) of its own. Commands and reports come
in through the inbox; what the master wants done to a running attempt it asks of its driver.

Life cycle::

    CREATED -> INITIALIZING -> RUNNING -> FINISHED
                    ^            |  \\---> CANCELLING -> CANCELED
                    |            v
               RESTARTING <- FAILING ---> FAILED

A rescaled job goes from RUNNING straight to RESTARTING: nothing has failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from workbench.errors import CheckpointError, WorkbenchError
from workbench.observer import JobObserver
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.coordinator import CheckpointCoordinator, CheckpointRecord, Kind
from workbench.runtime.deployment import Execution, JobServices, States, deploy, read_states
from workbench.runtime.inquiry import Inquiry
from workbench.runtime.messages import (
    Answered,
    Apply,
    Command,
    Complete,
    Crash,
    Drained,
    Failed,
    Finish,
    Finished,
    Report,
    SnapshotTaken,
)
from workbench.runtime.queries import Question
from workbench.runtime.requests import CheckpointRequests, Request
from workbench.runtime.rescaling import Rescale
from workbench.runtime.restarts import Restarts
from workbench.runtime.settings import Settings
from workbench.runtime.source_control import SourceControl
from workbench.runtime.stage import Stage
from workbench.runtime.storage import CheckpointStorage, Manifest

ACTIVE = frozenset({"CREATED", "INITIALIZING", "RUNNING", "FAILING", "RESTARTING", "CANCELLING"})


class Master:
    """One job.

    Args:
        logical, graph: the plan.
        settings: in force at the start.
        services: clock, tables, paces.
        storage: of its checkpoints.
        coordinator: of its checkpoints.
        stage: the driver.
        observer: is told what happens.
        restore_from: a complete checkpoint or savepoint to begin with.

    Attributes:
        sources: what a person does to them.
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
    ) -> None:
        self.logical = logical
        self.graph = graph
        self.settings = settings
        self.services = services
        self.storage = storage
        self.coordinator = coordinator
        self.stage = stage
        self.observer = observer
        self.state = "CREATED"
        self.sources = SourceControl(logical, services, lambda text: self._event("tune", text))
        self.execution: Execution | None = None
        self.failure: Exception | None = None
        self.restored_us: int | None = None
        self.started_us = services.clock.now_us()
        self.ended_us: int | None = None
        self._restarts = Restarts()
        self._inbox: deque[Callable[[], None]] = deque()
        self._restore_from = restore_from
        self._drained: set[str] = set()
        self._finished: set[str] = set()
        self._stopping = False
        self._ending = False
        self._all_committed = False
        self._requests = CheckpointRequests(coordinator)
        self._inquiry = Inquiry(stage)
        coordinator.on_complete = self._checkpoint_complete
        coordinator.on_failed = self._checkpoint_failed

    # the door ----------------------------------------------------------------------------------------------------

    def call(self, action: Callable[[], None]) -> None:
        """Have `action` run on the master's turn; callable from any thread, returns at once."""
        self._inbox.append(action)
        self.stage.wake()

    def report(self, report: Report) -> None:
        """Take a report of a task or the driver (see `TaskHost`)."""
        execution = self.execution
        self.call(lambda: self._on_report(report, execution))

    @property
    def over(self) -> bool:
        """Whether the job has ended for good."""
        return self.state not in ACTIVE

    @property
    def restarts(self) -> int:
        """How often it has started again after a failure."""
        return self._restarts.count

    @property
    def paused(self) -> bool:
        """Whether somebody has stopped the reading of the sources."""
        return self.sources.paused

    def next_due_us(self) -> int | None:
        """When ``step`` has something to do although nothing comes in."""
        due = [self._restarts.due_us] if self.state == "RESTARTING" else []
        if self.state == "RUNNING" and not self._ending:
            due.append(self.coordinator.next_due_us(self.settings))
        if not self.coordinator.settled:
            return None  # what the background says will wake the master
        wanted = [time for time in due if time is not None]
        return min(wanted) if wanted else None

    @property
    def has_news(self) -> bool:
        """Whether something lies in the inbox."""
        return bool(self._inbox)

    def step(self) -> None:
        """Handle everything that has come in, then what is due."""
        while self._inbox:
            self._inbox.popleft()()
        now = self._now()
        if self.state == "RUNNING" and not self._ending:
            # What was asked for goes first: periodic checkpoints that follow one another would keep it waiting.
            begun = self._requests.trigger(self.settings, now)
            if begun is not None and begun.rescale is not None:
                self.sources.hold(True)  # what is read behind this barrier would only be read again
            self.coordinator.step(self.settings, now)
        elif self.state == "RESTARTING" and self.coordinator.settled and self._restarts.is_due(now):
            self._begin_attempt()

    # commands: each runs on the master's turn ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the first attempt."""
        self._begin_attempt()

    def apply(self, settings: Settings, text: str) -> None:
        """Put other settings in force."""
        interval_changed = settings.checkpoint_interval_us != self.settings.checkpoint_interval_us
        self.settings = settings
        if interval_changed and self.state == "RUNNING":
            self.coordinator.reschedule(settings, self._now())
        self._to_all(Apply(settings))
        self._event("tune", text)

    def checkpoint(self, kind: Kind = "manual", savepoint: str | None = None) -> None:
        """Take a checkpoint as soon as none is in progress."""
        self._requests.ask(Request(kind, savepoint))

    def on_savepoint(self, name: str, done: Callable[[], None]) -> None:
        """Have `done` called once when the savepoint of that name is complete or has failed."""
        self._requests.on_savepoint(name, done)

    def rescale(self, rescale: Rescale) -> None:
        """Go on at another parallelism, from a checkpoint that is taken for it as soon as none is in progress."""
        if self._ending or self._stopping or self.over:
            rescale.done("the job is about to end")
        else:
            self._requests.ask(Request("manual", rescale=rescale))

    def query(self, question: Question) -> None:
        """Ask the tasks that own what is asked for."""
        if self.execution is None or self.state != "RUNNING":
            question.refuse(f"the job is {self.state}")
        else:
            self._inquiry.ask(question, self.graph, self.execution)

    def crash(self, *tasks: str) -> None:
        """Make tasks fail."""
        if self.execution is not None and self.state == "RUNNING":
            for task in self.execution.tasks:
                if task.name in tasks:
                    task.post(Crash())

    def stop(self) -> None:
        """Take a last checkpoint, so that what was processed is committed, then end."""
        if self.state == "RUNNING":
            self._stopping = True
            self._requests.ask(Request("manual", last=True))
        else:
            self.cancel()

    def cancel(self) -> None:
        """End at once; what is not committed is lost to this run."""
        if self.over:
            return
        self._set_state("CANCELLING")
        self._end_attempt("the job was canceled")
        self._end("CANCELED")

    def abandon(self, error: Exception) -> None:
        """A turn of the master itself went wrong, which is a bug: end the job and say so, instead of standing still."""
        self.failure = error
        self._event("failure", f"the job's master failed: {_sentence(error)}")
        if not self.over:
            self._end_attempt("the job's master failed")
            self._end("FAILED")

    # attempts ----------------------------------------------------------------------------------------------------

    def _begin_attempt(self) -> None:
        try:
            self._launch()
        except Exception as error:  # noqa: BLE001  whatever opening or restoring raises ends the job, with its message
            self.failure = error
            self._event("failure", f"could not start: {error}")
            self._end("FAILED")

    def _launch(self) -> None:
        """Deploy an attempt from the latest checkpoint and have it stepped; what opening or restoring raises goes on
        to the caller."""
        self._set_state("INITIALIZING")
        number = 0 if self.execution is None else self.execution.number + 1
        manifest = self.coordinator.latest or self._restore_from
        states: States | None = None
        if manifest is not None:
            states = read_states(self.storage, manifest, self.graph)
        elif number:
            self.sources.rewind()
        execution = deploy(self.graph, self.settings, self.services, self, number, states)
        if manifest is not None:
            self.restored_us = self._now()
            self._event("recovery", f"restored from {manifest.place} (checkpoint {manifest.checkpoint_id})")
        self.execution = execution
        self._drained.clear()
        self._finished.clear()
        self.coordinator.start(execution, self.settings, self._now())
        if manifest is not None:
            # The checkpoint may have been completed without its commit having reached the sinks: say it again.
            self._to_all(Complete(manifest.checkpoint_id))
        self._set_state("RUNNING")
        self.sources.attach(execution)
        self.stage.start(execution)

    def _go_on_at(self, rescale: Rescale) -> None:
        """The checkpoint of a rescaling is complete: end this attempt and go on from there by the new plan."""
        graph, settings = self.graph, self.settings
        self._set_state("RESTARTING")
        self._requests.attempt_over("the job was rescaled meanwhile")
        self._end_attempt("the job is rescaled")
        self._use(rescale.graph, replace(settings, parallelism=rescale.parallelism))
        try:
            self._launch()
        except Exception as error:  # noqa: BLE001  whatever the new plan cannot do, the old one could
            self._use(graph, settings)
            self._event("notice", f"could not go on at parallelism {rescale.parallelism}: {_sentence(error)}")
            self._begin_attempt()
            rescale.done(_sentence(error))
            return
        self._event("tune", f"parallelism = {rescale.parallelism}, it was {settings.parallelism}")
        rescale.done(None)

    def _use(self, graph: PhysicalGraph, settings: Settings) -> None:
        self.graph = graph
        self.settings = settings
        self.coordinator.plan_changed(graph)

    def _end_attempt(self, reason: str) -> None:
        execution = self.execution
        self.coordinator.stop(reason, self._now())
        self._inquiry.attempt_over(reason)
        if execution is not None:
            self.stage.stop(execution)
            for task, error in execution.close():
                self._event("notice", f"{task} could not be closed: {_sentence(error)}")

    def _on_failed(self, task: str, error: Exception) -> None:
        if self.state != "RUNNING":
            return
        self.failure = error
        self._event("failure", f"{task} failed: {_sentence(error)}")
        self._set_state("FAILING")
        self._requests.attempt_over(f"{task} failed meanwhile")
        self._ending = False
        self._end_attempt(f"{task} failed")
        if self._stopping:
            self._end("FAILED")
        elif self._restarts.allowed(error, self.settings, self._now()):
            self._set_state("RESTARTING")
        else:
            self._event("notice", f"gave up after {self._restarts.failures} failures")
            self._end("FAILED")

    # reports -----------------------------------------------------------------------------------------------------

    def _on_report(self, report: Report, execution: Execution | None) -> None:
        if execution is not self.execution or self.state != "RUNNING":
            return  # of an attempt that is over
        match report:
            case SnapshotTaken():
                self.coordinator.snapshot_taken(report, self._now)
            case Drained(task):
                self._drained.add(task)
                assert execution is not None
                if len(self._drained) == len(execution.sources):
                    self._requests.ask(Request("final", last=True))
            case Finished(task):
                self._finished.add(task)
                assert execution is not None
                if len(self._finished) == len(execution.tasks):
                    self._end_attempt("the job has ended")
                    self._end("FINISHED" if self._all_committed else "CANCELED")
            case Failed(task, error):
                self._on_failed(task, error)
            case Answered(task, question, found):
                self._inquiry.answered(task, question, found)

    def _checkpoint_complete(self, record: CheckpointRecord) -> None:
        request = self._requests.completed(record)
        self._to_all(Complete(record.checkpoint_id))
        self.coordinator.retain(self.settings)
        self.observer.on_checkpoint(self._now(), record.checkpoint_id)
        if request is None or self.execution is None:
            return
        if request.rescale is not None:
            self._go_on_at(request.rescale)
        elif request.last:
            self._ending = True  # no further checkpoint, only the end
            # What a job that is being stopped has read behind its last barrier is not committed, be it all the rest.
            self._all_committed = record.kind == "final"
            self.execution.tell_sources(Finish())

    def _checkpoint_failed(self, record: CheckpointRecord) -> None:
        self._event("checkpoint", f"checkpoint {record.checkpoint_id} failed: {record.reason}")
        given_up = self._requests.failed(record)
        if given_up is None:
            return
        if given_up.rescale is not None:
            self.sources.hold(False)
            given_up.rescale.done(f"its checkpoint failed: {record.reason}")
        elif given_up.last and self.state == "RUNNING":
            self.failure = CheckpointError(f"the last checkpoint could not be taken: {record.reason}")
            self._end_attempt("the last checkpoint failed")
            self._end("FAILED")

    # small things ------------------------------------------------------------------------------------------------

    def _to_all(self, command: Command) -> None:
        if self.execution is not None and self.state in ("RUNNING", "INITIALIZING"):
            self.execution.tell(command)

    def _now(self) -> int:
        return self.services.clock.now_us()

    def _set_state(self, state: str) -> None:
        self.state = state
        self._event("state", state)

    def _end(self, state: str) -> None:
        self.ended_us = self._now()
        self._set_state(state)
        self._requests.give_up()
        self.observer.on_end(self.ended_us)

    def _event(self, kind: str, text: str) -> None:
        self.observer.on_event(self._now(), kind, text)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
