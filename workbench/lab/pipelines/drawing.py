"""The settings of a simulated job."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from workbench.lab.pipelines.checkpointing import draw_checkpointing
from workbench.operators.aggregates.local_aggregate import Worthwhile
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings, show_optional_duration


def draw_settings(chance: Random, durable: bool, fixed: Mapping[str, object] = MappingProxyType({})) -> Settings:
    """Small buffers, frequent checkpoints, short delays: settings that make events coincide.

    Args:
        chance: draws them.
        durable: whether checkpoints are on a disk, which may be slow.
        fixed: settings that are not drawn.

    Example:
        >>> draw_settings(Random(1), durable=False, fixed={"buffer_size": 7}).buffer_size
        7
    """
    drawn: dict[str, Any] = {
        "buffer_size": chance.choice((1, 2, 3, 5, 16, 64)),
        "buffer_timeout_us": chance.choice((0, 5_000, None)),
        "buffers_per_channel": chance.choice((1, 2)),
        "floating_buffers": chance.choice((0, 1, 4)),
        "checkpoint_interval_us": chance.choice((None, 500, 2_000, 2_000, 20_000)),
        "checkpoint_timeout_us": chance.choice((600_000_000, 50_000)) if durable else 600_000_000,
        "retained_checkpoints": chance.choice((1, 3)),
        "watermark_interval_us": chance.choice((100, 1_000, 1_000, 100_000)),
        "latency_interval_us": chance.choice((2_000, 200_000, 200_000)),
        "restart": FixedDelay(3, chance.choice((0, 5_000)), counts_injected=False),
    }
    return draw_checkpointing(chance, Settings(**{**drawn, **fixed}))


def draw_aggregation(chance: Random) -> Worthwhile | None:
    """Whether single records, some of them, or none are aggregated before they are sent to a window.

    Example:
        >>> sorted({draw_aggregation(Random(seed)).rows for seed in range(20) if draw_aggregation(Random(seed))})
        [1, 3]
    """
    return chance.choice((Worthwhile(1, 1, 0), Worthwhile(1, 1, 0), Worthwhile(3, 2, 1), None))


def describe(settings: Settings, durable: bool) -> str:
    """The settings that affect the run most, in words."""
    timeout, interval = map(show_optional_duration, (settings.buffer_timeout_us, settings.checkpoint_interval_us))
    return (
        f"buffers of {settings.buffer_size} records, timeout {timeout},"
        f" {settings.fault_tolerance or settings.checkpoint_mode}"
        f" checkpoints every {interval} {'on disk' if durable else 'in memory'}"
    )
