"""Watermark alignment: sources that are ahead wait for those behind.

Where inputs drift apart, early records wait in the state of joins and windows until the slowest input catches up.
Therefore a source of a group stops reading while it is ahead of the group's lowest watermark by more than its drift.

Sources whose records meet before an event-time operator form a group by default. In such a group a source waits if it
was already ahead of the others `READS` reads ago, so the bound follows the speed of the data. Where an operator assigns
new timestamps after the inputs have met (`AssignTimestamps`), records that drift apart by more than its bound would be
late, so there the drift is a small part of the bound. No source in such a group waits for one that is waiting itself:
for its rate, its pace or a record from outside.

Members may run on different threads. Each writes one integer of its own and reads those of the others, so no lock is
needed; a value that it reads may be outdated, which only makes it wait, or read a chunk, longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.contract.base import Operator
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.operators.event_time.watermarks import Bounded
from workbench.plan.physical import PhysicalGraph
from workbench.plan.regions import Region, regions_of

if TYPE_CHECKING:
    from workbench.runtime.tasks.source_task import SourceTask
    from workbench.runtime.tasks.task import Task

LOOK_AGAIN_US = 5_000
"""A waiting source checks again after this time."""
SOON_US = 500
"""The same for a group formed by default, which must not reduce throughput."""
READS = 16
"""A source may be ahead by this many of its own reads, where no drift was set."""
_PART = 25
"""The drift is this fraction of the bound of an operator that assigns new timestamps: records in flight between two
tasks, and rows of other subtasks between two reads, need the rest."""


class Alignment:
    """One member's place in its group.

    Args:
        reached_us: shape (members,), the event time of each member; shared by the group. MAX_TIME: no member waits for
            it.
        place: the index of this member.
        max_drift_us: how far it may be ahead; None: `READS` of its own reads.
        asked_for: whether a user has named the group.
    """

    __slots__ = ("_max_drift_us", "_own_us", "_place", "_reached_us", "_reads", "asked_for")

    def __init__(self, reached_us: list[int], place: int, max_drift_us: int | None, *, asked_for: bool) -> None:
        self._reached_us = reached_us
        self._place = place
        self._max_drift_us = max_drift_us
        self._reads = deque([NO_TIME] * READS, READS)
        self._own_us = NO_TIME
        self.asked_for = asked_for

    @property
    def look_again_us(self) -> int:
        """How soon a waiting member checks again."""
        return LOOK_AGAIN_US if self.asked_for else SOON_US

    def has_read(self, watermark_us: int) -> None:
        """A read has advanced this member's event time; a member without event time holds no other back."""
        watermark_us = max(watermark_us, self._own_us)  # splits that have ended report nothing any more
        if watermark_us == NO_TIME:
            self.leave()
        else:
            self.report(watermark_us)
            self._reads.append(watermark_us)

    def report(self, watermark_us: int) -> None:
        """Publish this member's event time."""
        self._own_us = self._reached_us[self._place] = watermark_us

    def leave(self) -> None:
        """Let no member wait for this one until it reports again: it is idle, or has read everything."""
        self._reached_us[self._place] = MAX_TIME

    def successor(self) -> Alignment:
        """The place of a task that replaces this member: until it reports, all others wait."""
        self._reached_us[self._place] = NO_TIME
        return Alignment(self._reached_us, self._place, self._max_drift_us, asked_for=self.asked_for)

    @property
    def ahead(self) -> bool:
        """Whether this member must wait; one that has not reported an event time yet makes all others wait."""
        lowest_us = min(self._reached_us)
        if self._max_drift_us is None:
            return self._reads[0] > lowest_us
        return self._own_us > lowest_us + self._max_drift_us


def align(sources: Iterable[SourceTask], tasks: Sequence[Task], graph: PhysicalGraph) -> None:
    """Connect the sources of each group; called once for each attempt, before its first step.

    Args:
        sources: those that are deployed.
        tasks: all tasks that are deployed.
        graph: the plan.
    """
    named: dict[str, list[SourceTask]] = {}
    unnamed: list[SourceTask] = []
    for source in sources:
        strategy = source.event_time.strategy
        if strategy is not None and strategy.align is not None:
            named.setdefault(strategy.align, []).append(source)
        elif strategy is not None and strategy.aligned and not strategy.by_ingestion:
            unnamed.append(source)
    for group in named.values():
        _join(group, None)
    for region in regions_of(graph) if len(unnamed) > 1 else ():
        members = [source for source in unnamed if source.name in region.tasks]
        if len(members) > 1 and _uses_event_time(tasks, region):
            _join(members, _default_drift_us(region), asked_for=False)


def take_places(sources: Iterable[SourceTask], predecessors: Iterable[SourceTask]) -> None:
    """Put sources that were deployed again into the groups of those that they replace, which no thread steps any
    more."""
    places = {source.name: source.event_time.alignment for source in predecessors}
    for source in sources:
        place = places.get(source.name)
        source.event_time.alignment = None if place is None else place.successor()


def _join(members: Sequence[SourceTask], drift_us: int | None, *, asked_for: bool = True) -> None:
    reached_us = [NO_TIME] * len(members)
    for place, member in enumerate(members):
        time = member.event_time
        assert time.strategy is not None
        own_us = time.strategy.max_drift_us
        time.alignment = Alignment(reached_us, place, drift_us if own_us is None else own_us, asked_for=asked_for)


def _uses_event_time(tasks: Sequence[Task], region: Region) -> bool:
    """Whether an operator behind an exchange of this region reacts to event time."""
    links = [link for task in tasks if task.name in region.tasks and task.takes_records for link in task.links]
    return any(
        (link.children or link.edges or link.side_edges)
        and (type(link.operator).on_watermark is not Operator.on_watermark)
        for link in links
    )


def _default_drift_us(region: Region) -> int | None:
    specs = [node.spec for vertex in region.vertices if not vertex.is_source for node in vertex.nodes]
    bounds_us = [
        spec.watermarks.out_of_orderness_us
        for spec in specs
        if isinstance(spec, AssignTimestamps) and isinstance(spec.watermarks, Bounded)
    ]
    return min(bounds_us) // _PART if bounds_us else None
