"""Whether memory stays flat: grouping at full speed with checkpoints and an upsert table, watched for minutes."""

from __future__ import annotations

import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.cli.scratch import scratch_folder
from workbench.lab.bench.works.grouping import Grouping

SECONDS = 600
PERIOD_S = 10.0
WARM_UP_S = 30.0
LOOKS = 10
GROWTH_MAX = 0.05
PARALLELISM = 2
PATIENCE = "120s"
TABLE = "counts"


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of the process at one moment.

    Attributes:
        seconds: since the job began.
        events: emitted so far.
        checkpoints: complete so far.
        rss_mb: resident memory, the median of ten measurements since the last sample.
        arrow_mb: allocated by Arrow.
    """

    seconds: float
    events: int
    checkpoints: int
    rss_mb: float
    arrow_mb: float

    def describe(self) -> str:
        """One line."""
        return (
            f"{self.seconds:5.0f} s  {self.events / 1e6:10,.0f} M events  {self.checkpoints:5} checkpoints"
            f"  {self.rss_mb:8,.1f} MB  of which Arrow {self.arrow_mb:7,.1f} MB"
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """A run that was watched.

    Attributes:
        keys: of the grouping.
        samples: after the warm-up, oldest first.
        exact: the sink and the table hold exactly the expected rows for the emitted events.
    """

    keys: int
    samples: tuple[Sample, ...]
    exact: bool

    @property
    def growth(self) -> float:
        """From the first fifth of the samples to the last, by medians, as a share."""
        part = max(1, len(self.samples) // 5)
        begin = statistics.median(sample.rss_mb for sample in self.samples[:part])
        return statistics.median(sample.rss_mb for sample in self.samples[-part:]) / begin - 1

    @property
    def flat(self) -> bool:
        """Whether it grew by less than 5 %."""
        return self.growth < GROWTH_MAX

    def to_json(self) -> str:
        """The outcome as one line of JSON."""
        last = self.samples[-1]
        outcome = {"peer": "workbench", "workload": "memory", "config": {"p": PARALLELISM, "keys": self.keys}}
        return json.dumps({**outcome, **asdict(last), "growth": round(self.growth, 4), "checked": self.exact})

    def describe(self) -> str:
        """One line."""
        said = "exact" if self.exact else "WRONG"
        return f"growth {self.growth:+.1%} (flat is below {GROWTH_MAX:.0%}); the result is {said}"


def watch(
    seconds: float,
    keys: int,
    on_sample: Callable[[Sample], None],
    *,
    warm_up_s: float = WARM_UP_S,
    period_s: float = PERIOD_S,
) -> Watch:
    """Run for `seconds` after the warm-up, with a sample every ten seconds.

    Args:
        seconds: after the warm-up.
        keys: 10,000 or a million.
        on_sample: receives every sample after the warm-up.
        warm_up_s: before the first sample.
        period_s: between two samples.
    """
    work = Grouping(keys, PARALLELISM, 0)
    counts = work.counts(None)
    pipeline = counts.sink_to(work.sink()) + counts.sink_to(wb.TableSink(TABLE, upsert_key="key"))
    with scratch_folder("workbench-bench-") as folder:
        begin = time.perf_counter()
        job = pipeline.run(
            "bench-memory",
            parallelism=PARALLELISM,
            checkpoint_interval="5s",
            checkpoint_dir=Path(folder) / "checkpoints",
        )
        samples: list[Sample] = []
        due = warm_up_s
        while due <= warm_up_s + seconds and not job.over:
            held = _until(begin + due, period_s)
            due += period_s
            samples.append(_sample(time.perf_counter() - begin, work, job, statistics.median(held)))
            on_sample(samples[-1])
        job.pause()  # so that the last checkpoint commits everything that the other sink has received
        job.stop(wait=False)
        job.wait(PATIENCE)
        return Watch(keys, tuple(samples), work.exact() and _equal(job.table(TABLE), work))


def _until(moment: float, period_s: float) -> list[float]:
    """Wait, and measure ten times in the last period: resident memory goes up and down with every checkpoint."""
    held: list[float] = []
    for number in range(LOOKS - 1, -1, -1):
        time.sleep(max(0.0, moment - number * period_s / LOOKS - time.perf_counter()))
        held.append(resident_mb())
    return held


def _sample(seconds: float, work: Grouping, job: wb.types.Job, rss_mb: float) -> Sample:
    done = int(job.status()["checkpoints"])
    arrow_mb = pa.total_allocated_bytes() / 1e6
    return Sample(round(seconds, 1), work.emitted.count, done, round(rss_mb, 1), round(arrow_mb, 1))


def resident_mb() -> float:
    """Memory of this process that is in RAM."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes, and only the peak


def _equal(table: pa.Table, work: Grouping) -> bool:
    """Whether the table has the last count and sum of each key that was emitted."""
    counts, sums = work.expected()
    key = table.column("key").to_numpy()
    shown = np.zeros_like(counts), np.zeros_like(sums)
    for target, name in zip(shown, ("n", "s"), strict=True):
        target[key] = table.column(name).to_numpy()
    return np.array_equal(shown[0], counts) and np.array_equal(shown[1], sums)
