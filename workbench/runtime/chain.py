"""Operators that run as one task: each hands its output straight to the next, or to the outputs of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workbench.elements import Records
from workbench.operators.base import Counters, Operator
from workbench.runtime.output import EdgeOutput


class Link:
    """One operator of a chain and where its output goes.

    It is the operator's `Output`: what the operator emits goes to every follower in the chain and every edge.

    Attributes:
        children: followers in the chain, each with the side output that it takes, or None for the main output.
        edges, side_edges: exchanges that take the main output, and side outputs by tag.
    """

    __slots__ = ("_main", "_side", "children", "counters", "edges", "operator", "side_edges", "uid")

    def __init__(self, uid: str, operator: Operator, counters: Counters) -> None:
        self.uid = uid
        self.operator = operator
        self.counters = counters
        self.children: list[tuple[str | None, Link]] = []
        self.edges: list[EdgeOutput] = []
        self.side_edges: dict[str, list[EdgeOutput]] = {}
        self._main: tuple[Callable[[Records], None], ...] = ()
        self._side: dict[str, tuple[Callable[[Records], None], ...]] = {}

    def connect(self) -> None:
        """Fix where the output goes; called once, when all followers are known."""
        self._main = (*self._followers(None), *(edge.route for edge in self.edges))
        tags = {tag for tag, _ in self.children if tag is not None} | set(self.side_edges)
        self._side = {
            tag: (*self._followers(tag), *(edge.route for edge in self.side_edges.get(tag, ()))) for tag in tags
        }
        for _, child in self.children:
            child.connect()

    def _followers(self, tag: str | None) -> list[Callable[[Records], None]]:
        return [child.receive for own, child in self.children if own == tag]

    def receive(self, records: Records, port: int = 0) -> None:
        """Let the operator process a batch."""
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
        """Let event time pass for this operator, then for its followers, so that what it fires reaches them first."""
        self.operator.on_watermark(watermark_us, self)
        for _, child in self.children:
            child.on_watermark(watermark_us)

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
