"""Sources whose records executors read directly: replay logs at full speed.

The driver reads only the time columns, from which it decides where a batch ends and which event time each channel has
reached. A batch is a range of rows for each channel. It needs no log, because a replay log does not change: if Spark
asks for a batch again, the same rows are read again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeGuard

import pyarrow as pa

from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.replay.source import ReplaySource
from workbench.elements import Int64s, event_times
from workbench.errors import HistoryError

_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one channel: those from `first` to before `end`."""

    channel: int
    first: int
    end: int


def can_reread(spec: object) -> TypeGuard[ReplaySource]:
    """Whether executors can read a source by ranges of rows.

    A paced replay is read in the driver, because the driver has the clock.
    """
    return isinstance(spec, ReplaySource) and math.isinf(spec.speed)


def times_only(spec: ReplaySource) -> ReplaySource:
    """The source with its time columns only, and with the same positions."""
    log = spec.log
    return replace(spec, log=log.narrowed({log.event_time, log.arrival_time}))


def pieces(start: Mapping[str, Any], end: Mapping[str, Any], parts: int) -> list[list[Piece]]:
    """The pieces of a batch that each of `parts` tasks reads; tasks without rows are left out, except the first.

    Args:
        start, end: the positions before and after the batch, by channel, as in the reader's snapshots.
        parts: the number of tasks.

    Example:
        >>> pieces({"0": 5}, {"0": 9, "1": 4}, 2)
        [[Piece(channel=0, first=5, end=9)], [Piece(channel=1, first=0, end=4)]]
    """
    ranges = [Piece(int(channel), int(start.get(channel, 0)), int(last)) for channel, last in sorted(end.items())]
    ranges = [each for each in ranges if each.end > each.first]
    cuts = -(-parts // max(len(ranges), 1))
    cut = [piece for each in ranges for piece in _cut(each, cuts)]
    return [cut[part::parts] for part in range(min(parts, len(cut)))] or [[]]


def read_piece(folder: str, identity: str, piece: Piece, names: list[str]) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
    """The columns `names` of a piece, and the event times.

    Args:
        folder: of the log.
        identity: of the log when the batch was planned.
        piece: the rows.
        names: the columns.

    Raises:
        HistoryError: the log cannot be read here, or was rewritten.
    """
    log = ReplayLog.open(folder)
    if identity not in (log.manifest.identity, *log.manifest.grown_from):
        raise HistoryError(f"the replay log at {folder} was rewritten while a job on Spark read it: start the job anew")
    cursor = log.narrowed({*names, log.event_time, log.arrival_time}).cursor(piece.channel)
    try:
        cursor.seek(piece.first)
        while (left := piece.end - cursor.position) > 0 and (batch := cursor.read(min(left, _ROWS))) is not None:
            yield batch.select(names), event_times(batch.column(log.event_time), log.event_time)
    finally:
        cursor.close()


def _cut(whole: Piece, into: int) -> list[Piece]:
    rows = whole.end - whole.first
    edges = [whole.first + rows * at // into for at in range(into + 1)]
    return [Piece(whole.channel, first, end) for first, end in pairwise(edges) if end > first]
