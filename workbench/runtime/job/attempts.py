"""The running tasks of a job: deployed and ended as a whole, or region by region when a task fails.

The regions of a graph exchange no records. So a failed region goes back to the latest complete checkpoint while the
others continue: each region stays consistent in itself, and the next checkpoint covers all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from workbench.errors import JobError
from workbench.operators.contract.base import Snapshot
from workbench.plan.physical import PhysicalGraph
from workbench.plan.regions import Region, regions_of
from workbench.runtime.checkpoints.audit import Audit
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord, Restore
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.exchange.in_flight import TASK
from workbench.runtime.job.source_control import SourceControl
from workbench.runtime.messages.messages import Collected, Complete, Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import CheckpointStorage, Manifest
from workbench.runtime.tasks.execution import Execution, JobServices
from workbench.runtime.tasks.stage import Stage
from workbench.runtime.tasks.states import States, read_states
from workbench.runtime.tasks.task import Task


class Door:
    """Where tasks that were deployed together send their reports; it drops reports of tasks that no longer run.

    Args:
        call: runs a function on the master's turn.
        take: receives a report there.

    Attributes:
        tasks: the names of those that still run.
        dropped: how many reports it has dropped.
    """

    def __init__(self, call: Callable[[Callable[[], None]], None], take: Callable[[Report], None]) -> None:
        self._call = call
        self._take = take
        self.tasks: set[str] = set()
        self.dropped = 0

    def report(self, report: Report) -> None:
        """Receive a report of a task (see `TaskHost`)."""
        self._call(lambda: self._deliver(report))

    def _deliver(self, report: Report) -> None:
        if report.task in self.tasks:
            self._take(report)
        else:
            self.dropped += 1


class Attempts:
    """The attempts of one job, one after another; every method is called on the master's turn.

    Args:
        services: of the job.
        storage: holds the state that is restored.
        coordinator: of its checkpoints.
        sources: what users have set for them applies to every attempt.
        stage: steps the tasks.
        open_door: returns a new `Door` for tasks.
        tell: receives a kind and a line for the job's log.
        mishap: receives what has failed and the error, if that does not end the job.
        audit: counts what is processed twice.
        restore_from: a complete checkpoint or savepoint to start from.
        predecessor: the attempts of a master that ran the job before.

    Attributes:
        execution: the tasks that run, or that ran last.
        count: how often tasks have been deployed.
        down: regions whose tasks have failed and do not run again yet.
        restores: how often tasks were restored from a checkpoint or savepoint.
        last_restore: the latest of these restores.
    """

    def __init__(
        self,
        services: JobServices,
        storage: CheckpointStorage,
        coordinator: CheckpointCoordinator,
        sources: SourceControl,
        stage: Stage,
        *,
        open_door: Callable[[], Door],
        tell: Callable[[str, str], None],
        mishap: Callable[[str, Exception], None],
        audit: Audit,
        restore_from: Manifest | None,
        predecessor: Attempts | None = None,
    ) -> None:
        self._services = services
        self._storage = storage
        self._coordinator = coordinator
        self._sources = sources
        self._stage = stage
        self._open_door = open_door
        self._tell = tell
        self._mishap = mishap
        self._audit = audit
        self._restore_from = restore_from
        self.count: int = 0 if predecessor is None else predecessor.count
        self._doors: list[Door] = []
        self._regions: tuple[Region, ...] = ()
        self._ended = False
        self._left = ""
        self._hurries: bool = predecessor is not None and predecessor._hurries
        self._read: dict[str, list[Snapshot]] = {} if predecessor is None else predecessor._read
        self.execution: Execution | None = None
        self.down: tuple[Region, ...] = ()
        self.restores = 0
        self.last_restore: Restore | None = None

    @property
    def restart_point(self) -> Manifest | None:
        """The checkpoint or savepoint from which the next attempt would resume."""
        return self._coordinator.latest or self._restore_from

    def hurry(self) -> None:
        """The job is being stopped: no task waits for a server for long, now and in later attempts."""
        self._hurries = True
        for task in () if self.execution is None else self.execution.tasks:
            task.hurry()

    def in_vain(self, tasks: Collection[str] = ()) -> str:
        """What to add to the circumstances of a failure if the job is being stopped, and one of these tasks, or the
        operator that was opened last, has failed for want of its server: the job would wait for it in every attempt, so
        it ends, and another run can resume. Otherwise empty."""
        running = () if self.execution is None else self.execution.tasks
        lost = self._services.opening.lost or any(task.outage is not None for task in running if task.name in tasks)
        if not (self._hurries and lost):
            return ""
        point = self.restart_point if self._storage.path_of("") else None
        resumes = "" if point is None else f"; a run that resumes continues from checkpoint {point.checkpoint_id}"
        return f" while the job was being stopped{resumes}"

    def launch(self, graph: PhysicalGraph, settings: Settings) -> None:
        """Deploy all tasks again, from the latest checkpoint if there is one, and start stepping them; errors of
        opening and restoring propagate to the caller."""
        self.check_left()
        manifest, states = self._begin_from(graph, settings, [vertex.name for vertex in graph.vertices])
        door = self._door(task for vertex in graph.vertices for task in vertex.tasks)
        self._forget_letters(settings, manifest)
        execution = deploy(graph, settings, self._services, door, self.count - 1, states)
        self._doors = [door]
        self._regions = regions_of(graph)
        self._note_restored(manifest, states, "restored")
        self._begin(execution, settings, manifest)

    def check_left(self) -> None:
        """Raises a JobError if a task is abandoned in a step: it might still write what the next attempt opens."""
        if self._left:
            raise JobError(f"the job is being canceled, and {self._left} is abandoned in a step that does not end")

    def end(self, *, failed: bool) -> None:
        """End all tasks, one of which may have failed; does nothing if they have ended already, as when the next
        attempt could not start."""
        if self.execution is None or self._ended:
            return
        self._ended = True
        for door in self._doors:
            door.tasks.clear()
        for task in self.execution.tasks:
            task.give_up()
        self._close(self.execution, self._stage.stop(self.execution), failed=failed)

    def note_failed(self, tasks: Collection[str]) -> None:
        """Mark the tasks whose failure ends them and their region next."""
        for task in () if self.execution is None else self.execution.tasks:
            task.failed |= task.name in tasks

    def forget(self) -> None:
        """Release tasks that have ended, with their state and buffers; no others will follow."""
        self.execution = None
        self._sources.detach()

    def apart(self, tasks: Collection[str]) -> tuple[Region, ...]:
        """The regions that restart when these tasks have failed, including those that are down already; empty when no
        region would keep running."""
        failed = tuple(region for region in self._regions if region in self.down or not region.disjoint(tasks))
        return failed if len(failed) < len(self._regions) else ()

    def take_down(self, regions: tuple[Region, ...]) -> None:
        """End the tasks of these regions; the others are not notified."""
        assert self.execution is not None
        names = {task for region in regions for task in region.tasks}
        for door in self._doors:
            door.tasks -= names
        for task in self.execution.tasks:
            if task.name in names:
                task.give_up()
        left = self._stage.stop(self.execution)
        gone, self.execution = self.execution.split(names)
        self.down = regions
        self._stage.start(self.execution)
        self._close(gone, left, failed=True)

    def bring_back(self, graph: PhysicalGraph, settings: Settings) -> None:
        """Deploy the regions that are down from the latest checkpoint, next to those that run; raises like `launch`."""
        assert self.execution is not None
        vertices = [vertex for region in self.down for vertex in region.vertices]
        manifest, states = self._begin_from(graph, settings, [vertex.name for vertex in vertices])
        door = self._door(task for vertex in vertices for task in vertex.tasks)
        slots = self.execution.slots
        self._forget_letters(settings, manifest, door.tasks)
        back = deploy(graph, settings, self._services, door, self.count - 1, states, vertices, slots)
        self._stage.stop(self.execution)  # only now, so that the other regions do not wait while state is read
        self._doors.append(door)
        what = f"the region {' and '.join(map(str, self.down))} was restored"
        self._note_restored(manifest, states, what, door.tasks)
        self._begin(self.execution.joined(back, graph), settings, manifest)

    def collected(self, report: Collected) -> None:
        """A source has collected its part of a batch."""

    def committed(self, record: CheckpointRecord) -> None:
        """A checkpoint is complete."""

    def use(self, settings: Settings) -> None:
        """Settings have changed."""

    def _forget_letters(
        self, settings: Settings, manifest: Manifest | None, tasks: Collection[str] | None = None
    ) -> None:
        """Dead letters behind the checkpoint come again, unless nothing is replayed, or records one by one."""
        if settings.policy.replays and settings.policy.acking is None:
            self._services.letters.go_back(0 if manifest is None else manifest.checkpoint_id, tasks)

    def _note_restored(
        self, manifest: Manifest | None, states: States | None, what: str, only: Collection[str] | None = None
    ) -> None:
        if manifest is None or states is None:
            return
        now_us = self._services.clock.now_us()
        self.restores += 1
        self.last_restore = Restore(manifest.checkpoint_id, manifest.kind == "savepoint", manifest.place, now_us)
        text = f"{what} from {manifest.place} (checkpoint {manifest.checkpoint_id})"
        twice = self._audit.restored(now_us, manifest.checkpoint_id, states.get(TASK, []), only)
        if twice:
            text += f"; its mode is at-least-once, and {twice} of its records are processed again"
        self._tell("recovery", text)

    def _begin(self, execution: Execution, settings: Settings, manifest: Manifest | None) -> None:
        self.execution = execution
        self._ended = False
        self.down = ()
        self._coordinator.start(execution, settings, self._services.clock.now_us())
        if manifest is not None:
            # The checkpoint may have completed without its commit having reached the sinks: notify them again.
            execution.tell(Complete(manifest.checkpoint_id))
        if self._hurries:
            self.hurry()
        self._sources.attach(execution)
        self._stage.start(execution)

    def _close(self, execution: Execution, left: Collection[Task], *, failed: bool) -> None:
        for source in execution.sources if failed else ():
            if source not in left and not source.settings.policy.replays:
                self._read.setdefault(source.root.uid, []).append(source.source_state())
        for task in execution.tasks:
            if task in left:
                self._left = task.name
                self._tell("notice", f"{task.name} is abandoned in a step that does not end; its output is discarded")
        for name, error in execution.close(left):
            self._mishap(f"{name} could not be closed", error)

    def _door(self, tasks: Iterable[str]) -> Door:
        self.count += 1
        door = self._open_door()
        door.tasks.update(tasks)
        return door

    def _begin_from(
        self, graph: PhysicalGraph, settings: Settings, names: Sequence[str]
    ) -> tuple[Manifest | None, States | None]:
        """The checkpoint that these vertices resume from, and its states.

        Where the fault-tolerance policy replays nothing, only sinks resume from it: sources continue after the last
        record they read, and operators start with empty state.
        """
        read = {name: self._read.pop(name) for name in names if name in self._read}
        manifest = self.restart_point
        if read and not settings.policy.replays:
            if manifest is None:
                return None, States("what the sources have read", read)
            sinks = {uid for vertex in graph.vertices for uid in vertex.sinks}
            states = read_states(self._storage, manifest, graph)
            written = {uid: snapshots for uid, snapshots in states.items() if uid in sinks}
            return manifest, States(manifest.place, {**written, **read})
        if manifest is None:
            if self.count:
                self._sources.rewind(names)
            return None, None
        return manifest, read_states(self._storage, manifest, graph)
