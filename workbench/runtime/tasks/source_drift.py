"""Watermark alignment: sources that are ahead wait for those that are behind.

Where inputs drift apart, what is read early waits in the state of joins and windows until the slowest input has come as
far. A source of a group that is ahead of the group's lowest watermark by more than its drift stops reading instead.

Members may run on different threads. Each writes one integer that it alone owns and reads those of the others, so no
lock is needed; what it reads may be a moment old, which only lets it wait, or read a chunk, longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.durations import MAX_TIME, NO_TIME

if TYPE_CHECKING:
    from workbench.runtime.tasks.source_task import SourceTask

LOOK_AGAIN_US = 5_000
"""A source that waits for others looks again after this time."""


class Alignment:
    """One member's place in its group.

    Args:
        reached_us: shape (members,), how far each member is; shared by the group. MAX_TIME: nobody waits for it.
        place: the member's own.
        max_drift_us: how far it may be ahead.
    """

    __slots__ = ("_max_drift_us", "_own_us", "_place", "_reached_us")

    def __init__(self, reached_us: list[int], place: int, max_drift_us: int) -> None:
        self._reached_us = reached_us
        self._place = place
        self._max_drift_us = max_drift_us
        self._own_us = NO_TIME

    def report(self, watermark_us: int) -> None:
        """This member's event time is as far as that."""
        self._own_us = self._reached_us[self._place] = watermark_us

    def leave(self) -> None:
        """Nobody waits for this member until it reports again: it is idle, or has read everything."""
        self._reached_us[self._place] = MAX_TIME

    @property
    def ahead(self) -> bool:
        """Whether this member is to wait; one that has not told any event time yet makes all others wait."""
        return self._own_us > min(self._reached_us) + self._max_drift_us


def align(sources: Iterable[SourceTask]) -> None:
    """Bring the sources of each group together; called once for each attempt, before its first step."""
    groups: dict[str, list[SourceTask]] = {}
    for source in sources:
        if source.watermarks is not None and source.watermarks.align is not None:
            groups.setdefault(source.watermarks.align, []).append(source)
    for members in groups.values():
        reached_us = [NO_TIME] * len(members)
        for place, member in enumerate(members):
            assert member.watermarks is not None
            member.alignment = Alignment(reached_us, place, member.watermarks.max_drift_us)
