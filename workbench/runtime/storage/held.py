"""That somebody else holds a checkpoint directory."""

from __future__ import annotations

from workbench.durable.holder import Holder
from workbench.errors import CheckpointError


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
