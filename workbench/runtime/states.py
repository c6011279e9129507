"""Reading what a checkpoint holds, for the tasks that go on from it."""

from __future__ import annotations

from workbench.errors import CheckpointError
from workbench.operators.base import Snapshot
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.in_flight import TASK
from workbench.runtime.storage import CheckpointStorage, Manifest

States = dict[str, list[Snapshot]]
"""The snapshots of all former subtasks, by operator uid."""


def read_states(storage: CheckpointStorage, manifest: Manifest, graph: PhysicalGraph) -> States:
    """All states of a checkpoint, verified before anything is restored.

    Raises:
        CorruptCheckpointError: a file is missing, torn or altered.
        CheckpointError: it holds the state of an operator that this pipeline does not have.
    """
    states: States = {}
    for file in manifest.files:
        for uid, snapshot in storage.states(manifest, file).items():
            if uid not in manifest.ignored:
                states.setdefault(uid, []).append(snapshot)
    known = {TASK, *(uid for vertex in graph.vertices for uid in vertex.uids)}
    for uid, snapshots in states.items():
        if uid not in known and any(snapshots):
            raise CheckpointError(
                f"checkpoint {manifest.checkpoint_id} of job {manifest.job!r} has state of operator {uid!r}, which "
                f"this pipeline does not have (it has {', '.join(sorted(known))}): run the pipeline that wrote it, "
                "or choose another checkpoint_dir"
            )
    return states
