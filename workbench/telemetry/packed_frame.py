"""A frame that takes less room: what changes in it with every moment is kept as compressed bytes."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import replace
from operator import attrgetter
from typing import Any

from workbench.telemetry.frames import Frame

_LARGE = ("vertices", "edges", "tasks", "channels", "operators", "latency")
"""All other parts are small, or the same objects in one frame after the other."""
_EMPTY: dict[str, Any] = dict.fromkeys(_LARGE, ())
_large_parts = attrgetter(*_LARGE)
_FASTEST = 1


class PackedFrame:
    """Packs a frame; a tenth of its size is left.

    Of a job with 40 tasks and 256 channels a frame takes 156 kB, and packing it five milliseconds; of a small one 26 kB
    and one. The bytes never leave the process, so the format that Python itself is fastest with will do.

    Args:
        frame: to be packed.
    """

    __slots__ = ("_large", "_rest")

    def __init__(self, frame: Frame) -> None:
        self._large = zlib.compress(pickle.dumps(_large_parts(frame), pickle.HIGHEST_PROTOCOL), _FASTEST)
        self._rest = replace(frame, **_EMPTY)

    @property
    def sequence(self) -> int:
        """Of the frame."""
        return self._rest.sequence

    def frame(self) -> Frame:
        """The frame, equal to the one that was packed."""
        return replace(self._rest, **dict(zip(_LARGE, pickle.loads(zlib.decompress(self._large)), strict=True)))
