"""E9: naive checkpoints, for which the sources stand still, against distributed snapshots: stalls against state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.trial import Progress, Setting, run_trial
from workbench.lab.bench.works.blocks import BLOCK
from workbench.lab.bench.works.grouping import Grouping
from workbench.lab.bench.works.latencies import now_us

Mode = Literal["none", "snapshots", "stop-the-world"]
MODES: dict[Mode, str] = {
    "none": "no checkpoints",
    "snapshots": "distributed snapshots",
    "stop-the-world": "stop the world",
}
"""What is compared, with its name in words."""
KEYS = (10_000, 100_000, BLOCK)
RATE = 100_000
CHECKPOINT_S = 1
SECONDS = 6.0
MOMENT_US = 50_000


@dataclass(frozen=True, slots=True)
class Moment:
    """The slowest record that reached the sink within `MOMENT_US`.

    Attributes:
        seconds: since measuring began.
        worst_ms: from its creation to the sink.
    """

    seconds: float
    worst_ms: float


@dataclass(frozen=True, slots=True)
class Stalled:
    """One way to take checkpoints, with state of one size.

    Attributes:
        mode: of the checkpoints, once a second.
        keys: in the state.
        at_rate: at `RATE` records per second.
        at_full_speed: as fast as it goes.
        moments: of the run at a rate.
    """

    mode: Mode
    keys: int
    at_rate: Result
    at_full_speed: Result
    moments: tuple[Moment, ...] = field(repr=False)

    @property
    def worst_ms(self) -> float:
        """The latency of the slowest record at a rate."""
        return max((moment.worst_ms for moment in self.moments), default=0.0)

    @property
    def exact(self) -> bool:
        """Whether the results of both runs are right."""
        return self.at_rate.checked and self.at_full_speed.checked

    def to_json(self) -> str:
        """One line of JSON."""
        found = {"p50_ms": self.at_rate.p50_ms, "p99_ms": self.at_rate.p99_ms, "worst_ms": round(self.worst_ms, 1)}
        config = {"mode": self.mode, "keys": self.keys, "rate": RATE, "checkpoint": CHECKPOINT_S}
        speed = {"eps": self.at_full_speed.eps, "eps_cpu_s": self.at_full_speed.eps_cpu_s}
        return json.dumps(
            {"peer": "workbench", "workload": "E9", "config": config, **found, **speed, "checked": self.exact}
        )

    def describe(self) -> str:
        """One line."""
        percentiles = ", ".join(
            f"{name} {'-' if value is None else f'{value:,.1f}'} ms"
            for name, value in (("p50", self.at_rate.p50_ms), ("p99", self.at_rate.p99_ms), ("worst", self.worst_ms))
        )
        return (
            f"{MODES[self.mode]:21}  {self.keys:9,} keys  at {RATE:,}/s: {percentiles}; "
            f"at full speed: {self.at_full_speed.eps:,}/s, {self.at_full_speed.eps_cpu_s or 0:,} per CPU second"
            f"{'' if self.exact else ' (wrong results)'}"
        )


class WatchedGrouping(Grouping):
    """Grouping that remembers when its slowest records came."""

    def start_measuring(self) -> None:
        self._arrived: list[tuple[int, int]] = []  # appending needs no lock
        self._begin_us = now_us()
        super().start_measuring()

    def _keep(self, batch: pa.RecordBatch, stamps: Int64s) -> None:
        super()._keep(batch, stamps)
        begin_us = getattr(self, "_begin_us", None)
        if begin_us is not None and len(measured := stamps[stamps >= begin_us]):
            now = now_us()
            self._arrived.append((now - begin_us, now - int(measured.min())))

    def moments(self) -> tuple[Moment, ...]:
        """Those at which records came."""
        if not self._arrived:
            return ()
        at_us, late_us = np.array(self._arrived).T
        places, inverse = np.unique(at_us // MOMENT_US, return_inverse=True)
        worst_us = np.zeros(len(places), np.int64)
        np.maximum.at(worst_us, inverse, late_us)
        return tuple(
            Moment(float(place) * MOMENT_US / 1e6, float(worst) / 1_000)
            for place, worst in zip(places, worst_us, strict=True)
        )


def stalls(
    on_progress: Progress, *, seconds: float = SECONDS, keys: Sequence[int] = KEYS, modes: Sequence[Mode] = tuple(MODES)
) -> Iterator[Stalled]:
    """Run each way with each size of state: once at a rate, once at full speed.

    Args:
        on_progress: receives the share of each run that has passed.
        seconds: of each run, warm-up included.
        keys: the sizes of the state.
        modes: the ways.
    """
    for size in keys:
        for mode in modes:
            yield _stalled(mode, size, seconds, on_progress)


def _stalled(mode: Mode, keys: int, seconds: float, on_progress: Progress) -> Stalled:
    setting = Setting(seconds=seconds)
    if mode != "none":
        setting = replace(setting, checkpoint_s=CHECKPOINT_S, fault_tolerance=mode)
    watched = WatchedGrouping(keys, setting.parallelism, RATE)
    at_rate = run_trial(lambda: watched, replace(setting, rate=RATE), on_progress)
    full = run_trial(lambda: Grouping(keys, setting.parallelism, 0), setting, on_progress)
    return Stalled(mode, keys, at_rate, full, watched.moments())


def save(found: Sequence[Stalled], path: Path) -> Path:
    """Write the picture into an HTML file that needs no network."""
    from workbench.dashboard.measured.stalls import StallRun, stalls_page

    shown = [
        StallRun(
            name=MODES[one.mode],
            keys=one.keys,
            p99_ms=one.at_rate.p99_ms,
            worst_ms=one.worst_ms,
            eps=one.at_full_speed.eps,
            seconds=[moment.seconds for moment in one.moments],
            worst=[moment.worst_ms for moment in one.moments],
        )
        for one in found
    ]
    path.write_text(stalls_page(shown, RATE), encoding="utf-8")
    return path
