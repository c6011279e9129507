"""A micro-batch as a job's checkpoint: its number, its phases, its rows; read from the progress that Spark tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.spark.watching.observation import watermark_of

PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
"""The phases of a batch, in the order in which Spark goes through them."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One micro-batch.

    Attributes:
        checkpoint_id: its number in Spark, from 0.
        started: UTC text.
        duration_ms: of the whole batch.
        phases_ms: by the names of `PHASES`.
        rows_in: that it read, in the terms of Spark's source.
        rows_per_second: read.
        watermark: of Spark, UTC text; empty if the query has none, or none yet.
        state_rows, state_bytes: of all stateful operators.
        dropped: groups that Spark dropped by its watermark.

    Example:
        >>> BatchRecord.of({"batchId": 3, "timestamp": "2026-01-01T00:00:00.000Z", "numInputRows": 5,
        ...                 "durationMs": {"addBatch": 70, "triggerExecution": 90}}).phases_ms
        {'addBatch': 70}
    """

    checkpoint_id: int
    started: str
    duration_ms: int
    phases_ms: dict[str, int]
    rows_in: int
    rows_per_second: float | None
    watermark: str
    state_rows: int
    state_bytes: int
    dropped: int

    @staticmethod
    def of(progress: Mapping[str, Any]) -> BatchRecord:
        """The record of a progress report (a JSON object)."""
        durations = progress.get("durationMs") or {}
        states = progress.get("stateOperators") or ()
        return BatchRecord(
            checkpoint_id=int(progress["batchId"]),
            started=str(progress.get("timestamp", "")),
            duration_ms=int(durations.get("triggerExecution", 0)),
            phases_ms={name: int(durations[name]) for name in PHASES if name in durations},
            rows_in=int(progress.get("numInputRows", 0)),
            rows_per_second=progress.get("processedRowsPerSecond"),
            watermark=watermark_of(progress),
            state_rows=sum(int(each.get("numRowsTotal", 0)) for each in states),
            state_bytes=sum(int(each.get("memoryUsedBytes", 0)) for each in states),
            dropped=sum(int(each.get("numRowsDroppedByWatermark", 0)) for each in states),
        )
