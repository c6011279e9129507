"""The owner of a folder, as messages name it."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass

from workbench.clock import SystemClock
from workbench.durations import format_instant
from workbench.from_json import made, parsed

_NAME_MAX = 255


def is_alive(pid: int) -> bool:
    """Whether a process with this ID runs on this machine.

    Example:
        >>> is_alive(os.getpid()), is_alive(2**70)
        (True, False)
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # or not a valid ID
        return False
    except OSError:
        return True  # it belongs to another user
    return True


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that owns a folder.

    Attributes:
        pid: its process ID.
        host: the machine's name.
        since_us: when it acquired the folder, microseconds since 1970.
        job: the job that owns it; empty: not known.
        lease: the lease with which that job owns its checkpoint directory; empty: none.
    """

    pid: int
    host: str
    since_us: int
    job: str = ""
    lease: str = ""

    @staticmethod
    def this_process(job: str = "", lease: str = "") -> Holder:
        """This process, from now on."""
        return Holder(os.getpid(), platform.node(), SystemClock().now_us(), job, lease)

    @staticmethod
    def read(text: str) -> Holder | None:
        """Parse the result of `write`; None for any other text, because any program may have written the file."""
        try:
            holder = made(Holder, parsed(text))
        except ValueError:
            return None
        names = (holder.host, holder.job)
        return holder if all(len(name) <= _NAME_MAX and name.isprintable() for name in names) else None

    def write(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        job = f"job {self.job!r} of " if self.job else ""
        return f"{job}process {self.pid} on {self.host} since {format_instant(self.since_us)}"
