"""What can be set for a job, and what of it can be tuned while the job runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from workbench.durations import MAX_TIME, format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.plan.slots import SLOTS_PER_TASKMANAGER
from workbench.runtime.restart_strategies import DEFAULT_STRATEGY, RestartStrategy, parse_restart

TUNABLE = ("buffer_timeout", "buffer_size", "checkpoint_interval", "parallelism", "rate", "speed")
"""Settings that a running job takes, by the names that people write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A job's settings; replaced as a whole when something is tuned.

    Attributes:
        parallelism: subtasks of every vertex that does not say otherwise.
        slots_per_taskmanager: slots that fail together.
        buffer_size: records in a full buffer; large, because a step costs the same for few records as for many.
        buffer_timeout_us: a record waits at most so long for its buffer to fill and to reach the next task; 0: it is
            shipped at once; None: only when the buffer is full.
        transit_us: what of the buffer timeout the way to the next task and its turn there take; at most two thirds.
        buffer_debloat_target_us: a full buffer holds what comes in this time, but never more than `buffer_size`; None:
            always `buffer_size`.
        buffers_per_channel: the receiver's credit for each channel.
        floating_buffers: further buffers of a task's output pool, shared by its channels.
        checkpoint_interval_us: None: no periodic checkpoints.
        checkpoint_timeout_us: a checkpoint that takes longer is aborted.
        retained_checkpoints: how many complete ones stay on disk.
        watermark_interval_us: how often a source tells its watermark.
        latency_interval_us: how often a source sends a latency marker.
        restart: whether and when a failed job starts again.
        slowed: (operator, us) of the operators that somebody slows down: its task rests so long after every buffer.
        stalled: the operators that somebody has stopped taking records.
    """

    parallelism: int = 1
    slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER
    buffer_size: int = 262_144
    buffer_timeout_us: int | None = 100_000
    transit_us: int = 0
    buffer_debloat_target_us: int | None = 15_000
    buffers_per_channel: int = 2
    floating_buffers: int = 4
    checkpoint_interval_us: int | None = None
    checkpoint_timeout_us: int = 600_000_000
    retained_checkpoints: int = 3
    watermark_interval_us: int = 100_000
    latency_interval_us: int = 200_000
    restart: RestartStrategy = DEFAULT_STRATEGY
    slowed: tuple[tuple[str, int], ...] = ()
    stalled: tuple[str, ...] = ()

    @property
    def ship_after_us(self) -> int | None:
        """How long after its first record a partial buffer is shipped."""
        timeout_us = self.buffer_timeout_us
        return None if timeout_us is None else timeout_us - min(self.transit_us, 2 * timeout_us // 3)

    def shown(self) -> dict[str, str | int | None]:
        """The settings as people write them; ``slow_down`` and ``stall`` while somebody does that to an operator."""
        shown: dict[str, str | int | None] = {
            "parallelism": self.parallelism,
            "buffer_timeout": show_optional_duration(self.buffer_timeout_us),
            "buffer_size": self.buffer_size,
            "checkpoint_interval": show_optional_duration(self.checkpoint_interval_us),
            "restart": str(self.restart),
        }
        if self.slowed:
            shown["slow_down"] = ", ".join(f"{uid}:{format_duration(us)}" for uid, us in self.slowed)
        if self.stalled:
            shown["stall"] = ", ".join(self.stalled)
        return shown

    def with_slowed(self, operator: str, us: int) -> Settings:
        """These settings with an operator slowed down by `us` for every buffer; 0: no longer.

        Example:
            >>> Settings().with_slowed("aggregate", 5000).shown()["slow_down"]
            'aggregate:5ms'
        """
        others = tuple(item for item in self.slowed if item[0] != operator)
        return replace(self, slowed=(*others, (operator, us)) if us else others)

    def with_stalled(self, operator: str, stalled: bool) -> Settings:
        """These settings with an operator that takes no records, or takes them again."""
        others = tuple(uid for uid in self.stalled if uid != operator)
        return replace(self, stalled=(*others, operator) if stalled else others)

    def rest_us(self, operators: Iterable[str]) -> int:
        """How long a task of these operators rests after a buffer; MAX_TIME when one of them is stalled."""
        uids = set(operators)
        if not uids.isdisjoint(self.stalled):
            return MAX_TIME
        return sum(us for uid, us in self.slowed if uid in uids)

    def with_value(self, name: str, value: object) -> Settings:
        """These settings with one value replaced by what a person wrote.

        Raises:
            SettingError: an unknown name, or a value that this setting cannot take.

        Example:
            >>> Settings().with_value("buffer_timeout", "5ms").buffer_timeout_us
            5000
        """
        if name == "buffer_timeout":
            return replace(self, buffer_timeout_us=parse_optional_duration(value, name))
        if name == "checkpoint_interval":
            interval = parse_optional_duration(value, name)
            if interval == 0:
                raise SettingError(
                    "checkpoint_interval is 0: write a time such as '5s', or 'disabled' for no checkpoints"
                )
            return replace(self, checkpoint_interval_us=interval)
        if name == "buffer_size":
            return replace(self, buffer_size=_positive(value, name))
        if name == "parallelism":
            return replace(self, parallelism=_positive(value, name))
        if name == "slots_per_taskmanager":
            return replace(self, slots_per_taskmanager=_positive(value, name))
        if name == "restart":
            return replace(self, restart=parse_restart(value))
        raise SettingError(unknown("setting", name, TUNABLE))


def parse_optional_duration(value: object, name: str) -> int | None:
    """Microseconds, or None for ``"disabled"`` (also None and ``"off"``)."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("disabled", "off", "none")):
        return None
    return parse_duration(value, name)  # type: ignore[arg-type]


def show_optional_duration(us: int | None) -> str:
    """``"50ms"``, or ``"disabled"``."""
    return "disabled" if us is None else format_duration(us)


def _positive(value: object, name: str) -> int:
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise SettingError(f"{name} is {value!r}: write a whole number above zero") from None
    if number < 1:
        raise SettingError(f"{name} is {value!r}: it must be above zero")
    return int(number)
