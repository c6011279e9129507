"""Which runs' commits belong to a job's past, where others may commit under the same name.

Two jobs that begin with the same savepoint number their epochs alike. So the number of an epoch does not tell whose
rows it holds; the run that committed it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.operators.contract.base import Json


@dataclass(frozen=True)
class Runs:
    """A run, and the earlier ones that it goes on from.

    Attributes:
        own: identity of the run; empty: not known, as of checkpoints that earlier versions wrote.
        before: of each earlier run the checkpoint up to which its epochs are this run's past.

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
        """Whether this epoch of that run is this run's or its past."""
        return run == self.own or epoch <= self.before.get(run, 0)

    def gone_on(self, run: str, checkpoint_id: int) -> Runs:
        """The run that goes on from this one's checkpoint; the same one where an attempt follows another."""
        return self if run == self.own else Runs(run, {**self.before, self.own: checkpoint_id})

    def among(self, seen: Collection[str]) -> Runs:
        """Without the earlier runs that nothing is seen of any more."""
        return Runs(self.own, {run: last for run, last in self.before.items() if run in seen})

    def to_json(self) -> Json:
        """As a piece of a snapshot."""
        return {"own": self.own, "before": dict(self.before)}

    @classmethod
    def together(cls, known: Sequence[Runs | None]) -> Runs:
        """What the subtasks of one checkpoint knew together; those of earlier versions know nothing."""
        told = [each for each in known if each is not None]
        before: dict[str, int] = {}
        for each in told:
            before |= each.before
        return cls(told[0].own if told else "", before)
