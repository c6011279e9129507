"""Faults of a job on Spark that happen at a record, so that architectures can be compared by them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.clock import rest


class BatchFailedOnPurposeError(Exception):
    """The failure of a batch, and so of its query."""


@dataclass(frozen=True, slots=True)
class RestAt:
    """The first sink rests `rest_us` for each thousand records, from record `at` on for `records`."""

    at: int
    records: int
    rest_us: int


class BatchFaults:
    """What happens to the batches of a job, once each.

    Spark processes a batch as a whole. So the failure of a task at a record fails the batch that has this record, and
    Spark ends the query; the program that runs it must restart it from its checkpoint, as the job does here.

    Args:
        dies: numbers of records of the first source; the batch in which each lies fails once, before it is written.
        rests: of the first sink.

    Attributes:
        failures: that have happened.
        records_again: that were in the failed batches.
        recovery_s: from each failure to the end of its batch.
    """

    def __init__(self, dies: Sequence[int] = (), rests: Sequence[RestAt] = ()) -> None:
        self._dies, self._rests = sorted(dies), tuple(rests)
        self._written = 0
        self._failed_s: float | None = None
        self.failures = 0
        self.records_again = 0
        self.recovery_s: list[float] = []

    @property
    def failed_just_now(self) -> bool:
        """Whether the last batch failed on purpose, and has not been written since."""
        return self._failed_s is not None

    def before(self, first: int, behind: int) -> None:
        """A batch is about to be written.

        Args:
            first, behind: the records of the first source before the batch, and those before its end.

        Raises:
            BatchFailedOnPurposeError: one of its records is the next one to fail.
        """
        if self._dies and self._dies[0] < behind:
            at = self._dies.pop(0)
            self.failures += 1
            self.records_again += behind - first
            self._failed_s = self._failed_s or time.monotonic()
            raise BatchFailedOnPurposeError(f"failed on purpose after record {at:,}")

    def after(self, rows: int, pause: Callable[[float], None] = rest) -> None:
        """Note that a batch was written, with this many rows of the first sink."""
        if self._failed_s is not None:
            self.recovery_s.append(time.monotonic() - self._failed_s)
            self._failed_s = None
        before, self._written = self._written, self._written + rows
        for each in self._rests:
            slow = min(self._written, each.at + each.records) - max(before, each.at)
            if slow > 0:
                pause(each.rest_us * slow / 1e9)
