"""Checks that can reject a run before anything is acquired or stopped for it: invalid settings, a pipeline that cannot
run with them, and a checkpoint directory that the run cannot start in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workbench.api.beginning.opening import matched, no_savepoint, regrouped
from workbench.api.beginning.sink_places import check_fresh, check_places
from workbench.api.beginning.starting_over import check_starts_over
from workbench.api.job.job import Job
from workbench.api.job.tuning import parse_replay_speed
from workbench.api.kept.job_record import RECORD, JobRecord
from workbench.api.launching.parts import check_transactions
from workbench.arguments import option, true_or_false
from workbench.connectors.live.hybrid_source import replayed
from workbench.errors import CheckpointError, SettingError, unknown
from workbench.plan.acking import check_replayable, with_ackers
from workbench.plan.batchable import check_batches, stretched
from workbench.plan.guarantee import check_guarantee
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.redaction import redacted
from workbench.runtime.barriers.micro_batches import Batched
from workbench.runtime.job.source_control import Tempo
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import (
    CheckpointReader,
    DirectoryStorage,
    Manifest,
    check_name,
    folder_named,
    folder_of,
    is_name,
    open_files,
)
from workbench.runtime.storage.locations import folder_in, looked_into
from workbench.runtime.storage.manifest import SAVEPOINTS

DRIVERS = ("live", "stepping")
LIVE_TRANSIT_US = 4_000
"""Between threads a buffer waits for its receiver to wake up and for the interpreter; in virtual time it does not."""


class Runnable(Protocol):
    """Anything that can be run: a pipeline."""

    def logical_graph(self) -> LogicalGraph:
        """Its operators."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request to run a pipeline; see `Pipeline.run`.

    Attributes:
        pipeline: the pipeline.
        name: of the job.
        values: settings, as users write them.
        tempo: of the run that it replaces; None: as the pipeline says.
    """

    pipeline: Runnable
    name: str
    values: Mapping[str, object]
    checkpoint_dir: str | Path | None = None
    resume: bool = False
    restore: str | Path | None = None
    allow_non_restored_state: bool = False
    standby: bool = False
    incremental: bool = True
    driver: str = "live"
    replace: bool = False
    tempo: Tempo | None = None

    @property
    def resumes(self) -> bool:
        """Whether it resumes from what is in its checkpoint directory."""
        return self.resume or self.standby


@dataclass(frozen=True, slots=True)
class Plan:
    """How a pipeline is to run: after this, only the content of a checkpoint directory can reject it."""

    settings: Settings
    logical: LogicalGraph
    graph: PhysicalGraph


def planned(request: RunRequest) -> Plan:
    """The plan of a run; see `Pipeline.run` for the errors."""
    check_name(request.name, "job name")
    for name in ("resume", "incremental", "allow_non_restored_state", "standby", "replace"):
        true_or_false(getattr(request, name), name)
    settings = Settings(transit_us=LIVE_TRANSIT_US if request.driver == "live" else 0).with_values(request.values)
    if request.driver not in DRIVERS:
        raise SettingError(unknown("driver", request.driver, DRIVERS))
    if request.restore is not None and request.checkpoint_dir is None:
        raise CheckpointError(
            f"{option('restore', '')} also needs a {option('checkpoint_dir', '')}: the job copies the savepoint there "
            "and keeps its own checkpoints beside it"
        )
    if request.resumes and request.checkpoint_dir is None:
        raise CheckpointError(
            f"there is nothing to resume from: name the {option('checkpoint_dir', '')} of the earlier run"
        )
    if request.standby and (request.restore is not None or request.driver != "live"):
        raise SettingError(
            f"{option('standby')} waits to resume a live job: leave out {option('restore', '')} and "
            f"{option('driver', '')}"
        )
    logical = _batched(request.pipeline.logical_graph(), settings.policy.batches)
    if (speed := request.values.get("speed")) is not None:
        parse_replay_speed(any(replayed(node.spec) is not None for node in logical.nodes), speed)
    check_guarantee(logical, settings.guarantee)
    if settings.ackers:
        check_replayable(logical)
    graph = build_physical_graph(
        logical,
        settings.parallelism,
        settings.slots_per_taskmanager,
        local_aggregation=settings.local_aggregation is not None and not settings.ackers,
        max_parallelism=settings.max_parallelism,
    )
    check_places(logical)
    check_transactions(settings.policy, logical, graph)
    return Plan(settings, logical, with_ackers(graph, settings.ackers))


def _batched(logical: LogicalGraph, batches: Batched | None) -> LogicalGraph:
    """The graph as it runs with micro-batches; rejects what cannot be expressed with them."""
    if batches is None:
        return logical
    logical = stretched(logical, batches.interval_us) if batches.stretches else logical
    check_batches(logical, batches.interval_us)
    return logical


def check_directory(request: RunRequest, running: Job | None) -> None:
    """Reject a start without a checkpoint where checkpoints exist, or will exist when the replaced job has stopped,
    that may not be set aside, and a restore of something that does not exist.

    Args:
        request: of the run; without a checkpoint directory, nothing is checked.
        running: the job that is replaced, if any; no other job may write to the directory.

    Raises:
        CheckpointError: as above, or the directory cannot be read.
    """
    if request.checkpoint_dir is None:
        return
    checkpoint_dir = str(request.checkpoint_dir)
    shown = redacted(checkpoint_dir)
    files = open_files(checkpoint_dir)
    reader = CheckpointReader(files)
    if request.restore is not None:
        restore = str(request.restore)
        with looked_into(files):
            known = is_name(restore) and reader.is_complete(folder_of(0, restore))
        if not known and folder_named(restore) is None:
            with looked_into(files):
                names = [name for name in files.folders(SAVEPOINTS) if reader.is_complete(folder_of(0, name))]
            raise no_savepoint(restore, shown, names)
        return
    if request.resumes:
        return
    if _is_of(running, checkpoint_dir):
        if not request.replace:
            raise CheckpointError(
                f"the checkpoint directory {shown!r} holds the checkpoints of the running job {request.name!r}: "
                f"continue it with {option('resume')}, start over with {option('replace')}, which sets them aside, or "
                f"choose another {option('checkpoint_dir', '')}"
            )
        return
    with looked_into(files):
        latest = reader.latest()
        record = JobRecord.from_json(reader.bytes_of(RECORD)) if files.exists(RECORD) else None
    if latest is not None:
        check_starts_over(shown, latest, record, request.name, replace=request.replace)


def check_beginning(request: RunRequest, running: Job | None, plan: Plan) -> None:
    """Reject a plan that cannot restore the state that it will find when the replaced job has stopped, or that would
    start without a checkpoint where a sink has rows of another run.

    Args:
        request, running: as for `check_directory`.
        plan: of the run.

    Raises:
        CheckpointError: the state does not fit, is of fewer key groups than the plan has subtasks, or cannot be read.
        SinkError: a sink's folder or table holds rows of another run.
    """
    manifest: Manifest | None = None
    checkpoint_dir = None if request.checkpoint_dir is None else str(request.checkpoint_dir)
    if checkpoint_dir is not None and request.restore is not None:
        manifest = _named(checkpoint_dir, str(request.restore))
        if manifest is not None:
            regrouped(plan.graph, plan.settings.max_parallelism, manifest.max_parallelism, manifest.place)
    elif checkpoint_dir is not None and running is not None and _is_of(running, checkpoint_dir):
        master = running._run.master
        manifest = master.restart_point  # of the same operators as the one that it will leave
        regrouped(plan.graph, plan.settings.max_parallelism, master.graph.max_parallelism, f"job {running.name!r}")
    if manifest is not None and not manifest.ignored:
        matched(manifest, plan.graph, allow_non_restored_state=request.allow_non_restored_state)
    if not request.resumes and request.restore is None:
        check_fresh(plan.logical, request.name)


def _named(checkpoint_dir: str, savepoint: str) -> Manifest | None:
    """The manifest of a savepoint, given its name or folder."""
    files = open_files(checkpoint_dir)
    reader = CheckpointReader(files)
    with looked_into(files):
        if is_name(savepoint) and reader.is_complete(place := folder_of(0, savepoint)):
            return reader.manifest(place)
    found = folder_named(savepoint)
    return None if found is None else CheckpointReader(found[0]).manifest(found[1])


def _is_of(job: Job | None, checkpoint_dir: str) -> bool:
    """Whether a running job keeps its checkpoints in this directory, where it writes its last one."""
    if job is None or job.over or job.engine == "spark":  # Spark's jobs lock their directories
        return False
    storage = job._run.master.storage
    return isinstance(storage, DirectoryStorage) and storage.place_of(folder_in(checkpoint_dir, "x")) == "x"
