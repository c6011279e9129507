"""Whether a job can go back to one of its savepoints; checked before the job is stopped."""

from __future__ import annotations

from workbench.api.beginning.sink_places import check_restore
from workbench.operators.contract.base import Snapshot
from workbench.plan.logical import LogicalGraph
from workbench.runtime.storage import CheckpointStorage, Manifest


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
