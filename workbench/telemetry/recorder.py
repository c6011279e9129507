"""The flight recorder: the recent frames of one job, including all frames of the last half minute.

Of the older frames, every fifth is kept and compressed: uncompressed, those of a job with 40 tasks would take 84 MB.
"""

from __future__ import annotations

import pickle
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from workbench.telemetry.frames import Frame

DENSE = 300
"""The number of latest frames that are all kept: half a minute at ten per second."""
RECENT_US = 30_000_000
"""How long all frames of a live job are kept; a job that is paused or not read produces fewer frames."""
SPARSE = 540
EVERY = 5
"""Of older frames, one in this many is kept, for five minutes."""
PARTS = 1_024
"""Tasks and channels of a frame; fewer larger frames are kept, so that all of them take no more memory."""
LEAST = 10
"""The minimum number of latest frames that are kept, however large they are."""

_LARGE = ("vertices", "edges", "tasks", "channels", "operators", "latency")
"""All other parts are small, or shared by consecutive frames."""
_EMPTY: dict[str, Any] = dict.fromkeys(_LARGE, ())
_large_parts = attrgetter(*_LARGE)
_FASTEST = 1


class PackedFrame:
    """A frame, compressed to a tenth of its size.

    A frame of a job with 40 tasks and 256 channels takes 156 kB and is packed in five milliseconds, that of a small job
    26 kB and one millisecond. The bytes never leave the process, so pickle is safe, and it is the fastest format.

    Args:
        frame: to be packed.

    Attributes:
        parts: its tasks and channels.
    """

    __slots__ = ("_large", "_rest", "parts")

    def __init__(self, frame: Frame) -> None:
        self._large = zlib.compress(pickle.dumps(_large_parts(frame), pickle.HIGHEST_PROTOCOL), _FASTEST)
        self._rest = replace(frame, **_EMPTY)
        self.parts = _parts(frame)

    @property
    def sequence(self) -> int:
        """The frame's sequence number."""
        return self._rest.sequence

    def frame(self) -> Frame:
        """The frame, equal to the one that was packed."""
        return replace(self._rest, **dict(zip(_LARGE, pickle.loads(zlib.decompress(self._large)), strict=True)))


class Recorder:
    """Keeps frames; one thread appends, any thread may read.

    Attributes:
        read: set when frames are read.
        openings: how often a page of the job, or further parts of one, were made, which takes time from the job.
        refresh: called before the first reading after `read` was cleared; it may append a frame, and returns whether to
            call it before the next reading, too.

    Args:
        dense: the number of latest frames that are all kept; fewer if they have more than `PARTS` parts each.
        sparse: the number of older frames, every fifth one; fewer if they are large, too.
        recent_us: a frame that is older than the newest by more than this counts as older, except for the last
            `LEAST`; None: no limit.

    Example:
        >>> Recorder().latest() is None
        True
    """

    def __init__(self, dense: int = DENSE, sparse: int = SPARSE, recent_us: int | None = None) -> None:
        self._dense: deque[Frame] = deque()
        self._dense_max = dense
        self._dense_parts = 0
        self._sparse: deque[PackedFrame] = deque(maxlen=sparse)
        self._sparse_max = sparse
        self._recent_us = recent_us
        self.read = False
        self.openings = 0
        self.refresh: Callable[[], bool | None] = lambda: None

    def append(self, frame: Frame) -> None:
        """Add the newest frame, and remove the oldest if necessary."""
        self._dense.append(frame)
        self._dense_parts += _parts(frame)
        while len(self._dense) > self._dense_max or (len(self._dense) > LEAST and self._outlived(frame)):
            oldest = self._dense[0]
            if oldest.sequence % EVERY == 0:
                self._pack(oldest)
            self._dense_parts -= _parts(oldest)
            self._dense.popleft()  # last, so that a concurrent reader misses no frame

    def _outlived(self, newest: Frame) -> bool:
        """Whether the oldest of the latest frames is too old, or all of them are too large."""
        if self._dense_parts > self._dense_max * PARTS:
            return True
        return self._recent_us is not None and newest.time_us - self._dense[0].time_us > self._recent_us

    def _pack(self, frame: Frame) -> None:
        self._sparse.append(PackedFrame(frame))
        parts = sum(packed.parts for packed in self._sparse)
        while parts > self._sparse_max * PARTS and len(self._sparse) > 1:
            parts -= self._sparse.popleft().parts

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""
        self._is_read()
        try:
            return self._dense[-1]
        except IndexError:
            return None

    def frames(self, after: int = -1) -> tuple[Frame, ...]:
        """The frames that are kept, oldest first.

        Args:
            after: only those with a higher sequence number. Unpacking an older one takes up to a millisecond: whoever
                follows a job asks for what is new.
        """
        self._is_read()
        dense = self._dense.copy()
        sparse = [packed for packed in self._sparse.copy() if packed.sequence > after]
        while sparse and dense and sparse[-1].sequence >= dense[0].sequence:
            sparse.pop()
        return (*(packed.frame() for packed in sparse), *(frame for frame in dense if frame.sequence > after))

    def _is_read(self) -> None:
        if not self.read:
            self.read = True
            if self.refresh():
                self.read = False


def _parts(frame: Frame) -> int:
    return len(frame.tasks) + len(frame.channels)
