"""Identifies whose commits belong to a job's past, if several jobs commit under the same name.

Two jobs that start from the same savepoint number their epochs alike. So an epoch is identified not by its number
alone, but also by the run that committed it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.operators.contract.base import Json


@dataclass(frozen=True)
class Runs:
    """A run, and the earlier runs that it continues.

    Attributes:
        own: identifies the run; empty: not known, as in checkpoints of earlier versions.
        before: for each earlier run, the checkpoint up to which its epochs are this run's past.

    Example:
        >>> fork = Runs("first").gone_on("second", checkpoint_id=7)
        >>> fork.include("first", 7), fork.include("first", 8), fork.include("third", 1), fork.include("second", 9)
        (True, False, False, True)
    """

    own: str
    before: Mapping[str, int]

    def __init__(self, own: str, before: Mapping[str, int] | None = None) -> None:
        object.__setattr__(self, "own", own)
        object.__setattr__(self, "before", {} if before is None else dict(before))

    def include(self, run: str, epoch: int) -> bool:
        """Whether this epoch of that run belongs to this run or its past."""
        return run == self.own or epoch <= self.before.get(run, 0)

    def gone_on(self, run: str, checkpoint_id: int) -> Runs:
        """The run that continues from this one's checkpoint; the same one if an attempt follows another."""
        return self if run == self.own else Runs(run, {**self.before, self.own: checkpoint_id})

    def among(self, seen: Collection[str]) -> Runs:
        """Without the earlier runs that left no commits."""
        return Runs(self.own, {run: last for run, last in self.before.items() if run in seen})

    def to_json(self) -> Json:
        """As a piece of a snapshot."""
        return {"own": self.own, "before": dict(self.before)}

    @classmethod
    def together(cls, known: Sequence[Runs | None]) -> Runs:
        """The combined knowledge of the subtasks of one checkpoint; those of earlier versions have none."""
        told = [each for each in known if each is not None]
        before: dict[str, int] = {}
        for each in told:
            before |= each.before
        return cls(told[0].own if told else "", before)
