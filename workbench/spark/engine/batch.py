"""What a micro-batch brings to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.elements import Records


@dataclass(frozen=True, slots=True)
class Batch:
    """What a micro-batch brought to the driver.

    Attributes:
        number: in Spark, from 0.
        rows: for the sinks, by uid.
        figures: what the tasks counted; empty in the native tier.
    """

    number: int
    rows: list[tuple[str, Records]]
    figures: list[dict[str, Any]]
