"""The executors of a cluster, as the driver knows them; the lost ones remain in its list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_DRIVER = "driver"
_OUT_OF_MEMORY = re.compile(r"exited with code 52\b")
_ON_PURPOSE = ("killed by driver", "decommission")


@dataclass(frozen=True, slots=True)
class ExecutorSeen:
    """One executor.

    Attributes:
        number: Spark's ID of it.
        host: where it runs.
        cores: tasks that it runs at once.
        failed_tasks: that it did not complete.
        lost: why it ended without being told to; empty: it has not.
        active: whether it runs.
    """

    number: str
    host: str
    cores: int
    failed_tasks: int
    lost: str
    active: bool

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether that is why it ended."""
        return _OUT_OF_MEMORY.search(self.lost) is not None

    @property
    def sentence(self) -> str:
        """What its loss means.

        Example:
            >>> ExecutorSeen("1", "localhost", 1, 2, "Command exited with code 137", False).sentence
            'executor 1 on localhost was lost (Command exited with code 137); its tasks run again'
            >>> ExecutorSeen("2", "localhost", 1, 2, "Command exited with code 52", False).sentence
            'executor 2 on localhost was lost (Command exited with code 52: it ran out of memory); its tasks run again'
        """
        why = f"{self.lost}: it ran out of memory" if self.ran_out_of_memory else self.lost
        return f"executor {self.number} on {self.host} was lost ({why}); its tasks run again"


def executors_of(session: Any) -> list[ExecutorSeen]:
    """The executors of a session's cluster; none where the driver itself runs the tasks.

    Args:
        session: of classic PySpark, or a streaming query.
    """
    java = getattr(session, "_jsparkSession", None)
    if java is None and (query := getattr(session, "_jsq", None)) is not None:
        java = query.sparkSession()
    if java is None or java.sparkContext().isLocal():
        return []
    told = java.sparkContext().statusStore().executorList(False)
    found = [_seen(told.apply(at)) for at in range(told.size())]
    return sorted((each for each in found if each.number != _DRIVER), key=lambda each: each.number)


def losses(executors: Iterable[ExecutorSeen]) -> list[str]:
    """A sentence for each executor that was lost.

    Example:
        >>> losses([ExecutorSeen("0", "localhost", 1, 0, "", True)])
        []
    """
    return [each.sentence for each in executors if each.lost]


def _seen(told: Any) -> ExecutorSeen:
    active, why = bool(told.isActive()), ""
    if not active:
        reason = told.removeReason()
        why = str(reason.get()) if reason.isDefined() else "Spark gives no reason"
        why = why.partition("\n")[0].rstrip(".")
        if any(word in why for word in _ON_PURPOSE):
            why = ""
    host = str(told.hostPort()).rpartition(":")[0]
    return ExecutorSeen(str(told.id()), host, int(told.totalCores()), int(told.failedTasks()), why, active)
