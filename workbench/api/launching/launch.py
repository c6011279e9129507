"""Puts a job together: plan, storage, master, driver and telemetry, and starts it."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from workbench.api.beginning.opening import Beginning, keep_held, matched, open_storage, regrouped
from workbench.api.beginning.preparing import prepare_kernels
from workbench.api.beginning.sink_places import check_sinks, check_tables, take_folders
from workbench.api.job.job import Job
from workbench.api.job.registry import check_free, forget, jobs, make_room, register
from workbench.api.job.repeating import unrepeatable
from workbench.api.kept.job_record import RECORD, JobRecord, known_directories, started_from, this_cell
from workbench.api.launching.refusals import Plan, Runnable, check_beginning, check_directory, planned
from workbench.api.launching.standing_by import stand_by
from workbench.clock import Clock, SystemClock, VirtualClock
from workbench.connectors.contract.base import Guarantee
from workbench.connectors.live.hybrid_source import replayed
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.driver import Driver
from workbench.drivers.contract.executor import SteppedExecutor, ThreadedExecutor
from workbench.drivers.contract.heartbeat import Heartbeat
from workbench.drivers.live.live import LiveDriver
from workbench.drivers.live.standby import Standby
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.durations import parse_speed
from workbench.errors import JobError, WorkbenchError
from workbench.observer import JobObserver
from workbench.operators.contract.executor import Executor
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph
from workbench.raised import described
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.master import Master
from workbench.runtime.job.source_control import Tempo
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import (
    CheckpointStorage,
    DirectoryStorage,
    HeldError,
    Holder,
    Manifest,
    MemoryStorage,
    lasting,
)
from workbench.runtime.storage.directory import INCREMENTAL_ABOVE_BYTES
from workbench.runtime.tasks.deployment import JobServices
from workbench.runtime.tasks.stage import Stage
from workbench.telemetry.recorder import Recorder
from workbench.telemetry.sampler import Sampler


class _JobSampler(Sampler):
    """Also gives the checkpoint directory and the sinks' folders free when the job has ended."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.begin: Beginning | None = None
        self.driver: Driver | None = None
        self.executor: ThreadedExecutor | SteppedExecutor | None = None
        self.heartbeat: Heartbeat | None = None
        self.standby: Standby[Beginning] | None = None
        self.record: JobRecord | None = None

    def holder(self) -> Holder | None:
        """Who has the checkpoint directory, if there is one and it is known."""
        if (storage := self.directory()) is not None:
            return storage.holder
        return None if self.standby is None else self.standby.holder

    def directory(self) -> DirectoryStorage | None:
        """The checkpoint directory, if there is one."""
        storage = None if self.begin is None else self.begin.storage
        return storage if isinstance(storage, DirectoryStorage) else None

    def on_end(self, time_us: int) -> None:
        """Give all free behind everything that is still to be written there."""
        if self.executor is not None:
            self.executor.close()
        if self.heartbeat is not None:
            self.heartbeat.stop()
        if self.standby is not None:
            self.standby.stop()
        if self.begin is not None and self.begin.held and self.driver is not None:
            self.driver.submit(self._leave, lambda result: None)

    def keep(self, state: str) -> None:
        """Write down what there is to know of the job, for whoever finds its directory."""
        if (storage := self.directory()) is not None and self.record is not None:
            self.record = replace(self.record, state=state)
            storage.keep(RECORD, self.record.to_json())

    def _leave(self) -> None:
        assert self.driver is not None
        assert self.begin is not None
        try:
            self.keep(self.driver.master.state)
        finally:
            self.begin.close()


def start_job(
    pipeline: Runnable,
    name: str,
    values: dict[str, object],
    *,
    checkpoint_dir: str | Path | None,
    resume: bool,
    restore: str | Path | None,
    incremental: bool = True,
    allow_non_restored_state: bool = False,
    standby: bool = False,
    guarantee: Guarantee | None = None,
    driver: Literal["live", "stepping"] = "live",
    replace: bool = False,
    tempo: Tempo | None = None,
) -> Job:
    """Run a pipeline; see `Pipeline.run` for the arguments and errors."""
    plan = planned(
        pipeline,
        name,
        values,
        checkpoint_dir=checkpoint_dir,
        resume=resume,
        restore=restore,
        standby=standby,
        guarantee=guarantee,
        driver=driver,
    )
    running = jobs().get(name) if replace else None
    if running is None or running.over:
        check_free(name)
    if checkpoint_dir is not None:
        checkpoint_dir = lasting(checkpoint_dir)
    prepare_kernels()
    if running is not None:
        folder = None if checkpoint_dir is None else str(checkpoint_dir)
        savepoint = None if restore is None else str(restore)
        if folder is not None:
            check_directory(folder, running, resume=resume or standby, restore=savepoint)
        check_beginning(
            folder,
            running,
            name,
            plan,
            resume=resume or standby,
            restore=savepoint,
            allow_non_restored_state=allow_non_restored_state,
        )
        make_room(running)
    above_bytes = INCREMENTAL_ABOVE_BYTES if incremental else None

    def claim() -> Beginning:
        storage, manifest, first_id = open_storage(checkpoint_dir, resume or standby, restore, above_bytes)
        try:
            graph = plan.graph
            news: tuple[str, ...] = ()
            if manifest is not None:
                what = f"{manifest.place} of job {manifest.job!r}"
                graph = regrouped(graph, plan.settings.max_parallelism, manifest.max_parallelism, what)
                manifest, news = matched(manifest, graph, allow_non_restored_state=allow_non_restored_state)
            check_tables(plan.logical, storage)
            begin = Beginning(storage, manifest, first_id, graph, news, take_folders(plan.logical, name, storage))
        except BaseException:
            _let_go(Beginning(storage, None, first_id, plan.graph))
            raise
        try:
            check_sinks(plan.logical, name, fresh=manifest is None)
        except BaseException:
            _let_go(begin)
            raise
        return begin

    held: HeldError | None = None
    try:
        begin = claim()
    except HeldError as error:
        if not standby:
            raise
        begin, held = Beginning(MemoryStorage(), None, 1, plan.graph), error
    try:
        return _start(pipeline, name, values, plan, begin, driver, incremental, claim, held, _Start(name, tempo=tempo))
    except BaseException:
        _let_go(begin)
        raise


def _let_go(begin: Beginning) -> None:
    try:
        if isinstance(begin.storage, DirectoryStorage):
            begin.storage.undo_take_back()
    finally:
        begin.close()


@dataclass(frozen=True, slots=True)
class _Start:
    """What chance and time a job begins with; the same for one that takes the same steps again.

    Attributes:
        seed: a name from which the seed of random exchanges is made.
        time_us: by the clock; None: now.
        known: it is found by its name.
        first: number of its first frame.
        tempo: of the run whose place it takes; None: as the pipeline says.
    """

    seed: str
    time_us: int | None = None
    known: bool = True
    first: int = 0
    tempo: Tempo | None = None


def _start(
    pipeline: Runnable,
    name: str,
    values: dict[str, object],
    plan: Plan,
    begin: Beginning,
    kind: Literal["live", "stepping"],
    incremental: bool,
    claim: Callable[[], Beginning],
    held: HeldError | None,
    start: _Start,
) -> Job:
    logical, settings = plan.logical, plan.settings
    recorder = Recorder()
    sampler = _JobSampler(recorder)
    sampler.first = start.first
    clock: SystemClock | VirtualClock
    driver: Driver
    start_us = SystemClock().now_us() if start.time_us is None else start.time_us
    if kind == "stepping":
        clock = VirtualClock(start_us)
        driver = SteppingDriver(clock, sampler.sample)
    else:
        clock = SystemClock()
        driver = LiveDriver(name, clock, sampler.sample, activity=sampler.activity)
    sampler.executor = SteppedExecutor() if kind == "stepping" else ThreadedExecutor(name)
    storage = begin.storage
    directory = storage.directory if isinstance(storage, DirectoryStorage) else None
    master = build_master(
        name,
        logical,
        begin.graph,
        settings,
        storage,
        begin.manifest,
        begin.first_id,
        clock=clock,
        stage=driver,
        background=driver,
        observer=sampler,
        tables=Tables(),
        data_dir=directory,
        executor=sampler.executor,
        standby=held is not None,
        seed=zlib.crc32(start.seed.encode()),
        run=secrets.token_hex(8),
    )
    sampler.watch(master)
    sampler.driver = driver
    if (speed := values.get("speed")) is not None:
        master.sources.set_speed(parse_speed(speed))  # type: ignore[arg-type]
    if start.tempo is not None:
        master.sources.take_over(start.tempo)

    cell = this_cell()

    def rerun(savepoint: str | None, allow_non_restored_state: bool) -> Job:
        in_force = driver.master.shown()
        with started_from(cell):
            return start_job(
                pipeline,
                name,
                values | {setting: value for setting, value in in_force.items() if setting in values},
                checkpoint_dir=None if (kept := sampler.directory()) is None else kept.location,
                resume=savepoint is None,
                restore=savepoint,
                incremental=incremental,
                allow_non_restored_state=allow_non_restored_state,
                guarantee=settings.guarantee,
                driver=kind,
                tempo=driver.master.sources.tempo(),
            )

    def again(new_name: str, first: int) -> Job:
        fresh = Beginning(MemoryStorage(), None, 1, begin.graph)
        twin = _Start(start.seed, start_us, known=False, first=first, tempo=start.tempo)
        return _start(pipeline, new_name, values, plan, fresh, kind, incremental, claim, None, twin)

    whether = unrepeatable(logical, storage if held is None else None) or again
    job = Job(name, master, driver, recorder, rerun, sampler.watch, sampler.holder, whether)

    def begins(begin: Beginning) -> None:
        sampler.begin = begin
        if isinstance(begin.storage, DirectoryStorage):
            sampler.keep("RUNNING")
            if (known := known_directories()) is not None:
                known.add(str(begin.storage.directory or begin.storage.location))
        if begin.held:
            sampler.heartbeat = keep_held(begin, driver)
        for text in begin.news:
            sampler.on_event(clock.now_us(), "notice", text)

    def goes_on(successor: Master, begin: Beginning) -> None:
        begins(begin)
        job._hand_over(successor)

    shown = settings.shown()
    given = {
        setting: shown.get(setting, value if isinstance(value, int | str) else str(value))
        for setting, value in values.items()
        if value is not None
    }
    sampler.record = JobRecord(name, "RUNNING", clock.now_us(), given, cell)
    if start.known:
        register(job)
    try:
        begins(begin)
        if held is not None:
            sampler.standby = stand_by(name, held.holder, driver, claim, goes_on)
        driver.run(master)
        if sampler.standby is not None:
            sampler.standby.start()
    except Exception:
        forget(job)
        if sampler.heartbeat is not None:
            sampler.heartbeat.stop()
        raise
    if master.state == "FAILED" and not master.life.has_run and master.failure is not None:
        driver.ended.wait()  # by then the directory is free again
        raise _not_started(name, master.failure)
    return job


def _not_started(name: str, failure: Exception) -> Exception:
    if isinstance(failure, WorkbenchError):
        return failure
    error = JobError(f"the job {name!r} could not be started: {described(failure)}")
    error.__cause__ = failure
    return error


def build_master(
    name: str,
    logical: LogicalGraph,
    graph: PhysicalGraph,
    settings: Settings,
    storage: CheckpointStorage,
    manifest: Manifest | None,
    first_id: int,
    *,
    clock: Clock,
    stage: Stage,
    background: Background,
    observer: JobObserver,
    tables: Tables,
    data_dir: Path | None,
    executor: Executor | None = None,
    standby: bool = False,
    seed: int | None = None,
    run: str = "",
) -> Master:
    """A job's master with its coordinator, on any driver; `manifest` is the checkpoint to begin with, `run` says which
    run of the job it is."""
    services = JobServices(
        job=name,
        clock=clock,
        tables=tables,
        data_dir=data_dir,
        paces={
            uid: replay.open_pace(clock.now_us())
            for node, uid in logical.uids.items()
            if (replay := replayed(node.spec)) is not None
        },
        executor=executor,
        seed=zlib.crc32(name.encode()) if seed is None else seed,
        run=run,
    )
    coordinator = CheckpointCoordinator(
        job=name,
        storage=storage,
        background=background,
        graph=graph,
        first_id=first_id,
    )
    return Master(
        logical=logical,
        graph=graph,
        settings=settings,
        services=services,
        storage=storage,
        coordinator=coordinator,
        stage=stage,
        observer=observer,
        restore_from=manifest,
        standby=standby,
    )
