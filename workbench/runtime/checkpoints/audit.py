"""What a failure made a job count twice: nothing, unless its checkpoints were taken at least once.

A checkpoint that is taken at least once holds, in some tasks, the effect of records that came behind its barrier. A
job that goes on from it gets them again, because their senders go on from the barrier. Every task has counted them
with its snapshot, so the number is known exactly when the job is restored: it is that of records which reach a task a
second time, whatever they do to its state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from workbench.operators.contract.base import Snapshot
from workbench.runtime.exchange.in_flight import early_records


@dataclass(frozen=True, slots=True)
class CountedTwice:
    """Records that reach one task twice because the job went on from one checkpoint.

    Attributes:
        time_us: processing time of the restore.
    """

    time_us: int
    checkpoint_id: int
    task: str
    records: int


class Audit:
    """The restores of one job, as far as its present state counts something twice because of them.

    Attributes:
        found: oldest first; of several restores of a task from one checkpoint the last one, because each undoes what
            came of those before. So the sum is what is counted twice.
    """

    def __init__(self) -> None:
        self.found: tuple[CountedTwice, ...] = ()

    def restored(
        self, time_us: int, checkpoint_id: int, states: Iterable[Snapshot], only: Collection[str] | None = None
    ) -> int:
        """Tasks go on from a checkpoint; how many records it makes them count twice.

        Args:
            time_us: processing time.
            checkpoint_id: of the checkpoint.
            states: what it holds of the tasks themselves.
            only: the tasks that go on from it; None: all.
        """
        # What came of an earlier restore from here, or from later, is undone by this one.
        self.found = tuple(
            each
            for each in self.found
            if each.checkpoint_id < checkpoint_id or (only is not None and each.task not in only)
        )
        early = {task: n for task, n in early_records(states).items() if only is None or task in only}
        self.found += tuple(CountedTwice(time_us, checkpoint_id, task, n) for task, n in sorted(early.items()))
        return sum(early.values())
