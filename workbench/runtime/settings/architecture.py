"""The setting ``fault_tolerance``: the architecture of a run."""

from __future__ import annotations

from workbench.errors import SettingError
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.called import called

SNAPSHOTS = "snapshots"
"""What a job does against failures if it is not told otherwise: checkpoints of everything, see `checkpoint_mode`."""
CHOICES = (SNAPSHOTS, *ARCHITECTURES)
"""The architectures, by their names in text."""


def parse_architecture(value: object, name: str) -> FaultTolerance | None:
    """Return an architecture, or parse its name with arguments; None stands for snapshots.

    Raises:
        SettingError: no such architecture or argument, or an invalid value.

    Example:
        >>> parse_architecture("snapshots", "fault_tolerance") is None
        True
    """
    if value is None or (isinstance(value, str) and value.strip().lower() == SNAPSHOTS):
        return None
    if isinstance(value, FaultTolerance):
        if value.name in ARCHITECTURES:
            return value
        raise SettingError(f"{name} is {value}, which is a way to take checkpoints: write checkpoint_mode='{value}'")
    found: FaultTolerance | None = called(
        value, {SNAPSHOTS: None, **ARCHITECTURES}, name, "changelog:offset_interval=5s"
    )
    return found


def show_architecture(value: FaultTolerance | None) -> str:
    """``"changelog:offset_interval=5s"``, or ``"snapshots"``."""
    return SNAPSHOTS if value is None else str(value)
