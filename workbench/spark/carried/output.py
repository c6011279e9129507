"""Where the operators of a carried task send: the exchanges of the kernel, filled into parcels."""

from __future__ import annotations

from workbench.elements import Element, Records, Watermark, WatermarkStatus
from workbench.plan.physical import Edge
from workbench.runtime.exchange.splitters import splitter
from workbench.spark.carried.parcels import Item
from workbench.spark.carried.plan import CarriedPlan, is_sink

Parcels = dict[tuple[int, int], list[Item]]
"""Elements by receiving task and channel."""


class CarriedOutput:
    """One edge's end in one sending task; stands in for an ``EdgeOutput``.

    Args:
        plan: of the pipeline.
        edge: the exchange.
        subtask: that sends.
        parcels: to fill.
    """

    travelled = None

    def __init__(self, plan: CarriedPlan, edge: Edge, subtask: int, parcels: Parcels) -> None:
        full = edge.producer.schema if edge.tag is None else edge.producer.side_schemas.get(edge.tag, edge.schema)
        self._columns = edge.schema.names if len(edge.schema) < len(full) else None
        self._splitter = splitter(edge, subtask, 0, 0, plan.graph.max_parallelism)
        self._broadcasts = edge.exchange == "broadcast"
        self._to_sink = is_sink(edge.target)
        targets = [receiver for sender, receiver in edge.pairs if sender == subtask]
        if self._to_sink:
            to = plan.sink_task(edge.target.uids[0])
            places = [(to, subtask) for _ in targets]
        else:
            places = [(plan.task(edge.target, own), plan.channel(edge, subtask, own)) for own in targets]
        self._parcels = [parcels.setdefault(place, []) for place in places]
        self._next = 0

    def route(self, records: Records) -> None:
        """Send records to the receivers that the exchange chooses."""
        if self._columns is not None:
            records = Records(records.batch.select(self._columns), records.timestamps)
        if self._splitter is not None:
            for parcel, part in zip(self._parcels, self._splitter.split(records), strict=True):
                if part is not None:
                    parcel.append(part)
        elif self._broadcasts:
            for parcel in self._parcels:
                parcel.append(records)
        else:
            self._rebalance(records)

    def _rebalance(self, records: Records) -> None:
        """Each receiver gets its share of the batch: a batch on Spark is large."""
        count = len(self._parcels)
        run = -(-len(records) // count)
        for first in range(0, len(records), run):
            self._parcels[self._next].append(records.slice(first, min(run, len(records) - first)))
            self._next = (self._next + 1) % count

    def emit_watermark(self, watermark: Watermark) -> None:
        """Advance event time at all receivers."""
        self.emit_event(watermark)

    def emit_event(self, event: Element) -> None:
        """Send a control element to all receivers."""
        if not self._to_sink and isinstance(event, Watermark | WatermarkStatus):
            for parcel in self._parcels:
                parcel.append(event)


class ToSink:
    """The output to a sink of the same chain."""

    travelled = None

    def __init__(self, task: int, subtask: int, parcels: Parcels) -> None:
        self._parcel = parcels.setdefault((task, subtask), [])

    def route(self, records: Records) -> None:
        """Hand records over to the driver, where the sink is."""
        self._parcel.append(records)

    def emit_watermark(self, watermark: Watermark) -> None:
        """A sink does not need to know event time."""

    def emit_event(self, event: Element) -> None:
        """As above."""
