"""One attempt of a job: its tasks, slots and channels, and what all attempts share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from workbench.clock import Clock
from workbench.connectors.contract.rate import Rate
from workbench.connectors.replay.pace import Pace
from workbench.connectors.tables.tables import Tables
from workbench.errors import as_error
from workbench.operators.contract.base import Operator
from workbench.operators.contract.executor import Executor
from workbench.operators.functions.letter_log import LetterLog
from workbench.plan.physical import PhysicalGraph
from workbench.raised import PASSING
from workbench.runtime.acking.pending_roots import RootCounts
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.messages.messages import Command
from workbench.runtime.tasks.opening import Opening
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task


@dataclass(slots=True)
class Slot:
    """Runs one parallel slice: tasks stepped by the same thread."""

    name: str
    waker: Waker = field(default_factory=Waker)
    tasks: list[Task] = field(default_factory=list)


class Parts(Protocol):
    """Makes the parts of tasks that an architecture of fault tolerance replaces."""

    def sink(self, uid: str, operator: Operator) -> Operator:
        """A sink, given its operator."""

    def operator_task(self, **rest: Any) -> OperatorTask:
        """A task with inputs."""

    def source_task(self, **rest: Any) -> SourceTask:
        """A task that reads a source."""

    def counts(self, execution: Execution | None) -> dict[str, int]:
        """What it has counted, for the status of the job."""

    def end(self) -> None:
        """The job has ended, and everything that it was to write is written."""


@dataclass(frozen=True, slots=True)
class JobServices:
    """The services that all attempts of a job share.

    Attributes:
        job: its name.
        clock: processing time.
        tables: committed rows.
        data_dir: durable folder for committed tables, or None.
        paces: of the replay sources, by uid.
        rates: of the sources that have one, by uid; known after they were opened.
        seed: of its random exchanges.
        executor: runs slow user functions; None: they are called in the step itself.
        run: identifies this run; unique for each start.
        parts: what the run's architecture of fault tolerance replaces; None: nothing.
        roots: of the source subtasks, by task: what has become of their roots, if records are acknowledged.
        opening: the operator that is opened.
        letters: the last dead letters.
    """

    job: str
    clock: Clock
    tables: Tables
    data_dir: Path | None
    paces: dict[str, Pace]
    rates: dict[str, Rate] = field(default_factory=dict)
    seed: int = 0
    executor: Executor | None = None
    run: str = ""
    parts: Parts | None = None
    roots: dict[str, RootCounts] = field(default_factory=dict)
    opening: Opening = field(default_factory=Opening)
    letters: LetterLog = field(default_factory=LetterLog)


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt: its tasks, by slot, its channels, and those that lead from ackers back to sources."""

    number: int
    slots: tuple[Slot, ...]
    tasks: tuple[Task, ...]
    channels: tuple[Channel, ...]
    returns: tuple[Channel, ...] = ()

    @property
    def sources(self) -> list[SourceTask]:
        """The tasks that read sources."""
        return [task for task in self.tasks if isinstance(task, SourceTask)]

    def task(self, name: str) -> Task | None:
        """The task of that name."""
        return next((task for task in self.tasks if task.name == name), None)

    def tell(self, command: Command) -> None:
        """Post a command to every task."""
        for task in self.tasks:
            task.post(command)

    def tell_sources(self, command: Command) -> None:
        """Post a command to every source."""
        for source in self.sources:
            source.post(command)

    def close(self, left: Collection[Task] = ()) -> list[tuple[str, Exception]]:
        """Release the resources of every task except those that are `left` behind in a step, see `Stage.stop`; returns
        errors by the task's name."""
        failed = []
        for task in self.tasks:
            try:
                if task not in left:
                    task.close()
            except PASSING:
                raise
            except BaseException as error:  # noqa: BLE001  what cannot be closed must not keep the rest from it
                failed.append((task.name, as_error(error)))
        return failed

    def split(self, names: Collection[str]) -> tuple[Execution, Execution]:
        """Split into the tasks of these names with all of their channels, and the rest.

        The slots keep only the rest, so no thread may be stepping them.
        """
        gone, rest = (
            Execution(
                self.number,
                self.slots,
                tuple(task for task in self.tasks if (task.name in names) is member),
                tuple(c for c in self.channels if (c.source in names or c.target in names) is member),
                tuple(channel for channel in self.returns if (channel.source in names) is member),
            )
            for member in (True, False)
        )
        rest._occupy()
        return gone, rest

    def joined(self, later: Execution, graph: PhysicalGraph) -> Execution:
        """This attempt with tasks that were deployed later, on the same slots; no thread may be stepping these."""
        tasks = {task.name: task for task in (*self.tasks, *later.tasks)}
        order = [name for vertex in graph.vertices for name in vertex.tasks]
        channels = (*self.channels, *later.channels)
        both = Execution(
            later.number,
            self.slots,
            tuple(tasks[name] for name in order if name in tasks),
            tuple(channel for edge in graph.edges for channel in channels if channel.edge == edge.id),
            (*self.returns, *later.returns),
        )
        both._occupy()
        return both

    def _occupy(self) -> None:
        for slot in self.slots:
            slot.tasks[:] = [task for task in self.tasks if task.slot == slot.name]
