"""Distinguishes the failures that a simulation injects from those that it has found."""

from __future__ import annotations

from workbench.runtime.job.observer import JobObserver


def injected(text: str) -> bool:
    """Whether this is the message of an injected failure.

    Example:
        >>> injected("filter[0]: injected: crash at commit 1"), injected("filter[0]: KeyError: 'n'")
        (True, False)
    """
    return "injected" in text or "on purpose" in text or "timed out" in text


class FailureLog(JobObserver):
    """Keeps the failures that were not injected.

    Attributes:
        unexpected: sentences that describe them.
    """

    def __init__(self) -> None:
        self.unexpected: list[str] = []

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        if kind == "failure" and not injected(text):
            self.unexpected.append(f"a failure that was not injected: {text}")
