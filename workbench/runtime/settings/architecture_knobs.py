"""The arguments of architectures that can be tuned while a job runs: how they are offered, and their current values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from workbench.durations import format_duration, parse_duration
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.setting import Setting, positive
from workbench.runtime.settings.settings import Settings

_INTERVALS = ("50ms", "100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "30s", "60s")
_COUNTS = ("1", "10", "100", "1000", "10000", "100000", "1000000")


def _pending(value: Any, name: str) -> int | None:
    return None if str(value).strip().lower() == "none" else positive(value, name)


_duration = partial(Setting, parse=parse_duration, steps=_INTERVALS, run=False)
_count = partial(Setting, parse=positive, steps=_COUNTS, run=False)

ARCHITECTURE_KNOBS: Mapping[str, Setting] = MappingProxyType(
    {
        knob.name: knob
        for knob in (
            _duration("how long a micro-batch is collected.", title="Batch interval", name="batch_interval"),
            _count("records in a micro-batch, at most, for each subtask.", title="Batch size", name="batch_size"),
            _count(
                "micro-batches that are processed at a time.",
                title="Batches at a time",
                steps=("1", "2", "3", "4", "8"),
                name="max_pending",
            ),
            _duration(
                "time after which a root is replayed.",
                title="Message timeout",
                steps=("500ms", "1s", "2s", "5s", "10s", "30s", "60s"),
                name="message_timeout",
            ),
            Setting(
                "roots that may be pending for each subtask of a source.",
                _pending,
                title="Pending roots",
                steps=(*_COUNTS, "none"),
                words=("none",),
                run=False,
                name="max_spout_pending",
            ),
            _count("records in a transaction, at most.", title="Records in a write", name="coalesce"),
            _duration("time between two entries of the log.", title="Log interval", name="changelog_interval"),
            _duration("time after which positions are saved.", title="Position interval", name="offset_interval"),
            _duration("time between two commits of the sinks.", title="Flush interval", name="flush_interval"),
            _duration("time between two stops of the sources.", title="Stop interval", name="interval"),
        )
    }
)
"""The arguments that can be tuned, by the names that users write."""

_NOTHING = "none"


def _as_duration(us: int | None) -> str:
    return _NOTHING if us is None else format_duration(us)


def _of_acks(policy: FaultTolerance, knob: str) -> str:
    assert policy.acking is not None
    if knob == "message_timeout":
        return format_duration(policy.acking.message_timeout_us)
    return _NOTHING if policy.acking.max_pending is None else str(policy.acking.max_pending)


def _of_batches(policy: FaultTolerance, knob: str) -> str:
    batches = policy.batches
    assert batches is not None
    if knob == "batch_interval":
        return format_duration(batches.interval_us)
    return str(batches.size if knob == "batch_size" else batches.max_pending)


def _of_transactions(policy: FaultTolerance, knob: str) -> str:
    assert policy.transactions is not None
    return str(policy.transactions.coalesce)


_VALUES: Mapping[str, Callable[[FaultTolerance, str], str]] = MappingProxyType(
    {"acks": _of_acks, "micro-batches": _of_batches, "transactions": _of_transactions}
)


def knobs_in_force(settings: Settings) -> dict[str, str | None]:
    """The arguments of a run's architecture that can be tuned, as users write them.

    Returns:
        Their values; and None for each setting that has no effect under this architecture.

    Example:
        >>> knobs_in_force(Settings().with_value("fault_tolerance", "changelog:changelog_interval=1s"))
        {'changelog_interval': '1s', 'offset_interval': '1min', 'checkpoint_mode': None, ...}
        >>> knobs_in_force(Settings())
        {}
    """
    policy = settings.fault_tolerance
    if policy is None:
        return {}
    found: dict[str, str | None] = {}
    for knob in policy.live:
        if policy.name in _VALUES:
            found[knob] = _VALUES[policy.name](policy, knob)
        else:
            us = policy.offset_interval_us if knob == "offset_interval" else settings.periodic_interval_us
            found[knob] = _as_duration(us)
    found |= {"checkpoint_mode": None, "aligned_checkpoint_timeout": None}
    return found if policy.interval_us is None else {**found, "checkpoint_interval": None}
