"""The error for a checkpoint directory that another process owns."""

from __future__ import annotations

from workbench.durable.holder import Holder
from workbench.errors import CheckpointError


class HeldError(CheckpointError):
    """Another process, or another job, owns the directory.

    Args:
        shown: the directory, with secrets masked.
        holder: the owner, if known.
        remedy: what the user can do.
    """

    def __init__(
        self, shown: str, holder: Holder | None, remedy: str = "stop that job, choose another, or pass standby=True"
    ) -> None:
        who = "another job" if holder is None else str(holder)
        super().__init__(f"the checkpoint directory {shown!r} is in use by {who}: {remedy}")
        self.holder = holder


class DoubtfulLeaseError(HeldError):
    """The lease of the directory is over by this machine's clock, but its owner may still renew it: look again."""
