"""Assembles a job's master with its coordinator and services, for any driver."""

from __future__ import annotations

import zlib
from pathlib import Path

from workbench.api.launching.parts import opened_parts
from workbench.clock import Clock
from workbench.connectors.live.hybrid_source import replayed
from workbench.connectors.tables.tables import Tables
from workbench.operators.contract.executor import Executor
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.master import Master
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import CheckpointStorage, Manifest
from workbench.runtime.tasks.execution import JobServices
from workbench.runtime.tasks.stage import Stage


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
    """A job's master with its coordinator, on any driver; `manifest` is the checkpoint to start from, `run` identifies
    the run of the job."""
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
        parts=opened_parts(settings.policy, background, clock, run),
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
