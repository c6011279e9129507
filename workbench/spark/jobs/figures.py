"""What the tasks of a carried pipeline have counted so far, by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NAMES = {
    "in": "numRecordsIn",
    "out": "numRecordsOut",
    "late": "numLateRecordsDropped",
    "untimed": "numRecordsWithoutTimestamp",
    "errors": "numRecordsInErrors",
    "timers": "numFiredTimers",
}
"""Flink's names of what tasks tell."""


class Figures:
    """Sums over all batches of this run; one thread of Spark's writes, any may read.

    Example:
        >>> figures = Figures()
        >>> counted = {"in": 3, "out": 2, "late": 1, "untimed": 0, "errors": 0, "timers": 0}
        >>> figures.add([{"vertex": "v0", "subtask": 0, "watermark": 7, "operators": {"filter": counted}}])
        >>> figures.rows()[0]["numRecordsIn"], figures.late
        (3, 1)
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int, str], dict[str, int]] = {}
        self._watermarks: dict[tuple[str, int], int] = {}

    def add(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Add what the tasks told after a batch."""
        for task in told:
            place = task["vertex"], task["subtask"]
            self._watermarks = {**self._watermarks, place: task["watermark"]}
            for uid, counts in task["operators"].items():
                sums = self._sums.get((*place, uid), {})
                new = {NAMES[key]: sums.get(NAMES[key], 0) + count for key, count in counts.items()}
                self._sums = {**self._sums, (*place, uid): new}

    def rows(self) -> list[dict[str, Any]]:
        """A row for each operator and subtask."""
        return [
            {"task": f"{uid}[{subtask}]", **sums, "currentOutputWatermark": self._watermarks.get((vertex, subtask))}
            for (vertex, subtask, uid), sums in self._sums.items()
        ]

    @property
    def late(self) -> int:
        """Records that were dropped as late."""
        return sum(sums["numLateRecordsDropped"] for sums in self._sums.values())
