"""Failures on purpose: the method of `Job` that crashes its tasks."""

from __future__ import annotations

from workbench.api.job_handle import JobHandle
from workbench.errors import JobError, unknown


class JobFailures(JobHandle):
    """What can be made to fail; `Job` inherits it."""

    def fail(self, task: str | None = None, *, taskmanager: str | None = None) -> None:
        """Crash a task, ``"aggregate[1]"``, or a TaskManager with all its tasks, ``taskmanager="tm-1"``.

        The job recovers from its latest complete checkpoint.

        Source: D1, F2-7.

        Args:
            task: an operator's subtask, ``"aggregate[1]"``.
            taskmanager: ``"tm-1"``: all its tasks die with it (F2-2).

        Raises:
            JobError: the job has ended, there is no such task or TaskManager, or not exactly one of them was named.
        """
        self._check_running()
        if (task is None) == (taskmanager is None):
            raise JobError("say what is to fail: a task, such as fail('aggregate[1]'), or fail(taskmanager='tm-1')")
        tasks = [self._task_named(task)] if task is not None else self._tasks_of(str(taskmanager))
        self._apply(lambda: self._master.crash(*tasks))

    def _task_named(self, name: str) -> str:
        known = [task for vertex in self._master.graph.vertices for task in vertex.tasks]
        task = name if name in known else self._task_of_operator(name)
        if task is None:
            raise JobError(unknown("task", name, known))
        return task

    def _tasks_of(self, taskmanager: str) -> list[str]:
        found: dict[str, list[str]] = {}
        for slot, tasks in self._master.graph.placement.items():
            found.setdefault(slot.partition("/")[0], []).extend(tasks)
        if taskmanager not in found:
            raise JobError(unknown("TaskManager", taskmanager, found))
        return found[taskmanager]

    def _task_of_operator(self, name: str) -> str | None:
        """The task that runs a chained operator: ``"filter[0]"`` runs in ``"source[0]"``."""
        uid, bracket, index = name.partition("[")
        vertex = self._master.graph.vertex_of(uid)
        if vertex is None or not bracket or not index.rstrip("]").isdigit():
            return None
        return f"{vertex.name}[{index}" if int(index.rstrip("]")) < vertex.parallelism else None
