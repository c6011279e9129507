"""The handle of a job: users observe and control a job through it.

Observations come from telemetry frames; commands are posted to the job's master, which applies them between two steps.
`Job` has the methods that everyone uses; their implementation is in a module for each concern.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, Unpack

import pyarrow as pa

from workbench.api.job import endings, frame_tables, repeating, savepointing, seeking, tuning
from workbench.api.job.faults import Faults
from workbench.api.job.registry import forget, register
from workbench.api.job.run import Run
from workbench.api.job.stepper import Stepper
from workbench.api.kept.journal import remembered
from workbench.api.kept.recording import Recording
from workbench.api.pictures.plan_view import PlanView
from workbench.api.pictures.state_view import StateView, state_view
from workbench.api.pictures.status import Status, Table, status_of
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.durations import Duration
from workbench.errors import JobError, WorkbenchError, unknown
from workbench.packages import needed
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.setting import with_settings
from workbench.runtime.settings.table import OF_TUNE, TunableSettings
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.recorder import Recorder


class Job:
    """A running or ended job; made by ``Pipeline.run``.

    Observations come from telemetry and are at most a tenth of a second old. Commands are posted to the job and applied
    between two steps; the methods block until they are in force. `faults` crashes or slows down its parts; `stepper`
    takes the steps of a job that runs with ``driver="stepping"``.

    Source: F2-1; Flink's ``JobClient``.

    Example:
        >>> clicks = pa.table({"user": ["a", "b"] * 500, "t": range(1000)})
        >>> counts = wb.Stream.from_table(clicks, event_time="t", rate=1000).key_by("user").aggregate(n=wb.count())
        >>> job = counts.sink_to(wb.TableSink("counts")).run("clicks", checkpoint_interval="50ms")
        >>> job.pause(); job.status()["paused"]  # in-flight records are still processed
        True
        >>> status = job.tune(buffer_timeout="5ms", rate=5000)
        >>> status = job.rescale(2)
        >>> job.checkpoint()  # now
        >>> job.fail("aggregate[1]")  # it recovers from the last complete checkpoint
        >>> job.resume()
        >>> job.wait("60s"), job.name, job.state, job.over
        ('FINISHED', 'clicks', 'FINISHED', True)
        >>> job.table("counts").num_rows  # each record counts once, in spite of all that
        1000
        >>> len(job.checkpoints()) > 0, len(job.metrics()), len(job.graph().vertices)
        (True, 4, 2)
        >>> len(job.audit())  # nothing was counted twice
        0
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def name(self) -> str:
        """The job's name."""
        return self._run.name

    @property
    def state(self) -> str:
        """Flink's job state: CREATED, INITIALIZING, RUNNING, FAILING, RESTARTING, CANCELLING, CANCELED, FINISHED,
        FAILED, SUSPENDED (on standby).

        Source: Flink's ``JobStatus``.
        """
        return self._run.state

    @property
    def over(self) -> bool:
        """Whether the job has ended and will not restart."""
        return self._run.over

    @property
    def complete(self) -> bool:
        """Whether it has ended with everything read and committed; False for a stopped job.

        Source: the final checkpoint of Flink's FLIP-147.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("completed")
            >>> job.wait("60s"), job.complete
            ('FINISHED', True)
        """
        return self._run.master.all_committed

    @property
    def live(self) -> bool:
        """Whether it runs by itself; with ``driver="stepping"``, a job advances only when you step it."""
        return not isinstance(self._run.driver, SteppingDriver)

    @property
    def engine(self) -> str:
        """Where it runs: ``"kernel"``, in this process; for a job on Spark, ``"spark"``.

        Source: Flink's execution environments, local or remote.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("n")).run("n")
            >>> job.engine
            'kernel'
            >>> job.wait()
            'FINISHED'
        """
        return "kernel"

    @property
    def recorder(self) -> Recorder:
        """The job's flight recorder: its telemetry frames, from which dashboard and report are drawn.

        Source: Flink's metrics, by its names.
        """
        return self._run.recorder

    @property
    def faults(self) -> Faults:
        """Fault injection, such as ``job.faults.stall("delays")``; see `Faults`.

        Source: D1, F2-4.
        """
        return Faults(self._run)

    @property
    def stepper(self) -> Stepper:
        """The steps of a job that runs with ``driver="stepping"``: ``job.stepper.next_record()``; see `Stepper`.

        Source: F2-5 to F2-15.
        """
        return Stepper(self._run)

    # observation -------------------------------------------------------------------------------------------------

    def status(self) -> Status:
        """State, settings, progress and health in one dictionary.

        Durations are written as text (``"50ms"``), times are UTC text, rates are per second. It is at most a tenth of a
        second old.

        Source: F2-1.
        """
        run = self._run
        status = status_of(run.name, run.head(), run.master.shown())
        status["stalled"] = run.driver.stalled() or None
        holder = run.holder()
        if (parts := run.master.services.parts) is not None:
            status[run.master.settings.policy.name] = parts.counts(run.master.execution)
        status["lease"] = None if holder is None or run.over else str(holder)
        return status

    def metrics(self) -> Table:
        """One row per task, with Flink's metric names.

        Times such as ``busyTimeMsPerSecond`` are milliseconds per second, watermarks microseconds since 1970.

        Source: Flink's metrics, by its names.
        """
        return frame_tables.metric_rows(self.recorder.latest())

    def checkpoints(self) -> list[CheckpointFrame]:
        """The most recent checkpoints, oldest first.

        Source: F2-9 to F2-15; Flink's checkpoint history.
        """
        frame = self.recorder.latest()
        return [] if frame is None else list(frame.checkpoints)

    def late_records(self, operator: str | None = None) -> Table:
        """The last records that were dropped as late, oldest first: at most 20 of each subtask of an operator.

        Each row has the operator and the task that dropped the record, its key, its event time and the watermark at
        that time (UTC text), how far it was behind that (None once event time was at its end), the task that sent it
        (several if small buffers of theirs were processed together), and the record itself as JSON text, with the
        columns that the operator needs. Records that ``side_output("late")`` takes are not dropped. It is up to a
        second old; `metrics` has the total number, ``numLateRecordsDropped``.

        Source: late events that are dropped or logged, in the book's chapter on stream processing; see F2-5.

        Args:
            operator: only records of this one.

        Raises:
            JobError: no such operator.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("in-time")
            >>> job.wait("60s"), len(job.late_records())
            ('FINISHED', 0)
        """
        return frame_tables.late_rows(self.recorder.latest(), operator)

    def dead_letters(self) -> pa.Table:
        """The last dead letters, oldest first, whether or not a sink takes them, also of a job that has failed: at most
        1,000 of each task, and about 4 MB; with the columns of `Stream.dead_letters`.

        A letter that comes again because the job has resumed from a checkpoint is there once, except with
        ``acks()``, ``transactions()`` and ``checkpoint_mode="at-least-once"``. For all letters, give
        ``stream.dead_letters()`` a sink. `Stream.from_dead_letters` takes both.

        Source: I15; the dead-letter queues of messaging systems.

        Example:
            >>> texts = wb.Stream.from_table(pa.table({"n": ["1", "two"]}))
            >>> numbers = texts.map(lambda row: {"n": int(row["n"])}, {"n": pa.int64()}, on_error="dead_letter")
            >>> job = numbers.sink_to(wb.TableSink("numbers")).run("with-letters")
            >>> job.wait("60s"), job.dead_letters().select(["operator", "record"]).to_pylist()
            ('FINISHED', [{'operator': 'map', 'record': '{"n": "two"}'}])
        """
        return self._run.master.services.letters.table()

    def audit(self) -> Table:
        """What the job counted twice because of failures: per task and restore, the records that reached it a second
        time.

        The sum of a task's records is what its state counts twice now. A job that goes back to one checkpoint several
        times has one row for it, of the last time: each restore undoes the effects of those before.

        Empty while the checkpoints are taken exactly once. With ``checkpoint_mode="at-least-once"`` a task's snapshot
        holds records that came behind a barrier, and a job that resumes from it receives them again. With ``acks()``, a
        source has a row for what it has read again since its oldest pending root, and one without a checkpoint: the
        records that it has replayed because they were not acknowledged in time. These count twice in the tasks behind
        it as well, whose own rows have only what came ahead of a barrier.

        Source: F2-9 to F2-15, the at-least-once mode, which does not block during alignment.
        """
        return frame_tables.audit_rows(self.recorder.latest())

    def graph(self) -> PlanView:
        """The physical graph: as a picture with the present rates, and what runs where as text and data.

        Source: F1-2, F2-2.
        """
        master = self._run.master
        return PlanView(master.graph, self.name, master.settings, self.recorder.latest())

    def table(self, name: str | None = None) -> pa.Table:
        """The committed rows of a TableSink; the name may be left out when there is only one.

        Source: D1: rows become visible once the checkpoint that ends their epoch is complete, each exactly once.

        Args:
            name: of the `TableSink`.

        Raises:
            JobError: no such table.
        """
        tables = self._run.master.services.tables
        names = tables.names()
        if name is None:
            if len(names) != 1:
                raise JobError(f"the job has {len(names)} tables: name one of {', '.join(names) or 'none'}")
            name = names[0]
        if name not in names:
            raise JobError(unknown("table", name, names))
        return tables.read(name)

    def dashboard(self, carrier: str | None = None) -> Any:
        """The live dashboard, for display in a cell.

        Source: Flink's web dashboard.

        Args:
            carrier: how it reaches the page: ``"widget"`` (a Jupyter widget, for front ends that connect nothing else
                to the kernel) or ``"comm"``; None: the value of the environment variable WORKBENCH_CARRIER, and without
                it a widget in VS Code and Colab and a comm elsewhere.

        Raises:
            SettingError: no such carrier.
        """
        return needed("workbench.dashboard.shown.show", "a dashboard").Dashboard(self, carrier=carrier)

    def view(self, name: str, carrier: str | None = None) -> Any:
        """One part of the dashboard, for display in a cell: graph, subtasks, watermarks, latency, buffers, checkpoints,
        state, sink, events or controls; with ``driver="stepping"`` also stepper.

        Source: Flink's web dashboard.

        Args:
            name: of the part.
            carrier: as for `dashboard`.

        Raises:
            SettingError: no such part, or no such carrier.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("viewed")
            >>> job.wait("60s"), job.view("graph")
            ('FINISHED', <Dashboard of job 'viewed', graph: FINISHED>)
        """
        return needed("workbench.dashboard.shown.show", "a dashboard").Dashboard(self, name, carrier=carrier)

    def lecture(self, scene: str | None = None, carrier: str | None = None) -> Any:
        """The live dashboard in lecture mode, for display in a cell: one scene at a time fills the window, in large
        type, with controls and a caption.

        The arrow keys go through the scenes: stepper (with ``driver="stepping"``), dataflow, latency, event_time,
        backpressure, checkpoints, failure, state and results. F fills the screen, Escape goes back to the dashboard,
        and L in a dashboard comes here.

        Source: not in Flink; D2 to D6 and F2-9 to F2-15, one after the other.

        Args:
            scene: the one to begin with; None: the first.
            carrier: as for `dashboard`.

        Raises:
            SettingError: no such scene, or no such carrier.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("taught")
            >>> job.wait("60s"), job.lecture("latency")
            ('FINISHED', <Dashboard of job 'taught', lecture from latency: FINISHED>)
        """
        shown = needed("workbench.dashboard.shown.show", "a dashboard")
        first = ("dataflow" if self.live else "stepper") if scene is None else scene
        return shown.Dashboard(self, carrier=carrier, scene=first)

    def report(self, path: str | Path) -> Path:
        """Write the run to one HTML file that needs no network: graph, charts, checkpoints, events and settings.

        The file has a slider over the time of the run.

        Args:
            path: of the HTML file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("reported")
            >>> job.wait("60s"), job.report(tempfile.mkdtemp() + "/run.html").name
            ('FINISHED', 'run.html')
        """
        return self._recorded().report(path)

    def recording(self, path: str | Path | None = None) -> Recording:
        """The content of the flight recorder, the last five minutes of the run, as a `Recording`.

        Source: not in Flink; the metrics are Flink's.

        Args:
            path: of a file to write it to; None: do not write a file.

        Raises:
            SettingError: the job has not been looked at yet, or the file cannot be written.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("kept")
            >>> job.wait("60s"), job.recording().frames[-1].state
            ('FINISHED', 'FINISHED')
        """
        recording = self._recorded()
        if path is not None:
            recording.save(path)
        return recording

    # control -----------------------------------------------------------------------------------------------------

    @remembered()
    @with_settings(OF_TUNE, TunableSettings, defaults=False)
    def tune(self, **settings: Unpack[TunableSettings]) -> Status:
        """Change settings of the running job; their names are in ``wb.SETTINGS``.

        All of them are checked before any is applied; when this returns, they have taken effect.

        Source: E4 for the buffer timeout, E7 for the checkpoint interval, which never changes results.

        Args:
            **settings: by name, such as ``buffer_timeout="5ms"``.

        Raises:
            SettingError: an unknown setting or an invalid value.
            JobError: the job has ended, or cannot be rescaled.
        """
        tuning.tune(self._run, settings)
        return self.status()

    @remembered()
    def rescale(self, parallelism: int, *, timeout: Duration = "60s") -> Status:
        """Change the parallelism: the job resumes from a checkpoint that is taken for it, without losing its position.

        Operators with an explicit parallelism keep it. It is not a failure: nothing is processed twice.

        Source: Flink's rescaling from a savepoint; state is redistributed by key group.

        Args:
            parallelism: subtasks of every operator, above zero.
            timeout: how long to wait until the job runs with it, such as ``"60s"``.

        Raises:
            SettingError: not a whole number above zero, or an invalid timeout.
            PlanError: the pipeline cannot run at this parallelism.
            JobError: the job has ended or is about to, it is restarting after a failure, a source cannot be read again
            from a position, the checkpoint failed or was not complete in time, or one of the job's own functions calls
            this.
        """
        tuning.rescale(self._run, parallelism, timeout)
        return self.status()

    @remembered()
    def pause(self) -> None:
        """Pause the sources; in-flight records are processed, and checkpoints continue.

        A paused source is not idle: it holds event time back.

        Raises:
            JobError: the job has ended.
        """
        self._pause(True)

    @remembered()
    def resume(self) -> None:
        """Resume reading after `pause`.

        Raises:
            JobError: the job has ended.
        """
        self._pause(False)

    @remembered()
    def seek(self, position: str | datetime) -> None:
        """Go to another arrival time of the replayed history, forwards or backwards.

        Event time never decreases: after a jump backwards the records that are read again are late. A failure goes back
        to the latest checkpoint, which undoes later seeks; a seek while the job restarts or is rescaled is performed as
        soon as it runs.

        Source: F1-11 to F1-13: the past is replayed as if it were live.

        Args:
            position: an arrival time, such as ``"2013-02-08 06:00"`` or a datetime; without a zone it is taken as UTC.

        Raises:
            SettingError: not a time, or one after the last record of every history, where the replay would end.
            JobError: the job has ended, or replays no history.
        """
        seeking.seek(self._run, position)

    def fail(self, task: str) -> None:
        """Crash a task in its next step; the job recovers from its latest complete checkpoint.

        ``job.faults.fail`` can do the same to slots, TaskManagers and the coordinator.

        Source: D1, F2-7.

        Args:
            task: an operator's subtask, such as ``"aggregate[1]"``.

        Raises:
            JobError: the job has ended, or there is no such task.
        """
        self.faults.fail(task)

    # checkpoints and savepoints ----------------------------------------------------------------------------------

    @remembered()
    def checkpoint(self) -> None:
        """Request a checkpoint now, besides the periodic ones; returns immediately, see `checkpoints` for its outcome.

        Source: F2-9.

        Raises:
            JobError: the job has ended.
        """
        self._run.check_running()
        self._run.apply(lambda master: master.checkpoint())

    @remembered()
    def savepoint(self, name: str, timeout: Duration = "60s") -> str:
        """Take a checkpoint that is kept until you delete it, and wait until it is complete.

        Source: E10; Flink's savepoints.

        Args:
            name: of its folder: letters, digits, ``_``, ``-`` and ``.``.
            timeout: how long to wait until it is complete, such as ``"60s"``.

        Returns:
            Its folder; empty when checkpoints are kept in memory.

        Raises:
            CheckpointError: the name is not valid as a file name.
            SettingError: an invalid timeout.
            JobError: the savepoint exists or is being taken already, failed, was not complete in time, the job ended
            before, or one of the job's own functions calls this.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10)
            >>> slow = numbers.sink_to(wb.TableSink("numbers"))
            >>> import tempfile
            >>> job = slow.run("slow", checkpoint_dir=tempfile.mkdtemp())
            >>> folder = job.savepoint("before-fix")
            >>> job.savepoints()
            ['before-fix']
            >>> again = job.restore("before-fix")  # ends the job and starts it from the savepoint
            >>> job.state, again.name
            ('CANCELED', 'slow')
            >>> again.cancel(); again.wait("60s")
            'CANCELED'
        """
        return savepointing.take_savepoint(self._run, name, timeout)

    def savepoints(self) -> list[str]:
        """The names of the savepoints in this job's checkpoint directory, oldest first.

        Source: E10; Flink's savepoints.
        """
        return savepointing.savepoint_names(self._run)

    def delete_savepoint(self, name: str) -> None:
        """Delete a savepoint of this job, with the files that only it needs; `wb.delete_savepoint` is for ended jobs.

        Source: E10; Flink's savepoints.

        Args:
            name: of the savepoint.

        Raises:
            JobError: there is no such savepoint, a failed job would resume from it, the job has ended, or the savepoint
            is not deleted within a minute.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10).sink_to(wb.DiscardSink())
            >>> job = numbers.run("tidy")
            >>> for name in ("first", "second"):
            ...     folder = job.savepoint(name)
            >>> job.delete_savepoint("first")
            >>> job.savepoints()
            ['second']
            >>> job.cancel(); job.wait("60s")
            'CANCELED'
        """
        savepointing.delete_savepoint(self._run, name)

    def restore(self, savepoint: str, *, allow_non_restored_state: bool = False) -> Job:
        """Stop this job and run its pipeline again from a savepoint, with the present settings.

        All files of the savepoint are read first: if the job cannot go back to it, it keeps running. If that turns out
        only after the job was stopped, because a sink has committed rows in between, it resumes from its latest
        checkpoint.

        Source: E10, F2-8.

        Args:
            savepoint: its name.
            allow_non_restored_state: drop state that no operator of the pipeline takes, instead of raising an error.

        Returns:
            The new job, under the same name.

        Raises:
            CorruptCheckpointError: a file of it is missing or damaged.
            CheckpointError: it has state of operators that the pipeline does not have, which was not allowed.
            SinkError: a sink has committed rows since, which would be written twice.
            WorkbenchError: the job cannot start from it for another reason; see `Pipeline.run`.
            JobError: there is no such savepoint, or it is in memory only.
        """
        run = self._run
        savepointing.check_restore(run, savepoint, allow_non_restored_state=allow_non_restored_state)
        over = run.over
        self.cancel(wait=False)
        run.driver.wait_for(run.driver.ended, None)
        try:
            return run.rerun(savepoint, allow_non_restored_state)
        except WorkbenchError:
            if not over:
                self._go_on()
            raise

    def record(self, path: str | Path, source: str | None = None) -> Job:
        """Record what a source reads from now on, such as a live feed, so that it can be replayed later.

        The job takes a last checkpoint and stops, and its pipeline resumes from it, with a sink of the recording behind
        the source. The recording begins with the first record after that checkpoint: for a source that can be read
        again, it has each of them exactly once. A feed loses what it sends while the job starts, as in any restart.

        `History.from_recording` makes a history of the recording. To record from the start, use `Stream.record_to`.

        Source: E10: a history is replayed at a multiple of its speed.

        Args:
            path: a folder of this recording alone.
            source: its uid; None: the job has only one.

        Returns:
            The new job, under the same name, with the present settings.

        Raises:
            SettingError: there is no such source, or there are several.
            JobError: the job has ended, is stepped, or keeps its checkpoints in memory: it could not resume.
            CommittedRowsError: the folder has another recording.
            WorkbenchError: the job cannot resume for another reason; see `Pipeline.run`.

        Example:
            >>> import tempfile
            >>> feed = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=100)
            >>> job = feed.sink_to(wb.TableSink("feed")).run("feed", checkpoint_dir=tempfile.mkdtemp())
            >>> job = job.record(f"{tempfile.mkdtemp()}/recording")
            >>> job.stop(); job.state
            'FINISHED'
        """
        run = self._run
        run.check_outside()
        run.check_running()
        if not self.live:
            raise JobError(f"the job {self.name!r} is stepped: record a live one")
        try:
            return run.record(path, source)
        except WorkbenchError:
            if run.over:
                self._go_on()
            raise

    def run_again(
        self,
        fault_tolerance: str | FaultTolerance = "snapshots",
        *,
        engine: Literal["kernel", "spark"] = "kernel",
        spark: object | None = None,
    ) -> Job:
        """Stop this job and run its pipeline from the beginning under another architecture of fault tolerance or on
        Spark, with the present settings; on Spark with the present parallelism.

        Whatever can reject the new run is checked first. To keep this job, compare both: ``wb.compare(job, ["acks"])``.

        Source: E9, and the architectures of A and D.

        Args:
            fault_tolerance: as for `Pipeline.run`: ``"acks"``, or ``wb.transactions(coalesce=100)``.
            engine, spark: as for `Pipeline.run`: ``engine="spark"``, and a session or a master.

        Returns:
            The new job, under the same name, without a checkpoint directory.

        Raises:
            SettingError: there is no such architecture, engine or master, or it has no such argument.
            PlanError: it cannot run the pipeline; names the operator and what to do.
            JobError: the pipeline cannot run a second time, because it writes outside the job, or its source cannot be
            read again.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"page": ["a", "b"]})).sink_to(wb.TableSink("clicks"))
            >>> job = clicks.run("again", fault_tolerance="at-most-once").run_again("acks")
            >>> job.wait(), job.status()["fault_tolerance"]
            ('FINISHED', 'acks')
        """
        return repeating.run_again(self._run, fault_tolerance, engine, spark)  # type: ignore[no-any-return]

    # the end -----------------------------------------------------------------------------------------------------

    @remembered()
    def stop(self, *, wait: bool = True, timeout: Duration = "60s") -> None:
        """Take a last checkpoint, which commits everything before it, then end FINISHED, and wait for that: the next
        run can use its name and its checkpoint directory. What sources have read behind that checkpoint is read again
        by a run that resumes. A stepping job takes the steps to its end.

        An interrupt, or the end of `timeout`, ends the waiting; the job stops anyway. A call from one of the job's own
        functions, sinks or sources, which the job is waiting for, returns at once.

        The checkpoint waits for a function, a sink or storage that does not return; ``job.status()["stalled"]`` names
        it, and `cancel` ends the job without it.

        A server that a sink or a look-up cannot reach, or that does not answer, is waited for until 5 s after its
        connection was found lost, which takes about 20 s at most. Then the job ends FAILED, and the error names the
        server: without it, there is no last checkpoint, or its rows cannot be committed. Nothing is lost: a run with
        ``resume=True`` continues from the latest complete checkpoint, as after `cancel`.

        If a part of the job fails before that checkpoint is complete, it restarts as its restart strategy allows, and
        takes the checkpoint then: it ends FAILED only if the strategy gives up.

        A job that is restarting after a failure has no running state to take a checkpoint of: it ends as with `cancel`,
        and a run with ``resume=True`` resumes from its latest checkpoint.

        Source: Flink's stop with a savepoint.

        Args:
            wait: False: return at once.
            timeout: how long to wait for the end, such as ``"60s"``.

        Raises:
            SettingError: `wait` is neither True nor False, or an invalid timeout.
            JobError: it failed while it was stopping, or has not ended within `timeout`.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10).sink_to(wb.TableSink("n"))
            >>> job = pipeline.run("stopped")
            >>> job.stop(); job.state, job.complete
            ('FINISHED', False)
            >>> again = pipeline.run("stopped")  # the name is free
            >>> again.cancel(wait=False); again.wait("60s")
            'CANCELED'
        """
        endings.stop(self._run, wait, timeout)

    @remembered()
    def cancel(self, *, wait: bool = True, timeout: Duration = "90s") -> None:
        """End without a last checkpoint, and wait for the end, as `stop` does.

        What no complete checkpoint covers is not committed; a run with ``resume=True`` processes it again. A task in a
        call that does not return is left behind after ten seconds: the job is CANCELED, and the result of that call is
        ignored, but its thread stays until it returns. External effects of such a call, such as a sink's writes to a
        service, may happen during a later run. If the storage does not return, the job waits for a minute; until then
        its checkpoint directory stays in use.

        Source: Flink's cancel, with its task.cancellation.timeout.

        Args:
            wait: False: return at once.
            timeout: how long to wait for the end, such as ``"90s"``.

        Raises:
            SettingError: `wait` is neither True nor False, or an invalid timeout.
            JobError: it has not ended within `timeout`.
        """
        endings.cancel(self._run, wait, timeout)

    def wait(self, timeout: Duration | None = None) -> str:
        """Wait until the job has ended; an interrupt ends the waiting, never the job.

        Args:
            timeout: how long, such as ``"60s"``; None: without a limit.

        Returns:
            FINISHED, also after `stop`, or CANCELED; `complete` tells whether everything was read.

        Raises:
            SettingError: an invalid timeout.
            JobError: the job failed, or has not ended within `timeout`; or one of the job's own functions, sinks or
            sources calls this, which the job is waiting for.
        """
        return endings.wait(self._run, timeout)

    # internals ---------------------------------------------------------------------------------------------------

    def _pause(self, paused: bool) -> None:
        self._run.check_running()
        self._run.apply(lambda master: master.sources.set_paused(paused))

    def operator_state(self, operator: str) -> StateView:
        """The state of an operator of the running job by key: ``job.operator_state("aggregate").get("JFK")``.

        Source: Flink's queryable state.

        Args:
            operator: its name.

        Raises:
            JobError: no such operator, or the job has ended.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"k": ["a"], "n": [1]}), rate=1)
            >>> job = numbers.key_by("k").aggregate(total=wb.sum("n")).run("held")
            >>> job.operator_state("aggregate")
            StateView of 'aggregate'; get(k), keys(limit), size()
            >>> _ = job.cancel()
        """
        self._run.check_running()
        master = self._run.master
        return state_view(
            operator,
            master.logical,
            lambda question: master.call(lambda: master.query(question)),
            lambda event, seconds: self._run.driver.wait_for(event, seconds),
        )

    def _recorded(self) -> Recording:
        return Recording(self.name, self.recorder.frames())

    def _go_on(self) -> None:
        """Resume from the latest checkpoint, under this handle, if possible."""
        with suppress(WorkbenchError):  # the reason why it could not be restored is reported instead
            again = self._run.rerun(None, True)
            forget(again)  # this handle is found by the name
            self._run.become(again._run)
            register(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the job {self.name!r} runs in this process, and its handle cannot be pickled or copied: pass the data "
            "that you need, such as its status or the rows of a table"
        )

    def __repr__(self) -> str:
        return repr(self.status())

    def _repr_html_(self) -> str:
        return self.status()._repr_html_() + self.graph().svg
