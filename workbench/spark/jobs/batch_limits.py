"""The time between two batches of a job on Spark, and their size: what a restart from the last batch can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from workbench.durations import format_duration
from workbench.errors import JobError
from workbench.runtime.settings.setting import Setting, optional_duration, positive
from workbench.spark.jobs.absent import check_settings

BATCH_ROWS = 200_000
"""Records of a batch, about, by default: a batch costs a second or so, whatever its size."""
REREAD_ROWS = 2_000_000
"""The same for batches that executors read for themselves: nothing of them is held in the driver."""
NOT_AT_ONCE = "the query starts again from its last batch"
"""What a change does to the job."""
_DEFAULT = "default"


def _interval(value: object, name: str) -> int:
    return optional_duration(value, name) or 0


def _size(value: object, name: str) -> int | None:
    return None if value in (None, _DEFAULT) else positive(value, name)


BATCH_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "checkpoint_interval": Setting(
            "the time between two batches; a batch takes longer than that if it has to.",
            _interval,
            lambda interval_us: format_duration(interval_us) if interval_us else "disabled",
            words=("disabled",),
            title="Trigger interval",
            steps=("disabled", "500ms", "1s", "2s", "5s", "10s", "30s", "1min"),
            name="checkpoint_interval",
        ),
        "batch_size": Setting(
            "records of a batch, about.",
            _size,
            lambda size: _DEFAULT if size is None else size,
            words=(_DEFAULT,),
            title="Records per batch",
            steps=("1000", "5000", "20000", "50000", "100000", "500000", "1000000", _DEFAULT),
            name="batch_size",
        ),
    }
)
"""The settings that a restart from the last batch changes, by name."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch begins, and how much is in it.

    Attributes:
        interval_us: between two batches; 0: a batch begins as soon as the previous one has finished.
        size: records, about; None: `BATCH_ROWS` or `REREAD_ROWS`, by how the source is read.

    Example:
        >>> BatchLimits(0).changed({"checkpoint_interval": "2s", "batch_size": 500})
        BatchLimits(interval_us=2000000, size=500)
    """

    interval_us: int
    size: int | None = None

    @property
    def trigger(self) -> str:
        """The interval as Spark writes it."""
        return f"{self.interval_us // 1000} milliseconds"

    @property
    def batch_rows(self) -> int:
        """Records of a batch whose source the driver reads."""
        return self.size or BATCH_ROWS

    @property
    def reread_rows(self) -> int:
        """Records of a batch whose source executors read."""
        return self.size or REREAD_ROWS

    @property
    def shown(self) -> dict[str, str | int]:
        """As ``status`` shows them, and as users write them."""
        values = (self.interval_us, self.size)
        return {name: each.show(value) for (name, each), value in zip(BATCH_SETTINGS.items(), values, strict=True)}

    def changed(self, settings: Mapping[str, object]) -> BatchLimits:
        """With the values that a user wrote.

        Raises:
            SettingError: a setting that has no meaning on Spark, or that there is not, or a wrong value.
            JobError: one that is fixed for the life of a checkpoint.
        """
        others = [name for name in settings if name not in BATCH_SETTINGS]
        check_settings(others)
        if others:
            raise JobError(
                f"{', '.join(others)} cannot be changed while a job runs on Spark: stop it, and run the pipeline "
                "again in another checkpoint directory"
            )
        values = {"checkpoint_interval": self.interval_us, "batch_size": self.size}
        values |= {name: BATCH_SETTINGS[name].parse(value, name) for name, value in settings.items()}
        return BatchLimits(values["checkpoint_interval"] or 0, values["batch_size"])

    def difference(self, before: BatchLimits) -> str:
        """What has changed, for a sentence; empty: nothing.

        Example:
            >>> BatchLimits(2_000_000).difference(BatchLimits(0))
            'trigger interval disabled → 2s'
        """
        was, now = before.shown, self.shown
        return ", ".join(
            f"{each.title.lower()} {was[name]} → {now[name]}"
            for name, each in BATCH_SETTINGS.items()
            if was[name] != now[name]
        )


def limits_told(job: str, limits: BatchLimits) -> str:
    """When batches begin, how large they are, and how to change that, as HTML.

    Example:
        >>> limits_told("delays", BatchLimits(2_000_000))
        '<p>A batch begins every 2s, and has ...
    """
    every = f"every {limits.shown['checkpoint_interval']}"
    if not limits.interval_us:
        every = "as soon as the previous one has finished"
    size = f"about {limits.size or BATCH_ROWS:,} records"
    if limits.size is None:
        size += f", or {REREAD_ROWS:,} of a history that executors read"
    return (
        f"<p>A batch begins {every}, and has {size}. To change that, run <code>%stream set {escape(job)} "
        f"checkpoint_interval=2s batch_size=50000</code>: {NOT_AT_ONCE}.</p>"
    )


def changes_told(changes: Sequence[str]) -> str:
    """What was tuned, oldest first, as HTML.

    Example:
        >>> changes_told(["trigger interval disabled → 2s, from batch 7 on"])
        '<p>Tuned: trigger interval disabled → 2s, from batch 7 on.</p>'
    """
    return "".join(f"<p>Tuned: {escape(change)}.</p>" for change in changes)
