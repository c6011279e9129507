"""Builds one task with its operators, inputs and outputs, opened and with their initial state."""

from __future__ import annotations

import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from workbench.connectors.contract.base import SourceReader
from workbench.connectors.live.hybrid_source import rated
from workbench.operators.contract.base import Counters, Operator, OperatorContext
from workbench.operators.contract.positions import Positions, Reading
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.plan.acking import is_of_acks, tracked
from workbench.plan.logical import Node
from workbench.plan.physical import Edge, Vertex
from workbench.runtime.acking.ids import Ids
from workbench.runtime.acking.pending_roots import RootCounts
from workbench.runtime.acking.tracking import Anchors, TrackedOutput
from workbench.runtime.deployment.edge_channels import Channels
from workbench.runtime.exchange.chain import Emitter, Link
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.splitters import Splitter, splitter
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.acked_operator import acking_task
from workbench.runtime.tasks.acked_source import AckedSourceTask
from workbench.runtime.tasks.execution import JobServices, Slot
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.states import States
from workbench.runtime.tasks.task import Task, TaskHost


@dataclass(slots=True)
class TaskBuilder:
    """Builds one task of an attempt.

    Attributes:
        number: of the attempt.
        states: of the operators, if it resumes from a checkpoint.
        opened: what has been opened so far.
        anchors: of the records that the task sends, if they are acknowledged.
    """

    settings: Settings
    services: JobServices
    number: int
    max_parallelism: int
    vertex: Vertex
    subtask: int
    states: States | None
    opened: list[Operator | SourceReader] = field(default_factory=list)
    anchors: Anchors | None = None

    def build(self, host: TaskHost, slot: Slot, channels: Channels) -> Task:
        """Build the task; on failure, close what it has opened."""
        try:
            task = self._build(host, slot, channels)
        except BaseException:
            for resource in self.opened:
                with suppress(Exception):  # raise the error that prevented building it instead
                    resource.close()
            raise
        snapshots = weakref.ref(task.snapshots)  # which holds the links that hold the listener

        def last_id() -> int:
            alive = snapshots()
            return 0 if alive is None else alive.last_id

        keep = self.services.letters.listener(task.name, last_id)
        for link in task.links:
            link.tap_side(DEAD_LETTERS, keep)
        return task

    def _build(self, host: TaskHost, slot: Slot, channels: Channels) -> Task:
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
        shared |= {"reader": reader, "schema": head.schema, "watermarks": self.vertex.watermarks, "reading": reading}
        shared["tells_last"] = self.vertex.tells_last
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
        if node.role == "source":
            return Emitter()
        spec = self.vertex.spec_of(node)
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
            goes_back=self.settings.policy.replays and self.settings.policy.acking is None,
        )

    def _output(self, edge: Edge, links: dict[Node, Link], channels: Channels) -> EdgeOutput:
        worthwhile, own = self.settings.local_aggregation, channels[edge.id].of[self.subtask]
        rest = (
            self.services.clock.now_us,
            self.settings.buffer_size,
            self.settings.ship_after_us,
            self.settings.buffer_debloat_target_us,
            None if edge.local is None or worthwhile is None else edge.local.create(edge.schema, worthwhile),
            edge.exact,
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


def _take_over(logic: Operator | SourceReader, uid: str, states: States) -> None:
    """Restore an operator or a source; errors of a user's own source propagate unchanged."""
    if not type(logic).__module__.startswith("workbench."):
        logic.restore(states[uid])
        return
    with states.taken_by(uid, f"operator {uid!r}"):
        logic.restore(states[uid])
