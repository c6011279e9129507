"""Assembles a job from plan, storage, master, driver and telemetry, and starts it."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.api.beginning.arrivals import recorded
from workbench.api.beginning.opening import Beginning
from workbench.api.beginning.preparing import prepare_kernels, prepare_others
from workbench.api.job.job import Job
from workbench.api.job.registry import check_free, forget, jobs, make_room, register
from workbench.api.job.repeating import unrepeatable, unrepeatable_ends
from workbench.api.job.run import Run
from workbench.api.kept.job_record import JobRecord, started_from, this_cell
from workbench.api.launching.assembling import build_master
from workbench.api.launching.claiming import claimed, let_go
from workbench.api.launching.job_log import JobLog
from workbench.api.launching.job_resources import JobResources
from workbench.api.launching.refusals import Plan, Runnable, RunRequest, check_beginning, check_directory, planned
from workbench.api.launching.standing_by import stand_by
from workbench.clock import Clock, SystemClock, VirtualClock
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.executor import SteppedExecutor, ThreadedExecutor
from workbench.drivers.live.live import LiveDriver
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.durable.holder import Holder
from workbench.durations import parse_speed
from workbench.errors import JobError, WorkbenchError
from workbench.raised import described
from workbench.runtime.job.life_cycle import LifeCycle
from workbench.runtime.job.master import Master
from workbench.runtime.job.observer import Observers
from workbench.runtime.settings.architecture import SNAPSHOTS
from workbench.runtime.settings.table import OF_TUNE
from workbench.runtime.storage import HeldError, MemoryStorage, lasting
from workbench.telemetry.recorder import RECENT_US, Recorder
from workbench.telemetry.sampler import Sampler
from workbench.telemetry.scene import held_by
from workbench.telemetry.stepping.narrators import narrator_for


def start_job(request: RunRequest) -> Job:
    """Run a pipeline; see `Pipeline.run` for the errors."""
    plan = planned(request)
    running = jobs().get(request.name) if request.replace else None
    if running is None or running.over:
        check_free(request.name)
    if request.checkpoint_dir is not None:
        request = replace(request, checkpoint_dir=lasting(request.checkpoint_dir))
    prepare_kernels(request.pipeline.logical_graph)
    run = secrets.token_hex(8)
    if running is not None:
        check_directory(request, running)
        check_beginning(request, running, plan)
        make_room(running)
    try:
        begin, held = claimed(request, plan, run), None
    except HeldError as error:
        if not request.standby:
            raise
        begin, held = Beginning(MemoryStorage(), None, 1, plan.graph), error
    try:
        job = Launch(request, plan, begin, held=held, run=run).start()
    except BaseException:
        let_go(begin)
        raise
    prepare_others()
    return job


class Launch:
    """One start of a pipeline: assembles storage, master, driver and telemetry, and starts the job.

    Args:
        request: the requested run.
        plan: of the run.
        begin: its initial resources.
        held: its checkpoint directory is owned by another process, which it waits for.
        start_us: time by its clock; None: now. A job that repeats steps starts at the same time.
        twin_of: the job whose steps it repeats; None: it is found by its name.
        first: number of its first frame.
        run: identifies this run; empty: a new one.
    """

    def __init__(
        self,
        request: RunRequest,
        plan: Plan,
        begin: Beginning,
        *,
        held: HeldError | None = None,
        start_us: int | None = None,
        twin_of: str | None = None,
        first: int = 0,
        run: str = "",
    ) -> None:
        self._run = run or secrets.token_hex(8)
        self._request = request
        self._plan = plan
        self._begin = begin
        self._held = held
        self._start_us = SystemClock().now_us() if start_us is None else start_us
        self._twin_of = twin_of
        self._cell = this_cell()
        name, stepping = request.name, request.driver == "stepping"
        self._recorder = Recorder(recent_us=None if stepping else RECENT_US)
        self._sampler = Sampler(self._recorder)
        self._sampler.first = first
        log = JobLog(name)
        look = _looking(self._sampler, log)
        self._driver: LiveDriver | SteppingDriver
        clock: Clock
        if stepping:
            clock = stepped = VirtualClock(self._start_us)
            self._driver = SteppingDriver(stepped, look, held_by, narrator_for(plan.settings.policy))
        else:
            clock = live = SystemClock()
            _resume_clock(clock, begin)
            self._driver = LiveDriver(name, live, look, activity=self._sampler.activity)
            self._recorder.refresh = self._driver.refresh
        log.watch(self._driver)
        executor = SteppedExecutor() if stepping else ThreadedExecutor(name)
        record = JobRecord(name, "RUNNING", clock.now_us(), self._given(), self._cell, Holder.this_process())
        self._resources = JobResources(begin, self._driver, executor, record)
        self._master = build_master(
            name,
            plan.logical,
            begin.graph,
            plan.settings,
            begin.storage,
            begin.manifest,
            begin.first_id,
            clock=clock,
            stage=self._driver,
            background=self._driver,
            observer=Observers(self._sampler, self._resources, log),
            tables=Tables(),
            data_dir=begin.directory,
            executor=executor,
            standby=held is not None,
            seed=zlib.crc32((twin_of or name).encode()),
            run=self._run,
        )
        self._sampler.watch(self._master)
        if (speed := request.values.get("speed")) is not None:
            self._master.sources.set_speed(parse_speed(speed))  # type: ignore[arg-type]
        if request.tempo is not None:
            self._master.sources.take_over(request.tempo)

    def start(self) -> Job:
        """Start the job.

        Raises:
            JobError: another job of this name has started in the meantime, or it could not be started.
        """
        master, name, held = self._master, self._request.name, self._held
        job = self._job()
        if self._twin_of is None:
            register(job)
        try:
            self._begins(self._begin)
            if held is not None:
                standby = stand_by(
                    name,
                    held.holder,
                    self._driver,
                    lambda: claimed(self._request, self._plan, self._run),
                    lambda successor, begin: self._goes_on(job, successor, begin),
                )
                self._resources.standby = standby
            self._driver.run(master)
            if held is not None:
                standby.start()
        except Exception:
            forget(job)
            self._resources.stop_heartbeat()
            raise
        if master.state == "FAILED" and not master.life.has_run and master.failure is not None:
            self._driver.ended.wait()  # by then the directory is free again
            job._run.told = True
            raise _not_started(name, master.life)
        return job

    def _job(self) -> Job:
        storage = None if self._held is not None else self._begin.storage
        run = Run(
            self._request.name,
            self._master,
            self._driver,
            self._recorder,
            rerun=self._rerun,
            record=self._record,
            watch=self._sampler.watch,
            holder=self._resources.holder,
            again=unrepeatable(self._plan.logical, storage) or self._again,
            beside=unrepeatable_ends(self._plan.logical) or self._beside,
            cell=self._cell,
        )
        return Job(run)

    def _given(self) -> dict[str, str | int | float | bool | None]:
        """The settings, as users write them."""
        shown = self._plan.settings.shown()
        return {
            setting: shown.get(setting, value if isinstance(value, int | str) else str(value))
            for setting, value in self._request.values.items()
            if value is not None
        }

    def _begins(self, begin: Beginning) -> None:
        self._resources.take(begin)
        for text in begin.news:
            self._sampler.on_event(self._master.services.clock.now_us(), "notice", text)

    def _goes_on(self, job: Job, successor: Master, begin: Beginning) -> None:
        _resume_clock(successor.services.clock, begin)
        self._begins(begin)
        job._run.hand_over(successor)

    def _rerun(self, savepoint: str | None, allow_non_restored_state: bool) -> Job:
        """Run the pipeline again with the present settings."""
        return self._run_on(
            resume=savepoint is None, restore=savepoint, allow_non_restored_state=allow_non_restored_state
        )

    def _record(self, path: str | Path, source: str | None) -> Job:
        """Replace the job by one that resumes from its last checkpoint and records a source."""
        if self._resources.directory is None:
            raise JobError(
                f"the job {self._request.name!r} keeps its checkpoints in memory, from which it cannot resume: run it "
                "with a checkpoint_dir, or record from the start with stream.record_to(path)"
            )
        pipeline = recorded(self._request.pipeline.logical_graph(), path, source)
        if pipeline.sink.folder.exists():
            pipeline.sink.check_fresh(SinkContext(self._request.name, "", pipeline.schema))
        return self._run_on(pipeline=pipeline, resume=True, restore=None, replace=True)

    def _run_on(self, **changes: Any) -> Job:
        values = {**self._request.values, **self._in_force({"max_parallelism", "fault_tolerance"})}
        directory = self._resources.directory
        given: dict[str, Any] = {
            "values": values,
            "checkpoint_dir": None if directory is None else directory.location,
            "standby": False,
            "replace": False,
            "tempo": self._driver.master.sources.tempo(),
        }
        with started_from(self._cell):
            return start_job(replace(self._request, **(given | changes)))

    def _in_force(self, others: set[str]) -> dict[str, Any]:
        """The present values of `others` and of the requested settings that can be tuned; the rest is as requested."""
        changes = others | (OF_TUNE.keys() & self._request.values.keys())
        master = self._driver.master
        policy = master.settings.fault_tolerance  # itself: as text, a URL in it has no password
        shown = {**master.shown(), "fault_tolerance": SNAPSHOTS if policy is None else policy}
        return {setting: value for setting, value in shown.items() if setting in changes}

    def _beside(self) -> tuple[Runnable, dict[str, Any]]:
        """The pipeline, and its settings for a run with another architecture that is to come to an end."""
        values = {**self._request.values, **self._in_force(set())}
        own = {"fault_tolerance", "at_end"}
        given = {setting: value for setting, value in values.items() if value is not None and setting not in own}
        return self._request.pipeline, given

    def _again(self, name: str, first: int) -> Job:
        """Repeat the same steps, in memory."""
        return Launch(
            replace(self._request, name=name),
            self._plan,
            Beginning(MemoryStorage(), None, 1, self._begin.graph),
            start_us=self._start_us,
            twin_of=self._twin_of or self._request.name,
            first=first,
        ).start()


def _looking(sampler: Sampler, log: JobLog) -> Callable[[], bool]:
    """Samples telemetry, and logs what has been counted; returns whether its frames have been read."""

    def look() -> bool:
        read = sampler.sample()
        log.look()
        return read

    return look


def _not_started(name: str, life: LifeCycle) -> Exception:
    failure, cause = life.failure, life.trace.restore()
    assert failure is not None
    if isinstance(failure, WorkbenchError):
        return failure
    error = JobError(f"the job {name!r} could not be started: {described(failure)}", trace=life.trace.text)
    error.__cause__ = cause
    return error


def _resume_clock(clock: Clock, begin: Beginning) -> None:
    """Processing time continues behind the checkpoint from which the job resumes."""
    if isinstance(clock, SystemClock) and begin.manifest is not None:
        clock.resume_from(begin.manifest.completed_us)
