"""The settings of a job, as the runtime uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from workbench.arguments import true_or_false
from workbench.connectors.contract.base import Guarantee
from workbench.durations import MAX_TIME, format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.operators.aggregates.local_aggregate import WORTHWHILE, Worthwhile
from workbench.operators.event_time.watermarks import WATERMARK_INTERVAL_US
from workbench.plan.guarantee import STRENGTHS
from workbench.plan.slots import SLOTS_PER_TASKMANAGER
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.policies import POLICIES, fault_tolerance
from workbench.runtime.settings.architecture import CHOICES, parse_architecture, show_architecture
from workbench.runtime.settings.combinations import check_acks, check_checkpoints
from workbench.runtime.settings.restart_strategies import DEFAULT_STRATEGY, STRATEGIES, RestartStrategy, parse_restart
from workbench.runtime.settings.setting import Setting, entries, entry, one_of, optional_duration, positive
from workbench.state.key_groups import KEY_GROUPS_MOST


def show_optional_duration(us: int | None) -> str:
    """``"50ms"``, or ``"disabled"``."""
    return "disabled" if us is None else format_duration(us)


def _above_zero(fix: str, parse: Callable[[Any, str], int | None]) -> Callable[[Any, str], int | None]:
    """Return a parser for durations that rejects zero."""

    def read(value: Any, name: str) -> int | None:
        us = parse(value, name)
        if us == 0:
            raise SettingError(f"{name} is 0: {fix}")
        return us

    return read


def _key_groups(value: object, name: str) -> int | None:
    number = None if value is None else positive(value, name)
    if number is not None and number > KEY_GROUPS_MOST:
        raise SettingError(f"{name} is {number}: there are at most {KEY_GROUPS_MOST} key groups")
    return number


def _tolerable(value: object, name: str) -> int | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("any", "none")):
        return None
    return 0 if str(value).strip() == "0" else positive(value, name)


_count = partial(entry, parse=positive)
ENDS = FINISH, HOLD = ("finish", "hold")
"""What a job does when its sources have read everything."""
_optional_duration = partial(entry, parse=optional_duration, show=show_optional_duration, words=("disabled",))


@dataclass(frozen=True, slots=True)
class Settings:
    """A job's settings; tuning replaces the whole object.

    A field with an `entry` can be set by users, under its name without the unit ``_us``. A setting's name occurs only
    here, in the code that uses it, and in the types for editors (``table.py``).

    Attributes:
        transit_us: the part of the buffer timeout reserved for the transfer to the next task and its turn; at most two
            thirds.
        buffer_debloat_target_us: a full buffer holds what arrives in this time, but at most `buffer_size`; None: always
            `buffer_size`.
        buffers_per_channel: the receiver's credit for each channel.
        floating_buffers: further buffers of a task's output pool, shared by its channels.
        watermark_interval_us: how often a source emits its watermark.
        latency_interval_us: how often a source that reads sends a latency marker, on average.
        slowed: (operator, us) of each operator that is slowed down: its task rests this long after every buffer.
        stalled: the operators that were told to take no records.
    """

    parallelism: int = field(
        default=1,
        metadata=_count(
            "subtasks of each operator; to change it, the job restarts from a checkpoint, see `Job.rescale`.",
            flag="-p",
            title="Parallelism",
            steps=("1", "2", "3", "4", "6", "8", "12", "16"),
        ),
    )
    max_parallelism: int | None = field(
        default=None,
        metadata=entry(
            "number of key groups, which is the maximum number of subtasks that an operator can be rescaled to; at "
            "most 32768. None: that of the restored checkpoint or savepoint, or else Flink's default for the operator "
            "with the most subtasks: a power of two that leaves room for half as many again, at least 128. If the "
            "number differs, a savepoint's keyed state is redistributed.",
            _key_groups,
            tunable=False,
        ),
    )
    buffer_timeout_us: int | None = field(
        default=100_000,
        metadata=_optional_duration(
            'maximum time that a record waits for its buffer to fill and to reach the next task, such as ``"50ms"``; '
            '``"0ms"``: nothing waits; None or ``"disabled"``: a buffer ships only when it is full.',
            title="Buffer timeout",
            steps=("0ms", "1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "disabled"),
        ),
    )
    buffer_size: int = field(
        default=262_144,
        metadata=_count(
            "maximum number of records in a buffer; a channel with little traffic has smaller buffers.",
            title="Buffer size (records)",
            steps=("1", "10", "100", "1000", "4096", "16384", "65536", "262144"),
        ),
    )
    checkpoint_interval_us: int | None = field(
        default=None,
        metadata=_optional_duration(
            'time between checkpoints, such as ``"5s"``; None or ``"disabled"``: only the final one.',
            parse=_above_zero("write a time such as '5s', or 'disabled' for no checkpoints", optional_duration),
            default="5s",
            title="Checkpoint interval",
            steps=("100ms", "200ms", "500ms", "1s", "2s", "5s", "10s", "20s", "30s", "60s", "disabled"),
        ),
    )
    checkpoint_mode: str = field(
        default="exactly-once",
        metadata=entry(
            'how checkpoints are taken; ``"exactly-once"``: barriers are aligned; ``"at-least-once"``: nothing waits '
            'for a barrier, and after a failure some records are counted twice (see `Job.audit`); ``"unaligned"``: '
            'barriers overtake in-flight records, which become part of the checkpoint; ``"stop-the-world"``: the '
            "sources read nothing while a checkpoint is taken; or a policy of your own, see "
            "`register_fault_tolerance`. Savepoints and the final checkpoint of a job are always aligned.",
            lambda value, _: fault_tolerance(value).name,
            words=POLICIES,
            title="Checkpoint mode",
            steps=POLICIES,
        ),
    )
    fault_tolerance: FaultTolerance | None = field(
        default=None,
        metadata=entry(
            'the architecture of fault tolerance, for the whole run; None or ``"snapshots"``: checkpoints, see '
            "`checkpoint_mode`; `acks`, `changelog`, `stop_the_world`, `at_most_once`, or one of them as text, "
            '``"changelog:offset_interval=5s"``.',
            parse_architecture,
            show=show_architecture,
            default=None,
            tunable=False,
            words=CHOICES,
        ),
    )
    aligned_checkpoint_timeout_us: int | None = field(
        default=None,
        metadata=_optional_duration(
            'an aligned checkpoint that takes longer continues unaligned, such as ``"2s"``; None or ``"disabled"``: it '
            "never does.",
            title="Aligned timeout",
            steps=("10ms", "50ms", "100ms", "500ms", "1s", "5s", "30s", "disabled"),
        ),
    )
    checkpoint_timeout_us: int = field(
        default=600_000_000,
        metadata=entry(
            'a checkpoint that takes longer is aborted, such as ``"10min"``.',
            _above_zero("no checkpoint is that fast; write for example '10min'", parse_duration),
            show=format_duration,
        ),
    )
    min_pause_us: int = field(
        default=0,
        metadata=entry(
            'time between the end of a checkpoint and the next periodic one, such as ``"1s"``; a value above '
            "zero also limits checkpoints to one at a time.",
            parse_duration,
            show=format_duration,
        ),
    )
    max_concurrent_checkpoints: int = field(
        default=1,
        metadata=_count("maximum number of checkpoints in progress; some modes allow only one."),
    )
    tolerable_failed_checkpoints: int | None = field(
        default=None,
        metadata=entry(
            'number of checkpoints in a row that may fail before the job fails; None or ``"any"``: any number.',
            _tolerable,
            words=("any",),
        ),
    )
    retained_checkpoints: int = field(default=3, metadata=_count("number of complete checkpoints to keep."))
    at_end: str = field(
        default="finish",
        metadata=entry(
            'what the job does when its sources have read everything; ``"finish"``: it ends; ``"hold"``: it stays '
            "open, with its last windows fired, takes checkpoints and recovers from failures, until this is tuned to "
            '``"finish"`` or the job is stopped.',
            one_of(ENDS),
            words=ENDS,
        ),
    )
    restart: RestartStrategy = field(
        default=DEFAULT_STRATEGY,
        metadata=entry(
            "whether and when the job restarts after a failure; `fixed_delay`, `exponential_delay`, `failure_rate`, "
            '`no_restart`, or one of them as text, ``"fixed-delay:attempts=3,delay=1s"``. None: three times, after '
            "100 ms each, and injected failures do not count.",
            lambda value, _: DEFAULT_STRATEGY if value is None else parse_restart(value),
            show=str,
            default=None,
            tunable=False,
            words=STRATEGIES,
        ),
    )
    restart_delay_us: int = field(
        default=0,
        metadata=entry(
            'how long a restart is waited for at least, such as ``"5s"``, so that people see what a failure does; '
            '``"0ms"``: as long as `restart` says.',
            parse_duration,
            show=format_duration,
            title="Restart delay",
            steps=("0ms", "1s", "2s", "5s", "10s", "30s"),
        ),
    )
    slots_per_taskmanager: int = field(
        default=SLOTS_PER_TASKMANAGER,
        metadata=_count("number of slots of a TaskManager, which fail together.", tunable=False, status=False),
    )
    local_aggregation: Worthwhile | None = field(
        default=WORTHWHILE,
        metadata=entry(
            "aggregate large batches before the exchange to a tumbling window, where that makes them much smaller; "
            "results are the same. False: every record is sent.",
            lambda value, name: WORTHWHILE if true_or_false(value, name) else None,
            show=bool,
            tunable=False,
            status=False,
        ),
    )
    guarantee: Guarantee | None = field(
        default=None,
        metadata=entry(
            'what must hold end to end; ``"exactly-once"`` or ``"at-least-once"``: a pipeline with a source or sink '
            "that cannot guarantee it is rejected.",
            lambda value, name: None if value is None else one_of(STRENGTHS)(value, name),
            tunable=False,
            status=False,
            words=STRENGTHS,
        ),
    )
    transit_us: int = 0
    buffer_debloat_target_us: int | None = 15_000
    buffers_per_channel: int = 2
    floating_buffers: int = 4
    watermark_interval_us: int = WATERMARK_INTERVAL_US
    latency_interval_us: int = 20_000
    slowed: tuple[tuple[str, int], ...] = ()
    stalled: tuple[str, ...] = ()

    @property
    def policy(self) -> FaultTolerance:
        """The architecture of the run, or the policy that `checkpoint_mode` names."""
        return self.fault_tolerance or fault_tolerance(self.checkpoint_mode)

    @property
    def ackers(self) -> int:
        """The number of acker tasks; 0: records are not acknowledged."""
        return 0 if self.policy.acking is None else self.policy.acking.ackers

    @property
    def periodic_interval_us(self) -> int | None:
        """Time between periodic checkpoints; None: there are none."""
        if not self.policy.periodic:
            return None
        return self.policy.interval_us or self.checkpoint_interval_us

    @property
    def resumes_reading(self) -> bool:
        """Whether after a failure sources read on from the latest of the checkpoints that are taken all the time."""
        return self.policy.reads_again and self.periodic_interval_us is not None

    @property
    def ship_after_us(self) -> int | None:
        """How long after its first record a partial buffer is shipped."""
        timeout_us = self.buffer_timeout_us
        return None if timeout_us is None else timeout_us - min(self.transit_us, 2 * timeout_us // 3)

    def shown(self) -> dict[str, str | int | None]:
        """The settings as users write them; ``slow_down`` and ``stall`` only while they are in use."""
        shown: dict[str, str | int | None] = {
            name: each.show(getattr(self, field)) for name, (field, each) in _ENTRIES.items() if each.status
        }
        if self.slowed:
            shown["slow_down"] = ", ".join(f"{uid}:{format_duration(us)}" for uid, us in self.slowed)
        if self.stalled:
            shown["stall"] = ", ".join(self.stalled)
        return shown

    def with_slowed(self, operator: str, us: int) -> Settings:
        """These settings with an operator slowed down by `us` for every buffer; 0: not slowed down.

        Example:
            >>> Settings().with_slowed("aggregate", 5000).shown()["slow_down"]
            'aggregate:5ms'
        """
        others = tuple(item for item in self.slowed if item[0] != operator)
        return replace(self, slowed=(*others, (operator, us)) if us else others)

    def with_stalled(self, operator: str, stalled: bool) -> Settings:
        """These settings with an operator that is stalled, or no longer stalled."""
        others = tuple(uid for uid in self.stalled if uid != operator)
        return replace(self, stalled=(*others, operator) if stalled else others)

    def rest_us(self, operators: Iterable[str]) -> int:
        """How long a task of these operators rests after a buffer; MAX_TIME when one of them is stalled."""
        uids = set(operators)
        if not uids.isdisjoint(self.stalled):
            return MAX_TIME
        return sum(us for uid, us in self.slowed if uid in uids)

    def with_value(self, name: str, value: object) -> Settings:
        """These settings with one value replaced by what a user wrote.

        Raises:
            SettingError: an unknown name, or a value that this setting does not accept.

        Example:
            >>> Settings().with_value("buffer_timeout", "5ms").buffer_timeout_us
            5000
        """
        if name not in _ENTRIES:
            raise SettingError(unknown("setting", name, _ENTRIES))
        field, entered = _ENTRIES[name]
        changed: dict[str, Any] = {field: entered.parse(value, name)}
        return replace(self, **changed)

    def with_values(self, values: Mapping[str, object]) -> Settings:
        """These settings with the values that a user wrote, checked together; speed and rate belong to sources.

        Raises:
            SettingError: as `with_value` and `check`.
        """
        settings = self
        for name, value in values.items():
            if name not in ("speed", "rate"):
                settings = settings.with_value(name, value)
        return settings.check()

    def check(self) -> Settings:
        """These settings, if they are consistent.

        Raises:
            SettingError: a mode or an architecture that cannot keep the guarantee, both of them, several checkpoints at
                a time in a mode that takes one after another, or fewer buffers than a channel needs to make progress.

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
                raise SettingError(f"{name} is {value}: nothing could move, so set it to at least {least}")
        check_checkpoints(
            self.policy, self.guarantee, self.checkpoint_mode if self.fault_tolerance is not None else None,
            self.max_concurrent_checkpoints, self.aligned_checkpoint_timeout_us,
        )  # fmt: skip
        check_acks(self.policy, self.buffer_timeout_us)
        return self


_ENTRIES: Mapping[str, tuple[str, Setting]] = MappingProxyType(
    {each.name: (field, each) for field, each in entries(Settings)}
)
"""The fields of `Settings` that users set, each with its entry, by the names that they write."""
