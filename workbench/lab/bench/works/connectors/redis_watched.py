"""What another program sees of E6 in Redis while it runs: how many views are counted, and how old the counts are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from workbench.clock import rest
from workbench.elements import Int64s
from workbench.lab.bench.works.blocks import BLOCK, TYPES, events
from workbench.lab.bench.works.connectors.redis_campaigns import RedisCampaigns
from workbench.lab.bench.works.latencies import now_us

RATE, SECONDS = 20_000, 20.0
"""Events per second, and how long they come."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """A run of E6 at a rate.

    Attributes:
        rate: events per second.
        exact: whether the counts are those of the events in the end.
        seconds: when another client looked.
        emitted: views that the source had emitted then.
        stored: views that the counts in Redis had then.
        ages: how many seconds earlier the source had emitted as many.
    """

    rate: int
    exact: bool
    seconds: list[float]
    emitted: list[int]
    stored: list[int]
    ages: list[float]

    def describe(self) -> str:
        """One line."""
        typical, worst = np.quantile(self.ages, (0.5, 1.0)) if self.ages else (0.0, 0.0)
        result = "exact in the end" if self.exact else "wrong results"
        rate = f"at {self.rate:,} events/s"
        return f"{rate} another client sees counts {typical:.1f} s old, at most {worst:.1f} s; {result}"

    def to_json(self) -> str:
        """All of it, as a line."""
        return json.dumps({"peer": "workbench", "workload": "W3", "watched": asdict(self)})


def watch(rate: int = RATE, seconds: float = SECONDS, on_phase: Callable[[str], None] = lambda phase: None) -> Watched:
    """Run E6, look at the counts in Redis ten times a second, and let it end.

    Raises:
        SettingError: there is no redis-server on the PATH.
    """
    on_phase(f"E6 at {rate:,} events/s")
    work = RedisCampaigns(rate)
    views = np.concatenate([[0], np.cumsum(events().types == TYPES.index("view"))])
    looked: list[tuple[float, int, int]] = []
    job = work.pipeline(int(rate * seconds)).run("e6", checkpoint_interval="1s")
    try:
        begun_us = now_us()
        while job.status()["state"] not in ("FINISHED", "FAILED", "CANCELED"):
            stored = work.stored()
            looked.append(((now_us() - begun_us) / 1e6, _views_of(work.emitted.count, views), stored))
            rest(_LOOK_S)
        state = job.wait("60s")
    finally:
        job.cancel()
    times, emitted, counts = (list(column) for column in zip(*looked, strict=True)) if looked else ([], [], [])
    ages = np.maximum(np.array(times) - np.interp(counts, emitted, times), 0.0) if looked else np.array([])
    return Watched(rate, state == "FINISHED" and work.exact(), times, emitted, counts, ages.round(3).tolist())


def save(watched: Watched, path: Path) -> Path:
    """Write the picture into an HTML file that needs no network."""
    from workbench.dashboard.measured.counts import counts_page

    shown = counts_page(watched.rate, watched.seconds, watched.emitted, watched.stored, watched.ages)
    path.write_text(shown, encoding="utf-8")
    return path


def _views_of(count: int, views: Int64s) -> int:
    """The views among the first events.

    Args:
        count: of the events.
        views: how many are among the first 0, 1, ... events of the block, which is repeated.
    """
    whole, rest_of = divmod(count, BLOCK)
    return whole * int(views[-1]) + int(views[rest_of])
