"""The base classes of sources and sinks, and the methods with which a job checks them: the runtime does not list
connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import PlanError
from workbench.operators.contract.base import Operator, OperatorContext, OperatorSpec, Snapshot
from workbench.operators.contract.outage import Outage

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records that a reader has read from one of its splits (a replay channel, a file, a partition).

    Attributes:
        records: not empty.
        split: their split; every split has its own watermark.
        dead_letters: input that is not a record (columns of ``operators/functions/dead_letters.py``); `records` may
            then be empty.
        next_us: no record is due before this processing time; 0: more can be available now.
        where: describes the position of row i of `records` (``data.csv, row 17``); rows and offsets count from 0, lines
            from 1. None: unknown.
        due_us: when the first and the last of `records` were due, processing times, for a reader with a schedule:
            latency counts from then on, however late the source gets to read. None: it counts from when they are read.
    """

    records: Records
    split: str
    dead_letters: Records | None = None
    next_us: int = 0
    where: Callable[[int], str] | None = None
    due_us: tuple[int, int] | None = None


def counted(place: str, first: int) -> Callable[[int], str]:
    """The `where` of consecutive rows.

    Args:
        place: the place and unit that are counted, such as ``data.csv, row``.
        first: the number of the first row.

    Example:
        >>> counted("data.csv, row", 10)(7)
        'data.csv, row 17'
    """
    return lambda row: f"{place} {first + row}"


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing is due before this processing time; `time_us` None means: until a command arrives."""

    time_us: int | None


@dataclass(frozen=True, slots=True)
class Exhausted:
    """All splits of this reader have been read to their end."""


@dataclass(frozen=True, slots=True)
class SplitProgress:
    """The progress of a reader in one of its splits, for displays.

    Attributes:
        position: the position in the source's format: an offset, an ID.
        lag: the number of available records that are not read yet; None: unknown.
        told_us: processing time when the server told what `lag` is counted from, or `kept_bytes`; None: they are always
            up to date.
        kept_bytes: of its log that the server keeps until a checkpoint confirms that the reader no longer needs them;
            None: the server keeps all of it in any case, or it is unknown.
        kept_state: how the server calls their state, such as ``reserved`` or ``lost``.
        kept_safe: the number of bytes that may be written before the server removes what the reader needs; None:
            without limit.
    """

    position: str
    lag: int | None = None
    told_us: int | None = None
    kept_bytes: int | None = None
    kept_state: str = ""
    kept_safe: int | None = None


class SourceReader(Protocol):
    """One subtask's share of a source: passive, never waits; its snapshot contains what it has read.

    Attributes:
        shares_event_time: its splits are parts of one sequence, so the largest event time seen applies to all of them;
            otherwise each split has its own.
    """

    shares_event_time: bool

    @property
    def rows_read(self) -> int | None:
        """The number of rows read so far, its offset; None: it does not count them."""
        return None

    @property
    def outage(self) -> Outage | None:
        """The lost connection to its server, with the time of the next attempt; None if it is connected."""
        return None

    def progress(self) -> Mapping[str, SplitProgress]:
        """How far it has come in each split; empty: it does not tell. Called by another thread
        than the rest, so it only looks at what the reader knows."""
        return {}

    def open(self, context: OperatorContext) -> None:
        """Acquire the splits of ``context.subtask`` of ``context.parallelism``."""

    def splits(self) -> Sequence[str]:
        """The splits that this reader still reads.

        The split of a result of ``poll`` was one of them before the call or is one after it. A reader that returns the
        same tuple object again says that nothing has changed.
        """

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        """At most `max_records` records that are due now."""

    def snapshot(self) -> Snapshot:
        """The state: the position of every split."""

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Continue from the positions in the snapshots of all former subtasks (called after ``open``)."""

    def complete(self, snapshot: Snapshot) -> None:
        """No position before that of this snapshot is restored any more, except from savepoints: a server need not
        keep what comes before it."""
        return

    def hold_back(self, waits: bool) -> None:
        """Whether records that would be others if they were read again wait until a checkpoint contains them; they do
        not until this is called. A reader that does so also has `complete`."""
        return

    def durable(self, snapshot: Snapshot) -> None:
        """A checkpoint with this snapshot is complete: what it contains is not read again after a failure. Tables are
        left out of the snapshot."""
        return

    @property
    def wants_checkpoint(self) -> bool:
        """Whether it can do nothing before a checkpoint is complete."""
        return False

    def keep(self, checkpoint_id: int) -> None:
        """The snapshot that it took last belongs to a savepoint, which may be restored at any time later."""
        return

    def give_up(self, checkpoint_id: int) -> None:
        """The savepoint was aborted: what `keep` kept for it is not needed."""
        return

    def forget(self, checkpoint_id: int) -> None:
        """A savepoint was deleted: remove what `keep` kept for it, if the server answers; of a reader that was never
        opened, and waits."""
        return

    def close(self) -> None: ...

    def parts(self, uid: str) -> Mapping[str, SourceReader]:
        """Its component readers, by the names under which their rates are tuned."""
        return {uid: self}


class Source:
    """Base of the frozen descriptions of sources; a subclass has a ``schema`` and overrides what differs.

    Attributes:
        kind: name in graphs.
        schema: of its records, without the event timestamps, which are separate.
        event_time: the event-time column, or None.
        resettable: whether it can be read again from a position; otherwise recovery loses or repeats records.
        may_miss: why it can miss records even without a failure, as the end of a sentence; empty: it misses none.
        replay: its part that replays a history at a tunable pace (a `ReplaySource`); None: there is none.
        keeps_savepoints: its readers keep something for each savepoint: see `SourceReader.keep`.
        changelog_key: the columns that identify a row, if its records are changes: its schema then has the column
            ``$kind`` (``FIELD`` in ``operators/changelogs/row_kinds.py``), and one subtask reads all changes of a key
            in order. Empty: changes, but no columns identify a row. None: its records are only added.
        bounded: whether it comes to an end by itself; may be left out if it does. A script waits at its end for jobs
            whose sources do.
        completed_by: the operator that directly follows it, and without which its records are no stream for users; both
            run in one subtask. None: there is none.
    """

    kind: ClassVar[str] = "source"
    may_miss: ClassVar[str] = ""
    keeps_savepoints: ClassVar[bool] = False
    replay: Any = None

    if TYPE_CHECKING:  # properties here would become the defaults of a dataclass's fields

        @property
        def resettable(self) -> bool: ...

        @property
        def schema(self) -> pa.Schema: ...

        @property
        def event_time(self) -> str | None: ...

        @property
        def changelog_key(self) -> tuple[str, ...] | None: ...

        @property
        def completed_by(self) -> OperatorSpec | None: ...

    else:
        resettable = True
        completed_by = None
        event_time = None
        changelog_key = None

    def describe(self) -> str:
        """One line for the graph."""
        return self.kind

    def create(self) -> SourceReader:
        """Create the reader of one subtask."""
        raise NotImplementedError  # abstract


@dataclass(frozen=True, slots=True)
class Place:
    """The place that a sink writes to. Two sinks of a job never write to the same place.

    Attributes:
        path: a file or folder, absolute and with links resolved; None: within the job.
        table: the table in it; empty: the sink uses all of it.

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
    """The job that calls a sink.

    Attributes:
        job: its name.
        uid: of the sink.
        schema: of the rows.
        run: identifies this run of the job, as in ``OperatorContext``.
        directory: of its checkpoints, with secrets masked; empty: in memory.
        data_dir: as in ``OperatorContext``.
        lease: the lease by which the job owns its checkpoint directory, if any.
        ended: the expired lease that it replaced when it acquired that directory.
        checkpoint: description of the checkpoint to restore; empty: none.
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
    """A place that a job owns while it runs."""

    def keep(self) -> None:
        """Called every few seconds while the job runs.

        Raises:
            SinkError: another job has taken the place.
        """

    def release(self) -> None:
        """Release the place; never raises."""


class Sink:
    """Base of the frozen descriptions of sinks; a subclass has a ``name`` and overrides what differs.

    Its operator emits nothing. A transactional sink pre-commits in ``snapshot(checkpoint_id)`` and commits in
    ``notify_complete(checkpoint_id)``.

    Attributes:
        guarantee: what a failure cannot change.
        guarantee_reason: continues a sentence that begins with ``the sink 'name'``; empty: the usual reason.
        writes_outside: whether its output is visible outside of the job; otherwise a job can repeat steps.
        upsert_key: columns by which a row replaces an earlier one; empty: rows are only added.
    """

    kind: ClassVar[str] = "sink"
    writes_outside: ClassVar[bool] = True
    upsert_key: Sequence[str] = ()

    if TYPE_CHECKING:  # a property here would become the default of a dataclass's field

        @property
        def name(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee:
        """The results that a failure cannot change: see `Guarantee`."""
        return "at-least-once"

    @property
    def guarantee_reason(self) -> str:
        """Why the guarantee is not stronger; empty: the usual reason."""
        return ""

    def describe(self) -> str:
        """One line for the graph."""
        return self.name

    def create(self, schema: pa.Schema) -> Operator:
        """Create the operator of one subtask."""
        raise NotImplementedError  # abstract

    def check(self, schema: pa.Schema) -> None:
        """Reject, with a WorkbenchError, rows that this sink cannot write; called when the graph is built."""

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> Sink:
        """The sink of a changelog, whose rows replace and remove earlier ones (``operators/changelogs``).

        Args:
            key: the columns that identify a row, whose changes arrive in order; None: rows have no such columns.
            schema: of the changes.

        Raises:
            PlanError: the sink cannot replace rows, or not by this key.
        """
        raise PlanError(
            f"the sink {getattr(self, 'name', self.kind)!r} only adds rows, but results change with later records: use "
            "a TableSink, an SqlSink or RedisSink with a key, or a CallbackSink, or aggregate in a window"
        )

    def place(self) -> Place | None:
        """The place that it writes to; None if there is none, or it is unknown."""
        return None

    def hold(self, context: SinkContext) -> Held | None:
        """Acquire the place for a job that starts, so that no other job writes to it; None: nothing to acquire.

        Raises:
            SinkError: another job writes to it.
            PlanError: this job cannot have such a sink.
        """
        return None

    def check_fresh(self, context: SinkContext) -> None:
        """Reject a start without a checkpoint if the place holds rows of another run.

        Raises:
            CommittedRowsError: it does.
        """

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Reject a checkpoint that the sink could not restore, before the job is stopped to restore it.

        Args:
            context: names the checkpoint.
            snapshots: of all subtasks; at least one.

        Raises:
            CommittedRowsError: the sink has committed rows since that checkpoint.
            CheckpointError: the snapshots are damaged, or of other rows.
        """

    def committed(self) -> Iterable[object] | None:
        """The rows that readers see now, in any order, for simulations; None if unknown."""
        return None


def table_of(spec: object) -> str:
    """The table within the job that a sink commits to; empty: none, or not a sink.

    Example:
        >>> import workbench as wb
        >>> table_of(wb.TableSink("delays")), table_of(wb.DiscardSink())
        ('delays', '')
    """
    place = spec.place() if isinstance(spec, Sink) else None
    return place.table if place is not None and place.path is None else ""
