"""E7 and E8: what was counted in the last five seconds, under snapshots and under micro-batches of several intervals.

A batch is the smallest unit of a micro-batch engine, so "the last five seconds" becomes the last batch when that is
longer. The interval of snapshots changes nothing (E7). Virtual time, so each run takes moments and is the same. Spark
itself has no virtual time: its minute of records comes in ten seconds, and its batches follow each other as much
faster. Its windows of event time do not depend on its batches, only the delay of its answers does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import workbench as wb
from workbench.durations import parse_duration
from workbench.elements import Int64s

if TYPE_CHECKING:
    from workbench.dashboard.measured.intervals import IntervalRun

WINDOW = "5s"
SECONDS = 60
RATE = 4
"""Records a second on average; every other five seconds have three times as many as the rest."""
RUNS = (
    ("snapshots", "1s"),
    ("snapshots", "5s"),
    ("snapshots", "10s"),
    ("micro-batches:batch_interval=1s,windows=stretch", None),
    ("micro-batches:batch_interval=5s,windows=stretch", None),
    ("micro-batches:batch_interval=10s,windows=stretch", None),
)
ON_SPARK = (("spark", "10s"),)
"""Spark's own micro-batches, a batch each interval."""
SPARK_SPEED = 6
"""Seconds of event time in a second of Spark's; an interval is as much shorter."""
SPARK_PATIENCE = "4min"
"""A JVM starts in seconds, on a busy machine in a minute."""
_ACROSS = 3
"""Pictures in a column: the runs of snapshots, those of micro-batches, and Spark's."""
_SECOND_US = 1_000_000
_HOUR_US = 3_600 * _SECOND_US


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of one run.

    Attributes:
        architecture: as users write it.
        checkpoint_interval: of snapshots, and of Spark's batches; None: batches have their own.
        answers: how many windows were answered.
        wrong: windows of five seconds without the true answer, and answers to others.
        peak: the largest count in "the last five seconds".
        expected: whether they should be right: always, unless a batch is longer than the window.
        found: the answers by the start of their windows in microseconds.
    """

    architecture: str
    checkpoint_interval: str | None
    answers: int
    wrong: int
    peak: int
    expected: bool
    found: Mapping[int, int] = field(default_factory=dict, repr=False)

    @property
    def as_told(self) -> bool:
        """Whether the answers are right exactly if they should be."""
        return (self.wrong == 0) is self.expected

    def to_json(self) -> str:
        """One line of JSON."""
        figures = {name: value for name, value in asdict(self).items() if name != "found"}
        return json.dumps({"peer": "workbench", "workload": "intervals", **figures, "checked": self.as_told})

    def describe(self) -> str:
        """One line."""
        run = self.title.partition(":")[0] if self.checkpoint_interval else self.architecture
        return (
            f"{run}: {self.answers} answers for the last {WINDOW}, {self._verdict}, peak {self.peak:,}"
            f"{'' if self.as_told else ' (unexpected)'}"
        )

    @property
    def title(self) -> str:
        """What was run, in words, and how many of its answers are right."""
        name, _, knobs = self.architecture.partition(":")
        every = self.checkpoint_interval or knobs.partition("=")[2].partition(",")[0]
        return f"{'Spark (real)' if name == 'spark' else name} every {every}: {self.answers} answers, {self._verdict}"

    @property
    def _verdict(self) -> str:
        return "all right" if not self.wrong else f"{self.wrong} wrong"


def input_times() -> Int64s:
    """Event times in microseconds, in order: three quarters of the records in every other five seconds."""
    slots = SECONDS // 5
    counts = [5 * RATE // 2 * (3 if slot % 2 else 1) for slot in range(slots)]
    return np.concatenate([slot * 5 * _SECOND_US + np.arange(n) * 5 * _SECOND_US // n for slot, n in enumerate(counts)])


def answers(architecture: str, checkpoint_interval: str | None) -> dict[int, int]:
    """By the start of each window in microseconds: the count that the run emits.

    Example:
        >>> answers("snapshots", "10s")[5_000_000]
        30
    """
    spark = architecture == "spark"
    # Not from 1970-01-01 00:00 on, which is Spark's watermark before the first record.
    times = pa.table({"t": pa.array(input_times() + _HOUR_US, pa.timestamp("us"))})
    stream = wb.Stream.from_table(times, event_time="t", rate=RATE * SPARK_SPEED if spark else RATE)
    counted = stream.window(wb.tumbling(WINDOW)).aggregate(n=wb.count())
    pipeline = counted.sink_to(wb.TableSink("last"))
    if spark:
        interval = f"{parse_duration(checkpoint_interval or '10s', 'checkpoint_interval') // SPARK_SPEED}us"
        job: Any = pipeline.run("bench-intervals", engine="spark", checkpoint_interval=interval)
        try:
            job.wait(SPARK_PATIENCE)
        finally:
            job.cancel(wait=False)
    else:
        steps: dict[str, Any] = {"driver": "stepping", "fault_tolerance": architecture, "buffer_timeout": "1s"}
        if checkpoint_interval is not None:
            steps["checkpoint_interval"] = checkpoint_interval
        job = pipeline.run("bench-intervals", **steps)
        job.wait()
    table = job.table("last")
    starts = pc.subtract(table.column("window_start").cast(pa.int64()), _HOUR_US).to_pylist()
    return dict(zip(starts, table.column("n").to_pylist(), strict=True))


def truth() -> dict[int, int]:
    """By the start of each five seconds in microseconds: the number of records, counted from the input."""
    size = 5 * _SECOND_US
    slots, counts = np.unique(input_times() // size, return_counts=True)
    return {int(slot) * size: int(n) for slot, n in zip(slots, counts, strict=True)}


def intervals(tell: Callable[[str], None]) -> Iterator[Answered]:
    """Run the query under each architecture and interval.

    Args:
        tell: called before a run that takes longer than moments.

    Raises:
        HistoryError, MissingPackageError, JobError: from the last run: there is no Java or PySpark, or Spark failed, or
            has not ended after `SPARK_PATIENCE`.
    """
    right = truth()
    for architecture, interval in (*RUNS, *ON_SPARK):
        if architecture == "spark":
            tell(f"Spark (real): a JVM starts, then {SECONDS} seconds of records come in {SECONDS // SPARK_SPEED}")
        found = answers(architecture, interval)
        wrong = sum(found.get(start) != right.get(start) for start in found.keys() | right.keys())
        expected = "batch_interval=10s" not in architecture
        yield Answered(architecture, interval, len(found), wrong, max(found.values(), default=0), expected, found)


def save(runs: Sequence[Answered], path: Path) -> Path:
    """Write the picture into an HTML file that needs no network."""
    from workbench.dashboard.measured.intervals import intervals_page

    shown = [_shown(run.title, run.wrong == 0, run.found) for run in runs]
    path.write_text(intervals_page(shown, _shown("true", True, truth()), _ACROSS), encoding="utf-8")
    return path


def _shown(title: str, right: bool, found: Mapping[int, int]) -> IntervalRun:
    from workbench.dashboard.measured.intervals import IntervalRun

    starts = [start / _SECOND_US for start in sorted(found)]
    return IntervalRun(title, right, starts, [*starts[1:], float(SECONDS)], [found[start] for start in sorted(found)])
