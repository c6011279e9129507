"""The faults and where they can happen, under the names that users write.

It imports nothing from the runtime, so that a command's help can list them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from workbench.drivers.faults.crash_points import FaultPoint

Kind = Literal[
    "crash",
    "machine",
    "coordinator",
    "error",
    "kill",
    "power",
    "full",
    "broken",
    "slow",
    "jump",
    "late",
    "twice",
    "swapped",
    "torn",
    "flipped",
    "missing",
]
"""The kinds: a task fails as with ``job.fail``, or all tasks of a TaskManager, or the coordinator; the code at that
point raises (a source, a user's function); the process ends, and only what was written survives (``kill -9``), or only
what was synced (a power failure); the disk is full, returns an input/output error, or is slow; the clock jumps ahead;
an acknowledgement is delayed, duplicated, or overtaken by the next one; a file of the latest checkpoint is truncated,
has a wrong bit, or is missing when the next process starts."""

POINTS: dict[FaultPoint, tuple[Kind, ...]] = {
    "step": ("crash", "machine", "coordinator", "kill", "power", "jump"),
    "source read": ("error", "kill"),
    "process": ("crash", "error", "kill"),
    "before trigger": ("crash", "coordinator", "kill"),
    "after trigger": ("crash", "coordinator", "kill"),
    "barrier emission": ("crash", "kill"),
    "first barrier": ("crash", "kill"),
    "end of alignment": ("crash", "kill"),
    "synchronous part": ("crash", "error", "kill"),
    "report": ("late", "twice", "swapped"),
    "state write": ("crash", "error", "kill"),
    "mid-file": ("crash", "full", "kill"),
    "fsync": ("crash", "broken", "slow", "kill", "power"),
    "rename": ("crash", "broken", "kill", "power"),
    "folder sync": ("crash", "broken", "kill", "power"),
    "acknowledge": ("crash", "error", "kill", "power"),
    "last acknowledge": ("crash", "coordinator", "kill", "power"),
    "metadata write": ("crash", "full", "kill", "power"),
    "metadata rename": ("crash", "coordinator", "broken", "kill", "power"),
    "complete": ("crash", "coordinator", "kill", "power"),
    "notify": ("crash", "kill", "power"),
    "pre-commit": ("crash", "kill"),
    "commit": ("crash", "kill", "power"),
    "after commit": ("crash", "kill", "power"),
    "cleanup": ("crash", "broken", "kill", "power"),
    "restore read": ("crash", "error", "broken", "kill"),
    "in-flight replay": ("crash", "kill"),
    "re-commit": ("crash", "error", "broken", "kill", "power"),
    "restart": ("torn", "flipped", "missing"),
}
"""The crash points, and the kinds of faults that a job can survive there."""

NAMES: dict[str, tuple[Kind, ...]] = {
    "task failure": ("crash",),
    "taskmanager failure": ("machine",),
    "coordinator crash": ("coordinator",),
    "kill": ("kill",),
    "power failure": ("power",),
    "exception": ("error",),
    "no space": ("full",),
    "disk error": ("broken",),
    "slow disk": ("slow",),
    "clock jump": ("jump",),
    "delayed acknowledgement": ("late",),
    "duplicate acknowledgement": ("twice",),
    "reordered acknowledgement": ("swapped",),
    "torn file": ("torn",),
    "flipped bit": ("flipped",),
    "missing file": ("missing",),
}
"""The names of the kinds of faults."""

FAULTS: tuple[str, ...] = (*NAMES, *POINTS)
"""All names that users can write: kinds of faults, and crash points."""
