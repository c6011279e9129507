"""A new master for the same job (F2-16): it takes over when the job's master has failed, or when the process that ran
the job has died and a standby was waiting.

The new master has the program, which is in this process, and finds the latest checkpoint in the storage. What was in
the old master's memory is lost: the history of checkpoints, and requests that it had not completed. Later requests,
including a stop, are handled by the new master. The job's state, its log, its restarts and its live settings survive.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.errors import JobError
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.master import Master
from workbench.runtime.job.restarts import is_final
from workbench.runtime.storage import CheckpointStorage, Manifest
from workbench.runtime.tasks.execution import JobServices

_NOBODY = "no other coordinator could take over"

HandOver = Callable[[Master], None]
"""Receives the new master when it is ready to be stepped in place of the old one; called on the old one's turn."""


def successor(
    old: Master,
    storage: CheckpointStorage,
    manifest: Manifest | None,
    first_id: int,
    background: Background,
    graph: PhysicalGraph | None = None,
    services: JobServices | None = None,
) -> Master:
    """A master that continues a job from a checkpoint, or from the beginning if there is none.

    Args:
        old: its predecessor.
        storage: of the checkpoints.
        manifest: of the checkpoint.
        first_id: of the first new checkpoint.
        background: does the writing.
        graph, services: from now on; None: as before.
    """
    graph = graph or old.graph
    coordinator = CheckpointCoordinator(
        job=old.services.job, storage=storage, background=background, graph=graph, first_id=first_id
    )
    old.begin = None  # from now on the new master starts attempts
    return Master(
        logical=old.logical,
        graph=graph,
        settings=old.settings,
        services=services or old.services,
        storage=storage,
        coordinator=coordinator,
        stage=old.stage,
        observer=old.life.observer,
        restore_from=manifest,
        predecessor=old,
    )


def fail_over(old: Master, background: Background, hand_over: HandOver) -> None:
    """Fail a job's master, and let another one take over if the restart strategy allows it.

    A latest checkpoint that cannot be read now counts as a failed restart: it is looked for again when the next attempt
    is due.
    """
    if not old.retire("the coordinator", JobError("the coordinator was failed on purpose")):
        return
    storage = old.storage
    known = old.restart_point

    def read() -> tuple[Manifest | None, int]:
        return storage.latest(), storage.highest_id() + 1

    def found(result: tuple[Manifest | None, int] | Exception) -> None:
        if old.over:  # it was canceled in the meantime
            return
        if isinstance(result, Exception):
            old.life.failed(result, _NOBODY)
            old.restart_or_end(result, _NOBODY, final=is_final(result))
            old.begin = find
            return
        manifest, first_id = result
        if manifest == known:
            manifest = known  # it also lists what is not restored
        hand_over(successor(old, storage, manifest, first_id, background))

    def find() -> None:
        old.begin = None
        # Wait for all writes of the old master: otherwise a new one could start from an older checkpoint.
        background.submit(read, found)

    find()
