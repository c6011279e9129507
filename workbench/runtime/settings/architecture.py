"""The setting ``fault_tolerance``: the architecture of a run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from workbench.errors import SettingError
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.called import arguments_of, called

SNAPSHOTS = "snapshots"
"""What a job does against failures if it is not told otherwise: checkpoints of everything, see `checkpoint_mode`."""
CHOICES = (SNAPSHOTS, *ARCHITECTURES)
"""The architectures, by their names in text."""


KNOBS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        knob: tuple(name for name, make in ARCHITECTURES.items() if knob in arguments_of(make))
        for make in ARCHITECTURES.values()
        for knob in arguments_of(make)
    }
)
"""The arguments of architectures, each with the names of those that have it."""


def tuned(policy: FaultTolerance | None, knob: str, value: object) -> FaultTolerance:
    """The architecture of a running job with another value of one of its arguments.

    Raises:
        SettingError: another architecture has this argument, it holds for the whole run, or the value is invalid.

    Example:
        >>> print(tuned(ARCHITECTURES["acks"](), "message_timeout", "5s"))
        acks:message_timeout=5s
    """
    name = SNAPSHOTS if policy is None else policy.name
    if policy is None or name not in KNOBS[knob]:
        owners = " or ".join(f"{owner!r}" for owner in KNOBS[knob])
        raise SettingError(
            f"{knob} is an argument of fault_tolerance {owners}, and this job runs with {name!r}: start it again with "
            f"fault_tolerance='{KNOBS[knob][0]}:{knob}={value}'"
        )
    if knob not in policy.live:
        raise SettingError(
            f"{knob} of fault_tolerance {name!r} applies to a whole run: start the job again with "
            f"fault_tolerance='{name}:{knob}={value}'"
        )
    changed: FaultTolerance = ARCHITECTURES[name](**{**dict(policy.knobs), knob: value})
    return changed


def parse_architecture(value: object, name: str) -> FaultTolerance | None:
    """Return an architecture, or parse its name with arguments; None means snapshots.

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
