"""Runs the query of a job on Spark: starts it, writes its batches, follows it, and starts it again where it has to."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.api.kept.job_record import Cell
from workbench.connectors.contract.base import Held
from workbench.connectors.tables.tables import Tables
from workbench.errors import JobError, WorkbenchError
from workbench.plan.physical import PhysicalGraph
from workbench.redaction import redacted
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.carried_query import start_carried
from workbench.spark.engine.directory import Directory
from workbench.spark.engine.epochs import Epochs
from workbench.spark.engine.failures import SHORT_OF_MEMORY, failure_of, is_impatience
from workbench.spark.engine.native_query import start_native
from workbench.spark.engine.tiers import SparkPlan
from workbench.spark.jobs.batch_limits import BatchLimits
from workbench.spark.jobs.batch_record import BatchRecord
from workbench.spark.jobs.faults import BatchFaults
from workbench.spark.jobs.figures import Figures
from workbench.spark.sending.secrets import environment_sent
from workbench.spark.watching.executors import ExecutorSeen, executors_of
from workbench.spark.watching.observation import reports_after
from workbench.traces import Trace, told_trace

if TYPE_CHECKING:
    from workbench.spark.session import SparkSession

_log = logging.getLogger("workbench.job")
_LOOK_S = 0.05
_KEEP_S = 3.0
_EXECUTORS_S = 1.0
_KEPT = 1_000
_OF_A_STAGE = ("SparkException: Job aborted due to stage failure", "an executor was lost")
_STARTS = 10
"""Of a query whose Python processes do not start in the time that Spark gives them, on a busy machine; without a batch
in between."""


@dataclass(frozen=True, slots=True)
class SparkRun:
    """What a job on Spark consists of.

    Attributes:
        cell: of a notebook that started it; None: a call of ``run``.
        again: runs the pipeline on an engine, with a session or master; or says why that is impossible.
        faults: that happen to its batches; after each the query is started again.
    """

    name: str
    graph: PhysicalGraph
    plan: SparkPlan
    session: SparkSession
    directory: Directory
    interval_us: int
    clocked: bool
    held: tuple[Held, ...] = ()
    cell: Cell | None = None
    again: Callable[[str, object | None], Any] | str = "it was not created by a pipeline"
    faults: BatchFaults = field(default_factory=BatchFaults)

    @property
    def is_carried(self) -> bool:
        """Whether the workbench's own operators run."""
        return self.plan.tier == "carried"


class QueryRunner:
    """The query of a job, from its start to the end of the job.

    A thread of its own looks at the query until the job is over. Users' threads ask for a pause or the end, and Spark
    calls `write` on threads of its own.

    Args:
        run: what the job consists of.

    Attributes:
        state: Flink's job state.
        failure: why it failed, in a sentence; empty: it has not.
        error: what raised in this process, if the job failed.
        trace: the user's lines that the failure has passed, here or in a process of Spark's.
        complete: whether everything was read and committed.
        queries: Spark's handles, oldest first: one for each start.
        batches: the last thousand, oldest first.
        figures: what carried tasks have counted.
        executors: of the cluster, without those that were lost before this job.
        limits: of the next batches.
        changes: of the limits, each in a sentence with the batch from which it applies.
        told: whether its failure has been raised where a user sees it.
    """

    def __init__(self, run: SparkRun) -> None:
        self._run = run
        self.state = "CREATED"
        self.failure = ""
        self.error: Exception | None = None
        self.trace = Trace()
        self.complete = False
        self.queries: list[Any] = []
        self.batches: deque[BatchRecord] = deque(maxlen=_KEPT)
        self.tables = Tables()
        self.figures = Figures()
        self.executors: list[ExecutorSeen] = []
        self.limits = BatchLimits(run.interval_us)
        self.changes: list[str] = []
        self.ended = threading.Event()
        self._wanted = "RUNNING"
        self._starts = 0  # since the last batch
        self._kept_s = self._seen_s = 0.0
        self._began_s, self._ended_s = time.monotonic(), 0.0
        self._lost_before = {each.number for each in executors_of(run.session) if each.lost}
        self._plan = CarriedPlan(run.graph, run.name, run.directory.run)
        folder = run.directory.root if run.directory.kept else None
        self.epochs = Epochs(self._plan.sinks, run.name, run.directory.run, folder, self.tables)
        self.told = False
        self._start()
        _log.info("job %r: runs on Spark", run.name)
        threading.Thread(target=self._follow, name=f"{run.name}/spark", daemon=True).start()

    @property
    def query(self) -> Any:
        """The newest one; None: none was needed."""
        return self.queries[-1] if self.queries else None

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.ended.is_set()

    @property
    def running_s(self) -> float:
        """Seconds from the start to now, or to the end."""
        return (self._ended_s or time.monotonic()) - self._began_s

    @property
    def next_batch(self) -> int:
        """The number of the batch behind the last one that is known."""
        return self.batches[-1].checkpoint_id + 1 if self.batches else 0

    # asked by users ----------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop the query; the batch in progress is repeated after `resume`.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        self._wanted = "SUSPENDED"
        self._stop_query()
        if not self.over:  # it may have ended meanwhile
            self.state = "SUSPENDED"

    def resume(self) -> None:
        """Start the query again, if it is paused.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        if self.state == "SUSPENDED":
            try:
                self._start()
            except BaseException:
                self.state = "SUSPENDED"  # it can be tried again
                raise
            self._wanted = "RUNNING"

    def while_stopped(self, action: Callable[[], None]) -> None:
        """Call a function while no query runs; then go on, unless the job was paused before.

        Raises:
            JobError: the job has ended.
        """
        was_paused = self.state == "SUSPENDED"
        self.pause()
        try:
            action()
        finally:
            if not (was_paused or self.over):
                self.resume()

    def limit(self, limits: BatchLimits) -> None:
        """Apply other limits by restarting from the last batch.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        if not (difference := limits.difference(self.limits)):
            return

        def change() -> None:
            self.changes.append(f"{difference}, from batch {self.next_batch} on")
            self.limits = limits

        self.while_stopped(change)

    def want(self, state: str) -> None:
        """Ask for the end of the job; FINISHED or CANCELED."""
        if not self.over:
            self._wanted = state

    # called by Spark ---------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write a batch, on a thread of Spark's."""
        run = self._run
        try:
            again = batch.number <= self.epochs.committed
            if not again:
                records_before = run.directory.records_before
                run.faults.before(records_before(batch.number), records_before(batch.number + 1))
            self.epochs.write(batch.number, batch.rows)
            if not again:
                self.figures.add(batch.figures)
                first = self._plan.sinks[0][0]
                run.faults.after(sum(len(records) for uid, records in batch.rows if uid == first))
        except Exception as error:
            self.error = error
            raise

    # its life ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        run = self._run
        if self._is_written_whole:
            self.state = "RUNNING"
            return
        self.state = "INITIALIZING"
        where = run.session, self._plan, run.directory.root
        how: dict[str, Any] = {"interval": self.limits.trigger, "batch_rows": self.limits.batch_rows}
        with environment_sent(run.session, run.graph.logical):
            if run.is_carried:
                query = start_carried(*where, **how, clocked=run.clocked, write=self.write)
            else:
                parts = int(run.session.conf.get("spark.sql.shuffle.partitions") or "2")
                how |= {"reread_rows": self.limits.reread_rows, "parts": parts, "whole": run.directory.whole}
                query = start_native(*where, **how, write=self.write)
        self.queries.append(query)
        self.state = "RUNNING"

    @property
    def _is_written_whole(self) -> bool:
        """Whether the only batch of a query that reads everything at once has reached the sinks."""
        return self._run.directory.whole and self.epochs.committed >= 0

    def _follow(self) -> None:
        """Look at the query until the job is over."""
        try:
            while not self._looked_at_the_end():
                time.sleep(_LOOK_S)
        except Exception as error:  # noqa: BLE001  the session may be gone in the middle of a question
            self.error = error
            self._fail(failure_of(error, self._run.session), error)

    def _looked_at_the_end(self) -> bool:
        """Look once; whether the job is over now."""
        self._keep_places()
        if self._wanted in ("FINISHED", "CANCELED"):
            self._stop_query()
            return self._end(self._wanted)
        if "SUSPENDED" in (self.state, self._wanted):
            return False
        if self.query is None:
            return self._complete_as_read()
        active = self.query.isActive  # before the reports, so that the last one is among them
        self._note_progress()
        self._note_executors()
        if not active:
            return self._look_why_it_stopped()
        if self._run.directory.ended:
            self.query.processAllAvailable()  # and the batch without rows in which the last windows come out
            return self._complete_as_read()
        return False

    def _look_why_it_stopped(self) -> bool:
        """Start a query again that is not active, or end the job; whether it is over."""
        if self._wanted == "SUSPENDED":
            return False
        error = self.query.exception()
        if self._is_written_whole and error is None:
            return self._complete_as_read()
        if self._run.faults.failed_just_now:
            self._start()
            return False
        if is_impatience(str(error)) and self._starts < _STARTS:
            self._starts += 1
            self._start()
            return False
        told = self.error.message if isinstance(self.error, WorkbenchError) else failure_of(error, self._run.session)
        if told.startswith(_OF_A_STAGE) and any(each.ran_out_of_memory for each in self.executors):
            told = SHORT_OF_MEMORY  # what Spark says then is what it missed of the executors that are gone
        return self._fail(told, self.error or error)

    def _complete_as_read(self) -> bool:
        """Everything is read and committed."""
        self.complete = True
        if self.query is not None:
            self._note_progress()
            self._note_executors(now=True)
            self._stop_query()
        return self._end("FINISHED")

    def _fail(self, failure: str, error: Exception | None) -> bool:
        self.failure = failure
        if error is not None:
            self.trace = Trace.of(error)
            if not self.trace.text and (told := told_trace(str(error))).text:
                self.trace = told
        _log.error("job %r: failed on Spark: %s", self._run.name, redacted(f"{failure}\n{self.trace.text}".rstrip()))
        return self._end("FAILED")

    def _keep_places(self) -> None:
        """Every few seconds, as a sink expects."""
        if time.monotonic() - self._kept_s >= _KEEP_S:
            self._kept_s = time.monotonic()
            for place in self._run.held:
                place.keep()

    def _note_progress(self) -> None:
        reports = [BatchRecord.of(progress) for progress in reports_after(self.query, self.next_batch - 1)]
        self.batches.extend(reports)
        self._starts = 0 if reports else self._starts

    def _note_executors(self, *, now: bool = False) -> None:
        """Every second, those of the cluster, without those that were lost before this job."""
        if now or time.monotonic() - self._seen_s >= _EXECUTORS_S:
            self._seen_s = time.monotonic()
            present = executors_of(self._run.session)
            self.executors = [each for each in present if each.number not in self._lost_before]

    def _stop_query(self) -> None:
        if self.query is not None:
            self.query.stop()

    def _check_running(self) -> None:
        if self.over:
            raise JobError(f"the job {self._run.name!r} is {self.state}: run the pipeline again")

    def _end(self, state: str) -> bool:
        if state != "FAILED":
            _log.info("job %r: ended on Spark (%s)", self._run.name, state)
        self.state, self._ended_s = state, time.monotonic()
        self.epochs.close()
        for place in self._run.held:
            place.release()
        self._run.directory.close()
        self.ended.set()
        return True
