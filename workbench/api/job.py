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

from workbench.api.picture import graph_svg
from workbench.api.report import write_report
from workbench.api.status import Status, Table
from workbench.drivers.driver import Driver
from workbench.drivers.stepping import Step, SteppingDriver
from workbench.durations import format_speed, parse_duration, parse_instant, parse_speed
from workbench.errors import JobError, SettingError, unknown
from workbench.runtime.master import ACTIVE, Master
from workbench.runtime.settings import TUNABLE
from workbench.runtime.storage import check_name
from workbench.telemetry.frames import CheckpointFrame
from workbench.telemetry.recorder import Recorder

APPLY_TIMEOUT_S = 2.0
"""How long a command waits until the master has applied it; the master never waits, so this is only for a busy
machine."""


class Job:
    """A running or ended job; made by ``Pipeline.run``.

    Example::

        job = delays.sink_to(wb.TableSink("delays")).run("delays", parallelism=2)
        job.tune(buffer_timeout="5ms", speed="max")
        job.wait(timeout="60s")
        job.table("delays")
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
    def state(self) -> str:
        """Flink's job state: CREATED, INITIALIZING, RUNNING, FAILING, RESTARTING, CANCELLING, CANCELED, FINISHED,
        FAILED."""
        return self._master.state

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.state not in ACTIVE

    def status(self) -> Status:
        """State, settings in force, progress and health in one dictionary."""
        settings = {**self._master.settings.shown(), "speed": self._speed()}
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

    def graph(self) -> GraphPicture:
        """The physical graph as a picture, with the rates of this moment."""
        return GraphPicture(graph_svg(self._master.graph, title=self._name, frame=self.recorder.latest()))

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
        """Change settings of the running job: buffer_timeout, buffer_size, checkpoint_interval, speed.

        All are checked before any is applied; when this returns they are in force.

        Raises:
            SettingError: an unknown setting or a bad value.
            JobError: the job has ended.
        """
        self._check_running()
        current = self._master.settings
        speed: float | None = None
        for name, value in settings.items():
            if name == "speed":
                if not self._master.services.paces:
                    raise SettingError("speed can be set for a replayed history only, and this job replays none")
                speed = parse_speed(value)  # type: ignore[arg-type]
            elif name in TUNABLE:
                current.with_value(name, value)
            else:
                raise SettingError(unknown("setting", name, TUNABLE))

        def apply() -> None:
            changed = self._master.settings
            others = {name: value for name, value in settings.items() if name != "speed"}
            for name, value in others.items():
                changed = changed.with_value(name, value)
            if others:
                shown = changed.shown()
                self._master.apply(changed, ", ".join(f"{name} = {shown[name]}" for name in others))
            if speed is not None:
                self._master.sources.set_speed(speed)

        self._apply(apply)
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

    def fail(self, task: str) -> None:
        """Crash a task, for example ``"aggregate[1]"``; the job recovers from its latest complete checkpoint.

        Raises:
            JobError: no such task.
        """
        self._check_running()
        known = [t.name for t in self._master.execution.tasks] if self._master.execution is not None else []
        if task not in known:
            alias = self._task_of_operator(task)
            if alias is None:
                raise JobError(unknown("task", task, known))
            task = alias
        self._apply(lambda: self._master.crash(task))

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
        """The stepping driver, with its further verbs: ``job.driver.next_watermark()``.

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
        """
        driver = self.driver
        steps = (driver.step() for _ in range(count))
        return [step for step in steps if step is not None]

    def report(self, path: str | Path) -> Path:
        """Write what is known of the run (graph, settings, checkpoints, events) to one self-contained HTML file."""
        return write_report(Path(path), self._master.graph, self.status(), self.recorder.latest())

    # inside ------------------------------------------------------------------------------------------------------

    def _speed(self) -> str | None:
        paces = list(self._master.services.paces.values())
        return format_speed(paces[0].speed) if paces else None

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


class GraphPicture:
    """A drawing of a graph; shows itself in a notebook."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "GraphPicture(svg); display it in a notebook, or write .svg to a file"
