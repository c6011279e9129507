"""The definition of an operator: a frozen description, and the small state machine that it creates.

A *spec* is engine-neutral data: it knows its schema and can create its logic. The *logic* is passive: it is called with
one element at a time, never waits, never reads a clock, and puts everything that must survive into its snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from workbench.clock import Clock, SystemClock
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Mask, Records
from workbench.from_json import Json as Json  # what snapshots hold beside tables
from workbench.operators.contract.event_times import EventTimes
from workbench.operators.contract.late_records import LateRecords
from workbench.operators.contract.outage import Outage
from workbench.state.key_groups import KEY_GROUPS_LEAST

if TYPE_CHECKING:
    from workbench.operators.contract.executor import Executor

Snapshot = dict[str, "pa.Table | Json"]
"""An operator's state by name: keyed state as Arrow tables, small things (offsets, watermarks) as JSON values."""


class CommittedTables(Protocol):
    """The store of committed rows for a sink that keeps its rows in the job."""

    def declare(self, name: str, schema: pa.Schema, upsert: Sequence[str] = ()) -> None:
        """Register a table; a table that exists keeps its rows."""

    def last_epoch(self, name: str, subtask: int | None = None) -> int:
        """The latest epoch with committed rows, of `subtask` or of any; 0 when there is none."""

    def commit(self, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        """Make the rows of one subtask and epoch visible; returns at once."""


class Output(Protocol):
    """Receives what an operator emits; the task behind it handles buffers and channels."""

    def emit(self, records: Records) -> None:
        """Send records downstream; an empty batch is dropped."""

    def emit_side(self, tag: str, records: Records) -> None:
        """Send records to the side output `tag`; without a consumer they are dropped."""


class EventTimeOutput(Output, Protocol):
    """The output of an operator with ``tells_event_time``."""

    def emit_watermark(self, watermark_us: int) -> None:
        """Advance event time downstream, behind the records emitted so far; watermarks only grow."""

    def emit_idle(self, idle: bool) -> None:
        """Declare that no records come for now, so that event time is not held back downstream, or that they come
        again."""


@dataclass(slots=True)
class Counters:
    """Counters that one operator writes and a sampler reads (plain integers, no lock)."""

    numRecordsIn: int = 0
    numRecordsOut: int = 0
    numLateRecordsDropped: int = 0
    numFiredTimers: int = 0
    numRecordsWithoutTimestamp: int = 0
    """Not in Flink: records without an event time that reached an event-time operator and were dropped."""
    numRecordsInErrors: int = 0
    """Records that could not be processed and went to the side output for dead letters."""
    numRecordsInFolded: int = 0
    """Not in Flink: how many more records were received than the rows in `numRecordsIn`, because their sender
    aggregated some."""
    late: LateRecords = field(default_factory=LateRecords)
    """The last records that were dropped as late."""
    event_times: EventTimes = field(default_factory=EventTimes)
    """A sample of the event times that the operator has received."""

    def on_time(self, records: Records, watermark_us: int, keys: Sequence[str]) -> Records:
        """Count the records that are late or have no event time, and return the others.

        Args:
            records: with event times.
            watermark_us: records up to it are late.
            keys: the columns of the key.
        """
        chosen = self.which_on_time(records, watermark_us, keys)
        return records if chosen is None else records.where(chosen)

    def which_on_time(self, records: Records, watermark_us: int, keys: Sequence[str]) -> Mask | None:
        """As `on_time`; returns which records are on time, shape (n,), or None if all are."""
        times = records.timestamps
        assert times is not None
        if int(times.min(initial=MAX_TIME)) > watermark_us:  # NO_TIME is before every watermark
            return None
        chosen = times > watermark_us
        timeless = times == NO_TIME
        late = ~(chosen | timeless)
        self.numRecordsWithoutTimestamp += int(np.count_nonzero(timeless))
        self.numLateRecordsDropped += int(np.count_nonzero(late))
        self.late.note(records.batch, times, late, watermark_us, keys)
        return chosen


def unknown_position(row: int) -> str | None:
    """The position of rows after an exchange: not known."""
    return None


@dataclass(slots=True)
class OperatorContext:
    """The services that the runtime passes to an operator or source reader when it opens.

    Attributes:
        job: name of the job.
        uid: the operator's stable identity.
        subtask, parallelism: index of this parallel instance, from 0, and their number.
        max_parallelism: number of key groups.
        clock: processing time.
        counters: the operator updates those for late records, timers and the like (the task counts input and output).
        attempt: from 0; grows with every restart.
        tables: where a TableSink commits its rows.
        data_dir: a folder of the job on disk for committed tables, or None when nothing is durable.
        executor: runs functions that may take long; None: they are called in the step itself.
        run: identifies this run of the job, the same for all its attempts and unique for each start.
        position: returns the position in the source of a row of the batch that is being processed, in the source's
            terms (``data.csv, row 17``), or None where it is not known. May only be called while the batch is
            processed.
        goes_back: whether a recovery goes back to a checkpoint as a whole, so that all records behind it come again.
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
    goes_back: bool = True


class Operator:
    """Base of all operator logic; every hook has a do-nothing default.

    Call order: ``open``, then ``restore`` (only after a recovery), then any number of ``process``, ``on_watermark``,
    ``on_time``, ``snapshot`` and ``notify_complete``; at the end ``close``. A watermark of MAX_TIME comes before the
    end of a bounded input, so windows fire there.
    """

    tells_event_time: bool = False
    """Whether the operator itself emits the watermarks behind it: then its input's watermarks end here, and its `out`
    is an `EventTimeOutput`."""

    @property
    def outage(self) -> Outage | None:
        """The broken connection to its server, with the attempt that is due next; None: all is well. Called by another
        thread than the rest, so it only looks at what the operator knows."""
        return None

    def hurry(self) -> None:
        """The job is being stopped: wait for a server only for a short time. Called by another thread than the rest."""

    def give_up(self) -> None:
        """The job ends: wait for no server any longer, in the present call and in later ones. Called by another
        thread than the rest."""

    def open(self, context: OperatorContext) -> None:
        """Prepare; `context` stays valid until ``close``."""

    def process(self, records: Records, port: int, out: Output) -> None:
        """Process a batch that arrived on input `port` (0 for the first)."""
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        """Event time has advanced to `watermark_us`; the task forwards the watermark afterwards."""

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        """The input of an operator with ``tells_event_time`` has become idle, or active again."""

    def parent_of(self, row: int) -> int | None:
        """For a row of the batch that it is emitting to its main output: the row of the input batch that it came from;
        None where that is not known."""
        return None

    def ready(self) -> bool:
        """Whether it accepts more input, barriers included; called before each element if it is overridden.

        Otherwise its task takes nothing: so an operator that waits for an external system causes backpressure.
        """
        return True

    def next_time_us(self) -> int | None:
        """The processing time at which ``on_time`` is due, or None."""
        return None

    def on_time(self, now_us: int, out: Output) -> None:
        """Processing time has reached ``next_time_us``."""

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        """A copy of the state as of now; a transactional sink pre-commits here."""
        return {}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Restore from the snapshots of all former subtasks of this operator, which may have been more or fewer.

        Keyed state is selected by key group (see ``workbench.state.key_groups``), so that each key has one owner.
        """

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """The state of a key (``{"origin": "JFK"}``), or None; does not change anything."""
        raise NotImplementedError(type(self).__name__)  # optional

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """The number of keys in this subtask's state, and at most `limit` of them."""
        raise NotImplementedError(type(self).__name__)  # optional

    def notify_complete(self, checkpoint_id: int) -> None:
        """Checkpoint `checkpoint_id` is complete and durable: commit everything pre-committed up to it; idempotent."""

    def close(self) -> None:
        """Release resources; called once, even after a failure."""


class OperatorSpec(Protocol):
    """The frozen description of an operator: a dataclass with ``frozen=True``."""

    kind: ClassVar[str]
    """The operator's name in graphs, for example ``"filter"``."""

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The schema of the output; raises a WorkbenchError when the inputs do not fit."""

    def describe(self) -> str:
        """One short line for the graph, for example ``dep_delay IS NOT NULL``."""

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        """New logic for one subtask."""


@runtime_checkable
class HasSideOutputs(Protocol):
    """A spec of an operator that also sends records to side outputs."""

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        """The schema of each side output by its tag."""


@runtime_checkable
class KeepsWindows(Protocol):
    """A spec whose state holds windows, which only windows of the same layout can restore."""

    def windows_kept(self) -> str:
        """The layout, such as ``tumbling 1h``."""


@runtime_checkable
class SeesWatermarks(Protocol):
    """A spec of an operator that may see which of the records that are not late came before a watermark."""

    def sees_watermarks(self) -> bool:
        """Whether its results can change when a watermark comes later among the records, and makes none of them
        late."""


@runtime_checkable
class ReadsColumns(Protocol):
    """A spec that knows which input columns it reads; the planner leaves the others out of the exchange."""

    def columns_read(self) -> frozenset[str] | None:
        """Names of input columns; None: all."""
