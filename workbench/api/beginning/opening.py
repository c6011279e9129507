"""The start of a job: its checkpoint directory, the checkpoint to restore, and the operators that take its state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.api.beginning.starting_over import check_starts_over, in_use
from workbench.api.kept.job_record import RECORD, JobRecord
from workbench.arguments import option
from workbench.clock import rest
from workbench.connectors.contract.base import Held
from workbench.drivers.contract.driver import Driver
from workbench.drivers.contract.heartbeat import Heartbeat
from workbench.errors import CheckpointError
from workbench.plan.physical import PhysicalGraph
from workbench.redaction import redacted
from workbench.runtime.storage import (
    CheckpointReader,
    CheckpointStorage,
    DirectoryStorage,
    Manifest,
    MemoryStorage,
    folder_named,
    is_name,
    is_place,
)
from workbench.runtime.storage.directory import INCREMENTAL_ABOVE_BYTES
from workbench.runtime.storage.held import DoubtfulLeaseError
from workbench.runtime.storage.lease import HEARTBEAT_US, LEASE_US, SETTLE_US
from workbench.state.key_groups import default_max_parallelism

_FIRST_ID_MAX = 2**61
_WATCHED_EVERY_S = 0.25
"""How often a lease that looks old is read while it is watched."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The initial resources of a job.

    Attributes:
        storage: of its checkpoints.
        manifest: of the checkpoint to restore, if any.
        first_id: id of its first checkpoint.
        graph: the plan, with the checkpoint's number of key groups unless the run sets another number.
        news: messages for the job's log.
        places: of its sinks, which no other job writes to.
    """

    storage: CheckpointStorage
    manifest: Manifest | None
    first_id: int
    graph: PhysicalGraph
    news: tuple[str, ...] = ()
    places: tuple[Held, ...] = ()

    @property
    def held(self) -> bool:
        """Whether it owns anything that no other job may use."""
        return isinstance(self.storage, DirectoryStorage) or bool(self.places)

    @property
    def directory(self) -> Path | None:
        """The checkpoint directory, if it is a folder on this machine."""
        return self.storage.directory if isinstance(self.storage, DirectoryStorage) else None

    def beat(self) -> None:
        """Called every few seconds while the job runs.

        Raises:
            CheckpointError: another process has taken the directory.
            SinkError: another job has taken the place of a sink.
        """
        if isinstance(self.storage, DirectoryStorage):
            self.storage.beat()
        for place in self.places:
            place.keep()

    def close(self) -> None:
        """Release everything, the directory last: a standby that waits for the directory then acquires the places."""
        for place in self.places:
            place.release()
        if isinstance(self.storage, DirectoryStorage):
            self.storage.close()


def open_storage(
    checkpoint_dir: str | Path | None,
    resume: bool,
    restore: str | Path | None,
    incremental_above_bytes: int | None = INCREMENTAL_ABOVE_BYTES,
    job: str = "",
    replace: bool = False,
) -> tuple[CheckpointStorage, Manifest | None, int]:
    """The storage, the checkpoint to start from, and the id of the first new one.

    Args:
        checkpoint_dir, resume, restore, incremental_above_bytes: as the run asks.
        job: its name.
        replace: it may start over where an earlier run of the job has left checkpoints; see `check_starts_over`. They
            are still there when this returns.
    """
    if checkpoint_dir is None:
        return MemoryStorage(), None, 1
    storage = _acquired(checkpoint_dir, incremental_above_bytes)
    try:
        if storage.directory is None:
            rest(SETTLE_US / 1e6)
            storage.settle()
        if restore is None and storage.unused:
            return storage, None, 1
        storage.sync_names()
        to_leave = False
        if restore is not None:
            manifest: Manifest | None = _to_restore(storage, restore)
        elif (manifest := storage.latest()) is not None and not resume:
            record = JobRecord.from_json(storage.kept(RECORD))
            check_starts_over(storage.shown, manifest, record, job, replace=replace)
            manifest, to_leave = None, True
        first_id = storage.highest_id() + 1
        if manifest is not None:
            first_id = max(first_id, manifest.checkpoint_id + 1)
        if first_id > _FIRST_ID_MAX:
            raise CheckpointError(
                f"the checkpoint directory {storage.shown!r} has a checkpoint with the number {first_id - 1}, which "
                "leaves no number for later ones: choose another checkpoint or savepoint"
            )
        if restore is not None and manifest is not None:
            storage.take_back(manifest, first_id)
        storage.remove_incomplete()
        if manifest is None and not to_leave:
            storage.remove_shared()  # left by a run that completed no checkpoint
    except BaseException:
        storage.close()
        raise
    return storage, manifest, first_id


def _acquired(checkpoint_dir: str | Path, incremental_above_bytes: int | None) -> DirectoryStorage:
    """The directory, once it is certain that the owner that its lease names does not renew it any more."""
    looks = int(LEASE_US / 1e6 / _WATCHED_EVERY_S)
    while True:
        try:
            return DirectoryStorage(checkpoint_dir, incremental_above_bytes=incremental_above_bytes)
        except DoubtfulLeaseError:
            looks -= 1
            if looks < 0:  # it is renewed
                raise
            rest(_WATCHED_EVERY_S)


def _to_restore(storage: DirectoryStorage, wanted: str | Path) -> Manifest:
    """The savepoint of that name, or a copy of the one in that folder."""
    text = str(wanted)
    if is_name(text) and (manifest := storage.savepoint(text)) is not None:
        return manifest
    own = storage.place_of(text)
    if own is not None and is_place(own) and (manifest := storage.complete_at(own)) is not None:
        return manifest
    found = folder_named(text)
    if found is None:
        names = [manifest.place.rpartition("/")[2] for manifest in storage.savepoints()]
        raise no_savepoint(text, storage.shown, names)
    latest = storage.latest()
    if latest is not None and latest != CheckpointReader(found[0]).manifest(found[1]):
        held = in_use(storage.shown, latest, JobRecord.from_json(storage.kept(RECORD)))
        raise CheckpointError(
            f"{held}: continue it with {option('resume')}, or choose another {option('checkpoint_dir', '')} for a run "
            "that starts from a savepoint elsewhere"
        )
    return latest or storage.bring_in(*found)


def no_savepoint(wanted: str, shown: str, names: Sequence[str]) -> CheckpointError:
    """The error for a savepoint to restore that there is not.

    Args:
        wanted: its name or folder.
        shown: the checkpoint directory, with secrets masked.
        names: of the savepoints in it.
    """
    return CheckpointError(
        f"there is no savepoint {redacted(wanted)!r} in {shown!r}, and no folder of that name contains one: choose one "
        f"of {', '.join(names) or 'those of another run, by their folders'}"
    )


def matched(
    manifest: Manifest, graph: PhysicalGraph, *, allow_non_restored_state: bool
) -> tuple[Manifest, tuple[str, ...]]:
    """The part of a checkpoint that this plan restores, and messages about it.

    Raises:
        CheckpointError: it has state of operators that the plan does not have, or that have other kinds under the same
            uids, and dropping it was not allowed.
    """
    kinds = graph.kinds
    others = sorted(uid for uid in manifest.operators & kinds.keys() if not _takes(kinds[uid], manifest.kinds.get(uid)))
    if others and not allow_non_restored_state:
        uid = others[0]
        raise CheckpointError(
            f"the state of operator {uid!r} in {manifest.place} of job {manifest.job!r} belongs to a "
            f"{manifest.kinds[uid]}, but this pipeline has a {kinds[uid]} with that uid, which cannot restore it: give "
            f"that operator another uid, or drop the state with {option('allow_non_restored_state')}"
        )
    known = kinds.keys()
    dropped = sorted(manifest.operators - known)
    if dropped and not allow_non_restored_state:
        taker = f"give the operator that should restore it .uid({dropped[0]!r})"
        if manifest.kinds.get(dropped[0], "").endswith("Sink"):
            taker = f"give the sink that should restore it a table or folder named {dropped[0]!r}"
        raise CheckpointError(
            f"{manifest.place} of job {manifest.job!r} has state of {_listed(dropped)}, which this pipeline does not "
            f"have (it has {', '.join(sorted(known))}): {taker}, or drop the state with "
            f"{option('allow_non_restored_state')}"
        )
    dropped = sorted([*dropped, *others])
    news = [f"the state of {_listed(dropped)} in {manifest.place} is dropped"] if dropped else []
    fresh = sorted(known - manifest.parallelism.keys())
    if fresh:
        verbs = ("begin", "they are") if fresh[1:] else ("begins", "it is")
        news.append(f"{_listed(fresh)} {verbs[0]} without state: {verbs[1]} new since {manifest.place}")
    return replace(manifest, ignored=frozenset(dropped)), tuple(news)


def regrouped(graph: PhysicalGraph, asked: int | None, max_parallelism: int, what: str) -> PhysicalGraph:
    """The plan with as many key groups as the state that it restores, unless the run sets another number.

    With another number the keys of the state are hashed again, so the number can be changed later.

    Args:
        graph: the plan.
        asked: the `max_parallelism` of the run.
        max_parallelism: of the state to restore.
        what: describes that state, for errors.

    Raises:
        CheckpointError: the plan has more subtasks of an operator.
    """
    if asked is not None or max_parallelism == graph.max_parallelism:
        return graph
    widest = max(graph.vertices, key=lambda vertex: vertex.parallelism)
    if widest.parallelism > max_parallelism:
        raise CheckpointError(
            f"the parallelism of {widest.name!r} is {widest.parallelism}, and {what} has max_parallelism "
            f"{max_parallelism}: lower the parallelism, or set max_parallelism to "
            f"{default_max_parallelism(widest.parallelism)}, which redistributes the state"
        )
    return replace(graph, max_parallelism=max_parallelism)


def _takes(kind: str, saved: str | None) -> bool:
    """Whether an operator of this kind can restore what an operator of the saved kind has saved.

    Checkpoints of earlier versions do not record which windows an operator had, or do not record kinds at all.
    """
    return saved in (None, kind, kind.partition(" ")[0])


def keep_held(begin: Beginning, driver: Driver) -> Heartbeat:
    """Renew ownership of the job's resources, and end the job when it has lost them."""

    def lost(error: Exception) -> None:
        master = driver.master
        master.call(lambda: master.abandon(error))

    return Heartbeat(begin.beat, lost, HEARTBEAT_US / 1e6)


def _listed(uids: Collection[str]) -> str:
    return f"operator{'s' if len(uids) > 1 else ''} {', '.join(map(repr, uids))}"
