"""What can go wrong, and where, in the words in which a person asks for it.

It imports nothing of the runtime, so the help of a command can list it.
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
"""A task fails as by ``job.fail``, or all tasks of a TaskManager, or the coordinator; the code there raises (a source,
a user's function); the process ends, and only what was written survives (``kill -9``), or only what was synced (a power
failure); the disk is full, gives an
input/output error, or takes long; the clock jumps ahead; an acknowledgement is delayed, comes twice, or comes behind
the next one; a file of the latest checkpoint is cut off, has a wrong bit, or is gone when the next process starts."""

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
"""Where faults can happen, and which ones can be survived there."""

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
"""What a person calls the kinds of faults."""

FAULTS: tuple[str, ...] = (*NAMES, *POINTS)
"""Names that a person asks for: kinds of faults, and places."""
