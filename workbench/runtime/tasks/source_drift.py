"""Watermark alignment: sources that are ahead wait for those that are behind.

Where inputs drift apart, what is read early waits in the state of joins and windows until the slowest input has come as
far. A source of a group that is ahead of the group's lowest watermark by more than its drift stops reading instead.

Sources whose records meet before an operator of event time form a group of their own, unless somebody says otherwise:
a source waits there if it was already ahead of the others `READS` reads ago, so the bound follows the pace of the data.
Where an operator tells event time anew from what has met (`AssignTimestamps`), records that drift apart by more than
its bound would be late, so there the drift is a small part of it. Nobody waits in such a group for a source that
waits itself: for its rate, its pace or a record from outside.

Members may run on different threads. Each writes one integer that it alone owns and reads those of the others, so no
lock is needed; what it reads may be a moment old, which only lets it wait, or read a chunk, longer.
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
"""A source that waits for others looks again after this time."""
SOON_US = 500
"""So does one of a group that nobody asked for, which must cost no speed."""
READS = 16
"""A source may be so many of its own reads ahead, where nobody has given a drift."""
_PART = 25
"""Of the bound of an operator that tells event time anew, the drift is one part of so many: what is on its way between
two tasks, and the rows of other subtasks that lie between two reads, need the rest."""


class Alignment:
    """One member's place in its group.

    Args:
        reached_us: shape (members,), how far each member is; shared by the group. MAX_TIME: nobody waits for it.
        place: the member's own.
        max_drift_us: how far it may be ahead; None: `READS` of its own reads.
        asked_for: whether somebody has named the group.
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
        """After how long a member that waits looks again."""
        return LOOK_AGAIN_US if self.asked_for else SOON_US

    def has_read(self, watermark_us: int) -> None:
        """One more read has brought this member's event time so far; a member that tells none holds nobody up."""
        watermark_us = max(watermark_us, self._own_us)  # splits that have ended tell nothing any more
        if watermark_us == NO_TIME:
            self.leave()
        else:
            self.report(watermark_us)
            self._reads.append(watermark_us)

    def report(self, watermark_us: int) -> None:
        """This member's event time is as far as that."""
        self._own_us = self._reached_us[self._place] = watermark_us

    def leave(self) -> None:
        """Nobody waits for this member until it reports again: it is idle, or has read everything."""
        self._reached_us[self._place] = MAX_TIME

    @property
    def ahead(self) -> bool:
        """Whether this member is to wait; one that has not told any event time yet makes all others wait."""
        lowest_us = min(self._reached_us)
        if self._max_drift_us is None:
            return self._reads[0] > lowest_us
        return self._own_us > lowest_us + self._max_drift_us


def align(sources: Iterable[SourceTask], tasks: Sequence[Task], graph: PhysicalGraph) -> None:
    """Bring the sources of each group together; called once for each attempt, before its first step.

    Args:
        sources: those that are deployed.
        tasks: all tasks that are deployed.
        graph: the plan.
    """
    named: dict[str, list[SourceTask]] = {}
    unnamed: list[SourceTask] = []
    for source in sources:
        strategy = source.watermarks
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


def _join(members: Sequence[SourceTask], drift_us: int | None, *, asked_for: bool = True) -> None:
    reached_us = [NO_TIME] * len(members)
    for place, member in enumerate(members):
        assert member.watermarks is not None
        own_us = member.watermarks.max_drift_us
        member.alignment = Alignment(reached_us, place, drift_us if own_us is None else own_us, asked_for=asked_for)


def _uses_event_time(tasks: Sequence[Task], region: Region) -> bool:
    """Whether an operator behind an exchange of this region does something when event time passes."""
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
