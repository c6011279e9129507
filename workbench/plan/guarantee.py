"""The guarantee of a whole pipeline: no stronger than that of its weakest source or sink."""

from __future__ import annotations

from typing import cast

from workbench.connectors.contract.base import Guarantee, Sink, Source
from workbench.errors import PlanError, SettingError, unknown
from workbench.plan.logical import LogicalGraph

STRENGTHS: tuple[Guarantee, ...] = ("at-most-once", "at-least-once", "exactly-once")
"""From the weakest to the strongest."""


def weakest_guarantee(graph: LogicalGraph) -> tuple[Guarantee, str]:
    """The guarantee of a job of this pipeline with checkpoints, and a sentence on what limits it.

    A source that cannot be read again from a position loses in-flight records in a failure, and one that polls can miss
    some without a failure; a sink that writes without
    waiting for a checkpoint writes rows again.

    Example:
        >>> import pyarrow as pa, workbench as wb
        >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.PrintSink())
        >>> weakest_guarantee(pipeline.logical_graph())[0]
        'at-least-once'
    """
    weakest: Guarantee = "exactly-once"
    reason = "every source can be read again from a position, and every sink commits with the checkpoints"
    for node in graph.nodes:
        uid = graph.uids[node]
        if node.role == "source" and (missing := getattr(node.spec, "may_miss", "")):
            found: Guarantee = "at-most-once"
            why = f"the source {uid!r} {missing}"
        elif node.role == "source" and not cast("Source", node.spec).resettable:
            found = "at-most-once"
            why = (
                f"the source {uid!r} cannot be read again from a position: what it delivered between the last"
                " checkpoint and a failure is lost"
            )
        elif node.role == "sink":
            sink = cast("Sink", node.spec)
            found = sink.guarantee
            why = f"the sink {uid!r} {sink.guarantee_reason or _REASONS[found]}"
        else:
            continue
        if STRENGTHS.index(found) < STRENGTHS.index(weakest):
            weakest, reason = found, why
    return weakest, reason


def check_guarantee(graph: LogicalGraph, wanted: str | None) -> None:
    """Reject a pipeline that cannot keep the requested guarantee; None requests none.

    Raises:
        SettingError: there is no such guarantee.
        PlanError: names the source or sink that cannot keep it.
    """
    if wanted is None:
        return
    if wanted not in STRENGTHS:
        raise SettingError(unknown("guarantee", wanted, STRENGTHS))
    found, reason = weakest_guarantee(graph)
    if STRENGTHS.index(found) < STRENGTHS.index(wanted):
        raise PlanError(f"the pipeline cannot keep {wanted}, only {found}: {reason}")


_REASONS: dict[Guarantee, str] = {
    "at-most-once": "does not rewrite rows that a failure lost",
    "at-least-once": "does not wait for checkpoints: what it wrote between the last one and a failure is written again",
    "exactly-once": "commits with the checkpoints",
}
