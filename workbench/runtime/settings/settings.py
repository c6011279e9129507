"""What can be set for a job, and what of it can be tuned while the job runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from workbench.arguments import true_or_false, whole_number
from workbench.connectors.contract.base import Guarantee
from workbench.durations import MAX_TIME, format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.operators.aggregates.local_aggregate import WORTHWHILE, Worthwhile
from workbench.plan.guarantee import STRENGTHS
from workbench.plan.slots import SLOTS_PER_TASKMANAGER
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.policies import POLICIES, fault_tolerance
from workbench.runtime.barriers.unaligned import UNALIGNED
from workbench.runtime.settings.restart_strategies import DEFAULT_STRATEGY, RestartStrategy, parse_restart
from workbench.state import KEY_GROUPS_MOST

CHECKPOINTING = (
    "checkpoint_interval",
    "checkpoint_mode",
    "aligned_checkpoint_timeout",
    "checkpoint_timeout",
    "min_pause",
    "max_concurrent_checkpoints",
    "tolerable_failed_checkpoints",
    "retained_checkpoints",
)
"""Settings of checkpoints, by the names that people write."""
TUNABLE = ("buffer_timeout", "buffer_size", *CHECKPOINTING, "parallelism", "rate", "speed")
"""Settings that a running job takes, by the names that people write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A job's settings; replaced as a whole when something is tuned.

    Attributes:
        parallelism: subtasks of every vertex that does not say otherwise.
        max_parallelism: number of key groups that somebody asked for; None: as many as the checkpoint that is restored
            has, or else by the parallelism. How many the job has, its plan says.
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
        checkpoint_mode: name of the fault-tolerance policy (see ``policies.py``).
        aligned_checkpoint_timeout_us: an aligned checkpoint that has been under way for so long goes on unaligned;
            None: it stays aligned.
        min_pause_us: between the end of a checkpoint and the next periodic one.
        max_concurrent_checkpoints: that may be in progress.
        tolerable_failed_checkpoints: in a row; one more and the job fails; None: any number.
        retained_checkpoints: how many complete ones stay on disk.
        watermark_interval_us: how often a source tells its watermark.
        latency_interval_us: how often a source sends a latency marker.
        restart: whether and when a failed job starts again.
        slowed: (operator, us) of the operators that somebody slows down: its task rests so long after every buffer.
        stalled: the operators that somebody has stopped taking records.
        local_aggregation: which batches are aggregated before the exchange to a window; None: none.
        guarantee: what the job was asked to keep; a mode that cannot is refused.
    """

    parallelism: int = 1
    max_parallelism: int | None = None
    slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER
    buffer_size: int = 262_144
    buffer_timeout_us: int | None = 100_000
    transit_us: int = 0
    buffer_debloat_target_us: int | None = 15_000
    buffers_per_channel: int = 2
    floating_buffers: int = 4
    checkpoint_interval_us: int | None = None
    checkpoint_timeout_us: int = 600_000_000
    checkpoint_mode: str = "exactly-once"
    aligned_checkpoint_timeout_us: int | None = None
    min_pause_us: int = 0
    max_concurrent_checkpoints: int = 1
    tolerable_failed_checkpoints: int | None = None
    retained_checkpoints: int = 3
    watermark_interval_us: int = 100_000
    latency_interval_us: int = 200_000
    restart: RestartStrategy = DEFAULT_STRATEGY
    slowed: tuple[tuple[str, int], ...] = ()
    stalled: tuple[str, ...] = ()
    local_aggregation: Worthwhile | None = WORTHWHILE
    guarantee: Guarantee | None = None

    @property
    def fault_tolerance(self) -> FaultTolerance:
        """What `checkpoint_mode` names."""
        return fault_tolerance(self.checkpoint_mode)

    @property
    def periodic_interval_us(self) -> int | None:
        """Time between periodic checkpoints; None: there are none."""
        return self.checkpoint_interval_us if self.fault_tolerance.periodic else None

    @property
    def ship_after_us(self) -> int | None:
        """How long after its first record a partial buffer is shipped."""
        timeout_us = self.buffer_timeout_us
        return None if timeout_us is None else timeout_us - min(self.transit_us, 2 * timeout_us // 3)

    def shown(self) -> dict[str, str | int | None]:
        """The settings as people write them; ``slow_down`` and ``stall`` while somebody does that to an operator."""
        shown: dict[str, str | int | None] = {
            "parallelism": self.parallelism,
            "max_parallelism": self.max_parallelism,
            "buffer_timeout": show_optional_duration(self.buffer_timeout_us),
            "buffer_size": self.buffer_size,
            "checkpoint_interval": show_optional_duration(self.checkpoint_interval_us),
            "checkpoint_mode": self.checkpoint_mode,
            "aligned_checkpoint_timeout": show_optional_duration(self.aligned_checkpoint_timeout_us),
            "checkpoint_timeout": format_duration(self.checkpoint_timeout_us),
            "min_pause": format_duration(self.min_pause_us),
            "max_concurrent_checkpoints": self.max_concurrent_checkpoints,
            "tolerable_failed_checkpoints": self.tolerable_failed_checkpoints,
            "retained_checkpoints": self.retained_checkpoints,
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
        if name in CHECKPOINTING:
            return self._with_checkpointing(name, value)
        if name == "buffer_size":
            return replace(self, buffer_size=_positive(value, name))
        if name == "parallelism":
            return replace(self, parallelism=_positive(value, name))
        if name == "max_parallelism":
            return replace(self, max_parallelism=_max_parallelism(value))
        if name == "slots_per_taskmanager":
            return replace(self, slots_per_taskmanager=_positive(value, name))
        if name == "local_aggregation":
            return replace(self, local_aggregation=WORTHWHILE if true_or_false(value, name) else None)
        if name == "restart":
            return replace(self, restart=parse_restart(value))
        raise SettingError(unknown("setting", name, TUNABLE))

    def _with_checkpointing(self, name: str, value: object) -> Settings:
        match name:
            case "checkpoint_mode":
                return replace(self, checkpoint_mode=fault_tolerance(value).name)
            case "checkpoint_interval" | "aligned_checkpoint_timeout":
                time_us = parse_optional_duration(value, name)
                if time_us == 0 and name == "checkpoint_interval":
                    raise SettingError(
                        "checkpoint_interval is 0: write a time such as '5s', or 'disabled' for no checkpoints"
                    )
                changed: dict[str, Any] = {f"{name}_us": time_us}
            case "checkpoint_timeout" | "min_pause":
                time_us = parse_duration(value, name)  # type: ignore[arg-type]
                if time_us == 0 and name == "checkpoint_timeout":
                    raise SettingError("checkpoint_timeout is 0: none is that quick, write for example '10min'")
                changed = {f"{name}_us": time_us}
            case "tolerable_failed_checkpoints":
                changed = {name: _tolerable(value)}
            case _:
                changed = {name: _positive(value, name)}
        return replace(self, **changed)

    def check(self) -> Settings:
        """These settings, if they go together.

        Raises:
            SettingError: a mode that cannot keep the guarantee, several checkpoints at a time in a mode that takes one
                after the other, or fewer buffers than a channel needs to move anything.

        Example:
            >>> Settings(checkpoint_mode="unaligned", max_concurrent_checkpoints=2).check()
            Traceback (most recent call last):
            workbench.errors.SettingError: max_concurrent_checkpoints is 2 with checkpoint_mode 'unaligned': ...
        """
        for name, value, least in (
            ("buffers_per_channel", self.buffers_per_channel, 1),
            ("floating_buffers", self.floating_buffers, 0),
        ):
            if value < least:
                raise SettingError(f"{name} is {value}: nothing could move, so set it to {least} at least")
        policy, wanted = self.fault_tolerance, self.guarantee
        if wanted is not None and STRENGTHS.index(policy.guarantee) < STRENGTHS.index(wanted):
            enough = [
                f"{each.name!r}"
                for each in POLICIES.values()
                if STRENGTHS.index(each.guarantee) >= STRENGTHS.index(wanted)
            ]
            raise SettingError(
                f"the guarantee is {wanted!r} and checkpoint_mode {policy.name!r}: choose {' or '.join(enough)}, or ask"
                " for less"
            )
        several = self.max_concurrent_checkpoints
        if several > 1:
            if policy.one_at_a_time:
                raise SettingError(
                    f"max_concurrent_checkpoints is {several} with checkpoint_mode {policy.name!r}: "
                    f"{policy.one_at_a_time}, so set it to 1"
                )
            if policy.switches and self.aligned_checkpoint_timeout_us is not None:
                raise SettingError(
                    f"max_concurrent_checkpoints is {several} with an aligned_checkpoint_timeout: a checkpoint may go "
                    f"on unaligned, and {UNALIGNED.one_at_a_time}, so set it to 1"
                )
        return self


def parse_optional_duration(value: object, name: str) -> int | None:
    """Microseconds, or None for ``"disabled"`` (also None and ``"off"``)."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("disabled", "off", "none")):
        return None
    return parse_duration(value, name)  # type: ignore[arg-type]


def show_optional_duration(us: int | None) -> str:
    """``"50ms"``, or ``"disabled"``."""
    return "disabled" if us is None else format_duration(us)


def _tolerable(value: object) -> int | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("any", "none")):
        return None
    return 0 if str(value).strip() == "0" else _positive(value, "tolerable_failed_checkpoints")


def _max_parallelism(value: object) -> int | None:
    if value is None:
        return None
    number = _positive(value, "max_parallelism")
    if number > KEY_GROUPS_MOST:
        raise SettingError(f"max_parallelism is {number}: there are at most {KEY_GROUPS_MOST} key groups")
    return number


def _positive(value: object, name: str) -> int:
    if isinstance(value, str):  # of a magic or a control
        try:
            value = int(value)
        except ValueError:
            raise SettingError(f"{name} is {value!r}: write a whole number above zero") from None
    number = whole_number(value, name, -(2**63))
    if number < 1:
        raise SettingError(f"{name} is {value!r}: it must be above zero")
    return number
