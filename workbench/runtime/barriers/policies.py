"""The table of fault-tolerance policies: a new policy is a module plus an entry here or a registration."""

from __future__ import annotations

from workbench.errors import SettingError, unknown
from workbench.runtime.barriers.acks import ACKS
from workbench.runtime.barriers.aligned import EXACTLY_ONCE, STOP_THE_WORLD
from workbench.runtime.barriers.architectures import AT_MOST_ONCE, CHANGELOG
from workbench.runtime.barriers.at_least_once import AT_LEAST_ONCE
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.micro_batches import MICRO_BATCHES
from workbench.runtime.barriers.transactions import TRANSACTIONS
from workbench.runtime.barriers.unaligned import UNALIGNED

POLICIES: dict[str, FaultTolerance] = {
    policy.name: policy for policy in (EXACTLY_ONCE, AT_LEAST_ONCE, UNALIGNED, STOP_THE_WORLD)
}
"""By name, in the order in which they are offered to users as checkpoint modes."""
_OF_RUNS = {policy.name: policy for policy in (ACKS, AT_MOST_ONCE, CHANGELOG, MICRO_BATCHES, TRANSACTIONS)}
"""Those that only hold for a whole run."""


def register_fault_tolerance(policy: FaultTolerance) -> FaultTolerance:
    """Make a policy known to ``run``, ``tune``, completion, the dashboard and the simulation.

    Source: F2-9 to F2-15: exactly once, and at least once, as two policies of one runtime.

    Args:
        policy: replaces a policy of the same name that was registered before.

    Returns:
        The policy.

    Raises:
        SettingError: a built-in policy has this name.

    Example:
        >>> register_fault_tolerance(EXACTLY_ONCE)
        Traceback (most recent call last):
        workbench.errors.SettingError: the fault-tolerance policy 'exactly-once' is built in: give yours another name
    """
    if policy.name in _BUILT_IN:
        raise SettingError(f"the fault-tolerance policy {policy.name!r} is built in: give yours another name")
    POLICIES[policy.name] = policy
    return policy


def fault_tolerance(name: object) -> FaultTolerance:
    """Return the policy of that name, or the policy that is passed, if it is registered.

    Raises:
        SettingError: no such policy.
    """
    if isinstance(name, FaultTolerance):
        name = name.name
    policy = POLICIES.get(name) if isinstance(name, str) else None
    if policy is None:
        raise SettingError(unknown("checkpoint_mode", str(name), tuple(POLICIES)))
    return policy


def policy_of(barrier_mode: str) -> FaultTolerance:
    """Return the policy that a barrier or a checkpoint names, as it is without arguments."""
    return _OF_RUNS.get(barrier_mode) or fault_tolerance(barrier_mode)


_BUILT_IN = frozenset((*POLICIES, *_OF_RUNS))
