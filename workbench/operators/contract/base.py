"""What an operator is: frozen data that describes it, and the small state machine that the data builds.

A *spec* is engine-neutral data: it knows its schema and can create its logic. The *logic* is passive: it is called with
one element at a time, never waits, never reads a clock, and keeps all that must survive in its snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from workbench.clock import Clock, SystemClock
from workbench.elements import Records
from workbench.from_json import Json as Json  # what snapshots hold beside tables
from workbench.operators.contract.event_times import EventTimes
from workbench.operators.contract.late_records import LateRecords
from workbench.state.key_groups import KEY_GROUPS_LEAST

if TYPE_CHECKING:
    from workbench.operators.contract.executor import Executor

Snapshot = dict[str, "pa.Table | Json"]
"""An operator's state by name: keyed state as Arrow tables, small things (offsets, watermarks) as JSON values."""


class CommittedTables(Protocol):
    """Where a sink that keeps its rows in the job commits them."""

    def declare(self, name: str, schema: pa.Schema, upsert: Sequence[str] = ()) -> None:
        """Make a table known; a known one keeps its rows."""
        ...

    def last_epoch(self, name: str, subtask: int | None = None) -> int:
        """The latest epoch of which rows are committed, by `subtask` or by any; 0 when there is none."""
        ...

    def commit(self, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        """Make the rows of one subtask and epoch visible; returns at once."""
        ...


class Output(Protocol):
    """Where an operator emits; the task behind it decides on buffers and channels."""

    def emit(self, records: Records) -> None:
        """Send records downstream; an empty batch is dropped."""
        ...

    def emit_side(self, tag: str, records: Records) -> None:
        """Send records to the side output `tag`; without a consumer they are dropped."""
        ...


class EventTimeOutput(Output, Protocol):
    """What an operator with ``tells_event_time`` gets instead."""

    def emit_watermark(self, watermark_us: int) -> None:
        """Let event time advance downstream, behind the records emitted so far; watermarks only grow."""
        ...

    def emit_idle(self, idle: bool) -> None:
        """Nothing comes for now, so that event time is not held back downstream; or something comes again."""
        ...


@dataclass(slots=True)
class Counters:
    """Counts that one operator owns and a sampler reads (plain integers, no lock)."""

    numRecordsIn: int = 0
    numRecordsOut: int = 0
    numLateRecordsDropped: int = 0
    numFiredTimers: int = 0
    numRecordsWithoutTimestamp: int = 0
    """Ours: records without an event time that reached an event-time operator and were dropped."""
    numRecordsInErrors: int = 0
    """Records that could not be processed and went to the side output for dead letters."""
    numRecordsInFolded: int = 0
    """Ours: how many more records came than the rows in `numRecordsIn`, because their sender aggregated some."""
    late: LateRecords = field(default_factory=LateRecords)
    """The last of those that were dropped as late."""
    event_times: EventTimes = field(default_factory=EventTimes)
    """Some of the event times that it has seen."""


def unknown_position(row: int) -> str | None:
    """Of rows of which nobody knows where they stand in their source: they have come through an exchange."""
    return None


@dataclass(slots=True)
class OperatorContext:
    """What the runtime hands to an operator or source reader when it opens.

    Attributes:
        job: name of the job.
        uid: the operator's stable identity.
        subtask, parallelism: index of this parallel instance, from 0, and their number.
        max_parallelism: number of key groups.
        clock: processing time.
        counters: to be updated by the operator for late records, timers and the like (the task counts in and out).
        attempt: from 0; grows with every restart.
        tables: where a TableSink commits its rows.
        data_dir: a folder of the job on disk for committed tables, or None when nothing is durable.
        executor: runs functions that may take long; None: they are called in the step itself.
        run: identity of this run of the job, the same for all its attempts; no two that are started share one.
        position: where a row of the batch that the operator is processing stands in its source, in the source's words
            (``data.csv, row 17``); None where that is not known. Asked while the batch is processed.
    """

    job: str = "job"
    uid: str = "operator"
    subtask: int = 0
    parallelism: int = 1
    max_parallelism: int = KEY_GROUPS_LEAST
    clock: Clock = field(default_factory=SystemClock)
    counters: Counters = field(default_factory=Counters)
    attempt: int = 0
    tables: CommittedTables | None = None
    data_dir: Path | None = None
    executor: Executor | None = None
    run: str = ""
    position: Callable[[int], str | None] = unknown_position


class Operator:
    """Base of all operator logic; every hook has a do-nothing default.

    Call order: ``open``, then ``restore`` (only after a recovery), then any number of ``process``, ``on_watermark``,
    ``on_time``, ``snapshot`` and ``notify_complete``; at the end ``close``. A watermark of MAX_TIME comes before the
    end of a bounded input, so windows fire there.
    """

    tells_event_time: bool = False
    """Whether the operator emits the watermarks behind it itself: then those that it gets end with it, and its `out` is
    an `EventTimeOutput`."""

    def open(self, context: OperatorContext) -> None:
        """Prepare; `context` stays valid until ``close``."""

    def process(self, records: Records, port: int, out: Output) -> None:
        """Handle a batch that came in on input `port` (0 for the first)."""
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        """Event time has advanced to `watermark_us`; the task forwards the watermark afterwards."""

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        """What feeds an operator with ``tells_event_time`` has fallen silent, or speaks again."""

    def parent_of(self, row: int) -> int | None:
        """Of the batch that it is emitting to its main output: which row of the batch that it is processing `row` came
        of; None where that is not known."""
        return None

    def ready(self) -> bool:
        """Whether it can take more input, barriers included; asked before each element where it is overridden.

        While it is not, its task takes nothing: so an operator that waits for something outside is backpressure.
        """
        return True

    def next_time_us(self) -> int | None:
        """The processing time at which ``on_time`` is wanted, or None."""
        return None

    def on_time(self, now_us: int, out: Output) -> None:
        """Processing time has reached ``next_time_us``."""

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        """A copy of the state as of now; a transactional sink pre-commits here."""
        return {}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Take over the snapshots of all former subtasks of this operator, which may have been more or fewer.

        Keyed state is taken by key group (see ``workbench.state.key_groups``), so that each key has one owner.
        """

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """What the state holds for a key (``{"origin": "JFK"}``), or None; reads, and changes nothing."""
        raise NotImplementedError(type(self).__name__)  # optional

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """How many keys the state of this subtask holds, and at most `limit` of them."""
        raise NotImplementedError(type(self).__name__)  # optional

    def notify_complete(self, checkpoint_id: int) -> None:
        """Checkpoint `checkpoint_id` is complete and durable: commit everything pre-committed up to it; idempotent."""

    def close(self) -> None:
        """Release resources; called once, also after a failure."""


class OperatorSpec(Protocol):
    """The frozen description of an operator: a dataclass with ``frozen=True``."""

    kind: ClassVar[str]
    """The operator's name in graphs, for example ``"filter"``."""

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The schema of the records that come out; raises a WorkbenchError when the inputs do not fit."""
        ...

    def describe(self) -> str:
        """One short line for the graph, for example ``dep_delay IS NOT NULL``."""
        ...

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        """New logic for one subtask."""
        ...


@runtime_checkable
class HasSideOutputs(Protocol):
    """A spec of an operator that also sends records to side outputs."""

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        """The schema of each side output by its tag."""
        ...


@runtime_checkable
class KeepsWindows(Protocol):
    """A spec whose state is that of windows, which windows of another layout cannot take over."""

    def windows_kept(self) -> str:
        """The layout, such as ``tumbling 1h``."""
        ...


@runtime_checkable
class ReadsColumns(Protocol):
    """A spec that knows which columns of its input it reads; the planner leaves the others out of the exchange."""

    def columns_read(self) -> frozenset[str] | None:
        """Names of input columns; None: all."""
        ...
