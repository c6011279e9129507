"""How often a page gets a frame: one policy for every page, whether a notebook or a server of its own shows it.

Two rules. The kernel's processor belongs to the job: the thread that feeds pages takes a small share of it
(`Share`). And a page gets its next frame when it has painted the last one and had some rest (`Pace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

INTERVAL_S = 0.15
"""Shortest time between two frames of a page."""

BUSY_SHARE = 0.1
"""A feeding thread rests so long after its work that this takes at most this share of one core."""

SHARE_OF_PAGE = 0.65
"""A page that is slow to paint gets its next frame so late that painting takes at most this share of its time."""

TRIP_S = 0.06
"""What an answer takes on its way, for which the page is not to blame: Panel gathers a page's changes for 50 ms."""

PATIENCE_S = 1.0
"""An answer is not waited for longer: it may be stuck behind a busy cell."""

SILENT_S = 20.0
"""A page that has not answered for so long gets a frame only every `SLOW_S`: it may be gone."""

SLOW_S = 5.0
LOST_S = 600.0
"""A page that has not answered for so long is forgotten."""


class Pace:
    """When one page gets its next frame.

    Args:
        now: the present time, in seconds of a monotonic clock; so are all others.

    Example:
        >>> pace = Pace(now=0.0)
        >>> pace.sent(beat=1, now=0.0)
        >>> pace.is_due(0.3)
        False
        >>> pace.answered(beat=1, now=0.1)
        >>> pace.is_due(0.3)
        True
    """

    def __init__(self, now: float) -> None:
        self._heard_at = self._sent_at = now
        self._sent = self._answered = -1
        self._painting_s = 0.0

    def is_lost(self, now: float) -> bool:
        """Whether the page has been silent for too long."""
        return now - self._heard_at > LOST_S

    def is_due(self, now: float) -> bool:
        """Whether the page can take a frame: it has painted the last one, or was left alone long enough."""
        if now - self._heard_at > SILENT_S:
            pause = SLOW_S
        elif self._answered < self._sent:
            pause = PATIENCE_S
        else:
            pause = min(PATIENCE_S, max(INTERVAL_S, self._painting_s / SHARE_OF_PAGE))
        return self._sent < 0 or now - self._sent_at >= pause

    def sent(self, beat: int, now: float) -> None:
        """The frame of this beat is on its way."""
        self._sent, self._sent_at = beat, now

    def answered(self, beat: int, now: float) -> None:
        """The page has painted the frame of this beat."""
        self._heard_at, self._answered = now, beat
        if beat == self._sent:
            self._painting_s = max(0.0, now - self._sent_at - TRIP_S)


class Share:
    """The share of the processor that a thread takes; what counts is its own time, not the time it waits for others.

    Example:
        >>> share = Share()
        >>> with share.taken():
        ...     total = sum(range(1_000))
        >>> Share().rest_s()  # one that has not worked needs no rest
        0.0
    """

    def __init__(self) -> None:
        self._free_at = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Work of this thread, after which it has to rest."""
        began, used = monotonic(), thread_time()
        try:
            yield
        finally:
            self._free_at = began + (thread_time() - used) / BUSY_SHARE

    def rest_s(self) -> float:
        """Seconds until the thread may work again."""
        return max(0.0, self._free_at - monotonic())
