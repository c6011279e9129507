"""The states of a job, and its log.

Life cycle::

    CREATED -> INITIALIZING -> RUNNING -> FINISHED
       ^            ^            |  \\---> CANCELLING -> CANCELED
       |            |            v
    SUSPENDED   RESTARTING <- FAILING ---> FAILED

An attempt that cannot start again, because something that it needs does not answer, goes from INITIALIZING to FAILING.
A rescaled job goes from RUNNING straight to RESTARTING: nothing has failed. A job of which only a region fails stays
RUNNING, because the others go on. A SUSPENDED job waits for the checkpoint directory, which another process holds.
"""

from __future__ import annotations

from workbench.clock import Clock
from workbench.errors import SENTENCE_MAX, sentence_of
from workbench.observer import JobObserver
from workbench.raised import message_of, without_frames
from workbench.redaction import redacted
from workbench.runtime.checkpoints.audit import Audit

ACTIVE = frozenset({"SUSPENDED", "CREATED", "INITIALIZING", "RUNNING", "FAILING", "RESTARTING", "CANCELLING"})
"""States of a job that has not ended for good."""


class LifeCycle:
    """The life cycle of one job; every change is reported to the observer.

    Args:
        clock: processing time.
        observer: is told.

    Attributes:
        state: see above.
        failure: the last one, from which the job may have recovered.
        circumstance: what it made fail, such as ``process[1] failed``.
        has_run: whether it has ever been RUNNING.
        started_us, ended_us: processing times.
        audit: what its failures made it count twice.
        observer: is told.
    """

    def __init__(self, clock: Clock, observer: JobObserver) -> None:
        self._clock = clock
        self.observer = observer
        self.state = "CREATED"
        self.failure: Exception | None = None
        self.fact = ""  # what the failure says
        self.circumstance = ""
        self.has_run = False
        self.audit = Audit()
        self.started_us = clock.now_us()
        self.ended_us: int | None = None

    @property
    def over(self) -> bool:
        """Whether the job has ended for good."""
        return self.state not in ACTIVE

    def enter(self, state: str) -> None:
        """The job is in another state."""
        self.state = state
        self.has_run |= state == "RUNNING"
        self.tell("state", state)

    def failed(self, error: Exception, what: str) -> None:
        """Something has failed."""
        self.failure = without_frames(error)
        self.fact = message_of(error, SENTENCE_MAX)  # made once: the error's class may be a user's
        self.circumstance = what
        self.tell("failure", f"{what}: {sentence_of(error)}")

    def end(self, state: str) -> None:
        """The job has ended for good."""
        self.ended_us = self._clock.now_us()
        self.enter(state)

    def tell(self, kind: str, text: str) -> None:
        """Put a line into the log; secrets in it are hidden, because errors of others may name them."""
        self.observer.on_event(self._clock.now_us(), kind, redacted(text))
