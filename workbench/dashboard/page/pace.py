"""How often a page receives a frame: one policy for every page, in notebooks and on served pages.

There are two rules. The processor belongs to the job: the thread that feeds pages uses only a small share of it
(`Share`). And a page receives its next frame when it has rested for a while after painting, which it times itself
(`Pace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

INTERVAL_S = 0.15
"""Shortest time between two frames of a page."""

BUSY_SHARE = 0.1
"""The maximum share of one core that a feeding thread uses; it rests accordingly."""

SHARE_OF_PAGE = 0.75
"""A page that paints slowly receives frames so rarely that painting takes at most this share of its time."""

ANSWER_S = 1.0
"""The shortest time between two answers of a page: each answer takes the interpreter from the job and from cells."""

AHEAD = 10
"""The number of frames that may be in flight until an answer has passed through a busy kernel."""

PATIENCE_S = 1.0
"""The time between frames of a page that owes more answers: they may be delayed by a busy cell."""

SILENT_S = 20.0
"""A page that has not answered for this long receives a frame only every `SLOW_S`: it may be closed."""

SLOW_S = 5.0
LOST_S = 600.0
"""A page that has not answered for this long is sent nothing more until it answers again."""


class Pace:
    """Decides when one page receives its next frame.

    Args:
        now: the current time, in seconds of a monotonic clock, like all other times.

    Example:
        >>> pace = Pace(now=0.0)
        >>> for beat in range(1, AHEAD + 1):
        ...     pace.sent(beat, now=0.0)
        >>> pace.is_due(0.3)
        False
        >>> pace.answered(beat=1, now=0.1, painting_s=0.02)
        >>> pace.is_due(0.3)
        True
    """

    def __init__(self, now: float) -> None:
        self._heard_at = self._sent_at = now
        self._sent: int | None = None
        self._answered = 0
        self._painting_s = 0.0

    def is_lost(self, now: float) -> bool:
        """Whether the page has been silent for too long."""
        return now - self._heard_at > LOST_S

    def heard(self, now: float) -> None:
        """Note that the page is open."""
        self._heard_at = now

    def is_due(self, now: float) -> bool:
        """Whether the page can take a frame: it has painted most frames and rested, or received none for a while."""
        if self._sent is None:
            return True
        if now - self._heard_at > SILENT_S:
            pause = SLOW_S
        elif self._sent - self._answered >= AHEAD:
            pause = PATIENCE_S
        else:
            pause = min(PATIENCE_S, max(INTERVAL_S, self._painting_s / SHARE_OF_PAGE))
        return now - self._sent_at >= pause

    def sent(self, beat: int, now: float) -> None:
        """Note that the frame of this beat was sent."""
        if self._sent is None:
            self._answered = beat - 1
        self._sent, self._sent_at = beat, now

    def answered(self, beat: int, now: float, painting_s: float) -> None:
        """Note that the page has painted the frames up to this beat, and the average time for one of them."""
        self.heard(now)
        self._answered, self._painting_s = beat, painting_s


class Share:
    """Limits the share of the processor that a thread uses; only its own CPU time counts, not waiting.

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
        """Measure some work of this thread, after which it has to rest."""
        began, used = monotonic(), thread_time()
        try:
            yield
        finally:
            self._free_at = began + (thread_time() - used) / BUSY_SHARE

    def rest_s(self) -> float:
        """Seconds until the thread may work again."""
        return max(0.0, self._free_at - monotonic())
