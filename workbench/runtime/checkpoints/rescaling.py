"""Rescaling: take a checkpoint, make a new plan, and resume from there at another parallelism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.errors import JobError
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph

Done = Callable[[str | None], None]
"""Called once with the outcome: None for success, or the reason why the job continues unchanged."""


@dataclass(frozen=True, slots=True, eq=False)
class Rescale:
    """A request to resume at another parallelism.

    From this request's checkpoint on the sources read nothing, so no record is processed twice. The attempt that
    follows distributes the state by key group. Operators with an explicit parallelism keep it.

    Attributes:
        parallelism: of all operators without an explicit one.
        graph: the plan for it.
        done: called with the outcome.
    """

    parallelism: int
    graph: PhysicalGraph
    done: Done


def check_rescalable(job: str, logical: LogicalGraph) -> None:
    """Refuse a job that cannot resume from a checkpoint.

    Raises:
        JobError: names the source that prevents it.
    """
    for node, uid in logical.uids.items():
        if node.role == "source" and not node.spec.resettable:  # type: ignore[union-attr]
            raise JobError(
                f"the job {job!r} cannot be rescaled: its source {uid!r} cannot be read again from a position, so a "
                "new attempt would lose or repeat records; start it again with another parallelism"
            )
