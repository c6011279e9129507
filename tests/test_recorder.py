"""The flight recorder keeps the recent frames as they come and thins what is before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from workbench.telemetry.recorder import Recorder


@dataclass(frozen=True)
class Numbered:
    """What the recorder looks at in a frame."""

    sequence: int


def kept(count: int) -> list[int]:
    recorder = Recorder(dense=10, sparse=4)
    for sequence in range(count):
        recorder.append(cast(Any, Numbered(sequence)))
        assert cast(Any, recorder.latest()).sequence == sequence
    return [frame.sequence for frame in recorder.frames()]


def test_recent_frames_are_all_kept() -> None:
    assert kept(0) == []
    assert kept(10) == list(range(10))


def test_of_older_ones_every_fifth_is_kept_up_to_the_bound() -> None:
    assert kept(18) == [0, 5, *range(8, 18)]
    assert kept(103) == [75, 80, 85, 90, *range(93, 103)]
