"""The handle of a job: everything that a person sees of it or does to it goes through here.

What is seen comes from telemetry frames; what is done is posted to the job's master, which applies it between two
steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.api.plan_view import PlanView
from workbench.api.report import write_report
from workbench.api.state_view import JobState, StateView
from workbench.api.status import Status, Table
from workbench.api.tuning import Tuning, plan_for
from workbench.drivers.driver import Driver
from workbench.drivers.stepping import Step, SteppingDriver
from workbench.durations import parse_duration, parse_instant
from workbench.errors import JobError, unknown
from workbench.runtime.master import ACTIVE, Master
from workbench.runtime.rescaling import Rescale
from workbench.runtime.storage import check_name
from workbench.telemetry.frames import CheckpointFrame
from workbench.telemetry.recorder import Recorder

APPLY_TIMEOUT_S = 2.0
"""How long a command waits until the master has applied it; the master never waits, so this is only for a busy
machine."""


class Job:
    """A running or ended job; made by ``Pipeline.run``.

    Example:
        >>> clicks = pa.table({"user": ["a", "b"] * 500, "t": range(1000)})
        >>> counts = wb.Stream.from_table(clicks, event_time="t", rate=1000).key_by("user").aggregate(n=wb.count())
        >>> job = counts.sink_to(wb.TableSink("counts")).run("clicks", checkpoint_interval="50ms")
        >>> job.pause(); job.status()["paused"]  # it reads no further, and what is in flight goes on
        True
        >>> status = job.tune(buffer_timeout="5ms", rate=5000)
        >>> status = job.rescale(2)
        >>> job.checkpoint()  # now
        >>> job.fail("aggregate[1]")  # it goes on from the last complete checkpoint
        >>> job.resume()
        >>> job.wait("60s"), job.name, job.state, job.over
        ('FINISHED', 'clicks', 'FINISHED', True)
        >>> job.table("counts").num_rows  # each record once, in spite of all that
        1000
        >>> len(job.checkpoints()) > 0, len(job.metrics()), len(job.graph().vertices)
        (True, 4, 2)
    """

    def __init__(
        self, name: str, master: Master, driver: Driver, recorder: Recorder, rerun: Callable[[str], Job]
    ) -> None:
        self._name = name
        self._master = master
        self._driver = driver
        self._rerun = rerun
        self.recorder = recorder

    # seeing ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The job's name."""
        return self._name

    @property
    def state(self) -> JobState:
        """Flink's job state: CREATED, INITIALIZING, RUNNING, FAILING, RESTARTING, CANCELLING, CANCELED, FINISHED,
        FAILED.

        Called with the name of an operator it gives what that operator holds by key, to be asked while the job runs:
        ``job.state("aggregate").get("JFK")``; see `StateView`.
        """
        return JobState(self._master.state, self._view)

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.state not in ACTIVE

    def status(self) -> Status:
        """State, settings in force, progress and health in one dictionary."""
        settings = {**self._master.settings.shown(), **self._master.sources.shown()}
        return Status.of(self._name, self.state, settings, self._master.paused, self.recorder.latest())

    def metrics(self) -> Table:
        """One row per task, with Flink's metric names."""
        frame = self.recorder.latest()
        tasks = () if frame is None else frame.tasks
        return Table([{"task": task.name, "slot": task.slot, "state": task.state, **task.metrics} for task in tasks])

    def checkpoints(self) -> list[CheckpointFrame]:
        """The most recent checkpoints, oldest first."""
        frame = self.recorder.latest()
        return [] if frame is None else list(frame.checkpoints)

    def graph(self) -> PlanView:
        """The physical graph: as a picture with the rates of this moment, and what runs where as text and data."""
        return PlanView(self._master.graph, self._name, self._master.settings, self.recorder.latest())

    def table(self, name: str | None = None) -> pa.Table:
        """The committed rows of a TableSink; the name may be left out when there is only one.

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

    def dashboard(self) -> Any:
        """The live dashboard, to be displayed in a cell."""
        return import_module("workbench.dashboard").dashboard(self)

    def __repr__(self) -> str:
        return repr(self.status())

    def _repr_html_(self) -> str:
        return self.status()._repr_html_() + self.graph().svg

    # touching ----------------------------------------------------------------------------------------------------

    def tune(self, **settings: object) -> Status:
        """Change settings of the running job, whose names are in ``wb.SETTINGS``.

        All are checked before any is applied; when this returns they are in force.

        Args:
            buffer_timeout: ``"50ms"``; ``"0ms"``: every record at once; ``"disabled"``: only full buffers.
            buffer_size: records in a full buffer.
            checkpoint_interval: ``"5s"``, or ``"disabled"``.
            speed: of a replay, ``"600x"`` or ``"max"``.
            rate: records per second of each source that reads at a rate, or ``"max"``; of one of several sources:
                ``{"clicks": 50_000}`` or ``"clicks:50000"``.
            parallelism: see `rescale`.

        Raises:
            SettingError: an unknown setting or a bad value.
            JobError: the job has ended, or cannot be rescaled.
        """
        self._check_running()
        tuning = Tuning.of(self._master, settings)
        if tuning.parallelism is not None:
            plan_for(self._name, self._master, tuning.parallelism)
        self._apply(lambda: tuning.apply(self._master))
        return self.status() if tuning.parallelism is None else self.rescale(tuning.parallelism)

    def rescale(self, parallelism: int, *, timeout: str = "60s") -> Status:
        """Go on at another parallelism, from a checkpoint taken for it, without losing the place.

        Operators with a parallelism of their own keep it. It is no failure: nothing is processed twice.

        Raises:
            SettingError: not a whole number above zero.
            PlanError: the pipeline cannot run at this parallelism.
            JobError: a source cannot be read again from a position, the job is about to end, or the checkpoint failed
                or was not complete in time.
        """
        self._check_running()
        master = self._master
        wanted = master.settings.with_value("parallelism", parallelism).parallelism
        graph = plan_for(self._name, master, wanted)
        before = master.settings.parallelism
        if wanted == before:
            return self.status()
        reasons: list[str | None] = []
        ended = threading.Event()

        def done(reason: str | None) -> None:
            reasons.append(reason)
            ended.set()

        master.call(lambda: master.rescale(Rescale(wanted, graph, done)))
        if not self._driver.wait_for(ended, parse_duration(timeout, "timeout") / 1e6):
            raise JobError(
                f"the job {self._name!r} is not yet at parallelism {wanted} after {timeout}: its checkpoint is still "
                "under way, see job.checkpoints()"
            )
        if reasons[0] is not None:
            raise JobError(f"the job {self._name!r} stays at parallelism {before}: {reasons[0]}")
        return self.status()

    def pause(self) -> None:
        """Stop reading the sources; what is in flight goes on."""
        self._check_running()
        self._apply(lambda: self._master.sources.set_paused(True))

    def resume(self) -> None:
        """Read on."""
        self._check_running()
        self._apply(lambda: self._master.sources.set_paused(False))

    def seek(self, position: str | datetime) -> None:
        """Go to another arrival time of the replayed history, forwards or backwards.

        Event time never goes back: after a jump backwards the records read again are late.
        """
        self._check_running()
        if not self._master.services.paces:
            raise JobError("only a replayed history can be sought, and this job replays none")
        position_us = parse_instant(position, "position")
        self._apply(lambda: self._master.sources.seek(position_us))

    def checkpoint(self) -> None:
        """Take a checkpoint now."""
        self._check_running()
        self._apply(self._master.checkpoint)

    def savepoint(self, name: str, timeout: str = "60s") -> str:
        """Take a checkpoint that is kept until you delete it, and wait for it.

        Returns:
            Its folder; empty when checkpoints are kept in memory.

        Raises:
            CheckpointError: the name cannot be a file name.
            JobError: it exists already, was not complete in time, or failed.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10)
            >>> slow = numbers.sink_to(wb.TableSink("numbers"))
            >>> import tempfile
            >>> job = slow.run("slow", checkpoint_dir=tempfile.mkdtemp())
            >>> folder = job.savepoint("before-fix")
            >>> again = job.restore("before-fix")  # ends the job and goes back
            >>> job.state, again.name
            ('CANCELED', 'slow')
            >>> again.cancel(); again.wait("60s")
            'CANCELED'
        """
        self._check_running()
        check_name(name, "savepoint")
        if self._master.storage.savepoint(name) is not None:
            raise JobError(f"the savepoint {name!r} exists already: choose another name")
        done = threading.Event()
        self._master.on_savepoint(name, done.set)
        self._apply(lambda: self._master.checkpoint("savepoint", name))
        self._driver.wait_for(done, parse_duration(timeout, "timeout") / 1e6)
        manifest = self._master.storage.savepoint(name)
        if manifest is None and self.over:
            raise JobError(f"the savepoint {name!r} was not taken: the job ended before it ({self.state})")
        if manifest is None:
            raise JobError(f"the savepoint {name!r} was not complete within {timeout}: see job.checkpoints()")
        return self._master.storage.path_of(manifest.place)

    def restore(self, savepoint: str) -> Job:
        """Stop this job and run its pipeline again from a savepoint; returns the new job, under the same name."""
        if self._master.storage.savepoint(savepoint) is None:
            raise JobError(f"there is no savepoint {savepoint!r} in this job's checkpoint directory")
        self.cancel()
        self.wait()
        return self._rerun(savepoint)

    def fail(self, task: str | None = None, *, taskmanager: str | None = None) -> None:
        """Crash a task, ``"aggregate[1]"``, or a TaskManager with all its tasks, ``taskmanager="tm-1"``.

        The job recovers from its latest complete checkpoint.

        Raises:
            JobError: no such task or TaskManager.
        """
        self._check_running()
        if (task is None) == (taskmanager is None):
            raise JobError("say what is to fail: a task, such as fail('aggregate[1]'), or fail(taskmanager='tm-1')")
        tasks = [self._task_named(task)] if task is not None else self._tasks_of(str(taskmanager))
        self._apply(lambda: self._master.crash(*tasks))

    def stop(self) -> None:
        """Take a last checkpoint, so that everything processed is committed, then end; returns at once."""
        if not self.over:
            self._master.call(self._master.stop)

    def cancel(self) -> None:
        """End without a last checkpoint; returns at once."""
        if not self.over:
            self._master.call(self._master.cancel)

    def wait(self, timeout: str | None = None) -> str:
        """Wait until the job has ended; an interrupt ends the waiting, never the job.

        Returns:
            FINISHED or CANCELED.

        Raises:
            JobError: the job failed, or has not ended within `timeout`.
        """
        seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
        if not self._driver.wait_for(self._driver.ended, seconds):
            raise JobError(f"the job {self._name!r} is still {self.state} after {timeout}")
        if self.state == "FAILED":
            raise JobError(f"the job {self._name!r} failed: {self._master.failure}")
        return self.state

    @property
    def driver(self) -> SteppingDriver:
        """The stepping driver, with its further verbs: ``job.driver.next_watermark()``; see `step`.

        Raises:
            JobError: the job runs live.
        """
        if not isinstance(self._driver, SteppingDriver):
            raise JobError(
                f'the job {self._name!r} runs live and cannot be stepped: run its pipeline with driver="stepping"'
            )
        return self._driver

    def step(self, count: int = 1) -> list[Step]:
        """Take this many steps of a job that runs with ``driver="stepping"``; fewer when nothing can happen any more.

        Raises:
            JobError: the job runs live.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
            >>> job = pipeline.run("steps", driver="stepping")
            >>> len(job.step(3)), job.driver.run_until(lambda: job.over)
            (3, True)
        """
        driver = self.driver
        steps = (driver.step() for _ in range(count))
        return [step for step in steps if step is not None]

    def report(self, path: str | Path) -> Path:
        """Write what is known of the run (graph, settings, checkpoints, events) to one self-contained HTML file.

        Example:
            >>> import tempfile
            >>> job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("reported")
            >>> job.wait("60s"), job.report(tempfile.mkdtemp() + "/run.html").name
            ('FINISHED', 'run.html')
        """
        return write_report(Path(path), self._master.graph, self.status(), self.recorder.latest())

    # inside ------------------------------------------------------------------------------------------------------

    def _view(self, operator: str) -> StateView:
        self._check_running()
        master = self._master
        return StateView.of(
            operator,
            master.logical,
            lambda question: master.call(lambda: master.query(question)),
            lambda event, seconds: self._driver.wait_for(event, seconds),
        )

    def _task_named(self, name: str) -> str:
        known = [task for vertex in self._master.graph.vertices for task in vertex.tasks]
        task = name if name in known else self._task_of_operator(name)
        if task is None:
            raise JobError(unknown("task", name, known))
        return task

    def _tasks_of(self, taskmanager: str) -> list[str]:
        found: dict[str, list[str]] = {}
        for slot, tasks in self._master.graph.placement.items():
            found.setdefault(slot.partition("/")[0], []).extend(tasks)
        if taskmanager not in found:
            raise JobError(unknown("TaskManager", taskmanager, found))
        return found[taskmanager]

    def _task_of_operator(self, name: str) -> str | None:
        """The task that runs a chained operator: ``"filter[0]"`` runs in ``"source[0]"``."""
        uid, bracket, index = name.partition("[")
        vertex = self._master.graph.vertex_of(uid)
        if vertex is None or not bracket or not index.rstrip("]").isdigit():
            return None
        return f"{vertex.name}[{index}" if int(index.rstrip("]")) < vertex.parallelism else None

    def _check_running(self) -> None:
        if self.over:
            raise JobError(f"the job {self._name!r} has ended ({self.state}): run its pipeline again")

    def _apply(self, action: Callable[[], None]) -> None:
        """Have the master run `action`, and wait until it has."""
        done = threading.Event()

        def run() -> None:
            try:
                action()
            finally:
                done.set()

        self._master.call(run)
        self._driver.wait_for(done, APPLY_TIMEOUT_S)
