"""What a step did in the terms of the job's architecture of fault tolerance; see ``telemetry/stepping``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workbench.drivers.contract.step import Step, told
from workbench.elements import CheckpointBarrier, Element
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task

Lines = tuple[tuple[str, str], ...]


class Shown(NamedTuple):
    """A record as it is drawn.

    Attributes:
        values: by column.
        text: what is written on it; None: its last value.
        about: what the architecture knows of it, such as ``"root 3 of table[0]"``.
    """

    values: dict[str, Any]
    text: str | None = None
    about: str = ""


class Narrator:
    """Looks at a job before and after each step, and changes nothing; this one has nothing to add."""

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        """A turn begins: that of a task; None: that of the master, the writer or the clock."""

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        """Sentences about the step that has just been taken."""
        return ()

    def copied(self, task: Task, held: Lines, barrier: CheckpointBarrier | None) -> Lines:
        """What the snapshot that a task has just taken contains, given what it held then."""
        return held

    def overtaken(self, task: str, checkpoint_id: int) -> Lines:
        """What a task's snapshot for a checkpoint contains besides that: the records that barriers had overtaken."""
        return ()

    def element(self, element: Element) -> str:
        """An element in words."""
        return told(element)

    def record(self, row: dict[str, Any]) -> Shown:
        """A record as it is drawn."""
        return Shown(row)

    def about(self, channel: Channel) -> Iterable[str]:
        """What it knows of each record on a channel, the next one to be received first; empty: nothing."""
        return ()

    def beside(self, task: Task) -> Lines:
        """What the architecture keeps in a task, as (what, value) pairs."""
        return ()

    def facts(self, master: Master, execution: Execution | None) -> Lines:
        """What it keeps for the job as a whole."""
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


PLAIN = Narrator()
"""For architectures that move nothing but records and barriers."""


def at_offset(held: Lines, offset: int | None) -> Lines:
    """What a source holds, as of another offset; None: as it is.

    Example:
        >>> at_offset((("offset", "7"),), 5)
        (('offset', '5'),)
    """
    return held if offset is None else tuple((what, str(offset) if what == "offset" else value) for what, value in held)


def listed(things: Mapping[str, str], most: int) -> Lines:
    """The first entries of a table as pairs, and how many further ones there are.

    Example:
        >>> listed({"a": "1", "b": "2", "c": "3"}, 1)
        (('a', '1'), ('…', '2 more'))
    """
    pairs = tuple(things.items())
    return pairs if len(pairs) <= most else (*pairs[:most], ("…", f"{len(pairs) - most} more"))
