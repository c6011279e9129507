"""Who holds a checkpoint directory that has no locks, such as one in an object store.

The rule: the directory has an object ``lease.json`` with its owner and the time of its last heartbeat. Who finds none,
or one whose last heartbeat is `LEASE_US` old, writes its own name into it, waits `SETTLE_US`, and holds the directory
when its name is still there. The owner renews its heartbeat every `HEARTBEAT_US`, looks before each checkpoint becomes
complete whether it still is the owner, and ends the job when it is not. So of two that come at once the later one wins
and the other never completes a checkpoint. Clocks of the machines may differ by a few seconds.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

from workbench.clock import Clock
from workbench.connectors.checksum import RunningChecksum
from workbench.errors import CheckpointError
from workbench.redaction import redacted
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.holder import HeldError, Holder

LEASE = "lease.json"
LEASE_US = 30_000_000
HEARTBEAT_US = 5_000_000
SETTLE_US = 1_000_000
SILENT_MOST_US = LEASE_US // 2
"""So long an owner bears that it cannot renew its heartbeat; then it ends its job, well before anybody takes over."""


class Lease:
    """A directory on a remote file system that this process has taken for itself.

    Args:
        files: in the directory.
        clock: whose time the heartbeats tell.

    Raises:
        CheckpointError: the directory cannot be reached.
        HeldError: another process holds it.
    """

    def __init__(self, files: Files, clock: Clock) -> None:
        self.files = files
        self.directory: Path | None = None
        self._clock = clock
        self._renewed_us = 0
        self.holder = holder = Holder(os.getpid(), platform.node(), clock.now_us())
        self._owner = f"{holder.host}:{holder.pid}:{holder.since_us}:{id(self)}"
        try:
            if (other := _in_force(*self._read(), clock.now_us())) is not None:
                raise self._held_by(other)
            self.renew()
        except OSError as error:
            reason = redacted(str(error).partition("\n")[0])
            raise CheckpointError(
                f"the checkpoint directory {files.shown!r} cannot be used ({reason}): check that it exists and the "
                "credentials, or choose another"
            ) from None

    def settle(self) -> None:
        owner, _ = self._read()
        if owner is None:
            raise HeldError(self.files.shown, None)
        if owner != self._owner:
            raise self._held_by(_holder(owner))

    def check(self) -> None:
        holder, _ = self._read()
        if holder != self._owner:
            raise CheckpointError(
                f"the checkpoint directory {self.files.shown!r} was taken over by {holder or 'nobody'}, because this "
                "job had not renewed its lease for too long: this job must not go on beside it"
            )

    def renew(self) -> None:
        """Tell that the owner is alive."""
        now_us = self._clock.now_us()
        content = {"owner": self._owner, "heartbeat_us": now_us}
        self.files.write(LEASE, (json.dumps(content).encode(),))
        self._renewed_us = now_us

    def beat(self) -> None:
        """Renew the lease if it still is ours; when the file system cannot be reached, the next beat tries again.

        Raises:
            CheckpointError: another process has taken the directory, or may soon, because it could not be renewed.
        """
        try:
            self.check()
            self.renew()
        except OSError as error:
            silent_us = self._clock.now_us() - self._renewed_us
            if silent_us >= SILENT_MOST_US:
                raise CheckpointError(
                    f"the lease of the checkpoint directory {self.files.shown!r} could not be renewed for "
                    f"{silent_us // 1_000_000} seconds ({redacted(str(error).partition(chr(10))[0])}): another process "
                    "may take the directory at any time, so this job must not go on"
                ) from None

    def release(self) -> None:
        holder, _ = self._read()
        if holder == self._owner:
            self.files.delete(LEASE)

    def _held_by(self, other: Holder) -> HeldError:
        return HeldError(
            self.files.shown,
            other,
            "stop that job, choose another, or pass standby=True; if it has died, its lease ends "
            f"{LEASE_US // 1_000_000} seconds after its last heartbeat",
        )

    def _read(self) -> tuple[str | None, int]:
        return _read(self.files)


def lessee(files: Files, now_us: int) -> Holder | None:
    """Who holds a directory by a lease that has not ended, as far as its object tells; raises an OSError."""
    return _in_force(*_read(files), now_us)


def _in_force(owner: str | None, beat_us: int, now_us: int) -> Holder | None:
    return None if owner is None or now_us - beat_us >= LEASE_US else _holder(owner)


def _holder(owner: str) -> Holder:
    host, process, since_us, *_ = owner.split(":")
    return Holder(int(process), host, int(since_us))


def _read(files: Files) -> tuple[str | None, int]:
    """The owner and its last heartbeat; an object that says neither counts as none."""
    if not files.exists(LEASE):
        return None, 0
    try:
        content = json.loads(bytes(memoryview(files.read(LEASE, RunningChecksum()))))
        owner, beat_us = str(content["owner"]), int(content["heartbeat_us"])
        _holder(owner)
    except (ValueError, KeyError, TypeError):
        return None, 0
    return owner, beat_us
