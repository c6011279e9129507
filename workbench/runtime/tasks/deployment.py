"""Creates the tasks and channels of one attempt from a physical graph, with their initial state (F2-1, F2-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from workbench.connectors.contract.base import SourceReader
from workbench.connectors.live.hybrid_source import rated
from workbench.operators.aggregates.local_aggregate import aggregates_locally
from workbench.operators.contract.base import Counters, Operator, OperatorContext
from workbench.operators.contract.positions import Positions, Reading
from workbench.plan.acking import is_of_acks, tracked
from workbench.plan.logical import Node
from workbench.plan.physical import Edge, PhysicalGraph, Vertex
from workbench.runtime.acking.ids import Ids
from workbench.runtime.acking.pending_roots import RootCounts
from workbench.runtime.acking.tracking import Anchors, TrackedOutput
from workbench.runtime.exchange.buffer_bytes import BufferBytes
from workbench.runtime.exchange.chain import Emitter, Link
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.in_flight import TASK, Flow, InFlight, restored
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.splitters import Splitter, splitter
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.acked_operator import acking_task
from workbench.runtime.tasks.acked_source import AckedSourceTask
from workbench.runtime.tasks.execution import Execution, JobServices, Slot
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.restored import Restored, plan_resends, sends_of
from workbench.runtime.tasks.source_drift import align
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.states import States
from workbench.runtime.tasks.task import Task, TaskHost

UNBOUNDED = 2**62
"""Buffers granted to ackers, whose messages to a source are few numbers for each of its pending roots."""


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
    channels = _channels(edges, slots, settings)
    tasks: list[Task] = []
    in_flight: list[InFlight] = []
    if states:
        with states.taken_by(TASK, "the tasks"):
            in_flight = restored(states.get(TASK, []))
    try:
        for vertex in vertices:
            for subtask in range(vertex.parallelism):
                builder = _TaskBuilder(settings, services, number, graph.max_parallelism, vertex, subtask, states)
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
    channels: _Channels = {}
    for edge in graph.edges:
        both = channels[edge.id] = _EdgeChannels(
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
                    builder = _TaskBuilder(
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


@dataclass(frozen=True, slots=True)
class _EdgeChannels:
    """The channels of one edge by sending and by receiving subtask, so that a task need not scan all pairs."""

    of: list[list[Channel]]
    to: list[list[Channel]]


_Channels = dict[str, _EdgeChannels]


def channels_of(graph: PhysicalGraph, slots: Sequence[Slot], settings: Settings) -> tuple[Channel, ...]:
    """New channels for all edges of a graph."""
    found = _channels(graph.edges, slots, settings)
    return tuple(channel for edge in graph.edges for own in found[edge.id].of for channel in own)


def _channels(edges: Sequence[Edge], slots: Sequence[Slot], settings: Settings) -> _Channels:
    """By edge."""
    found: _Channels = {}
    for edge in edges:
        source, target = edge.source, edge.target
        merges = edge.exchange == "hash" and aggregates_locally(target.nodes[0].spec)
        plain = settings.policy.acking is None or is_of_acks(edge)
        buffer_bytes = BufferBytes(
            edge.schema if plain else tracked(edge).schema, preaggregates=merges
        )  # even if none are created now, some may come from a checkpoint
        both = _EdgeChannels([[] for _ in range(source.parallelism)], [[] for _ in range(target.parallelism)])
        for i, j in edge.pairs:
            channel = Channel(
                edge.id,
                f"{source.name}[{i}]",
                f"{target.name}[{j}]",
                UNBOUNDED if target.is_source else settings.buffers_per_channel,
                slots[source.slots[i]].waker,
                slots[target.slots[j]].waker,
                Flow(edge.producer_uid, edge.tag, target.name, edge.port, i, j, target.parallelism),
                buffer_bytes,
            )
            both.of[i].append(channel)
            both.to[j].append(channel)
        found[edge.id] = both
    return found


def _take_over(logic: Operator | SourceReader, uid: str, states: States) -> None:
    """Restore an operator or a source; errors of a user's own source propagate unchanged."""
    if not type(logic).__module__.startswith("workbench."):
        logic.restore(states[uid])
        return
    with states.taken_by(uid, f"operator {uid!r}"):
        logic.restore(states[uid])


@dataclass(slots=True)
class _TaskBuilder:
    settings: Settings
    services: JobServices
    number: int
    max_parallelism: int
    vertex: Vertex
    subtask: int
    states: States | None
    opened: list[Operator | SourceReader] = field(default_factory=list)
    anchors: Anchors | None = None

    def build(self, host: TaskHost, slot: Slot, channels: _Channels) -> Task:
        """Build the task; on failure, close what it has opened."""
        try:
            return self._build(host, slot, channels)
        except BaseException:
            for resource in self.opened:
                with suppress(Exception):  # as above
                    resource.close()
            raise

    def _build(self, host: TaskHost, slot: Slot, channels: _Channels) -> Task:
        reading, parts = Reading(), self.services.parts
        links = self._links(reading)
        if self.settings.policy.acking is not None:
            self.anchors = Anchors(Ids(self.services.seed, f"{self.vertex.name}[{self.subtask}]", self.number))
        outputs = [self._output(edge, links, channels) for edge in self.vertex.outs]
        root = links[self.vertex.nodes[0]]
        root.connect()
        shared: dict[str, Any] = {
            "name": f"{self.vertex.name}[{self.subtask}]",
            "vertex": self.vertex.id,
            "subtask": self.subtask,
            "slot": slot.name,
            "root": root,
            "outputs": outputs,
            "settings": self.settings,
            "clock": self.services.clock,
            "host": host,
            "waker": slot.waker,
            "attempt": self.number,
        }
        if not self.vertex.is_source:
            vertex, own = self.vertex, self.subtask
            inputs = [InputChannel(channel, edge.port) for edge in vertex.ins for channel in channels[edge.id].to[own]]
            if self.anchors is not None:
                return acking_task(self.anchors, inputs=inputs, **shared)
            make = OperatorTask if parts is None else parts.operator_task
            return make(inputs=inputs, **shared)
        reader = self._reader()
        head = self.vertex.nodes[0]
        shared |= {"reader": reader, "schema": head.schema, "watermarks": head.watermarks, "reading": reading}
        if self.anchors is None:
            read = SourceTask if parts is None else parts.source_task
            task = read(**shared)
        else:
            counts = self.services.roots.setdefault(shared["name"], RootCounts())
            ends = f"->{self.vertex.id}"
            returns = [each for edge, own in channels.items() if edge.endswith(ends) for each in own.to[self.subtask]]
            task = AckedSourceTask(anchors=self.anchors, counts=counts, returns=returns, **shared)
        if self.states is not None:
            if self.settings.policy.batches is None:
                self.states.check_sent(self.vertex.name)
            with self.states.taken_by(self.vertex.name, f"source {self.vertex.name!r}"):
                task.restore_watermarks(self.states.get(self.vertex.name, []))
        return task

    def _links(self, reading: Reading) -> dict[Node, Link]:
        links: dict[Node, Link] = {}
        positions: dict[Node, Positions] = {}  # of its output; none behind an exchange or a side output
        for node, uid in zip(self.vertex.nodes, self.vertex.uids, strict=True):
            counters = Counters()
            operator = self._operator(node, uid)
            link = Link(uid, operator, counters, writes=node.role == "sink")
            if node.role == "source":
                positions[node] = Positions(reading)
            else:
                context = self._context(uid, counters)
                came = node.inputs[0]
                if came.tag is None and (found := positions.get(came.node)) is not None:
                    context.position = found
                    positions[node] = found.behind(operator)
                self.opened.append(operator)
                with self.services.opening.of(operator, self.vertex.tasks[self.subtask]):
                    operator.open(context)
                    if self.states is not None and self.states.get(uid):
                        _take_over(operator, uid, self.states)
            links[node] = link
            if node is not self.vertex.nodes[0]:
                links[node.inputs[0].node].children.append((node.inputs[0].tag, link))
        return links

    def _operator(self, node: Node, uid: str) -> Any:
        spec: Any = node.spec
        if node.role == "source":
            return Emitter()
        if node.role == "sink":
            sink: Operator = spec.create(node.inputs[0].schema)
            parts = self.services.parts
            return sink if parts is None else parts.sink(uid, sink)
        heads = node is self.vertex.nodes[0]
        return spec.create([edge.schema for edge in self.vertex.ins] if heads else [node.inputs[0].schema])

    def _splitter(self, edge: Edge) -> Splitter | None:
        return splitter(edge, self.subtask, self.number, self.services.seed, self.max_parallelism)

    def _reader(self) -> SourceReader:
        node = self.vertex.nodes[0]
        uid = self.vertex.name
        spec: Any = node.spec
        pace = self.services.paces.get(uid)
        reader: SourceReader = spec.create() if pace is None else spec.create(pace)
        for name, part in rated(uid, reader):
            part.rate = self.services.rates.setdefault(name, part.rate)
        self.opened.append(reader)
        reader.open(self._context(uid, Counters()))
        if self.states is not None and self.states.get(uid):
            _take_over(reader, uid, self.states)
        return reader

    def _context(self, uid: str, counters: Counters) -> OperatorContext:
        services = self.services
        return OperatorContext(
            job=services.job,
            uid=uid,
            subtask=self.subtask,
            parallelism=self.vertex.parallelism,
            max_parallelism=self.max_parallelism,
            clock=services.clock,
            counters=counters,
            attempt=self.number,
            tables=services.tables,
            data_dir=services.data_dir,
            executor=services.executor,
            run=services.run,
        )

    def _output(self, edge: Edge, links: dict[Node, Link], channels: _Channels) -> EdgeOutput:
        worthwhile, own = self.settings.local_aggregation, channels[edge.id].of[self.subtask]
        rest = (
            self.services.clock.now_us,
            self.settings.buffer_size,
            self.settings.ship_after_us,
            self.settings.buffer_debloat_target_us,
            None if edge.local is None or worthwhile is None else edge.local.create(edge.schema, worthwhile),
        )
        if self.anchors is not None and not is_of_acks(edge):
            output: EdgeOutput = TrackedOutput(
                self.anchors, tracked(edge).schema, own, edge.exchange, self._splitter(tracked(edge)), *rest
            )
        else:
            full = edge.producer.schema if edge.tag is None else edge.producer.side_schemas.get(edge.tag, edge.schema)
            names = edge.schema.names if len(edge.schema) < len(full) else None
            output = EdgeOutput(own, edge.exchange, self._splitter(edge), names, *rest)
        link = links[edge.producer]
        if edge.tag is None:
            link.edges.append(output)
        else:
            link.side_edges.setdefault(edge.tag, []).append(output)
        return output
