"""Restart strategies: whether and when a failed job restarts; names and meaning are Flink's.

A strategy is frozen configuration; its `begin` returns the object that counts the failures of one job.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import ClassVar, Protocol

import numpy as np

from workbench.durations import Duration, format_duration, parse_duration
from workbench.errors import SettingError
from workbench.runtime.settings.called import called

_COUNT_MAX = 2**31 - 1  # as in Flink


class RestartLogic(Protocol):
    """Counts the failures of one job for a strategy."""

    def failed(self, now_us: int, *, injected: bool = False) -> int | None:
        """Record a failure at this time; `injected`: a user caused it. Returns microseconds until the next attempt, or
        None to give up."""


class RestartStrategy(Protocol):
    """Configuration of when a failed job restarts."""

    def begin(self, job: str) -> RestartLogic:
        """The logic for a job that starts now."""


class _Named:
    """A strategy as text, in the form that `parse_restart` reads."""

    __slots__ = ()
    NAME: ClassVar[str]

    def __str__(self) -> str:
        shown = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.name.endswith("_us"):
                value = format_duration(value)
            if each.repr and value is not None:
                text = f"{value:g}" if isinstance(value, float) else value
                shown.append(f"{each.name.removesuffix('_us')}={text}")
        return ":".join(filter(None, [self.NAME, ",".join(shown)]))


@dataclass(frozen=True, slots=True)
class FixedDelay(_Named):
    """Restart after a fixed delay, a limited number of times; made by `fixed_delay`.

    Attributes:
        attempts: number of restarts; the failure after these ends the job.
        delay_us: between a failure and the new attempt.
        counts_injected: whether failures that a user injects count as well.
    """

    NAME = "fixed-delay"
    attempts: int = 3
    delay_us: int = 1_000_000
    counts_injected: bool = field(default=True, repr=False)

    def begin(self, job: str) -> RestartLogic:
        """Count from the first failure on."""
        return _Counted(self)


class _Counted:
    def __init__(self, strategy: FixedDelay) -> None:
        self._strategy = strategy
        self._failures = 0

    def failed(self, now_us: int, *, injected: bool = False) -> int | None:
        self._failures += not injected or self._strategy.counts_injected
        return None if self._failures > self._strategy.attempts else self._strategy.delay_us


@dataclass(frozen=True, slots=True)
class ExponentialDelay(_Named):
    """Wait longer after each failure, until the job has run without one for a while; made by `exponential_delay`."""

    NAME = "exponential-delay"
    initial_backoff_us: int
    max_backoff_us: int
    backoff_multiplier: float
    reset_backoff_threshold_us: int
    jitter_factor: float
    attempts: int | None

    def begin(self, job: str) -> RestartLogic:
        """Start with the shortest delay."""
        return _Backoff(self, job)


class _Backoff:
    def __init__(self, strategy: ExponentialDelay, job: str) -> None:
        self._strategy = strategy
        self._job = job
        self._failures = 0  # since the last period without failures
        self._backoff_us = float(strategy.initial_backoff_us)
        self._running_from_us: int | None = None

    def failed(self, now_us: int, *, injected: bool = False) -> int | None:
        strategy = self._strategy
        since_us = self._running_from_us
        if since_us is None or now_us - since_us >= strategy.reset_backoff_threshold_us:
            self._failures = 0
            self._backoff_us = strategy.initial_backoff_us
        else:
            self._backoff_us = min(self._backoff_us * strategy.backoff_multiplier, strategy.max_backoff_us)
        self._failures += 1
        if strategy.attempts is not None and self._failures > strategy.attempts:
            return None
        delay_us = int(self._backoff_us * (1 + strategy.jitter_factor * self._jitter()))
        self._running_from_us = now_us + delay_us
        return delay_us

    def _jitter(self) -> float:
        """Between -1 and 1: the same for the same job and failure, so that runs are repeatable, and different for jobs
        that failed together, so that they do not restart together."""
        return zlib.crc32(f"{self._job} {self._failures}".encode()) / 0x7FFFFFFF - 1.0


@dataclass(frozen=True, slots=True)
class FailureRate(_Named):
    """Restart unless failures are too frequent; made by `failure_rate`."""

    NAME = "failure-rate"
    max_failures_per_interval: int
    failure_rate_interval_us: int
    delay_us: int

    def begin(self, job: str) -> RestartLogic:
        """Count within the interval before each failure."""
        return _Rated(self)


class _Rated:
    def __init__(self, strategy: FailureRate) -> None:
        self._strategy = strategy
        self._times: deque[int] = deque(maxlen=strategy.max_failures_per_interval + 1)

    def failed(self, now_us: int, *, injected: bool = False) -> int | None:
        self._times.append(now_us)
        full = len(self._times) == self._times.maxlen
        if full and now_us - self._times[0] < self._strategy.failure_rate_interval_us:
            return None
        return self._strategy.delay_us


@dataclass(frozen=True, slots=True)
class NoRestart(_Named):
    """Fail for good at the first failure; made by `no_restart`."""

    NAME = "none"

    def begin(self, job: str) -> RestartLogic:
        """There is nothing to count."""
        return _Never()


class _Never:
    def failed(self, now_us: int, *, injected: bool = False) -> int | None:
        return None


DEFAULT_STRATEGY = FixedDelay(delay_us=100_000, counts_injected=False)
"""The default: failures that a user injects to see a recovery do not count."""


def fixed_delay(attempts: int = 3, delay: Duration = "1s") -> FixedDelay:
    """Restart after `delay`, at most `attempts` times; the failure after these ends the job.

    Source: Flink's fixed-delay restart strategy.

    Args:
        attempts: restarts after which the job fails, 0 or more.
        delay: time before each, such as ``"1s"``.

    Raises:
        SettingError: a number or a duration is not valid.

    Example:
        >>> print(fixed_delay(attempts=5, delay="200ms"))
        fixed-delay:attempts=5,delay=200ms
    """
    return FixedDelay(_count(attempts, "attempts", least=0), parse_duration(delay, "delay"))


def exponential_delay(
    initial_backoff: Duration = "1s",
    max_backoff: Duration = "1min",
    backoff_multiplier: float = 1.5,
    reset_backoff_threshold: Duration = "1h",
    jitter_factor: float = 0.1,
    attempts: int | None = None,
) -> ExponentialDelay:
    """Restart after `initial_backoff`; each further delay is `backoff_multiplier` times longer, up to `max_backoff`.

    Source: Flink's exponential-delay restart strategy.

    Args:
        initial_backoff, max_backoff: the shortest and the longest delay, such as ``"1s"`` and ``"1min"``.
        backoff_multiplier: at least 1.
        reset_backoff_threshold: the backoff is reset after this time without a failure.
        jitter_factor: the fraction by which a delay may vary, 0 to 1; the variation is derived from the job's name and
            the number of failures.
        attempts: restarts in a row after which the job fails; None: no limit.

    Raises:
        SettingError: a number or a duration is not valid.

    Example:
        >>> logic = exponential_delay("100ms", "1s", 3, jitter_factor=0).begin("delays")
        >>> [logic.failed(now_us=0) for _ in range(4)]  # microseconds
        [100000, 300000, 900000, 1000000]
    """
    multiplier = float(_number(backoff_multiplier, "backoff_multiplier"))
    jitter = float(_number(jitter_factor, "jitter_factor"))
    if multiplier < 1:
        raise SettingError(f"backoff_multiplier is {backoff_multiplier}: it must be at least 1")
    if not 0 <= jitter <= 1:
        raise SettingError(f"jitter_factor is {jitter_factor}: it must be between 0 and 1")
    initial_us, max_us = parse_duration(initial_backoff, "initial_backoff"), parse_duration(max_backoff, "max_backoff")
    if initial_us > max_us:
        raise SettingError(f"initial_backoff is {initial_backoff}, longer than max_backoff, {max_backoff}: swap them")
    return ExponentialDelay(
        initial_us,
        max_us,
        multiplier,
        parse_duration(reset_backoff_threshold, "reset_backoff_threshold"),
        jitter,
        None if attempts is None else _count(attempts, "attempts", least=0),
    )


def failure_rate(
    max_failures_per_interval: int = 1, failure_rate_interval: Duration = "1min", delay: Duration = "1s"
) -> FailureRate:
    """Restart after `delay`, unless more than `max_failures_per_interval` failures fall into the interval.

    Source: Flink's failure-rate restart strategy.

    Args:
        max_failures_per_interval: above zero.
        failure_rate_interval: such as ``"1min"``.
        delay: time before each restart, such as ``"1s"``.

    Raises:
        SettingError: a number or a duration is not valid.

    Example:
        >>> logic = failure_rate(2, "1min", "1s").begin("delays")
        >>> [logic.failed(second * 1_000_000) for second in (0, 30, 70, 80)]  # three of them within a minute
        [1000000, 1000000, 1000000, None]
    """
    interval_us = parse_duration(failure_rate_interval, "failure_rate_interval")
    if not interval_us:
        raise SettingError("failure_rate_interval is 0: no failures fall into it, so the job would restart forever")
    most = _count(max_failures_per_interval, "max_failures_per_interval", least=1)
    return FailureRate(most, interval_us, parse_duration(delay, "delay"))


def no_restart() -> NoRestart:
    """The first failure ends the job, even one that a user injects.

    Source: Flink's strategy without restarts.

    Example:
        >>> print(no_restart())
        none
    """
    return NoRestart()


_MAKERS: dict[str, Callable[..., RestartStrategy]] = {
    NoRestart.NAME: no_restart,
    FixedDelay.NAME: fixed_delay,
    ExponentialDelay.NAME: exponential_delay,
    FailureRate.NAME: failure_rate,
}
STRATEGIES = tuple(_MAKERS)
"""The strategies, by their names in text."""


def parse_restart(value: object) -> RestartStrategy:
    """Return a strategy, or parse its name with arguments, for example ``"fixed-delay:attempts=5,delay=200ms"``.

    Raises:
        SettingError: no such strategy or argument, or an invalid value.

    Example:
        >>> parse_restart("failure-rate:max_failures_per_interval=3") == failure_rate(3)
        True
    """
    if isinstance(value, FixedDelay | ExponentialDelay | FailureRate | NoRestart):
        return value
    strategy: RestartStrategy = called(value, _MAKERS, "restart strategy", "fixed-delay:attempts=5,delay=200ms")
    return strategy


def _count(value: object, name: str, least: int) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= _COUNT_MAX:
        raise SettingError(f"{name} is {value!r}: write a whole number, at least {least} and at most {_COUNT_MAX}")
    return int(value)


def _number(value: object, name: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SettingError(f"{name} is {value!r}: write a number")
    return number
