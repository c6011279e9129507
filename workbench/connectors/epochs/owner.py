"""Ownership of an external place: only one job at a time writes to it. The store itself holds the record.

The record is written atomically when a job starts, renewed while the job runs and deleted when it ends. It expires when

- its process has died, if that process ran on this machine;
- it was not renewed for `LEASE_US`, for example because a job on another machine has died;
- the requesting job owns its checkpoint directory, and continues it.

An owner that stalls for longer than the lease can lose the place although it is alive. Every commit therefore checks
the record atomically with its rows, and an owner that has lost the place can no longer commit.
"""

from __future__ import annotations

import os
import platform
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

from workbench.clock import BootClock, SharedClock
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import SinkContext
from workbench.durable.holder import Holder, is_alive
from workbench.errors import CommittedRowsError, SinkError

LEASE_US = 60_000_000
RENEW_US = 15_000_000

_RUNS: set[tuple[str, str]] = set()
"""The places that this process owns, with their runs."""


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """The owner of a place.

    Attributes:
        run: the run of the job.
        directory: its checkpoint directory, with the machine if it is local.
        holder: its process, in the format of `Holder.write`.
        renewed_us: the time of the last renewal, in microseconds since 1970.
    """

    run: str
    directory: str
    holder: str
    renewed_us: int


class RecordChange(Protocol):
    """Access to the record of one place within an atomic change."""

    def read(self) -> OwnerRecord | None:
        """The record, or None if nobody owns the place."""

    def write(self, record: OwnerRecord) -> None:
        """Replace it."""

    def delete(self) -> None:
        """Remove it."""


class OwnerBook(Protocol):
    """The storage of the record of one place."""

    @property
    def title(self) -> str:
        """A description of the place, such as ``the table 'delays' of sqlite:///out.db``."""

    @property
    def identity(self) -> str:
        """An identity that is equal for all writers to the same place from this machine."""

    def exists(self) -> bool:
        """Whether the store still exists."""

    def change(
        self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None
    ) -> AbstractContextManager[RecordChange]:
        """Start an atomic change of the record.

        Args:
            purpose: the action, for errors, such as ``take``.
            wait_s: how long to wait for other changes; None: the store's default.
            attempts: attempts while the server is unreachable; None: as long as for other changes.

        Raises:
            SinkError: the store refuses.
        """


class PlaceOwner:
    """A place that a job owns for one of its sinks while it runs.

    Args:
        book: keeps the record.
        context: the context of the job.
        clock: the clock for renewals.

    Raises:
        SinkError: another job writes to the place, or the store refuses.
    """

    def __init__(self, book: OwnerBook, context: SinkContext, clock: SharedClock | None = None) -> None:
        self._book = book
        self._run = context.run
        local = context.data_dir
        self._directory = context.directory if local is None else f"{platform.node()}:{os.path.realpath(local)}"
        self._clock = clock or BootClock()
        self._holder = Holder.this_process(context.job, context.lease)
        self._renewed_us = 0
        with book.change("take") as change:
            if (holder := self._other(change.read())) is not None:
                raise SinkError(
                    f"{book.title} is written to by {holder}: stop that job, or choose another {book.title.split()[1]}"
                )
            self._renew(change)
        _RUNS.add((self._run, book.identity))

    def keep(self) -> None:
        """Renew the record, unless it was renewed recently or the store is busy.

        Raises:
            SinkError: another job has taken the place.
        """
        if self._clock.now_us() - self._renewed_us < RENEW_US or not self._book.exists():
            return
        try:
            with self._book.change("take", wait_s=0.0) as change:
                check_owner(change.read(), self._book.title, self._run)
                self._renew(change)
        except CommittedRowsError:
            raise
        except SinkError:
            pass  # the store is busy: the next heartbeat retries

    def release(self) -> None:
        """Release the place; if the store is busy or unreachable, the record expires anyway."""
        _RUNS.discard((self._run, self._book.identity))
        with suppress(SinkError):
            if self._book.exists():
                with self._book.change("release", attempts=Attempts(0.0)) as change:
                    record = change.read()
                    if record is not None and record.run == self._run:
                        change.delete()

    def _other(self, record: OwnerRecord | None) -> Holder | str | None:
        """The other owner of the place, or None."""
        if record is None:
            return None
        holder = Holder.read(record.holder)
        continued = record.run == self._run or (record.directory and record.directory == self._directory)
        expired = record.renewed_us < self._clock.wall_us() - LEASE_US
        if continued or expired or (holder is not None and self._is_dead(holder, record.run)):
            return None
        return holder or "another job"

    def _is_dead(self, holder: Holder, run: str) -> bool:
        """Whether the owner is a process on this machine that has ended, or this process, which no longer owns the
        place."""
        if holder.host != platform.node():
            return False
        if holder.pid == os.getpid():
            return (run, self._book.identity) not in _RUNS
        return not is_alive(holder.pid)

    def _renew(self, change: RecordChange) -> None:
        now_us = self._clock.now_us()
        change.write(OwnerRecord(self._run, self._directory, self._holder.write(), self._clock.wall_us()))
        self._renewed_us = now_us


def check_owner(record: OwnerRecord | None, title: str, run: str) -> None:
    """Raise an error if another run has taken the place.

    Raises:
        CommittedRowsError: another run has taken it; retrying does not help.
    """
    if record is not None and record.run != run:
        raise CommittedRowsError(
            f"{title} was taken by {Holder.read(record.holder) or 'another job'} while this job did not renew its "
            "lease: this job cannot continue"
        )
