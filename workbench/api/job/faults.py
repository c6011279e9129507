"""Fault injection: crashes a part of a job, or slows it down."""

from __future__ import annotations

from collections.abc import Callable

from workbench.api.job.run import Run
from workbench.api.kept.journal import remembered
from workbench.arguments import true_or_false
from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import JobError, SettingError, unknown
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.job.succession import fail_over
from workbench.runtime.settings.settings import Settings

LONGEST_REST_US = 60_000_000


class Faults:
    """Faults that you inject into a running job; reached as ``job.faults``.

    Source: D1, F2-4; chaos engineering, Basiri et al. 2016.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": range(10)}), rate=5).sink_to(wb.TableSink("numbers"))
        >>> job = numbers.run("slowed", driver="stepping")
        >>> job.faults.slow_down("numbers", "5ms"); job.status()["slow_down"]
        'numbers:5ms'
        >>> job.faults.stall("numbers"); job.status()["stall"]
        'numbers'
        >>> job.faults.slow_down("numbers", "0ms"); job.faults.stall("numbers", False)
        >>> job.faults.fail(taskmanager="tm-0")
        >>> job.stepper.driver.run_until(lambda: job.over), job.table().num_rows
        (True, 10)
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @remembered("faults")
    def fail(
        self,
        task: str | None = None,
        *,
        slot: str | None = None,
        taskmanager: str | None = None,
        coordinator: bool = False,
    ) -> None:
        """Make a part of the job fail; it recovers from its latest complete checkpoint, following its restart strategy.

        If the graph allows it, only the region of the failed tasks restarts: the tasks that exchange records with them.

        Source: D1, F2-2, F2-7, F2-16.

        Args:
            task: an operator's subtask, ``"aggregate[1]"``, which crashes in its next step.
            slot: ``"tm-0/slot-1"``: all tasks of the slot die at once.
            taskmanager: ``"tm-1"``: all tasks in all its slots die at once.
            coordinator: the job's master with its checkpoint coordinator is discarded, and all tasks die with it.
                Another one takes over: it has the program, and finds the latest checkpoint in the storage.

        Raises:
            JobError: the job has ended, there is no such task, slot or TaskManager, or not exactly one thing was named.
        """
        run = self._run
        run.check_running()
        if [task, slot, taskmanager, true_or_false(coordinator, "coordinator") or None].count(None) != 3:
            raise JobError(
                "say what should fail: a task, such as fail('aggregate[1]'), or fail(slot='tm-0/slot-1'), "
                "fail(taskmanager='tm-1'), or fail(coordinator=True)"
            )
        if task is not None:
            name = _task_named(task, run.master.graph)
            run.apply(lambda master: master.crash(name))
        elif coordinator:
            run.apply(lambda master: fail_over(master, run.driver, run.hand_over))
        else:
            place = str(slot or taskmanager)
            tasks = _tasks_in("slot" if slot else "TaskManager", place, run.master.graph)
            run.apply(lambda master: master.lose(place, tasks))

    @remembered("faults")
    def slow_down(self, operator: str, by: Duration) -> None:
        """Make an operator's tasks rest after every buffer, as if its function were slower.

        Other tasks of the slot continue in the meantime. ``job.status()["slow_down"]`` shows the setting, which is kept
        over restarts.

        Source: F2-4.

        Args:
            operator: its uid; operators chained with it are slowed down too.
            by: time for each buffer, ``"5ms"``, at most a minute; ``"0ms"`` ends it.

        Raises:
            JobError: no such operator.
            SettingError: not a valid time.
        """
        uid = self._operator(operator)
        us = parse_duration(by, "slow_down")
        if us > LONGEST_REST_US:
            raise SettingError(
                f"slow_down is {by!r}: an operator rests at most {format_duration(LONGEST_REST_US)} for each buffer; "
                "stall it to have it take nothing"
            )
        self._change(lambda settings: settings.with_slowed(uid, us), f"slow_down {format_duration(us)} on {uid}")

    @remembered("faults")
    def stall(self, operator: str, stalled: bool = True) -> None:
        """Make an operator, such as a sink, take no records until ``stall(operator, False)``.

        Barriers behind its records wait too, so no aligned checkpoint completes in the meantime; an unaligned one does,
        because its barriers overtake records. Upstream tasks become back-pressured, up to the sources.

        Source: F2-4, D6.

        Args:
            operator: its uid; operators chained with it stall too.
            stalled: False ends it.

        Raises:
            JobError: no such operator.
        """
        uid = self._operator(operator)
        stalled = true_or_false(stalled, "stalled")
        word = "stalled" if stalled else "no longer stalled"
        self._change(lambda settings: settings.with_stalled(uid, stalled), f"{uid} is {word}")

    def __repr__(self) -> str:
        return f"<Faults of job {self._run.name!r}>"

    def _operator(self, name: str) -> str:
        self._run.check_running()
        known = [uid for vertex in self._run.master.graph.vertices for uid in vertex.uids]
        if name not in known:
            raise JobError(unknown("operator", name, known))
        return name

    def _change(self, change: Callable[[Settings], Settings], text: str) -> None:
        self._run.apply(lambda master: master.apply(change(master.settings), text))


def _task_named(name: str, graph: PhysicalGraph) -> str:
    """A task by its own name, or by that of an operator chained in it: ``"filter[0]"`` runs in ``"source[0]"``."""
    known = [task for vertex in graph.vertices for task in vertex.tasks]
    if name in known:
        return name
    uid, bracket, index = name.partition("[")
    vertex = graph.vertex_of(uid)
    place = index.rstrip("]")
    if vertex is None or not bracket or not place.isdigit() or int(place) >= vertex.parallelism:
        raise JobError(unknown("task", name, known))
    return f"{vertex.name}[{index}"


def _tasks_in(kind: str, place: str, graph: PhysicalGraph) -> list[str]:
    """The tasks of a slot or of a TaskManager."""
    found: dict[str, list[str]] = {}
    for slot, tasks in graph.placement.items():
        found.setdefault(slot if kind == "slot" else slot.partition("/")[0], []).extend(tasks)
    if place not in found:
        raise JobError(unknown(kind, place, found))
    return found[place]
