"""A change of a setting and its effect, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ChangeState = Literal["measuring", "holds", "superseded"]

LEAST_FOR = {"p99": 100, "p95": 20}
"""Markers on which a percentile rests at least: with fewer, it is that of the slowest one."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A job's latency and throughput at one moment.

    Attributes:
        p50_ms, p95_ms, p99_ms: of the slowest sink's latency markers; None where none has arrived.
        records_per_second: read by the sources.
        buffers_per_second: sent between tasks.
        fill_ms: mean time after which a buffer of the slowest edge is full; None where none is, or where the buffer
            timeout has an effect.
        markers: on which the percentiles rest; see `LatencyFrame.recent`.
        busiest, busy: the vertex with the busiest subtask, and the mean share of its subtasks' time, 0 to 1.
        alignment_ms: for which the task that waited longest for barriers has waited, the median of the complete
            checkpoints since the last change; None before one.
        checkpoint_ms: from the trigger to the completion, the median of the same checkpoints; None before one.
        checkpoint_gap_ms: mean time between the triggers of the same checkpoints; None before two.
        barrier_gap_ms: the same time where barriers ship the buffers that they find; None where they overtake them.
    """

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    records_per_second: float = 0.0
    buffers_per_second: float = 0.0
    fill_ms: float | None = None
    markers: int = 0
    busiest: str = ""
    busy: float = 0.0
    alignment_ms: float | None = None
    checkpoint_ms: float | None = None
    checkpoint_gap_ms: float | None = None
    barrier_gap_ms: float | None = None

    def sure_ms(self, name: str) -> float | None:
        """A percentile; None where too few markers have arrived to tell it.

        Example:
            >>> few = Measured(4, 7, 8, markers=60)
            >>> few.sure_ms("p50"), few.sure_ms("p95"), few.sure_ms("p99")
            (4, 7, None)
        """
        value: float | None = getattr(self, f"{name}_ms")
        return value if self.markers >= LEAST_FOR.get(name, 0) else None


@dataclass(frozen=True, slots=True)
class ChangeFrame:
    """One change of a setting, and what was measured before and after it.

    Attributes:
        what: the change, such as ``"buffer_timeout 100ms → 5ms"``.
        time_us: when it came into force (processing time).
        before: the job before it, or before the first of several that came too fast to be measured one by one; None
            where it was not measured.
        after: the job since; None until something can be told.
        state: ``measuring`` until there is enough of it, ``superseded`` where another change or the end came first.
        sentence: the effect in words.
    """

    what: str
    time_us: int
    before: Measured | None
    after: Measured | None
    state: ChangeState
    sentence: str
