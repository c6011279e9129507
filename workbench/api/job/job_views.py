"""What is seen of a job: the methods of `Job` that give facts, all from telemetry frames."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.api.job.job_handle import JobHandle
from workbench.api.kept.recording import Recording
from workbench.api.pictures.plan_view import PlanView
from workbench.api.pictures.status import Status, Table, status_of
from workbench.durations import format_duration, format_instant
from workbench.errors import JobError, unknown
from workbench.telemetry.checkpoint_frames import CheckpointFrame


class JobViews(JobHandle):
    """The facts of a job; `Job` inherits them."""

    def status(self) -> Status:
        """State, settings in force, progress and health in one dictionary.

        Durations are written as people write them (``"50ms"``), times are UTC text, rates are per second. It is at most
        a tenth of a second old.

        Source: F2-1.
        """
        status = status_of(self._name, self.state, self._master.shown(), self._master.paused, self.recorder.latest())
        status["stalled"] = self._driver.stalled() or None
        holder = self._holder()
        status["lease"] = None if holder is None or self.over else str(holder)
        return status

    def metrics(self) -> Table:
        """One row per task, with Flink's metric names.

        Times such as ``busyTimeMsPerSecond`` are milliseconds per second, watermarks microseconds since 1970.

        Source: Flink's metrics, by its names.
        """
        frame = self.recorder.latest()
        tasks = () if frame is None else frame.tasks
        return Table([{"task": task.name, "slot": task.slot, "state": task.state, **task.metrics} for task in tasks])

    def checkpoints(self) -> list[CheckpointFrame]:
        """The most recent checkpoints, oldest first.

        Source: F2-9 to F2-15; Flink's checkpoint history.
        """
        frame = self.recorder.latest()
        return [] if frame is None else list(frame.checkpoints)

    def late_records(self, operator: str | None = None) -> Table:
        """The last records that were dropped as late, oldest first: at most 20 of each subtask of an operator.

        Each row tells the operator and the task that dropped the record, its key, its event time and the watermark then
        (UTC text), how far it was behind that (None once event time was at its end), the task that sent it (several
        where small buffers of theirs were processed together), and the record itself as JSON text, with the columns
        that the operator needs. Those that ``side_output("late")`` takes are not dropped. It is up to a second old;
        `metrics` has the number of all, ``numLateRecordsDropped``.

        Source: late events that are dropped or logged, in the book's chapter on stream processing; see F2-5.

        Args:
            operator: only those of this one.

        Raises:
            JobError: no such operator.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("in-time")
            >>> job.wait("60s"), len(job.late_records())
            ('FINISHED', 0)
        """
        frame = self.recorder.latest()
        known = [] if frame is None else [item.uid for item in frame.operators]
        if operator is not None and operator not in known:
            raise JobError(unknown("operator", operator, known))
        tasks = () if frame is None else frame.tasks
        return Table(
            [
                {
                    "operator": late.operator, "task": task.name, "key": late.key,
                    "event_time": format_instant(late.event_time_us), "watermark": format_instant(late.watermark_us),
                    "behind": None if late.behind_us is None else format_duration(late.behind_us),
                    "source": late.source,
                    "record": late.record,
                }
                for task in tasks
                for late in task.late
                if operator in (None, late.operator)
            ]
        )  # fmt: skip

    def audit(self) -> Table:
        """What failures made the job count twice: for each task and restore, the records that reached it a second time.

        The sum of a task's records is what its state counts twice now. A job that goes back to one checkpoint several
        times has one row for it, of the last time: each restore undoes what came of those before.

        Empty as long as the checkpoints are taken exactly once. With ``checkpoint_mode="at-least-once"`` a task's
        snapshot holds records that came behind a barrier, and a job that goes on from it gets them again.

        Source: F2-9 to F2-15, the at-least-once mode, which does not block during alignment.
        """
        frame = self.recorder.latest()
        found = () if frame is None else frame.audit
        rows = [(f.checkpoint, format_instant(f.time_us), f.task, f.records) for f in found]
        return Table([dict(zip(("checkpoint", "restored", "task", "records"), row, strict=True)) for row in rows])

    def graph(self) -> PlanView:
        """The physical graph: as a picture with the rates of this moment, and what runs where as text and data.

        Source: F1-2, F2-2.
        """
        return PlanView(self._master.graph, self._name, self._master.settings, self.recorder.latest())

    def table(self, name: str | None = None) -> pa.Table:
        """The committed rows of a TableSink; the name may be left out when there is only one.

        Source: D1: rows are here once the checkpoint that ends their epoch is complete, and each once.

        Args:
            name: of the `TableSink`.

        Raises:
            JobError: no such table.
        """
        tables = self._master.services.tables
        names = tables.names()
        if name is None:
            if len(names) != 1:
                raise JobError(f"the job has {len(names)} tables: name one of {', '.join(names) or 'none'}")
            name = names[0]
        if name not in names:
            raise JobError(unknown("table", name, names))
        return tables.read(name)

    def dashboard(self, carrier: str | None = None) -> Any:
        """The live dashboard, to be displayed in a cell.

        Source: Flink's web dashboard.

        Args:
            carrier: what carries it to the page: ``"widget"`` (a Jupyter widget, for front ends that connect nothing
                else to the kernel) or ``"comm"``; None: what the environment variable WORKBENCH_CARRIER says, and
                without it a widget in VS Code and Colab and a comm elsewhere.

        Raises:
            SettingError: no such carrier.
        """
        return import_module("workbench.dashboard.shown.show").Dashboard(self, carrier=carrier)

    def view(self, name: str, carrier: str | None = None) -> Any:
        """One part of the dashboard alone, to be displayed in a cell: graph, subtasks, watermarks, latency, buffers,
        checkpoints, state, sink, events or controls; of a job with ``driver="stepping"`` also stepper.

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
        return import_module("workbench.dashboard.shown.show").Dashboard(self, name, carrier=carrier)

    def report(self, path: str | Path) -> Path:
        """Write the run to one HTML file that needs no network: graph, charts, checkpoints, events and settings.

        A slider in it goes back through moments of the run.

        Args:
            path: of the HTML file; one that exists is replaced.

        Raises:
            OSError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("reported")
            >>> job.wait("60s"), job.report(tempfile.mkdtemp() + "/run.html").name
            ('FINISHED', 'run.html')
        """
        return self._recorded().report(path)

    def recording(self, path: str | Path | None = None) -> Recording:
        """What the flight recorder holds of the run: the last five minutes, as a `Recording`.

        Source: ours, with Flink's metrics.

        Args:
            path: of a file to write it to; None: none is written.

        Raises:
            SettingError: the job has not been looked at yet.
            OSError: the file cannot be written.

        Example:
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("kept")
            >>> job.wait("60s"), job.recording().frames[-1].state
            ('FINISHED', 'FINISHED')
        """
        recording = self._recorded()
        if path is not None:
            recording.save(path)
        return recording

    def _recorded(self) -> Recording:
        return Recording(self._name, self.recorder.frames())

    def __repr__(self) -> str:
        return repr(self.status())

    def _repr_html_(self) -> str:
        return self.status()._repr_html_() + self.graph().svg
