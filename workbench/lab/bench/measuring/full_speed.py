"""What each architecture of fault tolerance leaves of the speed of a keyed count, without any failure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import workbench as wb
from workbench.lab.bench.works.architectures import ARCHITECTURES
from workbench.lab.bench.works.grouping import Grouping
from workbench.telemetry.frames import end_latency

NONE = "none"
"""No mechanism: no checkpoints at all."""
COMPARED = (NONE, *ARCHITECTURES, "acks:granularity=record")
KEYS = 10_000
SECONDS = 3.0
WARM_UP = 0.4
INTERVAL = "1s"


@dataclass(frozen=True, slots=True)
class FullSpeed:
    """One run.

    Attributes:
        architecture: as users write it, or ``"none"``.
        eps: records per second that the count has processed.
        eps_cpu_s: per CPU second of the process.
        part: of the speed per CPU second with no mechanism; None: that was not measured.
        p50_ms: the median latency from source to sink at that speed; None: no record came that far.
    """

    architecture: str
    eps: int
    eps_cpu_s: int
    part: float | None
    p50_ms: float | None

    def to_json(self) -> str:
        """One line of JSON."""
        found = asdict(self)
        config = {"architecture": found.pop("architecture"), "p": 2, "keys": KEYS}
        return json.dumps({"peer": "workbench", "workload": "architectures at full speed", "config": config, **found})

    def describe(self) -> str:
        """One line."""
        part = "" if self.part is None else f", {self.part:.2%} of no mechanism"
        latency = "" if self.p50_ms is None else f"; latency {self.p50_ms:,.1f} ms"
        speed = f"{self.eps:,} records/s at full speed, {self.eps_cpu_s:,} per CPU second"
        return f"{self.architecture}: {speed}{part}{latency}"


def full_speeds(architectures: Sequence[str] = COMPARED, seconds: float = SECONDS) -> Iterator[FullSpeed]:
    """Run the count under each, one after the other.

    Args:
        architectures: as for ``run(fault_tolerance=...)``, or ``"none"``, which the ones behind it are compared with.
        seconds: of each run, warm-up included.
    """
    alone: int | None = None
    for architecture in architectures:
        eps, per_cpu, p50_ms = _measure(architecture, seconds)
        alone = per_cpu if architecture == NONE else alone
        yield FullSpeed(architecture, eps, per_cpu, None if alone is None else per_cpu / max(alone, 1), p50_ms)


def _measure(architecture: str, seconds: float) -> tuple[int, int, float | None]:
    counts = Grouping(KEYS, 2, 0).counts(None).uid("count")
    job = counts.sink_to(wb.TableSink("latest", upsert_key="key")).run(
        "bench-full-speed",
        parallelism=2,
        fault_tolerance="snapshots" if architecture == NONE else architecture,
        checkpoint_interval=None if architecture == NONE else INTERVAL,
    )
    try:
        time.sleep(seconds * WARM_UP)
        before, wall, cpu = _counted(job), time.perf_counter(), time.process_time()
        time.sleep(seconds * (1 - WARM_UP))
        counted = _counted(job) - before
        elapsed, used = time.perf_counter() - wall, time.process_time() - cpu
        frame = job.recorder.latest()
        latency = None if frame is None else end_latency([v.id for v in frame.vertices], frame.edges, frame.latency)
    finally:
        job.cancel()
    return round(counted / elapsed), round(counted / used), None if latency is None else round(latency.p50_ms, 2)


def _counted(job: wb.types.Job) -> int:
    """Records that have reached the count."""
    return sum(int(str(row["numRecordsIn"])) for row in job.metrics() if str(row["task"]).startswith("count["))
