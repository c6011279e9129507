"""The results of a micro-batch in the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.elements import Records


@dataclass(frozen=True, slots=True)
class Batch:
    """The results of a micro-batch.

    Attributes:
        number: of the batch in Spark, from 0.
        rows: for the sinks, by uid.
        figures: the counts of the tasks; empty in the native tier.
    """

    number: int
    rows: list[tuple[str, Records]]
    figures: list[dict[str, Any]]
