"""How the checkpoints of a simulated job are taken: drawn like everything else."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from workbench.elements import CheckpointMode
from workbench.runtime.settings import Settings


def draw_checkpointing(chance: Random, settings: Settings) -> Settings:
    """These settings with a mode that is exactly once, and what goes with it.

    Example:
        >>> drawn = [draw_checkpointing(Random(seed), Settings()) for seed in range(40)]
        >>> sorted({settings.checkpoint_mode for settings in drawn})
        ['exactly-once', 'stop-the-world', 'unaligned']
        >>> all(settings == settings.check() for settings in drawn)
        True
    """
    mode: CheckpointMode = chance.choice(("exactly-once", "exactly-once", "unaligned", "unaligned", "stop-the-world"))
    timeout_us = chance.choice((None, 0, 300, 3_000)) if mode == "exactly-once" else None
    several = mode == "exactly-once" and timeout_us is None
    return replace(
        settings,
        checkpoint_mode=mode,
        aligned_checkpoint_timeout_us=timeout_us,
        max_concurrent_checkpoints=chance.choice((1, 2, 4)) if several else 1,
        min_pause_us=chance.choice((0, 0, 1_000)),
    )
