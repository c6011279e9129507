"""The tasks in which each crash point must be reached, so that an enumeration knows what it has missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.drivers.faults.crash_points import COORDINATOR, CrashPoint
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.tasks.execution import Execution

Place = tuple[CrashPoint, str]
"""A crash point, and the task or coordinator that reaches it."""

ON_THE_WAY_BACK: frozenset[CrashPoint] = frozenset({"restore read", "re-commit", "in-flight replay"})
"""Points that are reached only after a failure; all others without one."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The tasks that can reach crash points.

    Attributes:
        tasks: all, by name.
        senders, receivers: those with channels to and from others.
        sinks: those that commit.
    """

    tasks: frozenset[str]
    senders: frozenset[str]
    receivers: frozenset[str]
    sinks: frozenset[str]

    @classmethod
    def of(cls, execution: Execution) -> Owners:
        """The tasks of an attempt."""
        last = {
            task.name
            for task in execution.tasks
            if any(not (link.children or link.edges or link.side_edges) for link in task.links)
        }
        return cls(
            frozenset(task.name for task in execution.tasks),
            frozenset(channel.source for channel in execution.channels),
            frozenset(channel.target for channel in execution.channels),
            frozenset(last),
        )


def required(owners: Owners, mode: str) -> dict[CrashPoint, frozenset[str]]:
    """The tasks that must reach each crash point; for "last acknowledge", which is random, any of them.

    Only unaligned checkpoints contain in-flight records. In a graph without channels no barriers travel.
    """
    coordinator = frozenset({COORDINATOR})
    table: dict[CrashPoint, frozenset[str]] = {
        "before trigger": coordinator,
        "after trigger": coordinator,
        "barrier emission": owners.senders,
        "first barrier": owners.receivers,
        "end of alignment": owners.receivers,
        "synchronous part": owners.tasks,
        "mid-file": owners.tasks,
        "fsync": owners.tasks,
        "rename": owners.tasks,
        "folder sync": owners.tasks | coordinator,
        "acknowledge": owners.tasks,
        "last acknowledge": owners.tasks,
        "metadata write": coordinator,
        "metadata rename": coordinator,
        "notify": owners.tasks,
        "pre-commit": owners.sinks,
        "commit": owners.sinks,
        "after commit": owners.sinks,
        "cleanup": coordinator,
        "restore read": owners.tasks,
        "in-flight replay": owners.senders if policy_of(mode).overtakes else frozenset(),
        "re-commit": owners.tasks | coordinator,
    }
    return {point: those for point, those in table.items() if those}


def missing(places: Iterable[Place], owners: Owners, mode: str) -> list[Place]:
    """The places that had to be reached, and were not."""
    reached: dict[CrashPoint, set[str]] = {}
    for point, owner in places:
        reached.setdefault(point, set()).add(owner)
    return [
        (point, owner)
        for point, those in required(owners, mode).items()
        for owner in sorted(those - reached.get(point, set()))
        if point != "last acknowledge" or point not in reached
    ]
