"""Measures what each change of a setting did, from one sample to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import fields, replace
from statistics import median
from typing import Any

from workbench.durations import parse_duration
from workbench.telemetry.effects.change_frames import LEAST_FOR, ChangeFrame, Measured
from workbench.telemetry.effects.named_changes import Names, all_of, joined
from workbench.telemetry.effects.shipping import barriers_first, timeout_idle

KEPT = 20
"""Changes."""
RATES_FROM_US = 1_100_000
"""Rates are means over a second: earlier ones still hold some of the time before the change."""
HOLDS_AFTER_US = 1_500_000
LATEST_US = 2_900_000
ENOUGH, FEW = LEAST_FOR["p99"], 8
"""Markers: enough for all percentiles, and so few must do where not many come."""
FOLLOWED_US = 10_000_000
"""The time after a change during which its figures follow the job, and the time before it that they cover."""
SAME, SAME_MS = 0.1, 1.0
"""A difference below this share, or of a latency below this many milliseconds, counts as none."""
OUTER = 5
"""One of so many samples before a change may lie below what is taken as the span of a figure, and one above it: what
stays within that span has not changed."""
DISTURBED_US = 3_500_000
"""After a page was opened, for so long figures also show what that took from the job: rates are means over a second,
percentiles over 2.5."""
OPENED = "meanwhile a page was opened, which takes time from the job"
"""Said where a change could not be told from that."""
PAUSED = "; the job is paused: resume it to see the effect"
RECOVERS = "; the sources first read again what they had read before the failure"
"""Said while nothing can be measured."""
RECENT_US = 2_600_000
"""For so long after a recovery percentiles still hold some of it."""
AT_ONCE_US = 100_000
"""Changes of settings that follow each other faster than this are one."""
TOLD_US = 1_000_000
"""An effect is told anew so often: nobody reads faster."""
SETTLES_US, MOVED = 3_500_000, SAME / 2
"""Until then after a change, an effect is told anew at once where a percentile has moved by more than this share."""

PACE = {"parallelism", "rate", "speed"}
"""Settings that are about throughput."""
UNCHANGED = "throughput unchanged"

Spans = dict[str, tuple[float, float]]
"""Between which values figures were before a change, by their names."""


class ChangeLog:
    """The changes of one job, and their effects as far as they are known.

    Example:
        >>> log = ChangeLog()
        >>> for at_us in range(0, 1_000_000, 100_000):
        ...     log.sample(at_us, Measured(48, 90, 99, 1_000, 20, 100, 120))
        >>> log.change(1_000_000, {"buffer_timeout": "1s"}, {"buffer_timeout": "5ms"}, "")
        >>> log.changes[-1].state
        'measuring'
        >>> for at_us in range(1_100_000, 4_000_000, 100_000):
        ...     log.sample(at_us, Measured(4, 7, 8, 1_000, 180, 11, 120))
        >>> log.changes[-1].sentence
        'buffer_timeout 1s → 5ms: latency p50 48 → 4.0 ms, p99 99 → 8.0 ms, throughput unchanged, 9.0x more buffers'
    """

    def __init__(self) -> None:
        self._past: deque[tuple[int, Measured]] = deque()
        self._changes: deque[ChangeFrame] = deque(maxlen=KEPT)
        self._values: Names = {}
        self._together: Names = {}
        self._spans: Spans = {}
        self._opened = 0
        self._openings: deque[int] = deque()
        self._was_disturbed = False
        self._told_us = 0
        self._unsettled_us = 0
        self._is_over = False

    @property
    def changes(self) -> tuple[ChangeFrame, ...]:
        """Oldest first."""
        return tuple(self._changes)

    def change(self, time_us: int, before: dict[str, object], after: dict[str, object], text: str) -> None:
        """A setting has changed.

        Args:
            time_us: processing time.
            before, after: the settings in force, as people write them.
            text: says what happened, where it is no setting.
        """
        names = {name: (before.get(name), value) for name, value in after.items() if before.get(name) != value}
        names |= {name: (value, None) for name, value in before.items() if name not in after and value is not None}
        names = names or {text: (text, text)}
        past, is_disturbed = self._before(time_us)
        measured, earlier, self._together = _median(past) if past else None, self._together, {}
        last = self._changes[-1] if self._changes else None
        if last is not None and last.state == "measuring":
            is_one = text not in names and time_us - last.time_us < AT_ONCE_US
            seconds = (time_us - last.time_us) / 1e6
            told = f"{last.what}: another change came after {seconds:.1f} s, before it could be measured"
            self._changes[-1] = replace(last, state="superseded", sentence=told)
            measured, self._together = last.before, earlier if is_one else joined(earlier, self._values)
            if is_one:
                self._changes.pop()
                names = joined(self._values, names)
        elif last is not None and "paused" in self._values and text not in names:
            measured = last.before  # a job that is paused is not compared with
        else:
            self._was_disturbed = is_disturbed
            self._spans = {name: _span(values) for name, values in _figures(past).items() if values}
        if "resumed" in names:
            self._together.pop("paused", None)
        self._values, self._is_over = names, False
        what = all_of(names)
        self._changes.append(ChangeFrame(what, time_us, measured, None, "measuring", f"{what}: measuring"))

    def deployed(self, time_us: int) -> None:
        """Tasks run again: their rates are of no use yet."""
        self._unsettled_us = time_us + RATES_FROM_US

    def failed(self) -> None:
        """The job has failed: what is measured from now on is no effect of a change that was measured before."""
        self._is_over = True

    def end(self) -> None:
        """The job is over: what was not measured will not be."""
        if self._changes and (last := self._changes[-1]).state == "measuring":
            told = f"{last.what}: the job ended before it could be measured"
            self._changes[-1] = replace(last, state="superseded", sentence=told)

    def _before(self, time_us: int) -> tuple[list[Measured], bool]:
        """The samples of the last seconds since the change before, and whether a page was opened in all of them.

        Those during which one was opened are left out where there are others. With their medians, a moment in which
        something else took the processor is not what the change is compared with, either.
        """
        since_us = max(time_us - FOLLOWED_US, self._changes[-1].time_us + RATES_FROM_US if self._changes else 0)
        past = [(at_us, one) for at_us, one in self._past if since_us <= at_us <= time_us]
        past = past or [(at_us, one) for at_us, one in self._past if at_us <= time_us]
        calm = self._calm(past)
        return calm or [one for _, one in past], bool(past) and not calm

    def _calm(self, samples: Iterable[tuple[int, Measured]]) -> list[Measured]:
        """Those during which no page was opened."""
        return [one for at_us, one in samples if not self._is_disturbed(at_us)]

    def _is_disturbed(self, at_us: int) -> bool:
        return any(opened_us <= at_us < opened_us + DISTURBED_US for opened_us in self._openings)

    def sample(
        self,
        now_us: int,
        measured: Measured,
        limit: str = "",
        price: str = "",
        openings: int = 0,
        *,
        paused: bool = False,
        recovers: bool = False,
    ) -> None:
        """Take note of the job now.

        Args:
            now_us: processing time.
            measured: percentiles of markers that were sent after the last change, and rates over the last second.
            limit: what holds the sources back, as a sentence; empty where nothing does.
            price: what checkpoints cost, to follow their number in a sentence; empty where it is not known.
            openings: how often a page of the job has been opened until now, which takes time from it.
            paused: the sources read nothing.
            recovers: the sources read again what they had read before a failure.
        """
        if recovers:
            self._unsettled_us = now_us + RECENT_US
        if now_us < self._unsettled_us or (paused and "paused" not in self._values):
            self._wait(RECOVERS if recovers else PAUSED if paused else "")
            return
        if openings != self._opened:
            self._opened = openings
            self._openings.append(now_us)
        self._past.append((now_us, measured))
        while now_us - self._past[0][0] > FOLLOWED_US:
            self._past.popleft()
        while self._openings and now_us - self._openings[0] > FOLLOWED_US + DISTURBED_US:
            self._openings.popleft()
        if not self._changes:
            return
        last = self._changes[-1]
        since_us = now_us - last.time_us
        again_us = 0 if since_us < SETTLES_US and _has_moved(last.after, measured) else TOLD_US
        is_disturbed = self._is_disturbed(now_us)
        if last.state == "holds" and (self._is_over or is_disturbed or 0 <= now_us - self._told_us < again_us):
            return
        if last.state == "superseded" or (since_us > FOLLOWED_US and last.state == "holds") or since_us < RATES_FROM_US:
            return
        since = [(at_us, one) for at_us, one in self._past if at_us - last.time_us >= RATES_FROM_US]
        after = _since(measured, self._calm(since) or [one for _, one in since])
        travels = not (after.p50_ms is None and after.records_per_second)
        settled = since_us >= max(HOLDS_AFTER_US, 1_000_000 + 1_000 * (after.p99_ms or 0)) and after.markers >= ENOUGH
        settled |= since_us >= LATEST_US and travels and (after.markers >= FEW or not after.records_per_second)
        told = self._told()
        if last.state == "holds" or settled:
            sentence = f"{told}: {self._effect(last.before, after, limit, price)}"
            sentence += f"; {OPENED}" * (self._was_disturbed or is_disturbed)
            self._changes[-1] = replace(last, after=after, state="holds", sentence=sentence)
            self._told_us = now_us
        elif after.p50_ms is None:
            sentence = f"{told}: measuring; after {since_us / 1e6:.1f} s, no record sent since has arrived"
            self._changes[-1] = replace(last, after=after, sentence=sentence)
        else:
            self._changes[-1] = replace(last, after=after, sentence=f"{told}: measuring")

    def _wait(self, why: str) -> None:
        """What the job does now is no effect of the last change."""
        if self._changes and (last := self._changes[-1]).state == "measuring":
            sentence = f"{self._told()}: measuring{why}"
            self._changes[-1] = replace(last, after=None, sentence=sentence)

    def _told(self) -> str:
        """The last change with those before it that could not be measured: of one setting, from its first value on."""
        own = {name: (self._together.get(name, values)[0], values[1]) for name, values in self._values.items()}
        others = {
            name: (before, after)
            for name, (before, after) in self._together.items()
            if name not in own and name != "paused" and (before != after or after == name)
        }
        return " with ".join(filter(None, (all_of(own), all_of(others, " and "))))

    def _effect(self, before: Measured | None, after: Measured, limit: str, price: str) -> str:
        """What has changed, first of all that which the setting is about."""
        if before is None:
            latency = [] if after.p50_ms is None else [f"latency p50 {_ms(after.p50_ms)} ms"]
            return ", ".join([*latency, f"throughput {after.records_per_second:,.0f} records/s"])
        throughput = self._throughput(before, after)
        same = throughput == UNCHANGED
        figures = [*self._latency(before, after), throughput]
        if PACE & self._values.keys() and not same:
            figures.insert(0, figures.pop())
        told = ", ".join(figures + self._buffers(before, after))
        checkpoints = self._checkpoints(before, after, price)
        return "; ".join(filter(None, (*checkpoints, told, self._reason(before, after, same, limit))))

    def _latency(self, before: Measured, after: Measured) -> list[str]:
        pairs = {name: (before.sure_ms(name), after.sure_ms(name)) for name in ("p50", "p99", "p95")}
        if None not in pairs["p99"]:
            del pairs["p95"]
        parts = [
            f"{name} {_ms(one)} → {_ms(other)} ms"
            for name, (one, other) in pairs.items()
            if one is not None and other is not None and not self._is_same(f"{name}_ms", one, other, SAME_MS / 2)
        ]
        if not parts and after.p50_ms is not None:
            parts = [self._median_latency(before.p50_ms, after.p50_ms)]
        return [f"latency {parts[0]}", *parts[1:]] if parts else []

    def _median_latency(self, before: float | None, after: float) -> str:
        """The median where it has not changed, or cannot be compared."""
        if before is None:
            return f"p50 {_ms(after)} ms"
        if abs(before - after) <= max(SAME_MS / 2, SAME * max(before, after)):
            return f"p50 stays {_ms(after)} ms"
        return f"p50 stays between {' and '.join(map(_ms, self._spans['p50_ms']))} ms"

    def _throughput(self, before: Measured, after: Measured) -> str:
        one, other = before.records_per_second, after.records_per_second
        if self._is_same("records_per_second", one, other):
            return UNCHANGED
        return f"throughput {one:,.0f} → {other:,.0f} records/s"

    def _buffers(self, before: Measured, after: Measured) -> list[str]:
        one, other = before.buffers_per_second, after.buffers_per_second
        if not one or not other or 1 / 1.25 < other / one < 1.25:
            return []
        times = max(one, other) / min(one, other)
        return [f"{times:.{0 if times >= 9.95 else 1}f}x {'more' if other > one else 'fewer'} buffers"]

    def _is_same(self, name: str, one: float, other: float, least: float = 0.0) -> bool:
        """Whether a figure is what it was, or differs by no more than it did all the time."""
        low, high = self._spans.get(name, (one, one))
        return low <= other <= high or abs(one - other) <= max(least, SAME * max(one, other))

    def _checkpoints(self, before: Measured, after: Measured, price: str) -> list[str]:
        if "checkpoint_interval" in self._values and after.checkpoint_gap_ms is not None:
            often = f"a checkpoint is taken every {_ms(after.checkpoint_gap_ms)} ms{self._takes_longer(after)}"
            return [f"{often} and {price}" if price else often]
        if "checkpoint_interval" in self._values:
            interval = self._values["checkpoint_interval"][1]
            is_off = interval in (None, "disabled")
            return ["no checkpoint is taken periodically" if is_off else f"a checkpoint is taken every {interval}"]
        if "checkpoint_mode" not in self._values:
            return []
        if after.alignment_ms is None:
            return ["no checkpoint has been completed since"]
        spans = (
            ("checkpoints took {} ms and now take {} ms", before.checkpoint_ms, after.checkpoint_ms),
            ("tasks waited {} ms for barriers and now wait {} ms", before.alignment_ms, after.alignment_ms),
        )
        return [
            text.format(_ms(one), _ms(other))
            for text, one, other in spans
            if one is not None and other is not None and abs(one - other) > max(SAME_MS, SAME * one)
        ]

    def _takes_longer(self, after: Measured) -> str:
        """Why checkpoints are further apart than their interval; empty where they are not."""
        interval, took_ms = self._values["checkpoint_interval"][1], after.checkpoint_ms
        if took_ms is None or 1_000 * took_ms < 1.25 * parse_duration(str(interval), "checkpoint_interval"):
            return ""
        return f", as one takes {_ms(took_ms)} ms"

    def _reason(self, before: Measured, after: Measured, same: bool, limit: str) -> str:
        if (told := self._values.get("buffer_timeout")) and (full := timeout_idle(str(told[1]), after.fill_ms)):
            return full
        if told and (early := barriers_first(str(told[1]), after.barrier_gap_ms)):
            return early
        if limit and {"buffer_timeout", "buffer_size"} & self._values.keys():
            return f"backpressure decides, not this setting: {limit}"
        if same and limit and {"rate", "speed"} & self._values.keys():
            return limit
        if "parallelism" in self._values and after.busiest:
            return _load(before, after)
        return ""


def _load(before: Measured, after: Measured) -> str:
    """How busy the busiest vertex was and is.

    Example:
        >>> one, other, same = (Measured(busiest=name, busy=busy) for name, busy in (("a", 0.97), ("b", 0.5), ("a", 1)))
        >>> for after in (same, other, Measured(busiest="a", busy=0.5)):
        ...     print(_load(one, after))
        a is still 100 % busy
        a was the busiest (97 %), and now it is b (50 %)
        a was 97 % busy and is now 50 % busy
    """
    if before.busiest not in ("", after.busiest):
        told = f"{before.busiest} was the busiest ({before.busy:.0%}), and now it is {after.busiest} ({after.busy:.0%})"
    elif abs(before.busy - after.busy) < SAME:
        told = f"{after.busiest} is still {after.busy:.0%} busy"
    else:
        told = f"{after.busiest} was {before.busy:.0%} busy and is now {after.busy:.0%} busy"
    return told.replace("%", " %")


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _has_moved(told: Measured | None, measured: Measured) -> bool:
    """Whether a percentile differs from what was told of it."""
    pairs = () if told is None else ((told.sure_ms(name), measured.sure_ms(name)) for name in ("p50", "p99"))
    return any(
        one is not None and other is not None and abs(one - other) > max(SAME_MS / 2, MOVED * one)
        for one, other in pairs
    )


def _since(newest: Measured, samples: list[Measured]) -> Measured:
    """Rates as medians of samples, as they are before a change; percentiles are over seconds already, and the newest
    ones count."""
    return replace(
        newest,
        records_per_second=median(one.records_per_second for one in samples),
        buffers_per_second=median(one.buffers_per_second for one in samples),
    )


def _figures(samples: list[Measured]) -> dict[str, list[float]]:
    """Each figure in all samples that have it, in ascending order."""
    names = [field.name for field in fields(Measured) if field.name != "busiest"]
    return {name: sorted(value for one in samples if (value := getattr(one, name)) is not None) for name in names}


def _median(samples: list[Measured]) -> Measured:
    medians: dict[str, Any] = {
        name: values[len(values) // 2] if values else None for name, values in _figures(samples).items()
    }
    return replace(samples[-1], **medians)


def _span(values: list[float]) -> tuple[float, float]:
    """Of values in ascending order, without the outer ones."""
    outer = len(values) // OUTER
    return values[outer], values[-1 - outer]
