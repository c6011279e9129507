"""What a source and a sink are. Each says which guarantee it can keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records that a reader read from one of its splits (a replay channel, a file, a partition).

    Attributes:
        records: not empty.
        split: which split they came from; every split has its own watermark.
        dead_letters: what was read and is no record (columns of ``operators/functions/dead_letters.py``); `records` may
            then be empty.
        next_us: nothing more is due before this processing time; 0: there may be more at once.
        where: tells where row i of `records` stands, in words by which it can be found again (``data.csv, row 17``);
            rows and offsets count from 0, lines from 1. None: that is not known.
    """

    records: Records
    split: str
    dead_letters: Records | None = None
    next_us: int = 0
    where: Callable[[int], str] | None = None


def counted(place: str, first: int) -> Callable[[int], str]:
    """The `where` of consecutive rows.

    Args:
        place: what they are counted in, and how they are called, such as ``data.csv, row``.
        first: the number of the first.

    Example:
        >>> counted("data.csv, row", 10)(7)
        'data.csv, row 17'
    """
    return lambda row: f"{place} {first + row}"


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing is due before this processing time; `time_us` None means: until a command changes something."""

    time_us: int | None


@dataclass(frozen=True, slots=True)
class Exhausted:
    """All splits of this reader have been read to their end."""


class SourceReader(Protocol):
    """One subtask's share of a source: passive, never waits; what it has read is in its snapshot.

    Attributes:
        shares_event_time: its splits are parts of one sequence, so the largest event time seen counts for all of them;
            otherwise each split has its own.
    """

    shares_event_time: bool

    def open(self, context: OperatorContext) -> None:
        """Take over the splits of ``context.subtask`` of ``context.parallelism``."""
        ...

    def splits(self) -> Sequence[str]:
        """The splits that this reader still reads.

        What ``poll`` returns is of a split that was one of them before the call or is one after it. A reader that gives
        the same tuple again says that nothing has changed.
        """
        ...

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        """At most `max_records` records that are due now."""
        ...

    def snapshot(self) -> Snapshot:
        """The position of every split."""
        ...

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Continue from the positions in the snapshots of all former subtasks (called after ``open``)."""
        ...

    def close(self) -> None: ...


class Source(Protocol):
    """The frozen description of a source.

    Attributes:
        kind: name in graphs.
        schema: of its records, without the event timestamps, which travel beside them.
        event_time: the column that carries event time, or None.
        resettable: whether it can be read again from a position; otherwise recovery loses or repeats records.
    """

    kind: ClassVar[str]

    @property
    def resettable(self) -> bool: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def event_time(self) -> str | None: ...

    def describe(self) -> str: ...

    def create(self) -> SourceReader: ...


class Sink(Protocol):
    """The frozen description of a sink.

    The logic is an Operator that emits nothing. A transactional sink pre-commits in ``snapshot(checkpoint_id)`` and
    commits in ``notify_complete(checkpoint_id)``.
    """

    kind: ClassVar[str]

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def name(self) -> str: ...

    def check(self, schema: pa.Schema) -> None:
        """Refuse, with a WorkbenchError, what this sink cannot write; called when the graph is built."""
        ...

    def describe(self) -> str: ...

    def create(self, schema: pa.Schema) -> Operator: ...
