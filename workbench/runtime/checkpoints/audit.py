"""Counts what a job processed twice because of failures: nothing, except with at-least-once checkpoints.

In an at-least-once checkpoint, the state of some tasks includes the effect of records behind the barrier. A
job that resumes from it receives these records again, because their senders resume from the barrier. Each task counts
them with its snapshot, so the exact number is known when the job is restored. It is the number of records that reach a
task a second time, whatever they do to its state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from workbench.operators.contract.base import Snapshot
from workbench.runtime.exchange.in_flight import early_records


@dataclass(frozen=True, slots=True)
class CountedTwice:
    """Records that reach one task twice because the job resumed from one checkpoint.

    Attributes:
        time_us: processing time of the restore.
    """

    time_us: int
    checkpoint_id: int
    task: str
    records: int


class Audit:
    """The restores of one job that make its present state count something twice.

    Attributes:
        found: oldest first; of several restores of a task from one checkpoint only the last one, because each restore
            undoes the effects of those before. So the sum is what is counted twice.
    """

    def __init__(self) -> None:
        self.found: tuple[CountedTwice, ...] = ()

    def restored(
        self, time_us: int, checkpoint_id: int, states: Iterable[Snapshot], only: Collection[str] | None = None
    ) -> int:
        """Tasks resume from a checkpoint; returns how many records they count twice because of it.

        Args:
            time_us: processing time.
            checkpoint_id: of the checkpoint.
            states: what it holds about the tasks themselves.
            only: the tasks that resume from it; None: all.
        """
        # This restore undoes the effects of earlier restores from this checkpoint or later ones.
        self.found = tuple(
            each
            for each in self.found
            if each.checkpoint_id < checkpoint_id or (only is not None and each.task not in only)
        )
        early = {task: n for task, n in early_records(states).items() if only is None or task in only}
        self.found += tuple(CountedTwice(time_us, checkpoint_id, task, n) for task, n in sorted(early.items()))
        return sum(early.values())
