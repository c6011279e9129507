"""The interface of a work: a pipeline over a known input, whose result can be checked."""

from __future__ import annotations

from typing import Protocol

import workbench as wb
from workbench.lab.bench.works.blocks import Emitted
from workbench.lab.bench.works.latencies import Percentiles


class Work(Protocol):
    """A pipeline over a known input; created for each run.

    Attributes:
        workload: W1, W2 or W3.
        emitted: the events that its source has emitted.
        fires_at_end: the result is complete only when the input has ended.
    """

    workload: str
    emitted: Emitted
    fires_at_end: bool = False

    def config(self) -> dict[str, object]:
        """The settings of this work in the result's line."""
        return {}

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        """From the source, of `limit` events if not None, to the sink."""

    def start_measuring(self) -> None:
        """The warm-up is over; does nothing if only events are measured."""

    def exact(self) -> bool:
        """Whether the sink has received the expected rows for the emitted events; called when the job has ended."""

    def percentiles_ms(self) -> Percentiles:
        """Of the latency of records, None if not measured."""
        return None, None, None
