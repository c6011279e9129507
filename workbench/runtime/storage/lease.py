"""Ownership of a checkpoint directory that has no locks, such as one in an object store.

The rule: the directory has an object ``lease.json`` with its owner and the time of its last heartbeat. A process that
finds none, or one whose last heartbeat is `LEASE_US` old, writes its own name into it, waits `SETTLE_US`, and owns the
directory if its name is still there. The owner renews its heartbeat every `HEARTBEAT_US`. Before each checkpoint
becomes complete, and again before its completion is announced, it checks that it still is the owner, and ends the job
if it is not. So of two processes that come at once the later one wins, and the other never completes a checkpoint.

An object store cannot write on condition, so an owner may stall between its look and its write, and write over the name
of a successor. Therefore it believes a renewal only when it took effect in time, as the clock tells afterwards:

- less than `SILENT_MOST_US` after the last renewal that it believed. Until `LEASE_US` after that nobody may take the
  directory; 12 - 7 = 5 seconds are what the machines' clocks may differ by. Heartbeats come every 2 seconds, so
  two of them may fail.
- or no more than `SETTLE_US` after it saw its name there, as when a machine has slept: a process that takes the
  directory meanwhile still waits, finds the owner's name and gives up.

Otherwise it ends its job, although its name is there. A successor whose name it has written over ends its own, too: the
directory is free `LEASE_US` later. An owner that dies is followed after `LEASE_US` + `SETTLE_US`, 13 seconds, and the
fraction of a second until a standby checks again.

What remains: a file or manifest that an owner was writing when it lost the directory may reach the store later, under
the number of a checkpoint of its successor. No sink has committed it, and no checkpoint is restored whose files do not
match its manifest: the job stops and names the file. Of two that claim a free directory at once and whose writing
takes longer than `SETTLE_US`, or whose clocks differ by more than 5 seconds, both may go on until the next look.
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
"""So long an owner bears that it cannot renew its heartbeat; then it ends its job, well before anybody takes over."""
_LEASE_BYTES_MAX = 65_536
_TOO_LATE = (
    "may have been taken over by another process, because this job renewed its lease too late: "
    "this job must not go on beside it"
)


class Lease:
    """A directory on a remote file system that this process has taken for itself.

    Args:
        files: in the directory.
        clock: whose time the heartbeats tell.

    Raises:
        UnreadableCheckpointError: the directory cannot be reached.
        HeldError: another process holds it.
    """

    def __init__(self, files: Files, clock: Clock) -> None:
        self.files = files
        self.directory: Path | None = None
        self._clock = clock
        self._renewed_us = clock.now_us()  # the heartbeat of the last renewal that is believed
        self._lost = ""
        self._one = threading.Lock()  # heartbeats and checkpoints look and renew one after the other
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
        """Renew the lease if it still is ours; when the file system cannot be reached, the next beat tries again.

        Raises:
            CheckpointError: another process has taken the directory, or may soon, because it could not be renewed.
        """
        try:
            with self._one:
                self._renew(self._look())
        except OSError as error:
            silent_us = self._clock.now_us() - self._renewed_us
            if silent_us >= SILENT_MOST_US:
                raise CheckpointError(
                    f"the lease of the checkpoint directory {self.files.shown!r} could not be renewed for "
                    f"{silent_us // 1_000_000} seconds ({told_by(error)}): another process "
                    "may take the directory at any time, so this job must not go on"
                ) from None

    def release(self) -> None:
        if self._lost:
            return
        holder, _ = self._read()
        if holder == self.lease:
            self.files.delete(LEASE)

    def _look(self) -> int:
        """See that the lease is ours; since when it is known to be."""
        if self._lost:
            raise CheckpointError(self._lost)
        looked_us = self._clock.now_us()
        holder, beat_us = self._read()
        if holder != self.lease:
            self._lose(
                f"was taken over by {holder or 'nobody'}, because this job had not renewed its lease for too long: "
                "this job must not go on beside it"
            )
        if beat_us != self._renewed_us and self._clock.now_us() - self._renewed_us >= SILENT_MOST_US:
            self._lose(_TOO_LATE)  # by a renewal that failed, and that the store got nevertheless, who knows when
        return looked_us

    def _renew(self, looked_us: int) -> None:
        """Tell that the owner is alive, and believe it only if nobody else can have become the owner before."""
        beat_us = self._write()
        now_us = self._clock.now_us()
        if now_us - self._renewed_us >= SILENT_MOST_US and now_us - looked_us > SETTLE_US:
            self._lose(_TOO_LATE)
        self._renewed_us = beat_us

    def _write(self) -> int:
        """Write our name and the time, and tell that time."""
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
                f"its lease, which names {owner!r} and not a process as this version does, {end}",
            )
        return HeldError(
            self.files.shown,
            holder,
            f"stop that job, choose another, or pass standby=True; if it has died, its lease {end}",
        )

    def _read(self) -> tuple[str | None, int]:
        return _read(self.files)


def lessee(files: Files, now_us: int) -> Holder | None:
    """The owner of a directory according to a lease that has not ended; raises an OSError."""
    owner, beat_us = _read(files)
    return None if owner is None or _is_over(beat_us, now_us) else _holder(owner)


def _is_over(beat_us: int, now_us: int) -> bool:
    return now_us - beat_us >= LEASE_US


def _holder(owner: str) -> Holder | None:
    """The process that an owner's name means; None where it is none that this version writes."""
    try:
        host, process, since_us, _ = owner.rsplit(":", 3)
        return Holder(int(process), host, int(since_us))
    except ValueError:
        return None


def _read(files: Files) -> tuple[str | None, int]:
    """The owner and its last heartbeat; an object that says neither counts as none."""
    if not files.exists(LEASE):
        return None, 0
    try:
        content = parsed(bytes(memoryview(files.read(LEASE, RunningChecksum(), _LEASE_BYTES_MAX))))
        return made(str, content["owner"]), made(int, content["heartbeat_us"])
    except (ValueError, KeyError, TypeError):
        return None, 0
