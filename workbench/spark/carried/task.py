"""A task of the workbench in micro-batches: restored, fed with the parcels of a batch, and saved again.

The operators are those that run in the kernel, with their own snapshots, so their results are the same by construction.
Event time is that of the workbench, too: watermarks travel in the parcels, and a task advances to their minimum over
its channels. Spark's watermark plays no part.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from workbench.clock import Clock, SystemClock
from workbench.drivers.contract.executor import ThreadedExecutor
from workbench.durations import NO_TIME
from workbench.elements import Records, Watermark, WatermarkStatus
from workbench.operators.contract.base import Counters, Operator, OperatorContext, Snapshot
from workbench.plan.logical import Node
from workbench.plan.physical import Vertex
from workbench.runtime.exchange.chain import Emitter, Link
from workbench.runtime.exchange.input_gate import InputChannel, WatermarkValve
from workbench.runtime.storage.encoding import decode, encode
from workbench.spark.carried.output import CarriedOutput, Parcels, ToSink
from workbench.spark.carried.parcels import Item
from workbench.spark.carried.plan import TICK, CarriedPlan

TASK = "$task"
"""Name of the task's own state among those of its operators."""
_PAUSE_S = 0.001


class CarriedTask:
    """One subtask of a vertex for one micro-batch.

    Args:
        plan: of the pipeline.
        vertex, subtask: which task it is.
        state: its state after the batch before; None: there is none.
        clock: processing time, the same for all of a batch; None: the machine's. Lookups always have the machine's.
        executor: runs functions of `lookup_async`.

    Attributes:
        parcels: what it sends, by receiving task and channel.
    """

    def __init__(
        self,
        plan: CarriedPlan,
        vertex: Vertex,
        subtask: int,
        state: bytes | None,
        clock: Clock | None = None,
        executor: ThreadedExecutor | None = None,
    ) -> None:
        self.plan, self.vertex, self.subtask = plan, vertex, subtask
        self.parcels: Parcels = {}
        self._clock = clock or SystemClock()
        self._executor = executor
        states = {} if state is None else decode(state, f"the state of {vertex.name}[{subtask}]")
        self.own: dict[str, Any] = cast("dict[str, Any]", states.get(TASK, {}))
        self.links = self._links(states)
        self.root = self.links[vertex.nodes[0]]
        for edge in vertex.outs:
            link, output = self.links[edge.producer], CarriedOutput(plan, edge, subtask, self.parcels)
            outputs = link.edges if edge.tag is None else link.side_edges.setdefault(edge.tag, [])
            outputs.append(cast("Any", output))
        self.root.connect()
        operators = [link.operator for link in self.links.values()]
        self._timed = [link for link in self.links.values() if _overrides(link.operator, "next_time_us")]
        self._gates = [operator for operator in operators if _overrides(operator, "ready")]
        self._open_inputs()

    def _open_inputs(self) -> None:
        self.inputs = [InputChannel(cast("Any", None), edge.port) for edge, _ in self._channels()]
        for item, (watermark_us, idle) in zip(self.inputs, self.own.get("channels", ()), strict=False):
            item.watermark_us, item.idle = watermark_us, idle
        self.valve = WatermarkValve(self.inputs)
        self.valve.advance()
        self.valve.output_us = self.own.get("watermark", NO_TIME)

    def _channels(self) -> Sequence[tuple[Any, int]]:
        return self.plan.channels(self.vertex, self.subtask)

    def _links(self, states: Mapping[str, Snapshot]) -> dict[Node, Link]:
        links: dict[Node, Link] = {}
        for node, uid in zip(self.vertex.nodes, self.vertex.uids, strict=True):
            if node.role == "sink":
                item = node.inputs[0]
                to_sink = cast("Any", ToSink(self.plan.sink_task(uid), self.subtask, self.parcels))
                before = links[item.node]
                (before.edges if item.tag is None else before.side_edges.setdefault(item.tag, [])).append(to_sink)
                continue
            counters = Counters()
            operator = self._operator(node)
            links[node] = link = Link(uid, operator, counters)
            if node.role == "operator":
                clock = SystemClock() if _overrides(operator, "ready") else self._clock
                operator.open(self._context(uid, counters, clock))
                if states.get(uid):
                    operator.restore([states[uid]])
            if node is not self.vertex.nodes[0]:
                links[node.inputs[0].node].children.append((node.inputs[0].tag, link))
        return links

    def _operator(self, node: Node) -> Operator:
        if node.role == "source":
            return Emitter()
        spec = self.vertex.spec_of(node)
        heads = node is self.vertex.nodes[0]
        schemas = [edge.schema for edge in self.vertex.ins] if heads else [node.inputs[0].schema]
        return cast("Operator", spec.create(schemas))

    def _context(self, uid: str, counters: Counters, clock: Clock) -> OperatorContext:
        return OperatorContext(
            job=self.plan.job,
            uid=uid,
            subtask=self.subtask,
            parallelism=self.vertex.parallelism,
            max_parallelism=self.plan.graph.max_parallelism,
            clock=clock,
            counters=counters,
            executor=self._executor,
            run=self.plan.run,
        )

    # a batch -----------------------------------------------------------------------------------------------------

    def run(self, arrived: Mapping[int, Sequence[Item]]) -> None:
        """Process what has arrived, by channel: one element of each channel in turn, as they do in the kernel."""
        self._call_timed()
        waiting = [(number, list(items)) for number, items in sorted(arrived.items()) if number != TICK]
        longest = max((len(items) for _, items in waiting), default=0)
        for at in range(longest):
            for number, items in waiting:
                if at < len(items):
                    self._take(number, items[at])
                    self._settle()
        self._call_timed()
        self._finish_calls()

    def _take(self, number: int, item: Item) -> None:
        channel = self.inputs[number]
        match item:
            case Records():
                self.root.receive(item, channel.port)
            case Watermark(timestamp_us):
                was_idle = self.valve.idle
                if (watermark_us := self.valve.reach(channel, timestamp_us)) is not None:
                    self.root.on_watermark(watermark_us)
                if self.valve.idle != was_idle:
                    self.root.on_idle(self.valve.idle)
            case WatermarkStatus(idle):
                silenced = idle and not channel.idle
                channel.idle = idle
                was_idle = self.valve.idle
                moved_us = self.valve.silence(channel) if silenced else self.valve.advance()
                if moved_us is not None:
                    self.root.on_watermark(moved_us)
                if self.valve.idle != was_idle:
                    self.root.on_idle(self.valve.idle)

    def _settle(self) -> None:
        """Wait until all operators accept more input."""
        while self._gates and not all(gate.ready() for gate in self._gates):
            time.sleep(_PAUSE_S)
            self._call_timed()

    def _finish_calls(self) -> None:
        """Wait for the answers that operators have asked for: a batch ends with all that its records cause."""
        asking = [link for link in self._timed if link.operator in self._gates]
        while any(link.operator.next_time_us() is not None for link in asking):
            time.sleep(_PAUSE_S)
            self._call_timed()

    def _call_timed(self) -> None:
        for link in self._timed:
            now_us = (SystemClock() if link.operator in self._gates else self._clock).now_us()
            due_us = link.operator.next_time_us()
            if due_us is not None and due_us <= now_us:
                link.operator.on_time(now_us, link)

    # state -------------------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Its state after the batch."""
        batch = self.own.get("batch", 0) + 1
        states = {link.uid: link.operator.snapshot(batch) for link in self.links.values() if link.uid}
        return encode({**states, TASK: {"batch": batch, **self._own_state()}}).join()

    def _own_state(self) -> Snapshot:
        channels: Any = [[item.watermark_us, item.idle] for item in self.inputs]
        return {"channels": channels, "watermark": self.valve.output_us}

    def figures(self) -> dict[str, Any]:
        """What it counted in this batch, for the driver."""
        operators = {
            link.uid: {
                "in": link.counters.numRecordsIn,
                "out": link.counters.numRecordsOut,
                "late": link.counters.numLateRecordsDropped,
                "untimed": link.counters.numRecordsWithoutTimestamp,
                "errors": link.counters.numRecordsInErrors,
                "timers": link.counters.numFiredTimers,
            }
            for link in self.links.values()
        }
        return {
            "vertex": self.vertex.id,
            "subtask": self.subtask,
            "watermark": self.root.watermark_us,
            "operators": operators,
        }

    def close(self) -> None:
        """Release what the operators hold."""
        for link in self.links.values():
            with suppress(Exception):  # the batch is done, and its results are saved
                link.operator.close()


def _overrides(operator: Operator, method: str) -> bool:
    return getattr(type(operator), method) is not getattr(Operator, method)
