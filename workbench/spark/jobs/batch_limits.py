"""The time between two batches of a job on Spark, and their size: what a restart from the last batch can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.durations import format_duration, parse_duration
from workbench.errors import JobError, SettingError
from workbench.spark.jobs.absent import check_settings

_NAMES = ("checkpoint_interval", "batch_size")
_EXAMPLE = 200_000


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch begins, and how much is in it.

    Attributes:
        interval_us: between two batches; 0: a batch begins as soon as the one before has ended.
        size: records, about; None: the usual number.

    Example:
        >>> BatchLimits(0).changed({"checkpoint_interval": "2s", "batch_size": 500})
        BatchLimits(interval_us=2000000, size=500)
    """

    interval_us: int
    size: int | None = None

    @property
    def trigger(self) -> str:
        """The interval as Spark writes it."""
        return f"{max(0, self.interval_us // 1000)} milliseconds"

    @property
    def shown(self) -> dict[str, str | int | None]:
        """As ``status`` shows them."""
        interval = format_duration(self.interval_us) if self.interval_us else "disabled"
        return dict(zip(_NAMES, (interval, self.size), strict=True))

    def changed(self, settings: Mapping[str, object]) -> BatchLimits:
        """With the values that a user wrote.

        Raises:
            SettingError: a setting that has no meaning on Spark, or that there is not, or a wrong value.
            JobError: one that is fixed for the life of a checkpoint.
        """
        others = [name for name in settings if name not in _NAMES]
        check_settings(others)
        if others:
            raise JobError(
                f"{', '.join(others)} cannot be changed while a job runs on Spark: stop it, and run the pipeline anew, "
                "in another checkpoint directory"
            )
        interval_us, size = self.interval_us, settings.get("batch_size", self.size)
        if "checkpoint_interval" in settings:
            given = settings["checkpoint_interval"]
            interval_us = 0 if given in (None, "disabled") else parse_duration(given, "checkpoint_interval")  # type: ignore[arg-type]
        if isinstance(size, str) and size.isdecimal():  # as cells write it
            size = int(size)
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
            raise SettingError(f"batch_size={size!r} must be a number of records, such as {_EXAMPLE:_}")
        return BatchLimits(interval_us, size)
