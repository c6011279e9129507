"""The handle of a pipeline's query on Spark: the same verbs as in the kernel, where Spark has them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from workbench.api.kept.job_record import Cell
from workbench.api.pictures.status import Status, Table
from workbench.connectors.contract.base import Held
from workbench.connectors.tables.tables import Tables
from workbench.durations import Duration, format_instant, parse_duration
from workbench.errors import JobError, WorkbenchError, unknown
from workbench.plan.physical import PhysicalGraph
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.carried_query import start_carried
from workbench.spark.engine.directory import Directory
from workbench.spark.engine.epochs import Epochs
from workbench.spark.engine.failures import failure_of, is_impatience
from workbench.spark.engine.native_query import start_native
from workbench.spark.engine.tiers import SparkPlan
from workbench.spark.jobs.absent import METHODS, method_missing
from workbench.spark.jobs.batch_limits import BatchLimits
from workbench.spark.jobs.batch_record import BatchRecord
from workbench.spark.jobs.faults import BatchFaults
from workbench.spark.jobs.figures import Figures
from workbench.spark.watching.executors import ExecutorSeen, executors_of, losses
from workbench.spark.watching.observation import reports_after
from workbench.spark.watching.recording import SparkRecording
from workbench.spark.watching.watch import SparkWatch
from workbench.telemetry.whole_file import replaced

if TYPE_CHECKING:
    from workbench.spark.session import SparkSession

BATCH_ROWS = 200_000
"""Records of a batch, about: a batch costs a second or so, whatever its size."""
REREAD_ROWS = 2_000_000
"""Records of a batch that executors read for themselves, about: nothing of it is held in the driver."""
_HEAD = "<!DOCTYPE html><meta charset='utf-8'><meta name='color-scheme' content='light dark'>"
_LOOK_S = 0.05
_KEEP_S = 3.0
_EXECUTORS_S = 1.0
_KEPT = 1_000
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
    again: Callable[[str, object | None], Any] | str = "it was not made by a pipeline"
    faults: BatchFaults = field(default_factory=BatchFaults)


class SparkJob:
    """A running or ended job on Spark; made by ``pipeline.run(engine="spark")``.

    What Spark does not have raises a `JobError` that says what to do instead: `rescale`, `seek`, `restore`,
    fault injection and stepping. While the job runs, ``wb.jobs()`` has it with the jobs of the kernel.

    Source: Spark's ``StreamingQuery``, by the names of `Job`.
    """

    engine = "spark"
    live = True

    def __init__(self, run: SparkRun) -> None:
        self._run = run
        self.tables = Tables()
        self.failure = ""
        self.batches: deque[BatchRecord] = deque(maxlen=_KEPT)
        self.figures = Figures()
        self._state = "CREATED"
        self._queries: list[Any] = []
        self._starts = 0  # since the last batch
        self._limits = BatchLimits(run.interval_us)
        self._error: Exception | None = None
        self._wanted = "RUNNING"
        self._complete = False
        self._kept_s = 0.0
        self._seen_s = 0.0
        self._began_s, self._ended_s = time.monotonic(), 0.0
        self._executors: list[ExecutorSeen] = []
        self._lost_before = {each.number for each in executors_of(run.session) if each.lost}
        self._ended = threading.Event()
        self._plan = CarriedPlan(run.graph, run.name, run.directory.run)
        self._epochs = self._open_epochs()
        self._watch = threading.Thread(target=self._follow, name=f"{run.name}/spark", daemon=True)
        self._start()
        self._watch.start()

    # observation -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The job's name."""
        return self._run.name

    @property
    def state(self) -> str:
        """Flink's job state, as for jobs in the kernel."""
        return self._state

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self._ended.is_set()

    @property
    def complete(self) -> bool:
        """Whether it has ended with everything read and committed."""
        return self._complete

    @property
    def query(self) -> Any:
        """Spark's own handle, a ``StreamingQuery``; another one after `resume`."""
        return self._queries[-1] if self._queries else None

    @property
    def running_s(self) -> float:
        """Seconds from its start to now, or to its end; without those that a new session took."""
        return (self._ended_s or time.monotonic()) - self._began_s

    @property
    def batch_faults(self) -> BatchFaults:
        """What failed on purpose, and what it cost."""
        return self._run.faults

    def status(self) -> Status:
        """State, progress and health in one dictionary; what Spark does not measure is absent."""
        last = self.batches[-1] if self.batches else None
        return Status(
            job=self.name,
            engine="spark",
            tier=self._run.plan.tier,
            state=self._state,
            paused=self._state == "SUSPENDED",
            **self._limits.shown,
            batches=0 if last is None else last.checkpoint_id + 1,
            last_batch_ms=None if last is None else last.duration_ms,
            watermark=self._watermark(),
            rows_per_second=None if last is None or self._is_carried else last.rows_per_second,
            committed_rows=dict(self._epochs.rows),
            late_records=self.figures.late if self._is_carried else None,
            state_bytes=None if last is None else last.state_bytes,
            executors=sum(each.active for each in self._executors) or None,
            executors_lost=losses(self._executors) or None,
            failure=self.failure or None,
        )

    def metrics(self) -> Table:
        """One row per operator and subtask of the carried tier, with Flink's names; one per batch in the native tier.

        Buffers, back-pressure and load of a subtask are absent: Spark does not measure them.
        """
        if self._is_carried:
            return Table(self.figures.rows())
        return Table([asdict(record) for record in self.batches])

    def checkpoints(self) -> list[BatchRecord]:
        """The most recent micro-batches, oldest first: each is a checkpoint, with its phases."""
        return list(self.batches)

    def late_records(self, operator: str | None = None) -> Table:
        """How many records each operator dropped as late; Spark's workers do not keep the records themselves."""
        rows = [row for row in self.figures.rows() if row["numLateRecordsDropped"]]
        if operator is not None:
            rows = [row for row in rows if row["task"].partition("[")[0] == operator]
        return Table([{"task": row["task"], "late": row["numLateRecordsDropped"]} for row in rows])

    def table(self, name: str | None = None) -> pa.Table:
        """The committed rows of a TableSink; the name may be left out when there is only one.

        Raises:
            JobError: no such table.
        """
        names = self.tables.names()
        if name is None:
            if len(names) != 1:
                raise JobError(f"the job has {len(names)} tables: name one of {', '.join(names) or 'none'}")
            name = names[0]
        if name not in names:
            raise JobError(unknown("table", name, names))
        return self.tables.read(name)

    def graph(self) -> SparkPlan:
        """The operators and the tier of each, as ``pipeline.explain(engine="spark")`` gives them."""
        return self._run.plan

    def dashboard(self) -> SparkWatch:
        """What Spark measures of its query, drawn again every second in a notebook; see `watch`.

        After `resume` there is a picture of each query.
        """
        return SparkWatch(self, lambda: self.over, self._run.session)

    def report(self, path: str | Path) -> Path:
        """Write the picture of `dashboard` to one HTML file that needs no network.

        Args:
            path: of the file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.
        """
        watched = SparkWatch(self, session=self._run.session)
        watched.stop()
        with replaced(Path(path)) as draft:
            draft.write_text(f"{_HEAD}<title>{escape(self.name)}</title>{watched.html()}", encoding="utf-8")
        return Path(path)

    def recording(self, path: str | Path | None = None) -> SparkRecording:
        """What Spark has told of its queries and executors: the last 500 batches.

        Args:
            path: of a file to write it to, which ``wb.Recording.open`` reads; None: do not write a file.

        Raises:
            SettingError: the file cannot be written.
        """
        watched = SparkWatch(self, session=self._run.session)
        watched.stop()
        return watched.recording(path)

    @property
    def streams(self) -> SparkJob:
        """The job in the place of a session of its own, for `watch`."""
        return self

    @property
    def active(self) -> list[Any]:
        """Its queries, of which the last one may be active."""
        return self._queries

    def __repr__(self) -> str:
        return f"<SparkJob {self.name!r}: {self._state}, {self._run.plan.tier}>"

    # control -----------------------------------------------------------------------------------------------------

    def wait(self, timeout: Duration | None = None) -> str:
        """Wait until the job has ended; returns its last state.

        Args:
            timeout: how long, such as ``"60s"``; None: without an end.

        Raises:
            JobError: it failed, or still runs after `timeout`.
        """
        seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
        if not self._ended.wait(seconds):
            raise JobError(f"the job {self.name!r} is still {self._state} after {timeout}")
        if self._state == "FAILED":
            error = JobError(f"the job {self.name!r} failed on Spark: {self.failure}")
            raise error from self._error
        return self._state

    def tune(self, **settings: object) -> Status:
        """Change the time between two batches or their size; the query starts again from its last batch.

        Args:
            settings: ``checkpoint_interval``, a duration or ``"disabled"`` (a batch as soon as the one before has
                ended), and ``batch_size``, records of a batch, about. A job that is paused stays so.

        Raises:
            SettingError: a setting that has no meaning on Spark, or that there is not, or a wrong value.
            JobError: any other; says what to do. Or the job has ended, or reads everything in one batch.
        """
        limits = self._limits.changed(settings)
        if not settings:
            return self.status()
        if self._run.directory.whole:
            raise JobError(
                f"the job {self.name!r} reads everything in one batch: run it with checkpoint_interval to have several"
            )
        paused = self._state == "SUSPENDED"
        self.pause()
        self._limits = limits
        if not paused:
            self.resume()
        return self.status()

    def pause(self) -> None:
        """Stop the query; state and position stay in the checkpoint. `resume` repeats the batch in progress.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        self._wanted = "SUSPENDED"
        self._stop_query()
        if not self.over:  # it may have ended meanwhile
            self._state = "SUSPENDED"

    def resume(self) -> None:
        """Start the query again where `pause` stopped it.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        if self._state == "SUSPENDED":
            try:
                self._start()
            except BaseException:
                self._state = "SUSPENDED"  # it can be tried again
                raise
            self._wanted = "RUNNING"

    def run_again(self, *, engine: Literal["kernel", "spark"] = "kernel", spark: object | None = None) -> Any:
        """Stop this job and run its pipeline from the beginning in the kernel, or once more on Spark.

        Args:
            engine, spark: as for `Pipeline.run`.

        Returns:
            The new job, under the same name, without a checkpoint directory.

        Raises:
            JobError: the pipeline cannot run a second time, because it writes outside the job, or its source cannot be
                read again.
            SettingError: there is no such engine or master.
        """
        if isinstance(self._run.again, str):
            raise JobError(f"the pipeline of the job {self.name!r} cannot run a second time: {self._run.again}")
        return self._run.again(engine, spark)

    def stop(self, *, wait: bool = True, timeout: Duration = "60s") -> None:
        """End the job, FINISHED; the next run can continue from the last batch that was committed.

        Args:
            wait: until it has ended.
            timeout: how long to wait.

        Raises:
            JobError: it failed, or has not ended in time.
        """
        if not self.over:
            self._wanted = "FINISHED"
        if wait:
            self.wait(timeout)

    def cancel(self, *, wait: bool = True, timeout: Duration = "60s") -> None:
        """End the job, CANCELED; otherwise as `stop`."""
        if not self.over:
            self._wanted = "CANCELED"
        if wait:
            self._ended.wait(parse_duration(timeout, "timeout") / 1e6)

    def savepoint(self, name: str, timeout: Duration = "60s") -> str:
        """Not on Spark.

        Raises:
            JobError: always; says what to do.
        """
        raise JobError(
            "Spark keeps its last batches in the checkpoint directory and has no savepoints: stop the job, copy "
            f"{str(self._run.directory.root)!r}, and run from the copy with resume=True"
        )

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            raise method_missing(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # the run -----------------------------------------------------------------------------------------------------

    @property
    def _is_carried(self) -> bool:
        return self._run.plan.tier == "carried"

    @property
    def _is_written_whole(self) -> bool:
        """Whether the only batch of such a query has reached the sinks."""
        return self._run.directory.whole and self._epochs.committed >= 0

    def _watermark(self) -> str | None:
        """As UTC text; None: none yet."""
        if self._is_carried:
            known = [row["currentOutputWatermark"] for row in self.figures.rows()]
            return format_instant(min(known)) if known and None not in known else None
        return (self.batches[-1].watermark if self.batches else "") or None

    def _open_epochs(self) -> Epochs:
        directory = self._run.directory
        folder = directory.root if directory.kept else None
        return Epochs(self._plan.sinks, self.name, directory.run, folder, self.tables)

    def _start(self) -> None:
        run = self._run
        if self._is_written_whole:
            self._state = "RUNNING"
            return
        self._state = "INITIALIZING"
        where = run.session, self._plan, run.directory.root
        interval, most = self._limits.trigger, self._limits.size
        if self._is_carried:
            query = start_carried(
                *where, batch_rows=most or BATCH_ROWS, clocked=run.clocked, interval=interval, write=self._write
            )
        else:
            parts = int(run.session.conf.get("spark.sql.shuffle.partitions") or "2")
            query = start_native(
                *where,
                batch_rows=most or BATCH_ROWS,
                reread_rows=most or REREAD_ROWS,
                parts=parts,
                interval=interval,
                whole=run.directory.whole,
                write=self._write,
            )
        self._queries.append(query)
        self._state = "RUNNING"

    def _write(self, batch: Batch) -> None:
        """Called by Spark with each batch, on a thread of its own."""
        try:
            again = batch.number <= self._epochs.committed
            if not again:
                records_before = self._run.directory.records_before
                self._run.faults.before(records_before(batch.number), records_before(batch.number + 1))
            self._epochs.write(batch.number, batch.rows)
            if not again:
                self.figures.add(batch.figures)
                first = self._plan.sinks[0][0]
                self._run.faults.after(sum(len(records) for uid, records in batch.rows if uid == first))
        except Exception as error:
            self._error = error
            raise

    def _follow(self) -> None:
        """Look at the query until the job is over."""
        try:
            while True:
                time.sleep(_LOOK_S)
                self._keep_places()
                if self._wanted in ("FINISHED", "CANCELED"):
                    self._stop_query()
                    return self._end(self._wanted)
                if self._state == "SUSPENDED" or self._wanted == "SUSPENDED":
                    continue
                if self.query is None:
                    return self._complete_as_read()
                active = self.query.isActive  # before the reports, so that the last one is among them
                self._note_progress()
                self._note_executors()
                if not active:
                    if self._wanted == "SUSPENDED":
                        continue
                    if self._is_written_whole and self.query.exception() is None:
                        return self._complete_as_read()
                    if self._run.faults.failed_just_now:
                        self._start()
                        continue
                    error = self.query.exception()
                    if is_impatience(str(error)) and self._starts < _STARTS:
                        self._starts += 1
                        self._start()
                        continue
                    self.failure = failure_of(error, self._run.session)
                    if isinstance(self._error, WorkbenchError):
                        self.failure = self._error.message
                    return self._end("FAILED")
                if self._run.directory.ended:
                    self.query.processAllAvailable()  # and the batch without rows in which the last windows come out
                    return self._complete_as_read()
        except Exception as error:  # noqa: BLE001  the session may be gone in the middle of a question
            self._error = error
            self.failure = failure_of(error, self._run.session)
            return self._end("FAILED")

    def _complete_as_read(self) -> None:
        """Everything is read and committed."""
        self._complete = True
        if self.query is not None:
            self._note_progress()
            self._note_executors(now=True)
            self._stop_query()
        self._end("FINISHED")

    def _keep_places(self) -> None:
        """Every few seconds, as a sink expects."""
        if time.monotonic() - self._kept_s >= _KEEP_S:
            self._kept_s = time.monotonic()
            for place in self._run.held:
                place.keep()

    def _note_progress(self) -> None:
        known = self.batches[-1].checkpoint_id if self.batches else -1
        reports = [BatchRecord.of(progress) for progress in reports_after(self.query, known)]
        self.batches.extend(reports)
        self._starts = 0 if reports else self._starts

    def _note_executors(self, *, now: bool = False) -> None:
        """Every second, those of the cluster, without those that were lost before this job."""
        if now or time.monotonic() - self._seen_s >= _EXECUTORS_S:
            self._seen_s = time.monotonic()
            present = executors_of(self._run.session)
            self._executors = [each for each in present if each.number not in self._lost_before]

    def _stop_query(self) -> None:
        if self._queries:
            self.query.stop()

    def _check_running(self) -> None:
        if self.over:
            raise JobError(f"the job {self.name!r} is {self._state}: run the pipeline again")

    def _end(self, state: str) -> None:
        self._state, self._ended_s = state, time.monotonic()
        self._epochs.close()
        for place in self._run.held:
            place.release()
        self._run.directory.close()
        self._ended.set()
