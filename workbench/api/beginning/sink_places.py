"""Checks of a job's sinks before it starts: whether they may write to their places, and restore their state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from workbench.connectors.contract.base import Held, Place, Sink, SinkContext
from workbench.durations import format_instant
from workbench.errors import PlanError
from workbench.operators.contract.base import Snapshot
from workbench.plan.logical import LogicalGraph, Node
from workbench.runtime.storage import CheckpointStorage, DirectoryStorage, Manifest


def check_places(logical: LogicalGraph) -> None:
    """Reject two sinks that would write to the same place.

    Raises:
        PlanError: with the place.
    """
    taken: set[Place] = set()
    for node, _, sink in _sinks(logical):
        place = sink.place()
        if place is not None and place in taken:
            raise PlanError(
                f"two sinks write to {str(place)!r}: give each a different name or path", origin=node.origin
            )
        if place is not None:
            taken.add(place)


def check_fresh(logical: LogicalGraph, job: str) -> None:
    """Reject a start without a checkpoint if the committed rows of another run exist.

    Raises:
        CommittedRowsError: there are some.
    """
    for node, uid, sink in _sinks(logical):
        sink.check_fresh(SinkContext(job, uid, node.schema))


def hold_places(logical: LogicalGraph, job: str, run: str, storage: CheckpointStorage) -> tuple[Held, ...]:
    """Acquire the places of a job's sinks.

    Raises:
        SinkError: another job writes to one of them.
        PlanError: a sink cannot be in this job.
    """
    held: list[Held] = []
    try:
        for node, uid, sink in _sinks(logical):
            with _told_at(node):
                taken = sink.hold(_context(node, uid, job, storage, run=run))
            if taken is not None:
                held.append(taken)
    except BaseException:
        for place in held:
            place.release()
        raise
    return tuple(held)


def check_restore(
    logical: LogicalGraph, storage: CheckpointStorage, manifest: Manifest, states: Mapping[str, Sequence[Snapshot]]
) -> None:
    """Reject a checkpoint, with these states by uid, that a sink could not restore."""
    done = format_instant(manifest.completed_us)
    checkpoint = f"checkpoint {manifest.checkpoint_id} ({manifest.place} of job {manifest.job!r}, completed {done})"
    for node, uid, sink in _sinks(logical):
        if snapshots := states.get(uid):
            sink.check_restore(_context(node, uid, manifest.job, storage, checkpoint=checkpoint), snapshots)


def check_restorable(storage: CheckpointStorage, manifest: Manifest, logical: LogicalGraph) -> None:
    """Read everything that a restore would read, and change nothing; holds one task's state at a time.

    Raises:
        CorruptCheckpointError: a file is missing, torn or altered.
        SinkError: a sink has committed rows since, which would be written twice.
    """
    sinks = {uid for node, uid in logical.uids.items() if node.role == "sink"} - manifest.ignored
    states: dict[str, list[Snapshot]] = {}
    for file in manifest.files:
        for uid, snapshot in storage.states(manifest, file).items():
            if uid in sinks and snapshot:
                states.setdefault(uid, []).append(snapshot)
    check_restore(logical, storage, manifest, states)


def _sinks(logical: LogicalGraph) -> Iterator[tuple[Node, str, Sink]]:
    for node in logical.nodes:
        if isinstance(node.spec, Sink):
            yield node, logical.uids[node], node.spec


def _context(
    node: Node, uid: str, job: str, storage: CheckpointStorage, *, run: str = "", checkpoint: str = ""
) -> SinkContext:
    if not isinstance(storage, DirectoryStorage):
        return SinkContext(job, uid, node.schema, run, checkpoint=checkpoint)
    lease, ended = storage.leases
    return SinkContext(
        job, uid, node.schema, run, storage.shown, storage.directory, lease=lease, ended=ended, checkpoint=checkpoint
    )


@contextmanager
def _told_at(node: Node) -> Iterator[None]:
    """Add the user's line to errors in the plan."""
    try:
        yield
    except PlanError as error:
        error.origin = error.origin or node.origin
        raise
