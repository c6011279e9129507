"""How often a page gets a frame: one policy for every page, whether a notebook or a server of its own shows it.

Two rules. The kernel's processor belongs to the job: the thread that feeds pages takes a small share of it
(`Share`). And a page gets its next frame when it has had some rest after painting, which it times itself, as long as it
answers (`Pace`).
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
"""A page that is slow to paint gets its next frame so late that painting takes at most this share of its time."""

ANSWER_S = 1.0
"""A page does not answer more often: each answer takes the kernel's interpreter from the job, and from cells."""

AHEAD = 10
"""So many frames may be on their way: those of the time until an answer, which has to pass a kernel at full speed."""

PATIENCE_S = 1.0
"""A page that owes more answers than that gets a frame so often: they may be stuck behind a busy cell."""

SILENT_S = 20.0
"""A page that has not answered for this long gets a frame only every `SLOW_S`: it may be gone."""

SLOW_S = 5.0
LOST_S = 600.0
"""A page that has not answered for this long is sent nothing more until it answers again."""


class Pace:
    """When one page gets its next frame.

    Args:
        now: the present time, in seconds of a monotonic clock; so are all others.

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
        """The page is there."""
        self._heard_at = now

    def is_due(self, now: float) -> bool:
        """Whether the page can take a frame: it has painted most of what it was sent, and rested, or was left alone."""
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
        """The frame of this beat is on its way."""
        if self._sent is None:
            self._answered = beat - 1
        self._sent, self._sent_at = beat, now

    def answered(self, beat: int, now: float, painting_s: float) -> None:
        """The page has painted the frames up to this beat; since its last answer one took it so long, on average."""
        self.heard(now)
        self._answered, self._painting_s = beat, painting_s


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
