"""Ownership of an external place: only one job at a time writes to it. The store itself holds the record.

The record is written atomically when a job starts, renewed while the job runs and deleted when it ends. It expires when

- its process has died, if that process ran on this machine;
- it was not renewed for `LEASE_US`, for example because a job on another machine has died. Clocks may be set or differ,
  so the requesting job also watches the record for `WATCH_US`, in which a live owner renews it;
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

from workbench.clock import BootClock, SharedClock, rest
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import SinkContext
from workbench.durable.holder import Holder, is_alive
from workbench.errors import CommittedRowsError, SinkError

LEASE_US = 60_000_000
RENEW_US = 15_000_000
WATCH_US = 20_000_000
"""How long a job watches a record that looks old: longer than from one renewal to the next."""
_AHEAD_MOST_US = 5_000_000
"""How much later than now a renewal may be: the owner's clock may be ahead. One that is later still counts as old."""
_WATCHED_EVERY_S = 1.0

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

    def lost(self, error: SinkError) -> str:
        """The error if a change failed because the server was lost, so that the same may succeed later; otherwise
        empty."""


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
        watched, since_us = None, self._clock.now_us()
        while (watched := self._take(watched, since_us)) is not None:
            rest(_WATCHED_EVERY_S)
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

    def _take(self, watched: OwnerRecord | None, since_us: int) -> OwnerRecord | None:
        """Own the place, or return an old record of another owner, which is to be watched.

        Args:
            watched: the result of the last call; None: this is the first one.
            since_us: the time of the first one.
        """
        attempts = Attempts()
        while True:
            try:
                return self._take_once(watched, since_us)
            except SinkError as error:
                if not (fact := self._book.lost(error)) or not attempts.again(fact):
                    raise

    def _take_once(self, watched: OwnerRecord | None, since_us: int) -> OwnerRecord | None:
        with self._book.change("take") as change:
            record = change.read()
            if record is not None and (holder := self._other(record)) is not None:
                old = not -_AHEAD_MOST_US <= self._clock.wall_us() - record.renewed_us <= LEASE_US
                if not old or (watched is not None and record != watched):
                    title = self._book.title
                    raise SinkError(
                        f"{title} is written to by {holder}: stop that job, or choose another {title.split()[1]}"
                    )
                if self._clock.now_us() - since_us < WATCH_US:
                    return record
            self._renew(change)
        return None

    def _other(self, record: OwnerRecord) -> Holder | str | None:
        """The other owner of the place, or None."""
        holder = Holder.read(record.holder)
        continued = record.run == self._run or (record.directory and record.directory == self._directory)
        if continued or (holder is not None and self._is_dead(holder, record.run)):
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
