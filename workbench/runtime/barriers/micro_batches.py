"""Micro-batches for a whole run: records are collected for an interval, and each batch is atomic (Trident, Spark)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from workbench.arguments import whole_number
from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.runtime.barriers.fault_tolerance import FaultTolerance

BatchState = Literal["transactional", "opaque"]
STATES: tuple[BatchState, ...] = get_args(BatchState)
BatchWindows = Literal["reject", "stretch"]
WINDOWS: tuple[BatchWindows, ...] = get_args(BatchWindows)
WAITING_MAX = 4
"""Batches that may wait behind those that are processed; while there are as many, the one that is collected grows."""


@dataclass(frozen=True, slots=True)
class Batched:
    """How records are cut into batches.

    Attributes:
        interval_us: how long one is collected, microseconds.
        size: records in a batch, at most, for each subtask of a source.
        max_pending: batches that are processed at a time.
        same: a batch that failed is read again with the same records.
        stretches: windows become multiples of the interval.
    """

    interval_us: int = 1_000_000
    size: int = 1_000_000
    max_pending: int = 1
    same: bool = True
    stretches: bool = False

    @property
    def most(self) -> int:
        """Batches that may be processed or wait."""
        return self.max_pending + WAITING_MAX


DEFAULT = Batched()
MICRO_BATCHES = FaultTolerance(
    name="micro-batches",
    title="micro-batch",
    help="records are collected for an interval, and each batch takes effect as a whole, in the order of its number",
    tunable=False,
    interval_us=DEFAULT.interval_us,
    live=("batch_interval", "batch_size", "max_pending"),
    batches=DEFAULT,
)


def micro_batches(
    batch_interval: Duration = "1s",
    batch_size: int | str = DEFAULT.size,
    max_pending: int | str = DEFAULT.max_pending,
    state: str = "transactional",
    windows: str = "reject",
) -> FaultTolerance:
    """Collect records for an interval, and process them as a batch that takes effect as a whole (Trident, Spark).

    Each batch has a number, its *txid*. When the interval ends, what the sources have collected is the batch. The
    offsets of its records are logged before it is processed. Batches are committed in the order of their txids, so
    results come with the batch, at least an interval after the first of its records. If a task fails, the batches that
    are not committed are read again from their offsets, under the same txids.

    Batches that are processed more slowly than the interval wait in a queue; when it is full, batches grow to
    `batch_size`. Count and session windows, windows that are no multiple of the interval, and whatever reads the
    clock are rejected: the interval would change their results.

    Source: Storm Trident and Spark Streaming in A; D2, which it lacks; Zaharia et al., "Discretized Streams:
        Fault-Tolerant Streaming Computation at Scale", SOSP 2013.

    Args:
        batch_interval: how long a batch is collected, such as ``"1s"``; can be tuned.
        batch_size: records in a batch, at most, for each subtask of a source, which then waits for the next batch; can
            be tuned.
        max_pending: batches that are processed at a time; with more than 1, operators work on the next batch while the
            one before is committed. Can be tuned.
        state: ``"transactional"``: a batch that failed has the same records when it is read again; ``"opaque"``: it
            may have others, as it does if its source offers others now.
        windows: what happens to windows that are no multiple of the interval; ``"reject"``: the run is rejected;
            ``"stretch"``: they become the next multiple, so results depend on the interval (E8).

    Returns:
        The value for ``run(..., fault_tolerance=...)``.

    Raises:
        SettingError: not a duration or a number above zero, or no such state or treatment of windows.

    Example:
        >>> print(micro_batches("500ms", max_pending=2), micro_batches().guarantee)
        micro-batches:batch_interval=500ms,max_pending=2 exactly-once
    """
    interval_us = parse_duration(batch_interval, "batch_interval")
    if interval_us == 0:
        raise SettingError("batch_interval is 0: a batch needs time to collect records, so write a time such as '1s'")
    if state not in STATES:
        raise SettingError(unknown("state", str(state), STATES))
    if windows not in WINDOWS:
        raise SettingError(unknown("windows", str(windows), WINDOWS))
    size, pending = _number(batch_size, "batch_size"), _number(max_pending, "max_pending")
    found = Batched(interval_us, size, pending, state == "transactional", windows == "stretch")
    given = (
        ("batch_size", found.size, DEFAULT.size, str(found.size)),
        ("max_pending", found.max_pending, DEFAULT.max_pending, str(found.max_pending)),
        ("state", found.same, DEFAULT.same, state),
        ("windows", found.stretches, DEFAULT.stretches, windows),
    )
    knobs = tuple((name, text) for name, value, usual, text in given if value != usual)
    knobs = (("batch_interval", format_duration(interval_us)), *knobs)
    return replace(MICRO_BATCHES, interval_us=interval_us, batches=found, knobs=knobs)


def _number(value: object, name: str) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise SettingError(f"{name} is {value!r}: write a whole number, at least 1") from None
    return whole_number(value, name, 1)
