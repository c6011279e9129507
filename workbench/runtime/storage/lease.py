"""Ownership of a checkpoint directory without locks, such as one in an object store.

The rule: the directory has an object ``lease.json`` with its owner and the time of the owner's last heartbeat. A
process that finds no lease, or one that is over, writes its own name into it, waits `SETTLE_US`, and owns the directory
if its name is still there. The owner renews its heartbeat every `HEARTBEAT_US`.
Before each checkpoint completes, and again before its completion is announced, it checks that it still is the owner,
and ends the job if it is not. So if two processes arrive at once, the later one wins, and the other never completes a
checkpoint.

A lease is over when its heartbeat has stayed the same for `LEASE_US` while this process watched it. A process that has
just come need not watch so long if the heartbeat is `LEASE_US` old by its clock: it watches for `WATCH_US`, or not at
all if the owner was a process of this machine that has ended. So no lease ends because somebody sets a clock, or
because two clocks differ: the owner ends its job after `SILENT_MOST_US` without a renewal, by what has passed on its
own machine. A heartbeat is the time by the owner's clock as it is set when it writes; one from the future counts as
old.

Lease writes are not conditional, so an owner may stall between its check and its write, and overwrite the name of a
successor. Therefore it trusts a renewal only if it took effect in time, according to the clock after the write:

- less than `SILENT_MOST_US` after the last trusted renewal. Until `WATCH_US` after that no other process may take the
  directory. Heartbeats come every 2 seconds, so two of them may fail.
- or no more than `SETTLE_US` after it saw its own name, for example after a suspend: a process that takes the directory
  in the meantime is still waiting, finds the owner's name and gives up.

Otherwise it ends its job, although its name is there. A successor whose name it has overwritten ends its job too: the
directory is free `LEASE_US` later. When an owner dies, a standby takes over after `LEASE_US` + `SETTLE_US`, 13
seconds, plus the fraction of a second until it checks again.

What remains: a file or manifest that an owner was writing when it lost the directory may reach the store later, with
the number of a checkpoint of its successor. No sink has committed it, and a checkpoint whose files do not match its
manifest is never restored: the job stops and names the file. If two processes claim a free directory at once, and
their writes take longer than `SETTLE_US`, both may run until the next check.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import NoReturn

from workbench.arguments import option
from workbench.clock import SharedClock
from workbench.durable.checksum import RunningChecksum
from workbench.durable.holder import Holder, is_alive
from workbench.errors import CheckpointError, told_by
from workbench.from_json import made, parsed
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.held import DoubtfulLeaseError, HeldError
from workbench.runtime.storage.locations import looked_into

LEASE = "lease.json"
LEASE_US = 12_000_000
HEARTBEAT_US = 2_000_000
SETTLE_US = 1_000_000
SILENT_MOST_US = 7_000_000
"""How long an owner tolerates failed renewals; then it ends its job, well before another process may take over."""
WATCH_US = SILENT_MOST_US + SETTLE_US
"""How long a lease that looks old is watched: an owner that has not renewed it for so long has ended its job."""
_AHEAD_MOST_US = 5_000_000
"""How much later than now a heartbeat may be: the owner's clock may be ahead. One that is later still counts as old."""
_LEASE_BYTES_MAX = 65_536
_SEEN: dict[str, tuple[str, int, int]] = {}
"""By directory: the owner and the heartbeat that this process saw last, and the time at which it first saw them."""
_TOO_LATE = (
    "may have been taken over by another process, because this job renewed its lease too late: this job must not "
    "continue alongside it"
)


class Lease:
    """Ownership of a directory on a remote file system by this process.

    Args:
        files: in the directory.
        clock: the clock of the heartbeats.

    Raises:
        UnreadableCheckpointError: the directory cannot be reached.
        HeldError: another process owns it.
        DoubtfulLeaseError: another process owned it; whether it still does is seen later.
    """

    def __init__(self, files: Files, clock: SharedClock) -> None:
        self.files = files
        self.directory: Path | None = None
        self._clock = clock
        self._renewed_us = clock.now_us()  # the time of the last trusted renewal
        self._beat_us = 0  # its heartbeat
        self._lost = ""
        self._one = threading.Lock()  # one heartbeat or checkpoint at a time checks and renews
        self.holder = holder = Holder(os.getpid(), platform.node(), clock.wall_us())
        self.lease = f"{holder.host}:{holder.pid}:{holder.since_us}:{id(self)}"
        with looked_into(files):
            owner, beat_us = self._read()
            if owner is not None:
                self._make_sure(owner, beat_us)
            self.ended = owner or ""
            self._renewed_us, self._beat_us = self._write()

    def settle(self) -> None:
        owner, _ = self._read()
        if owner is None:
            raise HeldError(self.files.shown, None)
        if owner != self.lease:
            raise self._held_by(owner)

    def check(self) -> None:
        with self._one:
            self._look()

    def beat(self) -> None:
        """Renew the lease if this process still owns it; when the file system cannot be reached, the next beat tries
        again.

        Raises:
            CheckpointError: another process has taken the directory, or may soon, because the lease could not be
            renewed.
        """
        try:
            with self._one:
                self._renew(self._look())
        except OSError as error:
            silent_us = self._clock.now_us() - self._renewed_us
            if silent_us >= SILENT_MOST_US:
                raise CheckpointError(
                    f"the lease of the checkpoint directory {self.files.shown!r} could not be renewed for "
                    f"{silent_us // 1_000_000} seconds ({told_by(error)}): another process may take the directory at "
                    "any time, so this job must not continue"
                ) from None

    def release(self) -> None:
        if self._lost:
            return
        holder, _ = self._read()
        if holder == self.lease:
            self.files.delete(LEASE)

    def _look(self) -> int:
        """Check that this process owns the lease; returns the time up to which that is known."""
        if self._lost:
            raise CheckpointError(self._lost)
        looked_us = self._clock.now_us()
        holder, beat_us = self._read()
        if holder != self.lease:
            self._lose(
                f"was taken over by {holder or 'nobody'}, because this job had not renewed its lease for too long: "
                "this job must not continue alongside it"
            )
        if beat_us != self._beat_us and self._clock.now_us() - self._renewed_us >= SILENT_MOST_US:
            self._lose(_TOO_LATE)  # a renewal seemed to fail but reached the store, at an unknown time
        return looked_us

    def _renew(self, looked_us: int) -> None:
        """Write a heartbeat, and trust it only if no other process can have become the owner before."""
        written_us, beat_us = self._write()
        now_us = self._clock.now_us()
        if now_us - self._renewed_us >= SILENT_MOST_US and now_us - looked_us > SETTLE_US:
            self._lose(_TOO_LATE)
        self._renewed_us, self._beat_us = written_us, beat_us

    def _write(self) -> tuple[int, int]:
        """Write the owner's name and the time; returns the time of the clock that passes, and the time written."""
        now_us, beat_us = self._clock.now_us(), self._clock.wall_us()
        content = {"owner": self.lease, "heartbeat_us": beat_us}
        self.files.write(LEASE, (json.dumps(content).encode(),))
        _SEEN[self.files.shown] = self.lease, beat_us, now_us
        return now_us, beat_us

    def _make_sure(self, owner: str, beat_us: int) -> None:
        """Return if the owner's lease is over."""
        now_us = self._clock.now_us()
        *seen, since_us = _SEEN.get(self.files.shown, ("", 0, now_us))
        if seen != [owner, beat_us]:
            _SEEN[self.files.shown] = owner, beat_us, now_us
            since_us = now_us
        same_us = now_us - since_us
        if same_us >= LEASE_US:
            return
        if not _is_old(beat_us, self._clock.wall_us()):
            raise self._held_by(owner)
        holder = _holder(owner)
        ended = holder is not None and holder.host == platform.node() and not is_alive(holder.pid)
        if not ended and same_us < WATCH_US:
            raise self._held_by(owner, DoubtfulLeaseError)

    def _lose(self, why: str) -> NoReturn:
        self._lost = f"the checkpoint directory {self.files.shown!r} {why}"
        raise CheckpointError(self._lost)

    def _held_by(self, owner: str, kind: type[HeldError] = HeldError) -> HeldError:
        end = f"ends {LEASE_US // 1_000_000} seconds after its last heartbeat"
        if (holder := _holder(owner)) is None:
            return kind(
                self.files.shown,
                None,
                f"its lease, which names {owner!r} instead of a process as this version does, {end}",
            )
        return kind(
            self.files.shown,
            holder,
            f"stop that job, choose another {option('checkpoint_dir', '')}, or add {option('standby')}; if it has "
            f"died, its lease {end}",
        )

    def _read(self) -> tuple[str | None, int]:
        return _read(self.files)


def lessee(files: Files, now_us: int) -> Holder | None:
    """The owner of a directory according to an unexpired lease; raises an OSError."""
    owner, beat_us = _read(files)
    return None if owner is None or _is_old(beat_us, now_us) else _holder(owner)


def _is_old(beat_us: int, now_us: int) -> bool:
    return not -_AHEAD_MOST_US <= now_us - beat_us < LEASE_US


def _holder(owner: str) -> Holder | None:
    """The process that an owner's name identifies; None for a name that this version does not write."""
    try:
        host, process, since_us, _ = owner.rsplit(":", 3)
        return Holder(int(process), host, int(since_us))
    except ValueError:
        return None


def _read(files: Files) -> tuple[str | None, int]:
    """The owner and its last heartbeat; an object without them counts as no lease."""
    if not files.exists(LEASE):
        return None, 0
    try:
        content = parsed(bytes(memoryview(files.read(LEASE, RunningChecksum(), _LEASE_BYTES_MAX))))
        return made(str, content["owner"]), made(int, content["heartbeat_us"])
    except (ValueError, KeyError, TypeError):
        return None, 0
