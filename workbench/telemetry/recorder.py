"""The flight recorder: the recent frames of one job, the last half minute of them as dense as they were taken.

Those before are fewer and packed, because memory is for the job: of one with 40 tasks they would take 84 MB otherwise.
"""

from __future__ import annotations

from collections import deque

from workbench.telemetry.frames import Frame
from workbench.telemetry.packed_frame import PackedFrame

DENSE = 300
"""Frames that are kept as they come: half a minute at ten a second."""
SPARSE = 540
EVERY = 5
"""Of those before one in so many is kept, back to five minutes."""


class Recorder:
    """Keeps frames; one thread appends, any may read.

    Args:
        dense: the most recent frames, which are all kept.
        sparse: older ones, every fifth of what came.

    Example:
        >>> Recorder().latest() is None
        True
    """

    def __init__(self, dense: int = DENSE, sparse: int = SPARSE) -> None:
        self._dense: deque[Frame] = deque()
        self._dense_max = dense
        self._sparse: deque[PackedFrame] = deque(maxlen=sparse)

    def append(self, frame: Frame) -> None:
        """Add the newest frame; the oldest give way."""
        self._dense.append(frame)
        if len(self._dense) > self._dense_max:
            oldest = self._dense[0]
            if oldest.sequence % EVERY == 0:
                self._sparse.append(PackedFrame(oldest))
            self._dense.popleft()  # last, so that a concurrent reader misses no frame

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""
        try:
            return self._dense[-1]
        except IndexError:
            return None

    def frames(self) -> tuple[Frame, ...]:
        """All frames that are kept, oldest first."""
        dense = self._dense.copy()
        sparse = self._sparse.copy()
        while sparse and dense and sparse[-1].sequence >= dense[0].sequence:
            sparse.pop()
        return (*(packed.frame() for packed in sparse), *dense)
