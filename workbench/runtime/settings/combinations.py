"""Settings of checkpoints that do not fit together."""

from __future__ import annotations

from workbench.durations import format_duration
from workbench.errors import SettingError
from workbench.plan.guarantee import STRENGTHS
from workbench.runtime.barriers.aligned import EXACTLY_ONCE
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.policies import POLICIES
from workbench.runtime.barriers.unaligned import UNALIGNED


def check_checkpoints(
    policy: FaultTolerance, wanted: str | None, mode: str | None, several: int, aligned_timeout_us: int | None
) -> None:
    """Refuse settings of checkpoints that contradict each other.

    Args:
        policy: of the run.
        wanted: the guarantee that is asked for, such as ``exactly-once``; None: none.
        mode: the checkpoint mode next to a fault-tolerance architecture; None: there is no architecture.
        several: the maximum number of concurrent checkpoints.
        aligned_timeout_us: after which a checkpoint becomes unaligned, microseconds; None: never.

    Raises:
        SettingError: two of them contradict each other; names both and the fix.

    Example:
        >>> check_checkpoints(UNALIGNED, None, None, 2, None)
        Traceback (most recent call last):
        workbench.errors.SettingError: max_concurrent_checkpoints is 2 with checkpoint_mode 'unaligned': ...
    """
    setting = "checkpoint_mode" if mode is None else "fault_tolerance"
    if mode is not None and mode != EXACTLY_ONCE.name:
        raise SettingError(
            f"checkpoint_mode is {mode!r}, and fault_tolerance {policy.name!r} takes checkpoints in its own way: leave "
            "one of them out"
        )
    if wanted is not None and STRENGTHS.index(policy.guarantee) < STRENGTHS.index(wanted):
        enough = [
            f"{each.name!r}" for each in POLICIES.values() if STRENGTHS.index(each.guarantee) >= STRENGTHS.index(wanted)
        ]
        raise SettingError(
            f"the guarantee is {wanted!r} and {setting} {policy.name!r}: choose {' or '.join(enough)}, or lower the "
            "guarantee"
        )
    if several > 1 and policy.one_at_a_time:
        raise SettingError(
            f"max_concurrent_checkpoints is {several} with {setting} {policy.name!r}: {policy.one_at_a_time}, so set "
            "it to 1"
        )
    if several > 1 and policy.switches and aligned_timeout_us is not None:
        raise SettingError(
            f"max_concurrent_checkpoints is {several} with an aligned_checkpoint_timeout: a checkpoint may continue "
            f"unaligned, and {UNALIGNED.one_at_a_time}, so set it to 1"
        )


def check_acks(policy: FaultTolerance, buffer_timeout_us: int | None) -> None:
    """Refuse a buffer timeout that delays records so much that they would be replayed.

    Args:
        policy: of the run.
        buffer_timeout_us: microseconds; None: buffers ship only when they are full.

    Raises:
        SettingError: it is not below the message timeout.

    Example:
        >>> check_acks(EXACTLY_ONCE, None)
    """
    acking = policy.acking
    if acking is None or (buffer_timeout_us is not None and buffer_timeout_us < acking.message_timeout_us):
        return
    shown = "disabled" if buffer_timeout_us is None else format_duration(buffer_timeout_us)
    raise SettingError(
        f"buffer_timeout is {shown}, and acks replays a record after message_timeout, "
        f"{format_duration(acking.message_timeout_us)}, while it still waits in a buffer: lower buffer_timeout"
    )
