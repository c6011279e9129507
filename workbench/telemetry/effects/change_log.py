"""Measures what each change of a setting did, from one sample to the next."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from workbench.durations import parse_duration
from workbench.telemetry.effects.change_frames import ChangeFrame, Measured

KEPT = 20
"""Changes."""
RATES_FROM_US = 1_100_000
"""Rates are means over a second: earlier ones still hold some of the time before the change."""
HOLDS_AFTER_US = 1_500_000
LATEST_US = 2_900_000
ENOUGH, FEW = 30, 8
"""Markers: enough for percentiles at once, and so few must do where not many come."""
FOLLOWED_US = 10_000_000
"""So long after a change its figures follow the job, and so long before one they are looked at."""
SAME, SAME_MS = 0.1, 1.0
"""A difference below this share, and of a latency below so many milliseconds, is none."""


class ChangeLog:
    """The changes of one job, and their effects as far as they are known.

    Example:
        >>> log = ChangeLog()
        >>> for at_us in range(0, 1_000_000, 100_000):
        ...     log.sample(at_us, Measured(48, 90, 99, 1_000, 20, 100, 60))
        >>> log.change(1_000_000, {"buffer_timeout": "1s"}, {"buffer_timeout": "5ms"}, "")
        >>> log.changes[-1].state
        'measuring'
        >>> for at_us in range(1_100_000, 4_000_000, 100_000):
        ...     log.sample(at_us, Measured(4, 7, 8, 1_000, 180, 11, 60))
        >>> log.changes[-1].sentence
        'buffer_timeout 1s → 5ms: latency p50 48 → 4.0 ms, p99 99 → 8.0 ms, throughput unchanged, 9.0x more buffers'
    """

    def __init__(self) -> None:
        self._past: deque[tuple[int, Measured]] = deque()
        self._changes: deque[ChangeFrame] = deque(maxlen=KEPT)
        self._values: dict[str, tuple[object, object]] = {}
        self._together: tuple[str, ...] = ()

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
        what = ", ".join(_label(name, *values) for name, values in names.items()) or text
        measured, earlier, self._together = self._before(time_us), self._together, ()
        if self._changes and self._changes[-1].state == "measuring":
            last = self._changes[-1]
            seconds = (time_us - last.time_us) / 1e6
            told = f"{last.what}: another change came after {seconds:.1f} s, before it could be measured"
            self._changes[-1] = replace(last, state="superseded", sentence=told)
            measured, self._together = last.before, (*earlier, last.what)
        self._values = names
        self._changes.append(ChangeFrame(what, time_us, measured, None, "measuring", f"{what}: measuring"))

    def _before(self, time_us: int) -> Measured | None:
        """Medians over the last seconds since the change before: a moment in which something else took the processor,
        such as the opening of a page, is not what the change is compared with."""
        since_us = max(time_us - FOLLOWED_US, self._changes[-1].time_us + RATES_FROM_US if self._changes else 0)
        past = [one for at_us, one in self._past if since_us <= at_us <= time_us]
        return _median(past or [one for at_us, one in self._past if at_us <= time_us]) if self._past else None

    def sample(self, now_us: int, measured: Measured, limit: str = "", price: str = "") -> None:
        """Take note of the job now.

        Args:
            now_us: processing time.
            measured: percentiles of markers that were sent after the last change, and rates over the last second.
            limit: what holds the sources back, as a sentence; empty where nothing does.
            price: what checkpoints cost, to follow their number in a sentence; empty where it is not known.
        """
        self._past.append((now_us, measured))
        while now_us - self._past[0][0] > FOLLOWED_US:
            self._past.popleft()
        if not self._changes:
            return
        last = self._changes[-1]
        since_us = now_us - last.time_us
        if last.state == "superseded" or (since_us > FOLLOWED_US and last.state == "holds") or since_us < RATES_FROM_US:
            return
        after = _mean([one for at_us, one in self._past if at_us - last.time_us >= RATES_FROM_US])
        travels = not (after.p50_ms is None and after.records_per_second)
        settled = since_us >= max(HOLDS_AFTER_US, 1_000_000 + 1_000 * (after.p99_ms or 0)) and after.markers >= ENOUGH
        settled |= since_us >= LATEST_US and travels and (after.markers >= FEW or not after.records_per_second)
        told = " with ".join((last.what, " and ".join(self._together))) if self._together else last.what
        if last.state == "holds" or settled:
            sentence = f"{told}: {self._effect(last.before, after, limit, price)}"
            self._changes[-1] = replace(last, after=after, state="holds", sentence=sentence)
        elif after.p50_ms is None:
            sentence = f"{told}: measuring, no record sent since has arrived within {since_us / 1e6:.1f} s"
            self._changes[-1] = replace(last, after=after, sentence=sentence)
        else:
            self._changes[-1] = replace(last, after=after, sentence=f"{told}: measuring")

    def _effect(self, before: Measured | None, after: Measured, limit: str, price: str) -> str:
        if before is None:
            latency = [] if after.p50_ms is None else [f"latency p50 {_ms(after.p50_ms)} ms"]
            return ", ".join([*latency, f"throughput {after.records_per_second:,.0f} records/s"])
        parts = [
            f"{name} {_ms(one)} → {_ms(other)} ms"
            for name, one, other in (("p50", before.p50_ms, after.p50_ms), ("p99", before.p99_ms, after.p99_ms))
            if one is not None and other is not None and abs(one - other) > max(SAME_MS / 2, SAME * one)
        ]
        if not parts and after.p50_ms is not None:
            parts = [f"p50 {_ms(after.p50_ms)} ms" if before.p50_ms is None else f"p50 stays {_ms(after.p50_ms)} ms"]
        parts = [f"latency {parts[0]}", *parts[1:]] if parts else []
        one, other = before.records_per_second, after.records_per_second
        same = abs(one - other) <= SAME * max(one, other)
        parts.append("throughput unchanged" if same else f"throughput {one:,.0f} → {other:,.0f} records/s")
        one, other = before.buffers_per_second, after.buffers_per_second
        if one and other and not 1 / 1.25 < other / one < 1.25:
            more = other > one
            parts.append(f"{other / one if more else one / other:.1f}x {'more' if more else 'fewer'} buffers")
        return ", ".join(parts) + self._reason(before, after, same, limit, price)

    def _reason(self, before: Measured | None, after: Measured, same: bool, limit: str, price: str) -> str:
        if (told := self._values.get("buffer_timeout")) and (full := timeout_idle(str(told[1]), after.fill_ms)):
            return f"; {full}"
        if same and limit and {"rate", "speed"} & self._values.keys():
            return f"; {limit}"
        if "parallelism" in self._values and after.busiest and before is not None:
            return f"; {after.busiest} was {before.busy:.0%} busy and is {after.busy:.0%}".replace("%", " %")
        if "checkpoint_interval" in self._values and after.checkpoint_gap_ms is not None:
            often = f"; a checkpoint is taken every {_ms(after.checkpoint_gap_ms)} ms"
            return f"{often} and {price}" if price else often
        if "checkpoint_mode" in self._values and before is not None:
            spans = (
                ("checkpoints took {} ms and take {} ms", before.checkpoint_ms, after.checkpoint_ms),
                ("tasks waited {} ms for barriers and wait {} ms", before.alignment_ms, after.alignment_ms),
            )
            lengths = [
                text.format(_ms(one), _ms(other))
                for text, one, other in spans
                if one is not None and other is not None and abs(one - other) > max(SAME_MS, SAME * one)
            ]
            return "".join(f"; {text}" for text in lengths)
        return ""


def timeout_idle(timeout: str, fill_ms: float | None) -> str:
    """Says that buffers are full before the buffer timeout ends, where they are; else empty.

    Example:
        >>> timeout_idle("500ms", 15.2), timeout_idle("5ms", 15.2), timeout_idle("disabled", None)
        ('buffers are full after 15 ms at this rate: the timeout does not act', '', '')
    """
    if fill_ms is None or timeout == "disabled" or fill_ms * 1_000 >= 0.8 * parse_duration(timeout, "buffer_timeout"):
        return ""
    return f"buffers are full after {fill_ms:.0f} ms at this rate: the timeout does not act"


def _label(name: str, before: object, after: object) -> str:
    if name == "slow_down" and after is not None:  # its value first: a long operator name would push it out of sight
        uid, _, value = str(after).rpartition(":")
        return f"slow_down {value} on {uid}"
    if before is None:
        return f"{name} {after}"
    return f"{name} {before} → {'off' if after is None else after}"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _mean(samples: list[Measured]) -> Measured:
    """Rates as means; percentiles are over seconds already, and the last ones count."""
    count = len(samples)
    return replace(
        samples[-1],
        records_per_second=sum(one.records_per_second for one in samples) / count,
        buffers_per_second=sum(one.buffers_per_second for one in samples) / count,
    )


def _median(samples: list[Measured]) -> Measured:
    """Each figure's median, of the samples that have it."""
    values = {
        name: sorted(value for one in samples if (value := getattr(one, name)) is not None)
        for name in (
            "p50_ms",
            "p95_ms",
            "p99_ms",
            "records_per_second",
            "buffers_per_second",
            "fill_ms",
            "markers",
            "busy",
            "alignment_ms",
            "checkpoint_ms",
            "checkpoint_gap_ms",
        )
    }
    medians: dict[str, Any] = {name: found[len(found) // 2] if found else None for name, found in values.items()}
    return replace(samples[-1], **medians)
