"""Faults as data: which one happens where, and when (the crash points of the reliability tests).

A plan is drawn from a seed like everything else, so a failing seed brings its faults with it. ``crash`` makes a task
fail as ``job.fail`` does, ``error`` makes the code at that point raise (a user's function, a disk), and ``kill`` ends
the process: nothing that was in memory survives, and what was written does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from workbench.drivers.probes import Point, Probe
from workbench.errors import JobError

Kind = Literal["crash", "error", "kill"]
FaultPoint = Point | Literal["step"]

POINTS: dict[FaultPoint, tuple[Kind, ...]] = {
    "step": ("crash", "kill"),
    "process": ("crash", "error", "kill"),
    "snapshot begins": ("crash", "error", "kill"),
    "snapshot ends": ("crash", "kill"),
    "commit begins": ("crash", "kill"),
    "commit ends": ("crash", "kill"),
    "rows begin": ("kill",),
    "rows end": ("kill",),
    "state write begins": ("crash", "error", "kill"),
    "state write ends": ("crash", "error", "kill"),
    "manifest write begins": ("crash", "error", "kill"),
    "manifest write ends": ("crash", "kill"),
    "state read": ("kill",),
}
"""Where faults can happen, and which ones can be survived there."""

_RARE: dict[FaultPoint, int] = {"step": 400, "process": 60, "state read": 6}
_USUAL = 12
_IN_WRITER = ("state write begins", "state write ends", "manifest write begins", "manifest write ends")


class Killed(BaseException):
    """The process is no more; whoever holds the driver drops everything but the storage."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        point: where; ``"step"`` is between any two steps.
        occurrence: the how manieth time that the point is reached, from 1, over all attempts and restarts.
        kind: what happens.
        task: which task crashes where the point lies in none, by its index modulo the number of tasks.
    """

    point: FaultPoint
    occurrence: int
    kind: Kind
    task: int = 0

    def __str__(self) -> str:
        return f"{self.kind} at {self.point} {self.occurrence}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one run.

    Example:
        >>> str(FaultPlan((Fault("manifest write ends", 2, "kill"),)))
        'kill at manifest write ends 2'
    """

    faults: tuple[Fault, ...] = ()

    @classmethod
    def draw(cls, chance: Random, *, kills: bool, most: int = 3) -> FaultPlan:
        """Between no fault and `most`, without kills where nothing would survive them."""
        faults = []
        for _ in range(chance.randint(0, most)):
            point = chance.choice([point for point, kinds in POINTS.items() if kills or kinds != ("kill",)])
            kind = chance.choice([kind for kind in POINTS[point] if kills or kind != "kill"])
            occurrence = chance.randint(1, _RARE.get(point, _USUAL))
            faults.append(Fault(point, occurrence, kind, chance.randrange(16)))
        return cls(tuple(faults))

    def __str__(self) -> str:
        return ", ".join(map(str, self.faults)) or "no faults"


class FaultInjector(Probe):
    """Makes the faults of a plan happen.

    Attributes:
        crash: posts the crash of a task, by index; set by the driver that runs the job.
        fired: the faults that have happened.
    """

    def __init__(self, plan: FaultPlan) -> None:
        self._waiting = list(plan.faults)
        self._counts: Counter[FaultPoint] = Counter()
        self.crash: Callable[[int], None] = lambda task: None
        self.fired: list[Fault] = []

    def reached(self, point: FaultPoint, owner: str, number: int) -> None:
        """Count the point, and let what is due there happen."""
        if not self._waiting:
            return
        self._counts[point] += 1
        for fault in [f for f in self._waiting if f.point == point and f.occurrence == self._counts[point]]:
            self._waiting.remove(fault)
            self.fired.append(fault)
            self._happen(fault)

    def _happen(self, fault: Fault) -> None:
        if fault.kind == "kill":
            raise Killed(str(fault))
        if fault.kind == "error":
            raise OSError(f"injected: {fault}")
        if fault.point == "step" or fault.point in _IN_WRITER:
            self.crash(fault.task)
        else:
            raise JobError(f"injected: {fault}")
