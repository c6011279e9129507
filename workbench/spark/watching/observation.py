"""What Spark reports of a streaming query, as data: sources, state, batches, and why a batch is slow.

It is read from the JSON of progress reports. A listener would build a Java object for every event, which takes up to a
tenth of a second of the query's own time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
"""The phases of a batch, in Spark's order."""
_WHY = {
    "latestOffset": "asking the source for its newest offset: the source answers slowly",
    "getBatch": "preparing the read of the source",
    "queryPlanning": "planning: Spark optimises the query again for each batch, and starts Python workers",
    "walCommit": "writing the offsets to the checkpoint location: the storage is slow",
    "addBatch": "processing the rows and writing them to the sink",
    "commitOffsets": "noting the end of the batch in the checkpoint location: the storage is slow",
}
_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """One source in the last batch.

    Attributes:
        name: as Spark describes it.
        rows: that the batch read.
        per_second: rows read per second; None: not known.
        offset, latest: the end of the batch, and the newest that there is, as JSON text.
        lag: how many rows are between them; None where offsets are not numbers.
    """

    name: str
    rows: int
    per_second: float | None
    offset: str
    latest: str
    lag: int | None


@dataclass(frozen=True, slots=True)
class StateSeen:
    """One stateful operator in the last batch.

    Attributes:
        name: Spark's name of the operator.
        rows, updated, removed, dropped: of its state; `dropped` are late rows, after partial aggregation groups.
        memory_bytes: that its stores take.
        commit_ms: for the commit of its stores, over all partitions.
    """

    name: str
    rows: int
    updated: int
    removed: int
    dropped: int
    memory_bytes: int
    commit_ms: int


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """One batch.

    Attributes:
        number: in Spark, from 0.
        started: UTC text.
        rows: read.
        duration_ms: of the batch.
        phases_ms: by the names of `PHASES`.
        watermark, newest: event time of the watermark, and the largest of the batch; UTC text, empty: none.
    """

    number: int
    started: str
    rows: int
    duration_ms: int
    phases_ms: Mapping[str, int]
    watermark: str
    newest: str

    @staticmethod
    def of(progress: Mapping[str, Any]) -> BatchSeen:
        """From a progress report."""
        durations = progress.get("durationMs") or {}
        event_time = progress.get("eventTime") or {}
        return BatchSeen(
            int(progress["batchId"]),
            str(progress.get("timestamp", "")),
            int(progress.get("numInputRows", 0)),
            int(durations.get("triggerExecution", 0)),
            {name: int(durations[name]) for name in PHASES if name in durations},
            watermark_of(progress),
            str(event_time.get("max", "")),
        )


def reports_after(query: Any, known: int) -> list[Mapping[str, Any]]:
    """The progress reports of batches later than number `known`, oldest first.

    Every question takes some of the time of Spark's JVM, so the kept reports, up to a hundred, are only asked for when
    the last one does not suffice.

    Args:
        query: a ``StreamingQuery``.
        known: a batch; -1: none.
    """
    last = query.lastProgress
    if last is None or int(last["batchId"]) <= known:
        return []
    reports = [last] if int(last["batchId"]) == known + 1 else query.recentProgress
    return [each for each in reports if int(each["batchId"]) > known and "addBatch" in (each.get("durationMs") or {})]


def watermark_of(progress: Mapping[str, Any]) -> str:
    """The watermark that a batch had, as UTC text; empty: none, or not yet, which Spark calls the year 1970.

    Example:
        >>> watermark_of({"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
        ''
    """
    found = str((progress.get("eventTime") or {}).get("watermark", ""))
    return "" if found.startswith("1970-01-01T00:00:00.000") else found


def sources_of(progress: Mapping[str, Any]) -> list[SourceSeen]:
    """The sources of a progress report.

    Example:
        >>> [source] = sources_of({"sources": [{"description": "S", "numInputRows": 2, "endOffset": "5",
        ...                                     "latestOffset": "9"}]})
        >>> source.rows, source.lag
        (2, 4)
    """
    found = []
    for source in progress.get("sources") or ():
        offset, latest = _text(source.get("endOffset")), _text(source.get("latestOffset"))
        found.append(
            SourceSeen(
                str(source.get("description", "source")),
                int(source.get("numInputRows", 0)),
                source.get("processedRowsPerSecond"),
                offset,
                latest,
                _lag(offset, latest),
            )
        )
    return found


def states_of(progress: Mapping[str, Any]) -> list[StateSeen]:
    """The stateful operators of a progress report."""
    return [
        StateSeen(
            str(state.get("operatorName", "state")),
            int(state.get("numRowsTotal", 0)),
            int(state.get("numRowsUpdated", 0)),
            int(state.get("numRowsRemoved", 0)),
            int(state.get("numRowsDroppedByWatermark", 0)),
            int(state.get("memoryUsedBytes", 0)),
            int(state.get("commitTimeMs", 0)),
        )
        for state in progress.get("stateOperators") or ()
    ]


def slow_batch(batches: Sequence[BatchSeen]) -> str:
    """The slowest batch and its longest phase, in a sentence; empty without batches.

    The first of several does not count: it starts Python workers and compiles.

    Example:
        >>> slow_batch([BatchSeen(4, "", 10, 900, {"walCommit": 700, "addBatch": 100}, "", "")])
        'batch 4 took longest, 900 ms: 700 ms of it writing the offsets to the checkpoint location: the storage is slow'
    """
    timed = [batch for batch in batches if batch.phases_ms]
    if not timed:
        return ""
    slow = max(timed[1:] or timed, key=lambda batch: batch.duration_ms)
    phase = max(slow.phases_ms, key=lambda name: slow.phases_ms[name])
    spent = slow.phases_ms[phase]
    if spent < _SHARE * slow.duration_ms:
        return f"batch {slow.number} took longest, {slow.duration_ms} ms, spread over its phases"
    return f"batch {slow.number} took longest, {slow.duration_ms} ms: {spent} ms of it {_WHY[phase]}"


def _text(offset: Any) -> str:
    if offset is None:
        return ""
    return offset if isinstance(offset, str) else json.dumps(offset)


def _lag(offset: str, latest: str) -> int | None:
    """The sum of the differences of all numbers in two offsets of the same form."""
    try:
        return _behind(json.loads(offset), json.loads(latest))
    except ValueError:
        return None


def _behind(offset: Any, latest: Any) -> int | None:
    if isinstance(offset, dict) and isinstance(latest, dict) and offset.keys() == latest.keys():
        parts = [_behind(offset[key], latest[key]) for key in offset]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None
    both = isinstance(offset, int) and isinstance(latest, int)
    return latest - offset if both and not isinstance(offset, bool) else None
