"""The operator that a job opens or restores, which may wait for a server until the job is canceled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.operators.contract.base import Operator
from workbench.operators.contract.outage import Outage


class Opening:
    """Knows the operator that is opened, and tells it to give up.

    Attributes:
        lost: the connection for want of which an operator could last not be opened; None: it was opened, or failed for
            another reason.

    Example:
        >>> opening = Opening()
        >>> with opening.of(Operator(), "sink[0]"):
        ...     opening.give_up()
        >>> opening.awaited() is None
        True
    """

    def __init__(self) -> None:
        self._opened: tuple[str, Operator] | None = None
        self._is_over = False
        self.lost: Outage | None = None

    @contextmanager
    def of(self, operator: Operator, task: str) -> Iterator[None]:
        """While an operator of a task is opened and restored."""
        self._opened = task, operator
        self.lost = None
        if self._is_over:
            operator.give_up()
        try:
            yield
        except BaseException:
            self.lost = operator.outage
            raise
        finally:
            self._opened = None

    @property
    def is_open(self) -> bool:
        """Whether an operator is opened now. Callable from any thread, as all below."""
        return self._opened is not None

    def awaited(self) -> tuple[str, Outage] | None:
        """The task whose operator waits for a server, and the broken connection."""
        if (opened := self._opened) is None or (outage := opened[1].outage) is None:
            return None
        return opened[0], outage

    def give_up(self) -> None:
        """The job is canceled: operators wait for no server from now on."""
        self._is_over = True
        if (opened := self._opened) is not None:
            opened[1].give_up()
