"""The handle of a pipeline's query on Spark: the same verbs as in the kernel, where Spark has them."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from workbench.api.pictures.status import Status, Table
from workbench.durations import Duration, format_instant, parse_duration
from workbench.errors import JobError, unknown
from workbench.spark.engine.tiers import SparkPlan
from workbench.spark.jobs.absent import METHODS, method_missing
from workbench.spark.jobs.batch_limits import changes_told, limits_told
from workbench.spark.jobs.batch_record import BatchRecord
from workbench.spark.jobs.faults import BatchFaults
from workbench.spark.jobs.query_runner import QueryRunner, SparkRun
from workbench.spark.jobs.savepoints import copy_directory, savepoint_folder, savepoint_names
from workbench.spark.watching.executors import losses
from workbench.spark.watching.recording import SparkRecording
from workbench.spark.watching.watch import SparkWatch
from workbench.telemetry.whole_file import replaced

_HEAD = "<!DOCTYPE html><meta charset='utf-8'><meta name='color-scheme' content='light dark'>"


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
        self._runner = QueryRunner(run)

    # observation -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The job's name."""
        return self._run.name

    @property
    def state(self) -> str:
        """Flink's job state, as for jobs in the kernel."""
        return self._runner.state

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self._runner.over

    @property
    def complete(self) -> bool:
        """Whether it has ended with everything read and committed."""
        return self._runner.complete

    @property
    def query(self) -> Any:
        """Spark's own handle, a ``StreamingQuery``; another one after `resume`."""
        return self._runner.query

    @property
    def running_s(self) -> float:
        """Seconds from its start to now, or to its end; without those that a new session took."""
        return self._runner.running_s

    @property
    def batch_faults(self) -> BatchFaults:
        """The injected failures, and their cost."""
        return self._run.faults

    def status(self) -> Status:
        """State, progress and health in one dictionary; what Spark does not measure is absent."""
        runner = self._runner
        last = runner.batches[-1] if runner.batches else None
        return Status(
            job=self.name,
            engine="spark",
            tier=self._run.plan.tier,
            state=runner.state,
            paused=runner.state == "SUSPENDED",
            **runner.limits.shown,
            batches=runner.next_batch,
            last_batch_ms=None if last is None else last.duration_ms,
            watermark=self._watermark(),
            rows_per_second=None if last is None or self._run.is_carried else last.rows_per_second,
            committed_rows=dict(runner.epochs.rows),
            late_records=runner.figures.late if self._run.is_carried else None,
            state_bytes=None if last is None else last.state_bytes,
            executors=sum(each.active for each in runner.executors) or None,
            executors_lost=losses(runner.executors) or None,
            failure=f"{runner.failure}\n{runner.trace.text}".strip() or None,
        )

    def metrics(self) -> Table:
        """One row per operator and subtask of the carried tier, with Flink's names; one per batch in the native tier.

        Buffers, back-pressure and load of a subtask are absent: Spark does not measure them.
        """
        if self._run.is_carried:
            return Table(self._runner.figures.rows())
        return Table([asdict(record) for record in self._runner.batches])

    def checkpoints(self) -> list[BatchRecord]:
        """The most recent micro-batches, oldest first: each is a checkpoint, with its phases."""
        return list(self._runner.batches)

    def late_records(self, operator: str | None = None) -> Table:
        """The number of records that each operator dropped as late; Spark's workers do not keep the records
        themselves."""
        rows = [row for row in self._runner.figures.rows() if row["numLateRecordsDropped"]]
        if operator is not None:
            rows = [row for row in rows if row["task"].partition("[")[0] == operator]
        return Table([{"task": row["task"], "late": row["numLateRecordsDropped"]} for row in rows])

    def table(self, name: str | None = None) -> pa.Table:
        """The committed rows of a TableSink; you can omit the name if there is only one.

        Raises:
            JobError: no such table.
        """
        tables = self._runner.tables
        names = tables.names()
        if name is None:
            if len(names) != 1:
                raise JobError(f"the job has {len(names)} tables: name one of {', '.join(names) or 'none'}")
            name = names[0]
        if name not in names:
            raise JobError(unknown("table", name, names))
        return tables.read(name)

    def graph(self) -> SparkPlan:
        """The operators and the tier of each, as ``pipeline.explain(engine="spark")`` gives them."""
        return self._run.plan

    def dashboard(self) -> SparkWatch:
        """Show Spark's measurements of the query, redrawn every second in a notebook; see `watch`.

        The header shows when batches start, their size, and tuned settings.
        """
        return SparkWatch(self, lambda: self.over, self._run.session, self._told)

    def report(self, path: str | Path) -> Path:
        """Write the display of `dashboard` to a self-contained HTML file.

        Args:
            path: of the file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.
        """
        watched = SparkWatch(self, session=self._run.session, told=self._told)
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
        watched = SparkWatch(self, session=self._run.session, told=self._told)
        watched.stop()
        return watched.recording(path)

    @property
    def streams(self) -> SparkJob:
        """The job in the place of a session of its own, for `watch`."""
        return self

    @property
    def active(self) -> list[Any]:
        """Its queries, of which the last one may be active."""
        return self._runner.queries

    def __repr__(self) -> str:
        return f"<SparkJob {self.name!r}: {self.state}, {self._run.plan.tier}>"

    # control -----------------------------------------------------------------------------------------------------

    def wait(self, timeout: Duration | None = None) -> str:
        """Wait until the job has ended; returns its last state.

        Args:
            timeout: how long, such as ``"60s"``; None: without an end.

        Raises:
            JobError: it failed, or still runs after `timeout`.
        """
        seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
        if not self._runner.ended.wait(seconds):
            raise JobError(f"the job {self.name!r} is still {self.state} after {timeout}")
        if self.state == "FAILED":
            runner = self._runner
            runner.told = True
            told = f"the job {self.name!r} failed on Spark: {runner.failure}"
            raise JobError(told, trace=runner.trace.text) from runner.trace.restore()
        return self.state

    def tune(self, **settings: object) -> Status:
        """Change the time between two batches or their size; the query starts again from its last batch.

        Args:
            settings: ``checkpoint_interval``, a duration or ``"disabled"`` (a batch as soon as the one before has
                ended), and ``batch_size``, records of a batch, about. A job that is paused stays so.

        Raises:
            SettingError: a setting that has no meaning on Spark, or that there is not, or a wrong value.
            JobError: any other; says what to do. Or the job has ended, or reads everything in one batch.
        """
        limits = self._runner.limits.changed(settings)
        if not settings:
            return self.status()
        if self._run.directory.whole and not self.over:
            raise JobError(
                f"the job {self.name!r} reads everything in one batch: run it with checkpoint_interval to have several"
            )
        self._runner.limit(limits)
        return self.status()

    def pause(self) -> None:
        """Stop the query; state and position stay in the checkpoint. `resume` repeats the batch in progress.

        Raises:
            JobError: the job has ended.
        """
        self._runner.pause()

    def resume(self) -> None:
        """Start the query again where `pause` stopped it.

        Raises:
            JobError: the job has ended.
        """
        self._runner.resume()

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
        self._runner.want("FINISHED")
        if wait:
            self.wait(timeout)

    def cancel(self, *, wait: bool = True, timeout: Duration = "60s") -> None:
        """End the job, CANCELED; otherwise as `stop`."""
        self._runner.want("CANCELED")
        if wait:
            self._runner.ended.wait(parse_duration(timeout, "timeout") / 1e6)

    def savepoint(self, name: str) -> str:
        """Stop the query, copy its checkpoint directory, and continue from the last batch.

        A run with the copy as ``checkpoint_dir`` and ``resume=True`` continues where the savepoint was taken.

        Args:
            name: of the copy's folder: letters, digits, ``_``, ``-`` and ``.``.

        Returns:
            The folder, in ``savepoints`` in the checkpoint directory.

        Raises:
            CheckpointError: the name is not valid as a file name, exists already, or the copy cannot be written.
            JobError: the job has no checkpoint directory, or has ended.
        """
        directory = self._run.directory
        if not directory.kept:
            raise JobError(
                f"the job {self.name!r} has no checkpoint directory, which a savepoint copies: run it with "
                "checkpoint_dir"
            )
        folder = savepoint_folder(directory.root, name)
        self._runner.while_stopped(lambda: copy_directory(directory.root, folder))
        return str(folder)

    def savepoints(self) -> list[str]:
        """The names of the savepoints in its checkpoint directory, oldest first."""
        return savepoint_names(self._run.directory.root)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            raise method_missing(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _watermark(self) -> str | None:
        """As UTC text; None: none yet."""
        if self._run.is_carried:
            known = [row["currentOutputWatermark"] for row in self._runner.figures.rows()]
            return format_instant(min(known)) if known and None not in known else None
        return (self._runner.batches[-1].watermark if self._runner.batches else "") or None

    def _told(self) -> str:
        """The text above the picture: how its batches are cut, and what was tuned."""
        runner = self._runner
        if self.over:
            now = ""
        elif self._run.directory.whole:
            now = "<p>Everything is read in one batch. A run with checkpoint_interval has several.</p>"
        else:
            now = limits_told(self.name, runner.limits)
        if self._run.is_carried:
            now += "<p>Here, each of Spark's rows holds many records: <code>job.metrics()</code> counts records.</p>"
        return now + changes_told(runner.changes)
