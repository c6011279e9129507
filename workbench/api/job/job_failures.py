"""Failures on purpose: the method of `Job` that crashes its tasks, its TaskManagers or its coordinator."""

from __future__ import annotations

from workbench.api.job.job_handle import JobHandle
from workbench.arguments import true_or_false
from workbench.errors import JobError, unknown
from workbench.runtime.job.succession import fail_over


class JobFailures(JobHandle):
    """What can be made to fail; `Job` inherits it."""

    def fail(
        self,
        task: str | None = None,
        *,
        slot: str | None = None,
        taskmanager: str | None = None,
        coordinator: bool = False,
    ) -> None:
        """Make a part of the job fail; it recovers from its latest complete checkpoint, as its restart strategy says.

        Where the graph allows it only the region of the failed tasks restarts: the tasks that exchange records with
        them.

        Source: D1, F2-2, F2-7, F2-16.

        Args:
            task: an operator's subtask, ``"aggregate[1]"``, which crashes in its next step.
            slot: ``"tm-0/slot-1"``: all tasks of the slot die at once.
            taskmanager: ``"tm-1"``: all tasks in all its slots die at once.
            coordinator: the job's master with its checkpoint coordinator is thrown away, and all tasks die with it.
                Another one takes over: it knows the program, and finds the latest checkpoint where checkpoints are
                kept.

        Raises:
            JobError: the job has ended, there is no such task, slot or TaskManager, or not exactly one thing was named.
        """
        self._check_running()
        if [task, slot, taskmanager, true_or_false(coordinator, "coordinator") or None].count(None) != 3:
            raise JobError(
                "say what is to fail: a task, such as fail('aggregate[1]'), or fail(slot='tm-0/slot-1'), "
                "fail(taskmanager='tm-1'), or fail(coordinator=True)"
            )
        if task is not None:
            name = self._task_named(task)
            self._apply(lambda: self._master.crash(name))
        elif coordinator:
            self._apply(lambda: fail_over(self._master, self._driver, self._hand_over))
        else:
            place = str(slot or taskmanager)
            tasks = self._tasks_in("slot" if slot else "TaskManager", place)
            self._apply(lambda: self._master.lose(place, tasks))

    def _task_named(self, name: str) -> str:
        known = [task for vertex in self._master.graph.vertices for task in vertex.tasks]
        task = name if name in known else self._task_of_operator(name)
        if task is None:
            raise JobError(unknown("task", name, known))
        return task

    def _tasks_in(self, kind: str, place: str) -> list[str]:
        """The tasks of a slot or of a TaskManager."""
        found: dict[str, list[str]] = {}
        for slot, tasks in self._master.graph.placement.items():
            found.setdefault(slot if kind == "slot" else slot.partition("/")[0], []).extend(tasks)
        if place not in found:
            raise JobError(unknown(kind, place, found))
        return found[place]

    def _task_of_operator(self, name: str) -> str | None:
        """The task that runs a chained operator: ``"filter[0]"`` runs in ``"source[0]"``."""
        uid, bracket, index = name.partition("[")
        vertex = self._master.graph.vertex_of(uid)
        if vertex is None or not bracket or not index.rstrip("]").isdigit():
            return None
        return f"{vertex.name}[{index}" if int(index.rstrip("]")) < vertex.parallelism else None
