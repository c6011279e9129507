"""Faults as data: their kind, place and time.

A plan is drawn from a seed, so a failing seed reproduces its faults. The places are those of `crash_points`; the kinds
that can happen there are in `fault_names`.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal

from workbench.drivers.contract.probes import Point, Probe
from workbench.drivers.faults.crash_points import COORDINATOR, CrashPoints, FaultPoint
from workbench.drivers.faults.fault_names import FAULTS, NAMES, POINTS, Kind
from workbench.elements import Element
from workbench.errors import JobError, SettingError, unknown
from workbench.raised import EndedFromOutside
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution

_RARE: dict[FaultPoint, int] = {"step": 150, "process": 20, "source read": 12, "restore read": 4, "restart": 2}
_USUAL = 9
_MOST = 3
_RESTORED_ROWS: tuple[FaultPoint, str] = ("re-commit", COORDINATOR)
"""Committing what a restore finds pre-committed. Like the reading of state it happens before any task is stepped: a
crash there prevents the start."""
_ON_DISK: frozenset[FaultPoint] = frozenset(
    {"mid-file", "fsync", "rename", "folder sync", "metadata rename", "cleanup", "restart"}
)
_NEEDS_DISK: frozenset[Kind] = frozenset({"kill", "power", "full", "broken", "slow"})
_ERRORS: dict[Kind, int] = {"full": errno.ENOSPC, "broken": errno.EIO}
_SLOW_US = 60_000
_JUMP_US = 3_600_000_000


class Killed(EndedFromOutside):
    """The process is dead; the owner of the driver drops everything except the storage."""


class PowerFailed(Killed):
    """The machine has lost power: what was not synced is lost, too."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        point: its place.
        occurrence: which occurrence of the point, from 1, counted over all attempts and restarts.
        kind: of the fault.
        task: which task crashes if the point belongs to none, by its index modulo the number of tasks.
        owner: count only occurrences at this task; empty: all.
        follows: count only occurrences after the preceding fault of the plan.
    """

    point: FaultPoint
    occurrence: int
    kind: Kind
    task: int = 0
    owner: str = ""
    follows: bool = False

    def __str__(self) -> str:
        place = f" of {self.owner}" if self.owner else ""
        then = "then " if self.follows else ""
        return f"{then}{self.kind} at {self.point}{place} {self.occurrence}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one run.

    Example:
        >>> str(FaultPlan((Fault("metadata rename", 2, "kill"),)))
        'kill at metadata rename 2'
    """

    faults: tuple[Fault, ...] = ()

    @classmethod
    def draw(cls, chance: Random, *, kills: bool, only: Sequence[str] = ()) -> FaultPlan:
        """Draw between no fault (one, if certain faults are requested) and three faults.

        Args:
            kills: whether checkpoints are on a disk, so that they survive the process, and the disk can fail.
            only: names out of ``FAULTS``; empty for all.

        Raises:
            SettingError: no such fault.
        """
        points_of, kinds_at = _choices(tuple(only), kills)
        faults = []
        for _ in range(chance.randint(min(len(only), 1), _MOST) if kinds_at else 0):
            if only:  # each requested kind is equally likely, at however many places it can happen
                kind = chance.choice(sorted(points_of))
                point = chance.choice(points_of[kind])
            else:
                point = chance.choice(sorted(kinds_at))
                kind = chance.choice(kinds_at[point])
            occurrence = chance.randint(1, _RARE.get(point, _USUAL))
            faults.append(Fault(point, occurrence, kind, chance.randrange(16)))
        return cls(tuple(faults))

    def has(self, kind: Kind) -> bool:
        """Whether the plan has a fault of this kind.

        Example:
            >>> FaultPlan((Fault("metadata rename", 2, "kill"),)).has("power")
            False
        """
        return any(fault.kind == kind for fault in self.faults)

    def __str__(self) -> str:
        return ", ".join(map(str, self.faults)) or "no faults"


def faults_named(names: Sequence[str], *, on_disk: bool = True) -> list[tuple[FaultPoint, Kind]]:
    """The places and kinds of these names; places and kinds together mean those kinds at those places.

    Raises:
        SettingError: no such fault.

    Example:
        >>> faults_named(["mid-file", "no space"])
        [('mid-file', 'full')]
    """
    for name in names:
        if name not in FAULTS:
            raise SettingError(unknown("fault", name, FAULTS))
    points = {name for name in names if name in POINTS} or set(POINTS)
    kinds = {kind for name in names for kind in NAMES.get(name, ())} or {k for kinds in POINTS.values() for k in kinds}
    return [
        (point, kind)
        for point, possible in POINTS.items()
        for kind in possible
        if point in points and kind in kinds and (on_disk or (point not in _ON_DISK and kind not in _NEEDS_DISK))
    ]


@cache
def _choices(only: tuple[str, ...], kills: bool) -> tuple[dict[Kind, list[FaultPoint]], dict[FaultPoint, list[Kind]]]:
    """The places of each kind of fault, and the kinds at each place; cached, because every run of a search asks."""
    choices = faults_named(only, on_disk=kills)
    points_of: dict[Kind, list[FaultPoint]] = {}
    kinds_at: dict[FaultPoint, list[Kind]] = {}
    for point, kind in choices:
        points_of.setdefault(kind, []).append(point)
        kinds_at.setdefault(point, []).append(kind)
    return points_of, kinds_at


class FaultInjector(Probe):
    """Makes the faults of a plan happen.

    Args:
        plan: the faults.
        census: whether to keep counting when all faults have happened.

    Attributes:
        counts: how often each place was reached, by owner, and under an empty owner by all. Without a census, only
            places where a fault is pending are counted, while it is.
        crash: crashes a task, by index or name; set by the driver that runs the job.
        fail: crashes the coordinator, or the TaskManager of a task by its index; set by the driver.
        pass_time: advances the clock by some microseconds; set by the driver.
        in_task: whether a task is being stepped, so that an exception is that task's failure.
        fired: the faults that have happened.
    """

    def __init__(self, plan: FaultPlan, *, census: bool = False) -> None:
        self._waiting = [fault for fault in plan.faults if not fault.follows]
        self._followers = dict(zip(plan.faults, plan.faults[1:], strict=False))
        self._since: dict[Fault, int] = {}
        self._census = census
        self._await()
        self.counts: Counter[tuple[FaultPoint, str]] = Counter()
        self._places = CrashPoints(self.at, None if census else {fault.point for fault in plan.faults})
        self.points = self._places.points
        self.crash: Callable[[int | str], None] = lambda task: None
        self.fail: Callable[[Literal["machine", "coordinator"], int], None] = lambda kind, task: None
        self.pass_time: Callable[[int], None] = lambda us: None
        self.in_task = False
        self.fired: list[Fault] = []

    def attached(self, execution: Execution) -> None:
        self._places.attached(execution)

    def sent(self, channel: Channel, element: Element) -> None:
        if self._looks and self._places.sends:
            self._places.sent(channel, element)

    def received(self, channel: Channel, element: Element) -> None:
        if self._looks and self._places.receives:
            self._places.received(channel, element)

    def reached(self, point: Point, owner: str, number: int) -> None:
        if self._looks:
            self._places.reached(point, owner, number)

    def at(self, point: FaultPoint, owner: str) -> None:
        """Count the place, and cause the faults that are due there."""
        if point in self._awaited or self._census:
            for fault in self.due(point, owner):
                self._happen(fault, owner)

    def due(self, point: FaultPoint, owner: str) -> list[Fault]:
        """Count the place; returns the faults that are due there, which count as happened."""
        if point not in self._awaited and not self._census:
            return []
        counts = self.counts
        counts[point, ""] += 1
        if owner:
            counts[point, owner] += 1
        due = [
            fault
            for fault in self._waiting
            if fault.point == point
            and fault.owner in ("", owner)
            and fault.occurrence == counts[point, fault.owner] - self._since.get(fault, 0)
        ]
        for fault in due:
            self._waiting.remove(fault)
            self.fired.append(fault)
            follower = self._followers.get(fault)
            if follower is not None and follower.follows:
                self._since[follower] = counts[follower.point, follower.owner]
                self._waiting.append(follower)
        if due:
            self._await()
        return due

    def _await(self) -> None:
        """Update the counted places: those where a fault is pending; if there are none, nothing is observed."""
        self._awaited = frozenset(fault.point for fault in self._waiting)
        self._looks = bool(self._waiting) or self._census

    def _happen(self, fault: Fault, owner: str) -> None:
        match fault.kind:
            case "kill":
                raise Killed(str(fault))
            case "power":
                raise PowerFailed(str(fault))
            case "jump" | "slow":
                self.pass_time(_JUMP_US if fault.kind == "jump" else _SLOW_US)
            case "full" | "broken":
                raise OSError(_ERRORS[fault.kind], f"injected: {fault}")
            case "error":
                raise OSError(f"injected: {fault}")
            case "machine" | "coordinator":
                self.fail(fault.kind, fault.task)
            case _ if self.in_task or fault.point == "restore read" or (fault.point, owner) == _RESTORED_ROWS:
                raise JobError(f"injected: {fault}")
            case _:
                self.crash(fault.task if owner in ("", COORDINATOR) else owner)
