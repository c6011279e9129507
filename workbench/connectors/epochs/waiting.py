"""Base class of operators whose calls wait while their server is unreachable."""

from __future__ import annotations

from workbench.connectors.contract.attempts import Attempts
from workbench.operators.contract.base import Operator
from workbench.operators.contract.outage import Outage


class WaitingOperator(Operator):
    """Reports a lost connection, and stops waiting for it when the job ends, or soon after it is stopped.

    Args:
        attempts: of this subtask only.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    @property
    def outage(self) -> Outage | None:
        return self._attempts.outage

    def hurry(self) -> None:
        self._attempts.hurry()

    def give_up(self) -> None:
        self._attempts.give_up()
