"""Sentences on the current effects of a job's settings."""

from __future__ import annotations

from workbench.runtime.job.master import Master
from workbench.telemetry.effects.checkpoint_price import checkpoint_price
from workbench.telemetry.effects.shipping import timeout_idle

EVERY_US = 1_000_000
"""The interval between two updates of the sentences: nobody reads faster."""
TOLD = ("buffer_timeout", "checkpoint_interval")
"""The settings whose effects are described."""


class Acting:
    """Makes the sentences of one job, and keeps them for a second.

    Args:
        recent_us: the time over which the job's percentiles are.
    """

    def __init__(self, recent_us: int) -> None:
        self._recent_us = recent_us
        self._at_us: int | None = None
        self._told: dict[str, str] = {}

    def sample(self, master: Master, now_us: int, fill_ms: float | None, since_us: int) -> dict[str, str]:
        """The sentences by the name of the setting.

        Args:
            master: of the job.
            now_us: processing time.
            fill_ms: see `Measured`.
            since_us: when a setting was last changed: earlier figures do not count.
        """
        if self._at_us is not None and 0 <= now_us - self._at_us < EVERY_US:
            return self._told
        self._at_us, self._told = now_us, {}
        since_us = max(since_us, master.life.started_us)  # there were no checkpoints before
        if full := timeout_idle(str(master.settings.shown()["buffer_timeout"]), fill_ms):
            self._told["buffer_timeout"] = full.removeprefix("buffers are ")  # shown next to the slider
        tasks = () if master.execution is None else master.execution.tasks
        if master.settings.periodic_interval_us is not None:
            sources = {task.name for task in (() if master.execution is None else master.execution.sources)}
            ends = [task for task in tasks if not task.outputs]
            price = checkpoint_price(master.coordinator.history, ends, sources, now_us, since_us, self._recent_us)
            if price is not None:
                self._told["checkpoint_interval"] = price.sentence
        return self._told
