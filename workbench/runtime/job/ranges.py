"""The attempts of a job with transactions: a task that fails restarts alone.

Its state is in the store as of its last transaction. Its senders send again what it has not acknowledged; its receivers
drop what they have processed already. The subtasks of an operator whose chain ends in a sink restart together, because
a sink is restored from the commits of all of its subtasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.operators.contract.base import Snapshot
from workbench.plan.physical import PhysicalGraph
from workbench.plan.regions import Region
from workbench.runtime.deployment.deploying import deploy_again
from workbench.runtime.deployment.edge_channels import channels_of
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.messages.messages import Abort
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import Manifest
from workbench.runtime.tasks.execution import Execution, Slot
from workbench.runtime.tasks.source_drift import align, take_places
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.states import States, read_states
from workbench.runtime.tasks.task import Task
from workbench.runtime.transactions.transactions import Claim, Transactions, sinks_of, states_of


@dataclass(frozen=True, slots=True, eq=False)
class Range(Region):
    """Tasks of one vertex that restart together: one, or all whose chain ends in a sink.

    Attributes:
        names: of the tasks.
    """

    names: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.names

    def __str__(self) -> str:
        return " and ".join(self.names)


def ranges_of(graph: PhysicalGraph) -> tuple[Range, ...]:
    """The ranges of a graph, in the order of its tasks."""
    return tuple(
        Range((vertex,), names)
        for vertex in graph.vertices
        for names in ([tuple(vertex.tasks)] if sinks_of(vertex) else [(task,) for task in vertex.tasks])
    )


class TransactionalAttempts(Attempts):
    """The attempts of a job with transactions (see `Attempts` for the arguments)."""

    _whole: Execution | None = None
    _fresh: PhysicalGraph | None = None

    def launch(self, graph: PhysicalGraph, settings: Settings) -> None:
        """Deploy all tasks: from the store if it holds their ranges, else from the latest checkpoint if there is
        one."""
        self._transactions.open(self._storage)
        if not self._transactions.holds(graph, self.restart_point):
            self._fresh = graph
            super().launch(graph, settings)
            self._regions = ranges_of(graph)
            return
        self.check_left()
        self._fresh = None
        slots = tuple(Slot(graph.slot_name(index)) for index in range(graph.slots))
        former = Execution(self.count, slots, (), channels_of(graph, slots, settings))
        names = [task for vertex in graph.vertices for task in vertex.tasks]
        self._doors = []
        self._bring(graph, settings, names, former)
        self._regions = ranges_of(graph)

    def take_down(self, regions: tuple[Region, ...]) -> None:
        """End the tasks of these ranges; the others are not notified."""
        if not self.down:
            self._whole = self.execution
        super().take_down(regions)

    def bring_back(self, graph: PhysicalGraph, settings: Settings) -> None:
        """Deploy the ranges that are down from the store, next to those that run."""
        whole, running = self._whole, self.execution
        assert whole is not None
        assert running is not None
        former = Execution(whole.number, whole.slots, running.tasks, whole.channels)
        self._bring(graph, settings, [task for region in self.down for task in region.tasks], former, whole.sources)

    def _bring(
        self,
        graph: PhysicalGraph,
        settings: Settings,
        names: Sequence[str],
        former: Execution,
        sources: Sequence[SourceTask] = (),
    ) -> None:
        """Deploy tasks of these names on an attempt, which has the others, and step all of them; the sources among them
        replace those given, or no source runs yet."""
        transactions, manifest = self._transactions, self.restart_point
        door = self._door(names)
        latest = 0 if manifest is None else manifest.checkpoint_id
        claims = transactions.claim(names)  # first, so that no zombie changes what is read now
        states = self._states(graph, claims, manifest)
        tasks = deploy_again(graph, settings, self._services, door, self.count - 1, states, former)
        if self.execution is not None:
            self._stage.stop(self.execution)
        deployed = [task for task in tasks if isinstance(task, SourceTask)]
        if sources:
            take_places(deployed, sources)
        else:
            align(deployed, tasks, graph)
        for task in tasks:  # barriers of checkpoints that were aborted may still come
            for record in self._coordinator.history:
                if record.state == "FAILED":
                    task.post(Abort(record.checkpoint_id))
        transactions.take_over(tasks, claims, latest)
        transactions.reconnect(names)
        self._doors.append(door)
        self._tell("recovery", f"{' and '.join(names)}: continued from the last transaction")
        alone = Execution(self.count - 1, former.slots, tuple(tasks), ())
        self._begin(former.joined(alone, graph), settings, manifest)

    def _states(
        self, graph: PhysicalGraph, claims: Mapping[str, Claim], manifest: Manifest | None
    ) -> dict[str, States]:
        """The state of each task: that of sinks from the checkpoint, everything else from the store."""
        sinks = {task: sinks_of(vertex) for vertex in graph.vertices for task in vertex.tasks if task in claims}
        saved: Mapping[str, list[Snapshot]] = {}
        if manifest is not None and any(sinks.values()):
            saved = read_states(self._storage, manifest, graph)
        return {
            name: States(
                f"the store, {name}",
                {**states_of(claim.row, name), **{uid: saved[uid] for uid in sinks[name] if uid in saved}},
            )
            for name, claim in claims.items()
        }

    def _begin(self, execution: Execution, settings: Settings, manifest: Manifest | None) -> None:
        if self._fresh is not None:
            self._transactions.begin(execution, self._fresh, 0 if manifest is None else manifest.checkpoint_id)
            self._fresh = None
        super()._begin(execution, settings, manifest)

    def _close(self, execution: Execution, left: Collection[Task], *, failed: bool) -> None:
        self._transactions.note_ended(execution.tasks)
        super()._close(execution, left, failed=failed)

    @property
    def _transactions(self) -> Transactions:
        parts = self._services.parts
        assert isinstance(parts, Transactions)
        return parts
