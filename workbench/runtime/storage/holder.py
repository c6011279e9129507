"""Who holds a checkpoint directory, as whoever wants it is told."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass

from workbench.clock import SystemClock
from workbench.durations import format_instant
from workbench.errors import CheckpointError
from workbench.from_json import made, parsed


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has taken a directory for itself.

    Attributes:
        pid: its number.
        host: the machine's name.
        since_us: when it took the directory, microseconds since 1970.
    """

    pid: int
    host: str
    since_us: int

    @staticmethod
    def this_process() -> Holder:
        """This process, from now on."""
        return Holder(os.getpid(), platform.node(), SystemClock().now_us())

    @staticmethod
    def read(text: str) -> Holder | None:
        """What `write` wrote; None for anything else."""
        try:
            return made(Holder, parsed(text))
        except ValueError:
            return None

    def write(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {format_instant(self.since_us)}"


class HeldError(CheckpointError):
    """Another process, or another job, holds the directory.

    Args:
        shown: the directory as it may be shown.
        holder: who, if that is known.
        remedy: what to do about it.
    """

    def __init__(
        self, shown: str, holder: Holder | None, remedy: str = "stop that job, choose another, or pass standby=True"
    ) -> None:
        who = "another job" if holder is None else str(holder)
        super().__init__(f"the checkpoint directory {shown!r} is in use by {who}: {remedy}")
        self.holder = holder
