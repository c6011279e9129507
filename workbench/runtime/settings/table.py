"""The settings that users write: which there are, which `run` and `tune` accept, and their types for editors.

Most are fields of `Settings`; speed and rate belong to sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypedDict

import numpy as np

from workbench.connectors.contract.base import Guarantee
from workbench.durations import Duration, parse_speed
from workbench.errors import SettingError
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.restart_strategies import RestartStrategy
from workbench.runtime.settings.setting import Setting, entries
from workbench.runtime.settings.settings import Settings


def parse_rate(value: object, name: str) -> float | None:
    """Records per second, or None for ``"max"``.

    Raises:
        SettingError: not a rate.
    """
    if isinstance(value, str) and value.strip().lower() == "max":
        return None
    try:
        rate = math.nan if isinstance(value, bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        rate = math.nan
    if not 0 < rate < math.inf:
        raise SettingError(f"{name} is {value!r}: write records per second, above zero, or 'max' for full speed")
    return rate


TABLE: Mapping[str, Setting] = MappingProxyType(
    {
        **{each.name: each for _, each in entries(Settings)},
        "speed": Setting(
            'seconds of recorded time to replay per second, such as ``"600x"``; ``"max"``: no waiting; None: as '
            "declared in the stream.",
            lambda value, _: parse_speed(value),
            default=None,
            words=("max",),
            title="Replay speed",
            steps=("60x", "600x", "3600x", "21600x", "86400x", "604800x", "2592000x", "max"),
            absent="nothing is replayed",
            name="speed",
        ),
        "rate": Setting(
            'records per second of each source that reads at a rate; ``"max"``: at full speed. For one of several '
            'sources: ``{"clicks": 50_000}`` or ``"clicks:50000"``. A hybrid source has two, ``clicks.history`` and '
            "``clicks.live``.",
            parse_rate,
            default=None,
            run=False,
            words=("max",),
            title="Source rate (records/s)",
            steps=("1", "10", "100", "1000", "10000", "100000", "1000000", "max"),
            absent="no source has a rate",
            name="rate",
        ),
    }
)
"""All of them, by name."""
OF_RUN: Mapping[str, Setting] = MappingProxyType({name: each for name, each in TABLE.items() if each.run})
"""The settings that `Pipeline.run` accepts."""
OF_TUNE: Mapping[str, Setting] = MappingProxyType({name: each for name, each in TABLE.items() if each.tunable})
"""The settings that can be changed while a job runs."""
TUNABLE = tuple(OF_TUNE)
"""Their names, as users write them."""


class _Both(TypedDict, total=False):
    parallelism: int
    buffer_timeout: Duration | None
    buffer_size: int
    checkpoint_interval: Duration | None
    checkpoint_mode: Literal["exactly-once", "at-least-once", "unaligned", "stop-the-world"] | FaultTolerance
    aligned_checkpoint_timeout: Duration | None
    checkpoint_timeout: Duration
    min_pause: Duration
    max_concurrent_checkpoints: int
    tolerable_failed_checkpoints: int | Literal["any"] | None
    retained_checkpoints: int
    at_end: Literal["finish", "hold"]
    restart_delay: Duration
    speed: str | float | None


class TunableSettings(_Both, total=False):
    """What `Job.tune` takes, for editors and type checkers."""

    rate: str | float | Mapping[str, str | float]


class RunSettings(_Both, total=False):
    """What `Pipeline.run` takes, for editors and type checkers."""

    max_parallelism: int | None
    fault_tolerance: FaultTolerance | str | None
    restart: RestartStrategy | str | None
    slots_per_taskmanager: int
    local_aggregation: bool
    guarantee: Guarantee | None
