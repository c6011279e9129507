"""Creates the tasks and channels of one attempt from a physical graph, with their initial state (F2-1, F2-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.runtime.deployment.edge_channels import Channels, EdgeChannels, new_channels
from workbench.runtime.deployment.task_builder import TaskBuilder
from workbench.runtime.exchange.in_flight import TASK, InFlight, restored
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import Execution, JobServices, Slot
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.restored import Restored, plan_resends, sends_of
from workbench.runtime.tasks.source_drift import align
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.states import States
from workbench.runtime.tasks.task import Task, TaskHost


def deploy(
    graph: PhysicalGraph,
    settings: Settings,
    services: JobServices,
    host: TaskHost,
    number: int,
    states: States | None,
    vertices: Sequence[Vertex] | None = None,
    slots: Sequence[Slot] | None = None,
) -> Execution:
    """Build, open and (with `states`) restore the tasks of an attempt.

    With `vertices` only theirs, to be joined to those that already run on `slots`; the slots do not know them yet.
    """
    beside = slots is not None
    slots = tuple(slots or (Slot(graph.slot_name(index)) for index in range(graph.slots)))
    vertices = graph.vertices if vertices is None else vertices
    edges = [edge for edge in (*graph.edges, *graph.returns) if edge.source in vertices]
    channels = new_channels(edges, slots, settings)
    tasks: list[Task] = []
    in_flight: list[InFlight] = []
    if states:
        with states.taken_by(TASK, "the tasks"):
            in_flight = restored(states.get(TASK, []))
    try:
        for vertex in vertices:
            for subtask in range(vertex.parallelism):
                builder = TaskBuilder(settings, services, number, graph.max_parallelism, vertex, subtask, states)
                tasks.append(builder.build(host, slots[vertex.slots[subtask]], channels))
        if in_flight and states:
            with states.taken_by(TASK, "the tasks"):
                _resend(graph, tasks, in_flight)
    except BaseException:
        for task in tasks:
            with suppress(Exception):  # raise the error that prevented building them instead
                task.close()
        raise
    align([task for task in tasks if isinstance(task, SourceTask)], tasks, graph)
    flat, returns = (
        tuple(
            channel
            for edge in edges
            if edge.target.is_source is back
            for own in channels[edge.id].of
            for channel in own
        )
        for back in (False, True)
    )
    execution = Execution(number, slots, tuple(tasks), flat, returns)
    if not beside:
        execution._occupy()
    return execution


def deploy_again(
    graph: PhysicalGraph,
    settings: Settings,
    services: JobServices,
    host: TaskHost,
    number: int,
    states: Mapping[str, States],
    former: Execution,
) -> list[Task]:
    """Build single tasks anew, each with its own state, on the slots and channels of an attempt.

    Args:
        states: by the names of the tasks.
        former: the attempt, with all of its channels.
    """
    known = {(channel.edge, channel.source, channel.target): channel for channel in former.channels}
    channels: Channels = {}
    for edge in graph.edges:
        both = channels[edge.id] = EdgeChannels(
            [[] for _ in range(edge.source.parallelism)], [[] for _ in range(edge.target.parallelism)]
        )
        for i, j in edge.pairs:
            channel = known[edge.id, f"{edge.source.name}[{i}]", f"{edge.target.name}[{j}]"]
            both.of[i].append(channel)
            both.to[j].append(channel)
    tasks: list[Task] = []
    try:
        for vertex in graph.vertices:
            for subtask, name in enumerate(vertex.tasks):
                if name in states:
                    builder = TaskBuilder(
                        settings, services, number, graph.max_parallelism, vertex, subtask, states[name]
                    )
                    tasks.append(builder.build(host, former.slots[vertex.slots[subtask]], channels))
    except BaseException:
        for task in tasks:
            with suppress(Exception):  # as above
                task.close()
        raise
    return tasks


def _resend(graph: PhysicalGraph, tasks: Sequence[Task], in_flight: Sequence[InFlight]) -> None:
    """Let every task begin with the in-flight records of the checkpoint."""
    vertices = {vertex.id: vertex for vertex in graph.vertices}
    wanted = plan_resends(graph, in_flight)
    for task in tasks:
        pieces = wanted.get((task.vertex, task.subtask), [])
        sends = sends_of(vertices[task.vertex], task.links, task.outputs, pieces)
        task.restored = Restored(sends, task.gate.channels if isinstance(task, OperatorTask) else ())
