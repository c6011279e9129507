"""The error for a checkpoint directory that another process owns."""

from __future__ import annotations

from workbench.arguments import option
from workbench.durable.holder import Holder
from workbench.errors import CheckpointError


class HeldError(CheckpointError):
    """Another process, or another job, owns the directory.

    Args:
        shown: the directory, with secrets masked.
        holder: the owner, if known.
        remedy: what the user can do; empty: the usual.
    """

    def __init__(self, shown: str, holder: Holder | None, remedy: str = "") -> None:
        remedy = remedy or f"stop that job, choose another {option('checkpoint_dir', '')}, or add {option('standby')}"
        who = "another job" if holder is None else str(holder)
        super().__init__(f"the checkpoint directory {shown!r} is in use by {who}: {remedy}")
        self.holder = holder


class DoubtfulLeaseError(HeldError):
    """The lease of the directory is over by this machine's clock, but its owner may still renew it: look again."""
