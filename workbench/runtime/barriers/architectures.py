"""Fault tolerance for a whole run: architectures other than checkpoints of everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import SettingError
from workbench.runtime.barriers.acks import acks
from workbench.runtime.barriers.aligned import STOP_THE_WORLD
from workbench.runtime.barriers.at_least_once import CountedBarriers
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.micro_batches import micro_batches
from workbench.runtime.barriers.transactions import transactions

AT_MOST_ONCE = FaultTolerance(
    name="at-most-once",
    title="outputs only",
    help="nothing is read again: what was in flight and the state of operators are lost in a failure",
    guarantee="at-most-once",
    aligned=False,
    replays=False,
    tunable=False,
    live=("flush_interval",),
    outputs_only=True,
)
CHANGELOG = FaultTolerance(
    name="changelog",
    title="changelog",
    help="state is logged more often than the positions of the sources, and what lies between counts twice",
    guarantee="at-least-once",
    aligned=False,
    tunable=False,
    live=("changelog_interval", "offset_interval"),
    barriers=CountedBarriers,
    offset_interval_us=60_000_000,
)


def at_most_once(flush_interval: Duration | None = None) -> FaultTolerance:
    """No mechanism: after a failure sources continue with the next record, and operators start with empty state.

    Sinks commit their rows at each flush. Records that were on their way when a task failed, state, and rows that were
    not flushed are lost; nothing counts twice. A job that another process resumes reads on from the last flush, with
    empty state.

    Source: no mechanism, as in C; D5 for what the others cost.

    Args:
        flush_interval: time between two commits of the sinks, such as ``"1s"``; None: ``checkpoint_interval``. Can
            be tuned.

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not a duration above zero.

    Example:
        >>> print(at_most_once("1s"), at_most_once().guarantee)
        at-most-once:flush_interval=1s at-most-once
    """
    return _every(AT_MOST_ONCE, "flush_interval", flush_interval)


def changelog(changelog_interval: Duration | None = None, offset_interval: Duration = "60s") -> FaultTolerance:
    """Log the state often, and the positions of the sources seldom, without a transaction over both (Samza in 2015).

    After a failure each operator loads its log to the end, and the sources read again from the positions saved last.
    The records between are applied twice: results are too high by what was read in `offset_interval` at most.
    `Job.audit` counts these records. Large tables of state are logged as changes. Channels are not durable, unlike
    Samza's streams: a marker passes through them with each entry, without alignment, so that no record between two logs
    is lost.

    Source: the changelog of Samza in A and D; Noghabi et al., "Samza: Stateful Scalable Stream Processing at LinkedIn",
        VLDB 2017. Later versions of Samza have transactional state.

    Args:
        changelog_interval: time between two entries of the logs, and between two commits of the sinks, such as
            ``"1s"``; None: ``checkpoint_interval``. Can be tuned.
        offset_interval: time after which sources save new positions, such as ``"60s"``; can be tuned.

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not a duration above zero, or positions would be saved more often than state.

    Example:
        >>> print(changelog("500ms", offset_interval="5s"))
        changelog:changelog_interval=500ms,offset_interval=5s
    """
    policy = _every(CHANGELOG, "changelog_interval", changelog_interval)
    offset_us = _above_zero(offset_interval, "offset_interval")
    if policy.interval_us is not None and offset_us < policy.interval_us:
        raise SettingError(
            f"offset_interval is {format_duration(offset_us)}, shorter than changelog_interval, "
            f"{format_duration(policy.interval_us)}: positions are saved with an entry of the log, so swap them"
        )
    knobs = (*policy.knobs, ("offset_interval", format_duration(offset_us)))
    return replace(policy, offset_interval_us=offset_us, knobs=knobs)


def stop_the_world(interval: Duration | None = None) -> FaultTolerance:
    """Naive checkpoints: the sources read nothing while a checkpoint is taken, so stalls grow with the state.

    Source: E9; naive checkpointing in B and C.

    Args:
        interval: time between two checkpoints, such as ``"5s"``; None: ``checkpoint_interval``. Can be tuned.

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not a duration above zero.

    Example:
        >>> print(stop_the_world("5s"), stop_the_world().stops_sources)
        stop-the-world:interval=5s True
    """
    return replace(_every(STOP_THE_WORLD, "interval", interval), tunable=False, live=("interval",))


ARCHITECTURES: dict[str, Callable[..., FaultTolerance]] = {
    "acks": acks,
    "at-most-once": at_most_once,
    "changelog": changelog,
    "micro-batches": micro_batches,
    "stop-the-world": stop_the_world,
    "transactions": transactions,
}
"""What makes a value for ``fault_tolerance=``, by the names that users write."""


def _every(policy: FaultTolerance, knob: str, interval: Duration | None) -> FaultTolerance:
    if interval is None:
        return policy
    us = _above_zero(interval, knob)
    return replace(policy, interval_us=us, knobs=((knob, format_duration(us)),))


def _above_zero(value: Duration, name: str) -> int:
    us = parse_duration(value, name)
    if us == 0:
        raise SettingError(f"{name} is 0: write a time such as '5s'")
    return us
