"""Operators that run as one task: each passes its output directly to the next one, or to the outputs of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workbench.durations import NO_TIME
from workbench.elements import Records, Watermark, WatermarkStatus
from workbench.operators.contract.base import Counters, Operator
from workbench.runtime.exchange.output import EdgeOutput


class Link:
    """One operator of a chain and where its output goes.

    It is the operator's `Output`: what the operator emits goes to every follower in the chain and every edge.

    Attributes:
        children: followers in the chain, each with the side output that it takes, or None for the main output.
        edges, side_edges: exchanges that take the main output, and side outputs by tag.
        watermark_us: how far event time is behind this operator; NO_TIME before the first watermark.
        writes: the operator is a sink.
    """

    __slots__ = (
        "_main",
        "_outputs",
        "_side",
        "children",
        "counters",
        "edges",
        "operator",
        "side_edges",
        "uid",
        "watermark_us",
        "writes",
    )

    def __init__(self, uid: str, operator: Operator, counters: Counters, *, writes: bool = False) -> None:
        self.uid = uid
        self.writes = writes
        self.operator = operator
        self.counters = counters
        self.children: list[tuple[str | None, Link]] = []
        self.edges: list[EdgeOutput] = []
        self.side_edges: dict[str, list[EdgeOutput]] = {}
        self._main: tuple[Callable[[Records], None], ...] = ()
        self._side: dict[str, tuple[Callable[[Records], None], ...]] = {}
        self._outputs: tuple[EdgeOutput, ...] = ()
        self.watermark_us = NO_TIME

    def connect(self) -> None:
        """Fix where the output goes; called once, when all followers are known."""
        self._main = (*self._followers(None), *(edge.route for edge in self.edges))
        tags = {tag for tag, _ in self.children if tag is not None} | set(self.side_edges)
        self._side = {
            tag: (*self._followers(tag), *(edge.route for edge in self.side_edges.get(tag, ()))) for tag in tags
        }
        self._outputs = (*self.edges, *(edge for edges in self.side_edges.values() for edge in edges))
        for _, child in self.children:
            child.connect()

    def tap(self, listener: Callable[[Records], None]) -> Callable[[], None]:
        """Call `listener` with each batch that this operator emits, until the returned function is called."""
        self._main = (*self._main, listener)

        def stop() -> None:
            self._main = tuple(target for target in self._main if target is not listener)

        return stop

    def tap_side(self, tag: str, listener: Callable[[Records], None]) -> None:
        """Call `listener` with each batch that this operator emits to a side output."""
        self._side[tag] = (listener, *self._side.get(tag, ()))

    def _followers(self, tag: str | None) -> list[Callable[[Records], None]]:
        return [child.receive for own, child in self.children if own == tag]

    def receive(self, records: Records, port: int = 0) -> None:
        """Process a batch with the operator."""
        self.counters.numRecordsIn += records.batch.num_rows
        self.operator.process(records, port, self)

    def emit(self, records: Records) -> None:
        """Send a batch on."""
        rows = records.batch.num_rows
        if rows:
            self.counters.numRecordsOut += rows
            for target in self._main:
                target(records)

    def emit_side(self, tag: str, records: Records) -> None:
        """Send a batch to a side output."""
        if records.batch.num_rows:
            for target in self._side.get(tag, ()):
                target(records)

    def on_watermark(self, watermark_us: int) -> None:
        """Advance the operator's event time, then that of its followers, so that what it fires reaches them first."""
        self.operator.on_watermark(watermark_us, self)
        if not self.operator.tells_event_time:
            self.emit_watermark(watermark_us)

    def emit_watermark(self, watermark_us: int) -> None:
        """Advance event time for all followers, in this task and behind its edges."""
        self.watermark_us = watermark_us
        for _, child in self.children:
            child.on_watermark(watermark_us)
        if self._outputs:
            watermark = Watermark(watermark_us)
            for output in self._outputs:
                output.emit_watermark(watermark)

    def on_idle(self, idle: bool) -> None:
        """The input of this operator has become idle, or active again."""
        if self.operator.tells_event_time:
            self.operator.on_idle(idle, self)
        else:
            self.emit_idle(idle)

    def emit_idle(self, idle: bool) -> None:
        """Notify all followers, so that an idle input does not hold back their event time."""
        for _, child in self.children:
            child.on_idle(idle)
        for output in self._outputs:
            output.emit_event(WatermarkStatus(idle))

    @property
    def rows_sent(self) -> int:
        """Rows that went to its exchanges: fewer than it emitted if they were aggregated before an exchange."""
        travelled = [edge.travelled for edge in self.edges]
        fewer = [rows for rows in travelled if rows is not None]
        return max(fewer) if len(fewer) == len(travelled) else self.counters.numRecordsOut

    def walk(self) -> Iterator[Link]:
        """This link and all that follow, in order."""
        yield self
        for _, child in self.children:
            yield from child.walk()


class Emitter(Operator):
    """The head of a source's chain: passes on what the reader fetched."""

    def process(self, records: Records, port: int, out: object) -> None:
        """Pass the batch on."""
        out.emit(records)  # type: ignore[attr-defined]

    def parent_of(self, row: int) -> int | None:
        """The same row."""
        return row
