"""A broken connection to a server outside of the job: what displays tell of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outage:
    """A connection that is broken.

    Attributes:
        error: what the last attempt met.
        attempts: that failed in a row.
        attempts_max: the number after which the task fails; None: there is no limit.
        retry_us: processing time of the next attempt.
        since_us: processing time of the first failure.
        keeps: what comes meanwhile waits at the server; otherwise it may be lost.
        server: its address, without secrets; empty: `error` names it.
        ends_us: processing time when the task fails, which waits and does nothing else meanwhile; None: it fails after
            `attempts_max`, and does not wait.
    """

    error: str
    attempts: int
    attempts_max: int | None
    retry_us: int
    since_us: int
    keeps: bool = True
    server: str = ""
    ends_us: int | None = None
