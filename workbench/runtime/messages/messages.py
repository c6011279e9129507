"""The messages between tasks and the job's master: commands go to a task's mailbox, reports to the master's inbox.

Owners process messages between two steps, so a command needs no lock and never sees an unfinished step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.snapshots import SnapshotTaken
from workbench.runtime.messages.queries import Question
from workbench.runtime.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Trigger:
    """To a source: start this checkpoint."""

    barrier: CheckpointBarrier


@dataclass(frozen=True, slots=True)
class Complete:
    """To a task: the checkpoint is complete and durable; commit up to it."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Abort:
    """To a task: the checkpoint was aborted; stop aligning for it."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Apply:
    """To a task: these settings apply from now on."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Pause:
    """To a source: pause or resume reading."""

    paused: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """To a source: everything is committed; send the end."""


@dataclass(frozen=True, slots=True)
class Crash:
    """To a task: fail now, as if its code had raised."""


@dataclass(frozen=True, slots=True)
class Query:
    """To a task: report the content of an operator's state."""

    question: Question


@dataclass(frozen=True, slots=True)
class Release:
    """To a source: the batches up to this checkpoint may be processed."""

    checkpoint_id: int


Command = Trigger | Complete | Abort | Apply | Pause | Finish | Crash | Query | Release


@dataclass(frozen=True, slots=True)
class Collected:
    """From a source: its part of a batch, which is not processed before it is released.

    Attributes:
        start, end: records that it had read before the batch, and with it.
        counts: by split, how many of them.
        ended: it has read everything.
    """

    task: str
    checkpoint_id: int
    start: int
    end: int
    counts: Mapping[str, int]
    ended: bool


@dataclass(frozen=True, slots=True)
class Drained:
    """From a source: everything has been read and sent."""

    task: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """From a source: it waits for a checkpoint, which is taken as soon as possible."""

    task: str


@dataclass(frozen=True, slots=True)
class Finished:
    """From a task: the end of the input has passed through it."""

    task: str


@dataclass(frozen=True, slots=True)
class Failed:
    """From a driver: a task's step raised."""

    task: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Answered:
    """From a task: the result of a query, or the exception that it raised."""

    task: str
    question: Question
    found: object


Report = SnapshotTaken | Collected | Drained | Wanted | Finished | Failed | Answered
