"""Ownership of a checkpoint directory without locks, such as one in an object store.

The rule: the directory has an object ``lease.json`` with its owner and the time of the owner's last heartbeat. A
process that finds no lease, or one whose last heartbeat is `LEASE_US` old, writes its own name into it, waits
`SETTLE_US`, and owns the directory if its name is still there. The owner renews its heartbeat every `HEARTBEAT_US`.
Before each checkpoint completes, and again before its completion is announced, it checks that it still is the owner,
and ends the job if it is not. So if two processes arrive at once, the later one wins, and the other never completes a
checkpoint.

Lease writes are not conditional, so an owner may stall between its check and its write, and overwrite the name of a
successor. Therefore it trusts a renewal only if it took effect in time, according to the clock after the write:

- less than `SILENT_MOST_US` after the last trusted renewal. Until `LEASE_US` after that no other process may take the
  directory; the clocks of the machines may differ by 12 - 7 = 5 seconds. Heartbeats come every 2 seconds, so two of
  them may fail.
- or no more than `SETTLE_US` after it saw its own name, for example after a suspend: a process that takes the directory
  in the meantime is still waiting, finds the owner's name and gives up.

Otherwise it ends its job, although its name is there. A successor whose name it has overwritten ends its job too: the
directory is free `LEASE_US` later. When an owner dies, a successor takes over after `LEASE_US` + `SETTLE_US`, 13
seconds, plus the fraction of a second until a standby checks again.

What remains: a file or manifest that an owner was writing when it lost the directory may reach the store later, with
the number of a checkpoint of its successor. No sink has committed it, and a checkpoint whose files do not match its
manifest is never restored: the job stops and names the file. If two processes claim a free directory at once, and
their writes take longer than `SETTLE_US` or their clocks differ by more than 5 seconds, both may run until the next
check.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import NoReturn

from workbench.clock import Clock
from workbench.durable.checksum import RunningChecksum
from workbench.durable.holder import Holder
from workbench.errors import CheckpointError, told_by
from workbench.from_json import made, parsed
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.held import HeldError
from workbench.runtime.storage.locations import looked_into

LEASE = "lease.json"
LEASE_US = 12_000_000
HEARTBEAT_US = 2_000_000
SETTLE_US = 1_000_000
SILENT_MOST_US = 7_000_000
"""How long an owner tolerates failed renewals; then it ends its job, well before another process may take over."""
_LEASE_BYTES_MAX = 65_536
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
    """

    def __init__(self, files: Files, clock: Clock) -> None:
        self.files = files
        self.directory: Path | None = None
        self._clock = clock
        self._renewed_us = clock.now_us()  # the heartbeat of the last trusted renewal
        self._lost = ""
        self._one = threading.Lock()  # one heartbeat or checkpoint at a time checks and renews
        self.holder = holder = Holder(os.getpid(), platform.node(), clock.now_us())
        self.lease = f"{holder.host}:{holder.pid}:{holder.since_us}:{id(self)}"
        with looked_into(files):
            owner, beat_us = self._read()
            if owner is not None and not _is_over(beat_us, clock.now_us()):
                raise self._held_by(owner)
            self.ended = owner or ""
            self._renewed_us = self._write()

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
        if beat_us != self._renewed_us and self._clock.now_us() - self._renewed_us >= SILENT_MOST_US:
            self._lose(_TOO_LATE)  # a renewal seemed to fail but reached the store, at an unknown time
        return looked_us

    def _renew(self, looked_us: int) -> None:
        """Write a heartbeat, and trust it only if no other process can have become the owner before."""
        beat_us = self._write()
        now_us = self._clock.now_us()
        if now_us - self._renewed_us >= SILENT_MOST_US and now_us - looked_us > SETTLE_US:
            self._lose(_TOO_LATE)
        self._renewed_us = beat_us

    def _write(self) -> int:
        """Write the owner's name and the time; returns that time."""
        now_us = self._clock.now_us()
        content = {"owner": self.lease, "heartbeat_us": now_us}
        self.files.write(LEASE, (json.dumps(content).encode(),))
        return now_us

    def _lose(self, why: str) -> NoReturn:
        self._lost = f"the checkpoint directory {self.files.shown!r} {why}"
        raise CheckpointError(self._lost)

    def _held_by(self, owner: str) -> HeldError:
        end = f"ends {LEASE_US // 1_000_000} seconds after its last heartbeat"
        if (holder := _holder(owner)) is None:
            return HeldError(
                self.files.shown,
                None,
                f"its lease, which names {owner!r} instead of a process as this version does, {end}",
            )
        return HeldError(
            self.files.shown,
            holder,
            f"stop that job, choose another, or pass standby=True; if it has died, its lease {end}",
        )

    def _read(self) -> tuple[str | None, int]:
        return _read(self.files)


def lessee(files: Files, now_us: int) -> Holder | None:
    """The owner of a directory according to an unexpired lease; raises an OSError."""
    owner, beat_us = _read(files)
    return None if owner is None or _is_over(beat_us, now_us) else _holder(owner)


def _is_over(beat_us: int, now_us: int) -> bool:
    return now_us - beat_us >= LEASE_US


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
