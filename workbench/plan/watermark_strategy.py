"""The watermark strategy of a source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from workbench.operators.event_time.punctuated import exactly
from workbench.operators.event_time.watermarks import Bounded, Ingestion, Watermarks


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """How a source derives event time, for each of its splits.

    Attributes:
        watermarks: the policy; with `Ingestion` the records also get their event times from it.
        idle_after_us: a split without records for this long stops holding the watermark back; None: never.
        align: sources that name the same group wait for one another.
        max_drift_us: how far this source's watermark may be ahead of the group's lowest; None: chosen by the runtime.
        aligned: without a named group, this source waits for those whose records meet its own.
    """

    watermarks: Watermarks = field(default_factory=Bounded)
    idle_after_us: int | None = None
    align: str | None = None
    max_drift_us: int | None = None
    aligned: bool = True

    def exactly(self) -> WatermarkStrategy:
        """The same, with every watermark directly behind its own record."""
        return replace(self, watermarks=exactly(self.watermarks))

    @property
    def by_ingestion(self) -> bool:
        """Whether event time is ingestion time."""
        return isinstance(self.watermarks, Ingestion)
