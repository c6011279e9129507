"""Whether a pipeline looks at the clock, so that batches without records must come, too."""

from __future__ import annotations

from typing import Any

from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.operators.event_time.watermarks import Bounded
from workbench.operators.joins.async_lookup import AsyncLookup
from workbench.operators.process.process import Process
from workbench.plan.physical import PhysicalGraph
from workbench.windows.schedule import Schedule


def is_clocked(graph: PhysicalGraph) -> bool:
    """Whether an operator or a source may act as processing time passes."""
    return any(
        _is_clocked(node.spec)
        or (
            node.watermarks is not None
            and (node.watermarks.idle_after_us is not None or not isinstance(node.watermarks.watermarks, Bounded))
        )
        for node in graph.logical.nodes
    )


def _is_clocked(spec: Any) -> bool:
    if isinstance(spec, Process | AsyncLookup):
        return True
    if isinstance(spec, AssignTimestamps):
        return spec.idle_after_us is not None or not isinstance(spec.watermarks, Bounded)
    if getattr(spec, "time", "event") == "processing":
        return True
    trigger = getattr(spec, "trigger", None)
    if not isinstance(trigger, Schedule):
        return trigger is not None
    return trigger.end == "processing" or (trigger.every_us is not None and trigger.every_in == "processing")
