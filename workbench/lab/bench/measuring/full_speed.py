"""What each architecture of fault tolerance leaves of the speed of two works, without any failure: E1 and E2.

The filter of E1 stands behind an exchange here, unlike in ``workbench bench grep``: records that never leave their task
need no acknowledgement and no transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np

import workbench as wb
from workbench.api.pictures.mechanism import mechanism_of
from workbench.lab.bench.works.architectures import ARCHITECTURES
from workbench.lab.bench.works.blocks import events
from workbench.lab.bench.works.grep import CONDITION, Grep
from workbench.lab.bench.works.grouping import Grouping
from workbench.telemetry.frames import Frame, end_latency

NONE = "none"
"""No mechanism: no checkpoints at all."""
SNAPSHOTS = "snapshots"
ACKS = "acks:granularity=record"
COMPARED = (*(NONE, SNAPSHOTS, SNAPSHOTS, NONE) * 3, *(name for name in ARCHITECTURES if name != SNAPSHOTS), ACKS)
"""Runs without a mechanism and with snapshots take turns, each as often first: they differ by less than the noise."""
KEYS = 10_000
SECONDS = 2.5
WARM_UP = 0.4
WARM_UP_S = 1.5
INTERVAL = "1s"
PATIENCE = "120s"
_COUNTED = "counted"
"""The operator whose records are counted."""


@dataclass(frozen=True, slots=True)
class FullSpeed:
    """One run.

    Attributes:
        work: ``"E1"``, a filter of lines, or ``"E2"``, a running count and sum by key.
        architecture: as users write it, or ``"none"``.
        eps: records per second that the filter or the count has processed.
        eps_cpu_s: per CPU second of the process.
        part: of the speed per CPU second of the last run with no mechanism; None: there was none.
        p50_ms, p99_ms: the latency from source to sink at that speed; None: no record came that far.
        messages: in addition to the records, for each record: barriers, acknowledgements and calls of a store.
        checked: whether the results are those of exactly the records that the source has emitted.
    """

    work: str
    architecture: str
    eps: int
    eps_cpu_s: int
    part: float | None
    p50_ms: float | None
    p99_ms: float | None
    messages: float
    checked: bool

    @property
    def cpu_us(self) -> float:
        """What one record takes of a core, microseconds."""
        return 1e6 / max(self.eps_cpu_s, 1)

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {name: found.pop(name) for name in ("work", "architecture")} | {"p": 2, "keys": KEYS}
        return json.dumps({"peer": "workbench", "workload": "architectures at full speed", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        part = "" if self.part is None else f", {self.part:.2%} of no mechanism"
        latency = "" if self.p50_ms is None else f"; latency {self.p50_ms:,.1f} ms (p99 {self.p99_ms or 0:,.1f})"
        speed = f"{self.eps:,} records/s at full speed, {self.eps_cpu_s:,} per CPU second"
        return f"{self.work} {self.architecture}: {speed}{part}{latency}{'' if self.checked else ' (wrong results)'}"


class _Work(Protocol):
    """A pipeline whose results can be checked."""

    def pipeline(self) -> wb.types.Pipeline:
        """With an operator `_COUNTED`."""

    def exact(self, job: wb.types.Job) -> bool:
        """Whether the job that has ended has the results of all records that were emitted."""


class _Filtered:
    """E1: lines of 100 bytes go to a filter by a regular expression; the sink gets the length of those that match.

    An exactly-once sink holds its rows back until their checkpoint has completed, so wide rows would be copied once
    more: a price of the sink, and not of the mechanism. A sink that counts cannot take part in transactions.
    """

    def __init__(self) -> None:
        self._grep = Grep()

    def pipeline(self) -> wb.types.Pipeline:
        lines = self._grep.lines(None).rebalance().filter(CONDITION).uid(_COUNTED)
        return lines.with_columns(length="length(line)").drop("line").sink_to(wb.TableSink("found"))

    def exact(self, job: wb.types.Job) -> bool:
        found: int = job.table("found").num_rows
        return found == self._grep.expected()


class _Grouped:
    """E2: records go to a running count and sum by key."""

    def __init__(self) -> None:
        self._grouping = Grouping(KEYS, 2, 0)

    def pipeline(self) -> wb.types.Pipeline:
        counts = self._grouping.counts(None).uid(_COUNTED)
        return counts.sink_to(wb.TableSink("latest", upsert_key="key"))

    def exact(self, job: wb.types.Job) -> bool:
        counts, sums = self._grouping.expected()
        key, n, s = (job.table("latest").column(name).to_numpy() for name in ("key", "n", "s"))
        seen = np.flatnonzero(counts)
        if len(key) != len(seen):
            return False
        order = np.argsort(key)
        return all(np.array_equal(a, b) for a, b in ((key[order], seen), (n, counts[key]), (s, sums[key])))


WORKS: dict[str, type[_Work]] = {"E1": _Filtered, "E2": _Grouped}


def full_speeds(
    architectures: Sequence[str] = COMPARED, seconds: float = SECONDS, works: Sequence[str] = tuple(WORKS)
) -> Iterator[FullSpeed]:
    """Run the works under each architecture, one after the other.

    Args:
        architectures: as for ``run(fault_tolerance=...)``, or ``"none"``, which the ones behind it are compared with.
        seconds: of each run, warm-up included.
        works: names of `WORKS`.
    """
    events()
    for work in works:
        _measure(work, NONE, min(seconds, WARM_UP_S), None)  # kernels are ready then, and memory is claimed
        alone: int | None = None
        for architecture in architectures:
            found = _measure(work, architecture, seconds, alone)
            alone = found.eps_cpu_s if architecture == NONE else alone
            yield found


def _measure(name: str, architecture: str, seconds: float, alone: int | None) -> FullSpeed:
    work = WORKS[name]()
    job = work.pipeline().run(
        "bench-full-speed",
        parallelism=2,
        fault_tolerance=SNAPSHOTS if architecture == NONE else architecture,
        checkpoint_interval=None if architecture == NONE else INTERVAL,
    )
    try:
        time.sleep(seconds * WARM_UP)
        before, wall, cpu = _counted(job), time.perf_counter(), time.process_time()
        time.sleep(seconds * (1 - WARM_UP))
        counted = _counted(job) - before
        elapsed, used = time.perf_counter() - wall, time.process_time() - cpu
        frame = job.recorder.latest()
        job.pause()  # what is read while a job stops is no part of its results
        job.stop(wait=False)
        job.wait(PATIENCE)
    finally:
        job.cancel()
    per_cpu = round(counted / used)
    alone = per_cpu if architecture == NONE else alone
    latency = None if frame is None else end_latency([v.id for v in frame.vertices], frame.edges, frame.latency)
    return FullSpeed(
        work=name,
        architecture=architecture,
        eps=round(counted / elapsed),
        eps_cpu_s=per_cpu,
        part=None if alone is None else per_cpu / max(alone, 1),
        p50_ms=None if latency is None else round(latency.p50_ms, 2),
        p99_ms=None if latency is None else round(latency.p99_ms, 2),
        messages=0.0 if frame is None else _messages(frame),
        checked=work.exact(job),
    )


def _counted(job: wb.types.Job) -> int:
    """Records that have reached the operator."""
    return sum(int(str(row["numRecordsIn"])) for row in job.metrics() if str(row["task"]).startswith(f"{_COUNTED}["))


def _messages(frame: Frame) -> float:
    """Messages in addition to the records, for each record."""
    records = sum(int(vertex.metrics.get("numRecordsIn") or 0) for vertex in frame.vertices if vertex.name == _COUNTED)
    return mechanism_of(frame).messages / max(records, 1)
