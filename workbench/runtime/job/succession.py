"""Another master for the same job (F2-16): one takes over when the job's master has failed, or when the process that
ran the job has died and this one stood by.

The new master knows the program, which is in this process, and finds the latest checkpoint where checkpoints are kept.
What the old one had in its memory is gone: the history of checkpoints, and whatever it had been asked when it failed
and had not done yet. What is asked from then on is done by the new one, and so is stopping the job. The
job's state, its log, its restarts and what a person has set live on.
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
from workbench.runtime.tasks.deployment import JobServices

_NOBODY = "no other coordinator could take over"

HandOver = Callable[[Master], None]
"""Gets the new master when it is ready to be stepped in the old one's place; called on the old one's turn."""


def successor(
    old: Master,
    storage: CheckpointStorage,
    manifest: Manifest | None,
    first_id: int,
    background: Background,
    graph: PhysicalGraph | None = None,
    services: JobServices | None = None,
) -> Master:
    """A master that goes on with a job from a checkpoint, or from the beginning where there is none.

    Args:
        old: its predecessor.
        storage: of the checkpoints.
        manifest: of the checkpoint.
        first_id: of the first new checkpoint.
        background: does the writing.
        graph, services: of the job from now on; None: as before.
    """
    graph = graph or old.graph
    coordinator = CheckpointCoordinator(
        job=old.services.job, storage=storage, background=background, graph=graph, first_id=first_id
    )
    old.begin = None  # from now on another one does
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
    """Let a job's master fail, and another one take over when the restart strategy allows it.

    A latest checkpoint that cannot be read now is a failure like that of a restart: when the next attempt is due, it is
    looked for again.
    """
    if not old.retire("the coordinator", JobError("it was failed on purpose")):
        return
    storage = old.storage
    known = old.restart_point

    def read() -> tuple[Manifest | None, int]:
        return storage.latest(), storage.highest_id() + 1

    def found(result: tuple[Manifest | None, int] | Exception) -> None:
        if old.over:  # it was canceled meanwhile
            return
        if isinstance(result, Exception):
            old.life.failed(result, _NOBODY)
            old.restart_or_end(result, _NOBODY, final=is_final(result))
            old.begin = find
            return
        manifest, first_id = result
        if manifest == known:
            manifest = known  # which also says what of it is not restored
        hand_over(successor(old, storage, manifest, first_id, background))

    def find() -> None:
        old.begin = None
        # Behind everything that the old master has had written: nobody may start from an older checkpoint meanwhile.
        background.submit(read, found)

    find()
