"""The states of a job, and its log.

Life cycle::

    CREATED -> INITIALIZING -> RUNNING -> FINISHED
       ^            ^            |  \\---> CANCELLING -> CANCELED
       |            |            v
    SUSPENDED   RESTARTING <- FAILING ---> FAILED

An attempt that cannot start again, because an external system does not answer, goes from INITIALIZING to FAILING. A
rescaled job goes from RUNNING directly to RESTARTING: nothing has failed. When only a region fails, the job stays
RUNNING, because the other regions continue. A SUSPENDED job waits for the checkpoint directory, which another process
holds.
"""

from __future__ import annotations

from workbench.clock import Clock
from workbench.errors import SENTENCE_MAX, sentence_of
from workbench.raised import message_of, without_frames
from workbench.redaction import redacted
from workbench.runtime.checkpoints.audit import Audit
from workbench.runtime.job.observer import JobObserver
from workbench.traces import Trace

ACTIVE = frozenset({"SUSPENDED", "CREATED", "INITIALIZING", "RUNNING", "FAILING", "RESTARTING", "CANCELLING"})
"""States of a job that has not ended."""


class LifeCycle:
    """The life cycle of one job; every change is reported to the observer.

    Args:
        clock: processing time.
        observer: receives the changes.

    Attributes:
        state: see above.
        failure: the last one; the job may have recovered from it.
        fact: the failure's message.
        trace: the user's lines that the failure has passed.
        circumstance: what failed, such as ``process[1] failed``.
        has_run: whether it has ever been RUNNING.
        started_us, ended_us: processing times.
        audit: what was counted twice because of failures.
        observer: receives the changes.
    """

    def __init__(self, clock: Clock, observer: JobObserver) -> None:
        self._clock = clock
        self.observer = observer
        self.state = "CREATED"
        self.failure: Exception | None = None
        self.fact = ""
        self.trace = Trace()
        self.circumstance = ""
        self.has_run = False
        self.audit = Audit()
        self.started_us = clock.now_us()
        self.ended_us: int | None = None

    @property
    def over(self) -> bool:
        """Whether the job has ended and will not restart."""
        return self.state not in ACTIVE

    def enter(self, state: str) -> None:
        """Change the job's state."""
        self.state = state
        self.has_run |= state == "RUNNING"
        self.tell("state", state)

    def failed(self, error: Exception, what: str) -> None:
        """Record a failure."""
        self.trace = Trace.of(error)
        self.failure = without_frames(error)
        self.fact = message_of(error, SENTENCE_MAX)  # built once: the error's class may be a user's
        self.circumstance = what
        self.tell("failure", f"{what}: {sentence_of(error)}")

    @property
    def told(self) -> str:
        """The failure's message, and below it the user's lines that it has passed."""
        return f"{self.fact}\n{self.trace.text}" if self.trace.text else self.fact

    def mishap(self, what: str, error: Exception) -> None:
        """Something has failed that does not end the job."""
        self.tell("notice", f"{what}: {sentence_of(error)}")
        self.observer.on_mishap(f"{what}: {redacted(sentence_of(error))}", Trace.of(error).text)

    def checkpoint_failed(self, checkpoint_id: int, reason: str, *, own_fault: bool) -> None:
        """Record a failed checkpoint; `own_fault`: not because its attempt or the job was ended."""
        text = f"checkpoint {checkpoint_id} failed: {reason}"
        self.tell("checkpoint", text)
        if own_fault:
            self.observer.on_checkpoint_failed(self._clock.now_us(), redacted(text))

    def end(self, state: str) -> None:
        """End the job for good."""
        self.ended_us = self._clock.now_us()
        self.enter(state)

    def tell(self, kind: str, text: str) -> None:
        """Add a line to the log; secrets in it are masked, because external errors may contain them."""
        self.observer.on_event(self._clock.now_us(), kind, redacted(text))
