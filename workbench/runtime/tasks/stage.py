"""The interface of a driver for a job's master."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from workbench.runtime.messages.messages import Query
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task


class Stage(Protocol):
    """Steps the tasks of one attempt at a time."""

    def start(self, execution: Execution) -> None:
        """Step the tasks of this attempt from now on; some of them may have been stepped before."""

    def stop(self, execution: Execution) -> Collection[Task]:
        """Stop stepping them; when this returns, none of them is in a step.

        The tasks returned are an exception: the job is canceled, and their step has not ended in time. They are left
        behind, and nothing is stepped for this job any more.
        """

    def inspect(self, task: Task, query: Query) -> None:
        """Let a task answer a query between two of its steps."""

    def wake(self) -> None:
        """Wake the master: it has something to do."""
