"""What a source and a sink are, and what a job asks them: the runtime knows no list of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

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

    @property
    def rows_read(self) -> int | None:
        """Rows that lie behind it, its offset; None: it does not count them."""
        return None

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

    def parts(self, uid: str) -> Mapping[str, SourceReader]:
        """The readers that it consists of, by the names under which their rates are tuned."""
        return {uid: self}


class Source:
    """Base of the frozen descriptions of sources; a subclass has a ``schema`` and overrides what differs.

    Attributes:
        kind: name in graphs.
        schema: of its records, without the event timestamps, which travel beside them.
        event_time: the column that carries event time, or None.
        resettable: whether it can be read again from a position; otherwise recovery loses or repeats records.
        replay: the part of it that replays a history at a pace which can be tuned (a `ReplaySource`); None: there is
            none.
    """

    kind: ClassVar[str] = "source"
    replay: Any = None

    if TYPE_CHECKING:  # properties here would be the defaults of a dataclass's fields

        @property
        def resettable(self) -> bool: ...

        @property
        def schema(self) -> pa.Schema: ...

        @property
        def event_time(self) -> str | None: ...

    else:
        resettable = True
        event_time = None

    def describe(self) -> str:
        """One line for graphs."""
        return self.kind

    def create(self) -> SourceReader:
        """The reader of one subtask."""
        raise NotImplementedError  # abstract


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sink writes. Two sinks of a job never write to one place.

    Attributes:
        path: a file or folder, absolute and with links resolved; None: within the job.
        table: in it; empty: the sink uses all of it.

    Example:
        >>> str(Place("/data/out.db", "delays")), str(Place(None, "delays"))
        ('/data/out.db: delays', 'delays')
    """

    path: str | None
    table: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.table) if part)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """The job that asks a sink.

    Attributes:
        job: its name.
        uid: of the sink.
        schema: of the rows.
        run: identity of this run of the job, as in ``OperatorContext``.
        directory: where its checkpoints are kept, as people may see it; empty: in memory.
        data_dir: as in ``OperatorContext``.
        lease: by which the job holds its checkpoint directory, if by one.
        ended: the lease that had ended when it took that directory.
        checkpoint: that is to be restored, in words; empty: none.
    """

    job: str
    uid: str
    schema: pa.Schema
    run: str = ""
    directory: str = ""
    data_dir: Path | None = None
    lease: str = ""
    ended: str = ""
    checkpoint: str = ""


class Held(Protocol):
    """A place that a job has for itself, from its start to its end."""

    def keep(self) -> None:
        """Called every few seconds while the job runs.

        Raises:
            SinkError: another job has taken the place.
        """
        ...

    def release(self) -> None:
        """Let another job have it; never raises."""
        ...


class Sink:
    """Base of the frozen descriptions of sinks; a subclass has a ``name`` and overrides what differs.

    The logic is an Operator that emits nothing. A transactional sink pre-commits in ``snapshot(checkpoint_id)`` and
    commits in ``notify_complete(checkpoint_id)``.

    Attributes:
        guarantee: what a failure cannot change.
        guarantee_reason: goes on where ``the sink 'name'`` leaves off; empty: what is usual for the guarantee.
        writes_outside: whether somebody outside of the job sees what it writes; otherwise a job can take steps again.
        upsert_key: columns by which a row takes the place of an earlier one; empty: it never does.
    """

    kind: ClassVar[str] = "sink"
    writes_outside: ClassVar[bool] = True
    upsert_key: Sequence[str] = ()

    if TYPE_CHECKING:  # a property here would be the default of a dataclass's field

        @property
        def name(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee:
        """What a failure cannot change: see `Guarantee`."""
        return "at-least-once"

    @property
    def guarantee_reason(self) -> str:
        """Why it is no more; empty: for the usual reason."""
        return ""

    def describe(self) -> str:
        """One line for graphs."""
        return self.name

    def create(self, schema: pa.Schema) -> Operator:
        """The logic of one subtask."""
        raise NotImplementedError  # abstract

    def check(self, schema: pa.Schema) -> None:
        """Refuse, with a WorkbenchError, what this sink cannot write; called when the graph is built."""

    def place(self) -> Place | None:
        """Where it writes; None: nowhere, or that is not known."""
        return None

    def hold(self, context: SinkContext) -> Held | None:
        """Take the place for a job that starts, so that no other job writes there meanwhile; None: nothing to hold.

        Raises:
            SinkError: another job writes there.
            PlanError: this job cannot have such a sink.
        """
        return None

    def check_fresh(self, context: SinkContext) -> None:
        """Refuse a job that starts afresh where the rows of another run lie.

        Raises:
            CommittedRowsError: they do.
        """

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Refuse a checkpoint that the sink could not restore, before the job is stopped for it.

        Args:
            context: names the checkpoint.
            snapshots: of all subtasks; at least one.

        Raises:
            CommittedRowsError: the sink has committed rows since.
            CheckpointError: the snapshots are damaged, or of other rows.
        """

    def committed(self) -> Iterable[object] | None:
        """What readers see now, in any order, for simulations; None: the sink cannot tell."""
        return None


def table_of(spec: object) -> str:
    """The table within the job that a sink commits to; empty: it commits to none, or is no sink.

    Example:
        >>> import workbench as wb
        >>> table_of(wb.TableSink("delays")), table_of(wb.DiscardSink())
        ('delays', '')
    """
    place = spec.place() if isinstance(spec, Sink) else None
    return place.table if place is not None and place.path is None else ""
