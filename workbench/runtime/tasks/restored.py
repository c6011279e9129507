"""In-flight records of the checkpoint from which an attempt resumes, and their way to the receivers.

The subtask of the producing operator sends them again, through its own output, before anything new: so they are
partitioned by the present plan, even at another parallelism. Then it signals that these were all. A receiver takes
these records from all of its senders before it takes anything new from one of them; otherwise records of one key could
overtake each other where another subtask now sends the key. Until then barriers wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from workbench.elements import CheckpointBarrier, EndOfInFlight, Records, Watermark
from workbench.errors import CheckpointError
from workbench.operators.aggregates.local_aggregate import AggregatesLocally
from workbench.operators.aggregates.preaggregated import RECORDS, check_preaggregated, is_preaggregated
from workbench.operators.contract.conforming import conforms
from workbench.plan.physical import Edge, PhysicalGraph, Vertex
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.in_flight import Flow, InFlight
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.exchange.output import EdgeOutput

Send = Callable[[], None]


class Restored:
    """One task's part in resending in-flight records.

    Args:
        sends: each call sends one buffer again.
        inputs: the task's channels; none for a source.

    Attributes:
        sent: everything has been sent, and the receivers were notified.
        barriers: those that have arrived too early.
    """

    __slots__ = ("_awaited", "_sends", "barriers", "sent")

    def __init__(self, sends: Sequence[Send], inputs: Sequence[InputChannel]) -> None:
        self._sends = deque(sends)
        self._awaited = list(inputs)
        self.sent = False
        self.barriers: list[tuple[InputChannel, CheckpointBarrier]] = []

    def send_next(self, outputs: Sequence[EdgeOutput]) -> None:
        """Send one buffer, or signal that there are no more."""
        if self._sends:
            self._sends.popleft()()
        else:
            self.sent = True
            for output in outputs:
                output.emit_event(EndOfInFlight())

    def arrived(self, channel: InputChannel) -> None:
        """One sender has delivered all of it; its new records wait for the other senders."""
        channel.blocked = True
        self._awaited.remove(channel)

    @property
    def over(self) -> bool:
        """Whether the task may continue with new input."""
        return self.sent and not self._awaited


def plan_resends(graph: PhysicalGraph, pieces: Sequence[InFlight]) -> dict[tuple[str, int], list[InFlight]]:
    """What each subtask has to send again, by vertex id and subtask index.

    Raises:
        CheckpointError: no operator of this pipeline emits these records.
    """
    by_uid = {uid: vertex for vertex in graph.vertices for uid in vertex.uids}
    found: dict[tuple[str, int], list[InFlight]] = {}
    for piece in pieces:
        vertex = by_uid.get(piece.flow.producer)
        if vertex is None:
            raise _homeless(piece.flow)
        found.setdefault((vertex.id, piece.flow.sender % vertex.parallelism), []).append(piece)
    return found


def sends_of(
    vertex: Vertex, links: Sequence[Link], outputs: Sequence[EdgeOutput], pieces: Sequence[InFlight]
) -> list[Send]:
    """The calls that resend one subtask's records, in order.

    What was emitted further down the chain goes first: what is nearer to its head may now pass through there.

    Raises:
        CheckpointError: the pipeline no longer has this edge, or a broadcast has other receivers now.
    """
    place = {link.uid: at for at, link in enumerate(links)}
    ordered = sorted(pieces, key=lambda piece: -place[piece.flow.producer])
    marks = _watermark_ways(vertex, outputs, pieces)
    sends: list[Send] = []
    for piece in ordered:
        mark = marks.get(piece.flow)
        send = _way(vertex, links, outputs, piece.flow) if piece.buffers else None
        for item in piece.in_order() if mark is not None else piece.buffers:
            if not isinstance(item, Records):
                assert mark is not None
                sends.append(partial(mark, Watermark(item)))
            elif send is not None:
                sends.append(send(item))
    return sends


def _watermark_ways(
    vertex: Vertex, outputs: Sequence[EdgeOutput], pieces: Sequence[InFlight]
) -> dict[Flow, Callable[[Watermark], None]]:
    """What resends watermarks between the records of each channel; nothing where records may take other channels now.

    There they would be late behind a watermark of other records; watermarks are sent again behind all of them.
    """
    ways: dict[Flow, Callable[[Watermark], None]] = {}
    for edge, output in zip(vertex.outs, outputs, strict=True):
        if edge.exchange in _SAME_WAY or edge.target.parallelism == 1:
            ways |= {pending.channel.flow: pending.send_watermark for pending in output.pending}
    return ways if all(piece.flow in ways for piece in pieces) else {}


_SAME_WAY = ("hash", "forward", "broadcast")
"""Exchanges that send a record to the same subtask again, if there are as many as before."""
_Way = Callable[[Records], Send]
"""Returns what sends a buffer, if its columns are those of this edge."""


def _way(vertex: Vertex, links: Sequence[Link], outputs: Sequence[EdgeOutput], flow: Flow) -> _Way:
    link = next(link for link in links if link.uid == flow.producer)
    producer = vertex.nodes[vertex.uids.index(flow.producer)]
    for edge, output in zip(vertex.outs, outputs, strict=True):
        if edge.producer is producer and (edge.tag, edge.target.name, edge.port) == (
            flow.tag,
            flow.consumer,
            flow.port,
        ):
            return _through(edge, output, flow)
    for tag, child in link.children:  # at this parallelism the two are one task
        if (tag, child.uid) == (flow.tag, flow.consumer):
            schema = producer.schema if tag is None else producer.side_schemas[tag]
            return lambda records, child=child, schema=schema: partial(child.receive, _widened(records, schema))  # type: ignore[misc]
    raise _homeless(flow)


def _through(edge: Edge, output: EdgeOutput, flow: Flow) -> _Way:
    if edge.exchange == "broadcast":
        if edge.target.parallelism != flow.receivers:
            raise CheckpointError(
                f"the checkpoint holds records that were on their way from {flow.producer!r} to all {flow.receivers} "
                f"subtasks of {flow.consumer!r}, and now there are {edge.target.parallelism}: continue at parallelism "
                f"{flow.receivers} and rescale the running job, or start from a savepoint"
            )
        return lambda records: partial(output.send_to, flow.receiver, _fitted(records, edge.schema))
    return lambda records: _sent(edge, output, records)


def _sent(edge: Edge, output: EdgeOutput, records: Records) -> Send:
    if edge.exchange == "hash" and RECORDS not in edge.schema.names and is_preaggregated(records.batch):
        spec: Any = edge.target.nodes[0].spec
        if not conforms(spec, AggregatesLocally):
            raise ValueError(f"{edge.target.name} takes no partial aggregates")
        window: Any = spec
        check_preaggregated(records, window.keys, [item for _, item in window.aggregates], edge.schema)
        # They are merged, even if batches are now aggregated before the exchange.
        return partial(output.send_preaggregated, records)
    return partial(output.route, _fitted(records, edge.schema))


def _fitted(records: Records, schema: pa.Schema) -> Records:
    """The columns that travel, as in the plan."""
    columns = [records.batch.column(name) for name in schema.names]
    return Records(pa.RecordBatch.from_arrays(columns, schema=schema), records.timestamps)


def _widened(records: Records, schema: pa.Schema) -> Records:
    """The records as the producer emitted them; columns that no operator reads did not travel, and are null."""
    batch = records.batch
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in there else pa.nulls(len(records), field.type) for field in schema
    ]
    return Records(pa.RecordBatch.from_arrays(columns, schema=schema), records.timestamps)


def _homeless(flow: Flow) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint holds records that were on their way from {flow.producer!r} to {flow.consumer!r}, which this "
        "pipeline does not connect: run the pipeline that wrote it, or start from a savepoint, which holds none"
    )
