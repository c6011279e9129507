"""Which attempts a job has, by its architecture of fault tolerance."""

from __future__ import annotations

from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.job.batched import BatchedAttempts
from workbench.runtime.job.ranges import TransactionalAttempts


def attempts_of(policy: FaultTolerance) -> type[Attempts]:
    """The class of the attempts of a job with this policy."""
    if policy.transactions is not None:
        return TransactionalAttempts
    return Attempts if policy.batches is None else BatchedAttempts
