"""What a driver does for a job's master."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from workbench.runtime.messages.messages import Query
from workbench.runtime.tasks.deployment import Execution
from workbench.runtime.tasks.task import Task


class Stage(Protocol):
    """Steps the tasks of one attempt at a time."""

    def start(self, execution: Execution) -> None:
        """Step the tasks of this attempt from now on; some of them may have been stepped before."""
        ...

    def stop(self, execution: Execution) -> Collection[Task]:
        """Step them no longer; when this returns, none of them is in a step.

        Those that it gives are, and are left behind: the job is canceled, and their step has not ended in time. Nothing
        is stepped for this job any more.
        """
        ...

    def inspect(self, task: Task, query: Query) -> None:
        """Have a task answer a query between two of its steps."""
        ...

    def wake(self) -> None:
        """The master has something to do."""
        ...
