"""Frames of the pending roots of sources, and of the tables of the ackers."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.runtime.job.master import Master
from workbench.runtime.tasks.acked_operator import AckerTask


@dataclass(frozen=True, slots=True)
class RootsFrame:
    """Counts of the roots of one source subtask since the job began; see `RootCounts` for the fields."""

    task: str
    emitted: int
    acked: int
    failed: int
    replayed: int
    replayed_records: int
    late: int
    abandoned: int
    pending: int
    waiting: int
    ages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AckerFrame:
    """One acker.

    Attributes:
        ages: roots in its table by bucket, the youngest first.
        completed: roots whose value became zero.
        forgotten: roots that timed out in its table.
    """

    task: str
    ages: tuple[int, ...]
    completed: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class AcksFrame:
    """The acknowledgements of a job.

    Attributes:
        vertex: id of the ackers' vertex.
        sources: a frame for each source subtask that has sent records.
        ackers: a frame for each acker.
    """

    vertex: str
    sources: tuple[RootsFrame, ...]
    ackers: tuple[AckerFrame, ...]

    def total(self, name: str) -> int:
        """The sum of one count over all sources.

        Example:
            >>> AcksFrame("v3", (), ()).total("pending")
            0
        """
        return sum(int(getattr(each, name)) for each in self.sources)


def acks_frame(master: Master) -> AcksFrame | None:
    """A frame of the acknowledgements; None if records are not acknowledged."""
    if not master.settings.ackers:
        return None
    sources = tuple(
        RootsFrame(
            task=task,
            emitted=counts.emitted,
            acked=counts.acked,
            failed=counts.failed,
            replayed=counts.replayed,
            replayed_records=counts.replayed_records,
            late=counts.late,
            abandoned=counts.abandoned,
            pending=counts.pending,
            waiting=counts.waiting,
            ages=counts.ages,
        )
        for task, counts in sorted(master.services.roots.items())
    )
    execution = master.execution
    ackers = tuple(
        AckerFrame(task.name, tuple(task.acker.pending.ages), task.acker.completed, task.acker.forgotten)
        for task in (() if execution is None else execution.tasks)
        if isinstance(task, AckerTask)
    )
    return AcksFrame(master.graph.vertices[-1].id, sources, ackers)
