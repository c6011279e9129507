"""What refuses a run and can be known before anything is taken or stopped for it: settings that cannot be, a pipeline
that cannot run so, and a checkpoint directory that the run cannot begin in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workbench.api.beginning.opening import matched, regrouped
from workbench.api.beginning.sink_places import check_fresh, check_places
from workbench.api.job.job import Job
from workbench.api.job.tuning import parse_replay_speed
from workbench.connectors.contract.base import Guarantee
from workbench.connectors.live.hybrid_source import replayed
from workbench.errors import CheckpointError, SettingError, unknown
from workbench.plan.guarantee import check_guarantee
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.redaction import redacted
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

DRIVERS = ("live", "stepping")
LIVE_TRANSIT_US = 4_000
"""Between threads a buffer waits for its receiver to wake up and for the interpreter; in virtual time it does not."""


class Runnable(Protocol):
    """What can be run: a pipeline."""

    def logical_graph(self) -> LogicalGraph:
        """Its operators."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How a pipeline is to run: nothing but what it finds in a checkpoint directory can refuse it now."""

    settings: Settings
    logical: LogicalGraph
    graph: PhysicalGraph


def planned(
    pipeline: Runnable,
    name: str,
    values: Mapping[str, object],
    *,
    checkpoint_dir: str | Path | None,
    resume: bool,
    restore: str | Path | None,
    standby: bool,
    guarantee: Guarantee | None,
    driver: str,
) -> Plan:
    """The plan of a run; see `Pipeline.run` for the arguments and errors."""
    check_name(name, "job name")
    transit_us = LIVE_TRANSIT_US if driver == "live" else 0
    settings = settings_of(values, Settings(transit_us=transit_us, guarantee=guarantee))
    if driver not in DRIVERS:
        raise SettingError(unknown("driver", driver, DRIVERS))
    if restore is not None and checkpoint_dir is None:
        raise CheckpointError(
            "restore needs a checkpoint_dir, too: what begins with a savepoint copies it there, and keeps its own "
            "checkpoints beside it"
        )
    if (resume or standby) and checkpoint_dir is None:
        raise CheckpointError("there is nothing to resume from: name the checkpoint_dir of the earlier run")
    if standby and (restore is not None or driver != "live"):
        raise SettingError("standby=True waits to resume a live job: leave out restore and driver='stepping'")
    logical = pipeline.logical_graph()
    if (speed := values.get("speed")) is not None:
        parse_replay_speed(any(replayed(node.spec) is not None for node in logical.nodes), speed)
    check_guarantee(logical, guarantee)
    graph = build_physical_graph(
        logical,
        settings.parallelism,
        settings.slots_per_taskmanager,
        local_aggregation=settings.local_aggregation is not None,
        max_parallelism=settings.max_parallelism,
    )
    check_places(logical)
    return Plan(settings, logical, graph)


def settings_of(values: Mapping[str, object], settings: Settings | None = None) -> Settings:
    """The settings that a person wrote, on top of others; speed is none.

    Raises:
        SettingError: an unknown name, or a value that cannot be.
    """
    settings = settings or Settings()
    for setting, value in values.items():
        if setting != "speed":
            settings = settings.with_value(setting, value)
    return settings.check()


def check_directory(checkpoint_dir: str, running: object, *, resume: bool, restore: str | None) -> None:
    """Refuse to begin afresh where checkpoints lie, or will lie when the job that is replaced has stopped, and to
    restore what is not there.

    Args:
        checkpoint_dir: a path or URI; nobody may write there but the running job.
        running: the job that is replaced, if there is one.
        resume: go on from what is there.
        restore: a savepoint's name or folder.

    Raises:
        CheckpointError: as above, or the directory cannot be looked into.
    """
    shown = redacted(checkpoint_dir)
    files = open_files(checkpoint_dir)
    reader = CheckpointReader(files)
    if restore is not None:
        with looked_into(files):
            known = is_name(restore) and reader.is_complete(folder_of(0, restore))
        if not known and folder_named(restore) is None:
            raise CheckpointError(
                f"there is no savepoint {redacted(restore)!r} in {shown!r}, and no folder of that name holds one: "
                "'%stream savepoints' lists those of the running job"
            )
        return
    if resume:
        return
    with looked_into(files):
        places = [*files.folders(), *(folder_of(0, name) for name in files.folders("savepoints"))]
        used = any(reader.is_complete(place) for place in places)
    if used or _is_of(running, checkpoint_dir):
        raise CheckpointError(
            f"the checkpoint directory {shown!r} holds the checkpoints of a job: add --resume to continue from the "
            "latest, --restore SAVEPOINT to go back to one, or choose another --checkpoint-dir (in Python resume=True, "
            "restore=SAVEPOINT, checkpoint_dir=)"
        )


def check_beginning(
    checkpoint_dir: str | None,
    running: object,
    name: str,
    plan: Plan,
    *,
    resume: bool,
    restore: str | None,
    allow_non_restored_state: bool,
) -> None:
    """Refuse a plan that cannot take the state that it would find when the job that it replaces has stopped, or that
    would begin afresh onto the rows of another run.

    Args:
        checkpoint_dir, running, resume, restore: as for `check_directory`.
        name: of the job.
        plan: of the run.
        allow_non_restored_state: drop state that no operator takes.

    Raises:
        CheckpointError: the state does not fit, is of fewer key groups than the plan has subtasks, or cannot be read.
        SinkError: a sink's folder or table holds rows of another run.
    """
    manifest: Manifest | None = None
    if checkpoint_dir is not None and restore is not None:
        manifest = _named(checkpoint_dir, restore)
        if manifest is not None:
            regrouped(plan.graph, plan.settings.max_parallelism, manifest.max_parallelism, manifest.place)
    elif checkpoint_dir is not None and isinstance(running, Job) and _is_of(running, checkpoint_dir):
        manifest = running._master.restart_point  # of the same operators as the one that it will leave
        groups = running._master.graph.max_parallelism
        regrouped(plan.graph, plan.settings.max_parallelism, groups, f"job {running.name!r}")
    if manifest is not None and not manifest.ignored:
        matched(manifest, plan.graph, allow_non_restored_state=allow_non_restored_state)
    if not resume and restore is None:
        check_fresh(plan.logical, name)


def _named(checkpoint_dir: str, savepoint: str) -> Manifest | None:
    """The manifest of a savepoint by its name or folder."""
    files = open_files(checkpoint_dir)
    reader = CheckpointReader(files)
    with looked_into(files):
        if is_name(savepoint) and reader.is_complete(place := folder_of(0, savepoint)):
            return reader.manifest(place)
    found = folder_named(savepoint)
    return None if found is None else CheckpointReader(found[0]).manifest(found[1])


def _is_of(job: object, checkpoint_dir: str | Path) -> bool:
    """Whether a running job keeps its checkpoints in this directory, where it leaves its last one."""
    storage = job._master.storage if isinstance(job, Job) and not job.over else None
    return isinstance(storage, DirectoryStorage) and storage.place_of(folder_in(str(checkpoint_dir), "x")) == "x"
