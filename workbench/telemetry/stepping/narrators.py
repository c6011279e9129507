"""The narrator of each fault-tolerance architecture."""

from __future__ import annotations

from workbench.drivers.stepped.narrator import PLAIN, Narrator
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.telemetry.stepping.acks import AcksNarrator
from workbench.telemetry.stepping.barriers import (
    AtMostOnceNarrator,
    ChangelogNarrator,
    StopTheWorldNarrator,
    UnalignedNarrator,
)
from workbench.telemetry.stepping.batches import BatchesNarrator
from workbench.telemetry.stepping.transactions import TransactionsNarrator


def narrator_for(policy: FaultTolerance) -> Narrator:
    """The narrator of a run with this policy.

    Example:
        >>> from workbench.runtime.barriers.policies import fault_tolerance
        >>> narrator_for(fault_tolerance("unaligned"))
        <UnalignedNarrator>
    """
    if policy.acking is not None:
        return AcksNarrator()
    if policy.batches is not None:
        return BatchesNarrator()
    if policy.transactions is not None:
        return TransactionsNarrator()
    if policy.offset_interval_us is not None:
        return ChangelogNarrator()
    if not policy.replays:
        return AtMostOnceNarrator()
    if policy.overtakes or policy.switches:
        return UnalignedNarrator()
    return StopTheWorldNarrator() if policy.stops_sources else PLAIN
