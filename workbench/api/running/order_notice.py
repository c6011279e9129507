"""What a run says, once at its start, about an order of records that it does not keep."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from workbench.plan.arrival_order import unordered
from workbench.plan.logical import LogicalGraph


def tell_order(graph: LogicalGraph, settings: Mapping[str, object]) -> None:
    """Write a line to the error stream for each result that depends on an order that the replay does not keep.

    Args:
        graph: of the pipeline.
        settings: of the run, which has checked them.
    """
    parallelism = settings.get("parallelism", 1)
    for sentence in unordered(graph, parallelism if isinstance(parallelism, int) else 1):
        sys.stderr.write(f"workbench: {sentence}\n")
