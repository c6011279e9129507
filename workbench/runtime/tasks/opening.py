"""The operator that a job opens or restores, which may wait for a server until the job is canceled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.operators.contract.base import Operator


class Opening:
    """Tells the operator that is opened to give up.

    Example:
        >>> opening = Opening()
        >>> with opening.of(Operator()):
        ...     opening.give_up()
    """

    def __init__(self) -> None:
        self._operator: Operator | None = None
        self._is_over = False

    @contextmanager
    def of(self, operator: Operator) -> Iterator[None]:
        """While an operator is opened and restored."""
        self._operator = operator
        if self._is_over:
            operator.give_up()
        try:
            yield
        finally:
            self._operator = None

    def give_up(self) -> None:
        """The job is canceled: operators wait for no server from now on. Callable from any thread."""
        self._is_over = True
        if (operator := self._operator) is not None:
            operator.give_up()
