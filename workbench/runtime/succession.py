"""Another master for the same job (F2-16): one takes over when the job's master has failed, or when the process that
ran the job has died and this one stood by.

The new master knows the program, which is in this process, and finds the latest checkpoint where checkpoints are kept.
What the old one had in its memory is gone: the history of checkpoints, and whatever it was asked and had not done yet.
The job's state, its log, its restarts and what a person has set live on.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.errors import JobError
from workbench.runtime.background import Background
from workbench.runtime.coordinator import CheckpointCoordinator
from workbench.runtime.deployment import JobServices
from workbench.runtime.master import Master
from workbench.runtime.storage import CheckpointStorage, Manifest

HandOver = Callable[[Master], None]
"""Gets the new master when it is ready to be stepped in the old one's place; called on the old one's turn."""


def successor(
    old: Master,
    storage: CheckpointStorage,
    manifest: Manifest | None,
    first_id: int,
    background: Background,
    services: JobServices | None = None,
) -> Master:
    """A master that goes on with a job from a checkpoint, or from the beginning where there is none.

    Args:
        old: its predecessor.
        storage: of the checkpoints.
        manifest: of the checkpoint.
        first_id: of the first new checkpoint.
        background: does the writing.
        services: of the job from now on; None: as before.
    """
    coordinator = CheckpointCoordinator(
        job=old.services.job, storage=storage, background=background, graph=old.graph, first_id=first_id
    )
    return Master(
        logical=old.logical,
        graph=old.graph,
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
    """Let a job's master fail, and another one take over when the restart strategy allows it."""
    if not old.retire("the coordinator", JobError("it was failed on purpose")):
        return
    storage = old.storage

    def read() -> tuple[Manifest | None, int]:
        return storage.latest(), storage.highest_id() + 1

    def found(result: tuple[Manifest | None, int] | Exception) -> None:
        if isinstance(result, Exception):
            old.abandon(result)
        elif not old.over:  # it may have been canceled meanwhile
            hand_over(successor(old, storage, *result, background))

    # Behind everything that the old master has had written: nobody may start from an older checkpoint meanwhile.
    background.submit(read, found)
