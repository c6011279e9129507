"""A job on standby: it waits for the checkpoint directory of another process, and continues when that has died
(F2-16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

from workbench.api.beginning.opening import Beginning
from workbench.drivers.contract.driver import Driver
from workbench.drivers.live.standby import Standby
from workbench.runtime.job.master import Master
from workbench.runtime.job.succession import successor
from workbench.runtime.storage import Holder

LOOK_AGAIN_S = 0.1


def stand_by(
    name: str,
    holder: Holder | None,
    driver: Driver,
    claim: Callable[[], Beginning],
    hand_over: Callable[[Master, Beginning], None],
) -> Standby[Beginning]:
    """Wait on behalf of a job that was started with a standby master.

    Args:
        name: of the job.
        holder: the current owner of the directory, if known.
        driver: runs it.
        claim: opens the directory, or raises a HeldError.
        hand_over: receives the master that continues the job, and its start; called on the turn of the waiting master.
    """

    def won(begin: Beginning) -> None:
        settled = Event()

        def take() -> None:
            waiting = driver.master
            if waiting.over:
                begin.close()
            else:
                services = replace(waiting.services, data_dir=begin.directory)
                found = successor(waiting, begin.storage, begin.manifest, begin.first_id, driver, begin.graph, services)
                hand_over(found, begin)
            settled.set()

        driver.master.call(take)
        while not settled.wait(LOOK_AGAIN_S):
            if driver.ended.is_set():  # it was canceled at this moment, and acquires nothing any more
                begin.close()
                return

    def failed(error: Exception) -> None:
        waiting = driver.master
        waiting.call(lambda: waiting.abandon(error))

    def later(error: Exception) -> None:
        life = driver.master.life
        driver.master.call(lambda: life.mishap("cannot take over yet, will try again", error))

    return Standby(name, holder, claim, won, failed, later)
