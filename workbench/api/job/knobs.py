"""Tuning the arguments of a run's architecture of fault tolerance."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

from workbench.errors import SettingError
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.transactions import transactions, with_transactional

_TUNABLE = ("coalesce",)
"""The knobs that a running job can change."""


def is_knob(name: str) -> bool:
    """Whether an architecture of fault tolerance has such an argument.

    Example:
        >>> is_knob("coalesce"), is_knob("offset_interval"), is_knob("buffer_size")
        (True, True, False)
    """
    return bool(_owners(name))


def turned(policy: FaultTolerance, knob: str, value: object) -> FaultTolerance:
    """The policy of a running job with another value of a knob.

    Raises:
        SettingError: another architecture has this knob, it applies to a whole run, or the value is invalid.

    Example:
        >>> print(turned(transactions(), "coalesce", 100))
        transactions:coalesce=100,strong=true,store=memory
    """
    owners = " and ".join(_owners(knob))
    if policy.name not in _owners(knob):
        raise SettingError(
            f"{knob} is an argument of fault_tolerance {owners!r}, and this job has {policy.name!r}: start it again "
            f"with fault_tolerance='{_owners(knob)[0]}:{knob}={value}'"
        )
    found = policy.transactions
    if knob not in _TUNABLE or found is None:
        raise SettingError(
            f"{knob} of fault_tolerance {policy.name!r} applies to a whole run: start the job again to change it"
        )
    new = transactions(coalesce=value).transactions  # type: ignore[arg-type]
    assert new is not None
    return with_transactional(policy, replace(found, coalesce=new.coalesce))


def _owners(knob: str) -> tuple[str, ...]:
    return tuple(name for name, make in ARCHITECTURES.items() if knob in signature(make).parameters)
