"""Record acknowledgements: a source replays what it sent until everything that was made of it has been processed."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from workbench.arguments import whole_number
from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.runtime.barriers.acking import Acking
from workbench.runtime.barriers.at_least_once import CountedBarriers
from workbench.runtime.barriers.fault_tolerance import FaultTolerance

Granularity = Literal["record", "batch"]
GRANULARITIES: tuple[Granularity, ...] = ("record", "batch")
DEFAULT = Acking(ackers=1, single=False, message_timeout_us=30_000_000, max_pending=1_000)

ACKS = FaultTolerance(
    name="acks",
    title="acknowledged",
    help="sources replay what is not acknowledged in time, and what was processed already counts twice",
    guarantee="at-least-once",
    aligned=False,
    tunable=False,
    barriers=CountedBarriers,
    acking=DEFAULT,
    live=("message_timeout", "max_spout_pending"),
)
UNACKED = replace(
    ACKS,
    help="nothing is acknowledged: what was in flight and the state of operators are lost in a failure",
    guarantee="at-most-once",
    replays=False,
    outputs_only=True,
    barriers=None,
    acking=None,
    live=(),
    via="at-most-once",
)
"""Without ackers, sources take everything as acknowledged when they send it."""


def acks(
    ackers: int = 1,
    granularity: Granularity = "batch",
    message_timeout: Duration = "30s",
    max_spout_pending: int | None = 1_000,
) -> FaultTolerance:
    """Acknowledge records to their sources, which replay what is not acknowledged in time (Storm, Heron).

    Each record that goes to another task has a random 64-bit id and belongs to a root. Acker tasks keep the XOR of all
    ids of a root; it is zero when everything that was made of the root has been processed. An operator acknowledges a
    record when it has processed it: windows and other state when they have absorbed it, a filter also when it drops it.
    What a timer or a watermark emits belongs to no root; the state that it comes from is saved at each
    ``checkpoint_interval``, as in Storm's stateful bolts.

    Results are too high by what is replayed. A slow operator is enough for that: a root that waits in queues for longer
    than `message_timeout` is replayed although nothing has failed. `Job.audit` and the status count these roots.

    Source: Storm and Heron in A and D; D6, whose lack it shows; the acking framework of Apache Storm.

    Args:
        ackers: acker tasks, which share the roots; 0: nothing is acknowledged or replayed (at most once).
        granularity: what is a root; ``"record"``: each record that a source reads, and operators process one record at
            a time; ``"batch"``: each batch that it reads.
        message_timeout: time after which a root is replayed, at the latest after one and a half of it, such as
            ``"30s"``; can be tuned.
        max_spout_pending: roots that may be pending for each subtask of a source, which reads nothing while there are
            as many: the flow control of the sources, in addition to the bounded channels. None: no limit. Can be tuned.

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not a number or a duration above zero, or no such granularity.

    Example:
        >>> print(acks(granularity="record", message_timeout="5s"))
        acks:granularity=record,message_timeout=5s
        >>> acks().guarantee, acks(ackers=0).guarantee
        ('at-least-once', 'at-most-once')
    """
    count = _number(ackers, "ackers", 0)
    if granularity not in GRANULARITIES:
        raise SettingError(unknown("granularity", str(granularity), GRANULARITIES))
    chosen = granularity
    timeout_us = parse_duration(message_timeout, "message_timeout")
    if timeout_us == 0:
        raise SettingError("message_timeout is 0: every root would be replayed at once, so write a time such as '30s'")
    no_limit = max_spout_pending is None or str(max_spout_pending).strip().lower() == "none"
    pending = None if no_limit else _number(max_spout_pending, "max_spout_pending", 1)
    acking = Acking(count, chosen == "record", timeout_us, pending)
    given = (
        ("ackers", acking.ackers, DEFAULT.ackers, str(count)),
        ("granularity", acking.single, DEFAULT.single, chosen),
        ("message_timeout", timeout_us, DEFAULT.message_timeout_us, format_duration(timeout_us)),
        ("max_spout_pending", pending, DEFAULT.max_pending, "none" if pending is None else str(pending)),
    )
    knobs = tuple((name, text) for name, value, usual, text in given if value != usual)
    return replace(ACKS, acking=acking, knobs=knobs) if count else replace(UNACKED, knobs=knobs)


def _number(value: object, name: str, least: int) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise SettingError(f"{name} is {value!r}: write a whole number, at least {least}") from None
    return whole_number(value, name, least)
