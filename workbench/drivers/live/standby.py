"""Standby: a process waits for the checkpoint directory of a job that another process runs (F2-16).

The system releases the directory at the moment in which the owner dies, however it dies, and never before. So a standby
that acquires it may continue from the last complete checkpoint, and no job runs in parallel to the owner.

Storage that does not answer for a moment, or a locked database, does not end the waiting: there is no job yet that
could fail.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from workbench.errors import SinkError, UnreadableCheckpointError
from workbench.runtime.job.restarts import is_final
from workbench.runtime.storage import HeldError, Holder

POLL_S = 0.2
"""The interval between tries: a fifth of a second is soon enough, and costs next to nothing."""

PAUSE_MOST_S = 5.0
"""The pause doubles with every failed try in a row, up to this."""
TRIES_MAX = 20
"""After this many failed tries in a row, in more than a minute, the waiting ends."""

T = TypeVar("T")


class Standby(Generic[T]):
    """Tries on its own thread to acquire something that another process owns, until it succeeds or is stopped.

    Args:
        name: of the job; the thread is named after it.
        holder: the current owner, if known.
        claim: acquires it, or raises a HeldError while another process owns it.
        won: called with it, once.
        failed: called with an error of `claim` that ends the waiting.
        later: called with the first error in a row that leads to a retry: the storage does not answer now (an OSError
            or an UnreadableCheckpointError), or a sink's database is locked (a SinkError that is not final).

    Attributes:
        holder: the owner, if known.
    """

    def __init__(
        self,
        name: str,
        holder: Holder | None,
        claim: Callable[[], T],
        won: Callable[[T], None],
        failed: Callable[[Exception], None],
        later: Callable[[Exception], None],
    ) -> None:
        self._claim = claim
        self._won = won
        self._failed = failed
        self._later = later
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._wait, name=f"{name} standby", daemon=True)
        self.holder = holder

    def start(self) -> None:
        """Start waiting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop waiting."""
        self._stopped.set()

    def _wait(self) -> None:
        failures = 0
        while not self._stopped.wait(pause_s(failures)):
            try:
                claimed = self._claim()
            except HeldError as error:
                self.holder = error.holder
                failures = 0
            except (OSError, UnreadableCheckpointError, SinkError) as error:
                failures += 1
                if failures == TRIES_MAX or is_final(error):
                    self._failed(error)
                    return
                if failures == 1:
                    self._later(error)
            except Exception as error:  # noqa: BLE001  whatever it is, the job's handle says so
                self._failed(error)
                return
            else:
                self._won(claimed)
                return


def pause_s(failures: int) -> float:
    """The pause before the next try, after this many failed ones in a row."""
    return min(POLL_S * 2.0**failures, PAUSE_MOST_S)
