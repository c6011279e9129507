"""The flight recorder: a ring of the most recent frames of one job."""

from __future__ import annotations

from collections import deque

from workbench.telemetry.frames import Frame

CAPACITY = 3_000
"""Five minutes at ten frames a second."""


class Recorder:
    """Keeps frames; one thread appends, any may read.

    Example:
        >>> Recorder().latest() is None
        True
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._ring: deque[Frame] = deque(maxlen=capacity)

    def append(self, frame: Frame) -> None:
        """Add the newest frame; the oldest gives way."""
        self._ring.append(frame)

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""
        try:
            return self._ring[-1]
        except IndexError:
            return None

    def frames(self) -> tuple[Frame, ...]:
        """All frames that are kept, oldest first."""
        return tuple(self._ring.copy())
