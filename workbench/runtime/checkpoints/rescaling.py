"""Going on at another parallelism: a checkpoint, a new plan, and on from there without losing the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.errors import JobError
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph

Done = Callable[[str | None], None]
"""Told once how it ended: None for well, or else the reason why the job goes on as it was."""


@dataclass(frozen=True, slots=True, eq=False)
class Rescale:
    """A wish to go on at another parallelism.

    The sources read nothing from this wish's checkpoint on, so no record is processed twice, and the attempt that
    follows takes its state by key group. Operators with a parallelism of their own keep it.

    Attributes:
        parallelism: of all operators that do not say otherwise.
        graph: the plan for it.
        done: told how it ended.
    """

    parallelism: int
    graph: PhysicalGraph
    done: Done


def check_rescalable(job: str, logical: LogicalGraph) -> None:
    """Refuse a job that cannot go on from a checkpoint.

    Raises:
        JobError: names the source.
    """
    for node, uid in logical.uids.items():
        if node.role == "source" and not node.spec.resettable:  # type: ignore[union-attr]
            raise JobError(
                f"the job {job!r} cannot be rescaled: its source {uid!r} cannot be read again from a position, so a "
                "new attempt would lose or repeat records; start it again with another parallelism"
            )
