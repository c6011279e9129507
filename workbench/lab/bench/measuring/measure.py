"""The result of a benchmark run, and the line that it prints."""

from __future__ import annotations

import json
import os
import resource
import time
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement; the fields are those that the scripts of other systems print, so that lines can be compared.

    Attributes:
        peer: the system that was measured.
        workload, config: the work, and its settings.
        eps: events per second, after the warm-up.
        eps_core: per core that the process was pinned to.
        eps_cpu_s: per CPU second of the whole process; the reliable figure on a busy machine.
        p50_ms, p90_ms, p99_ms: latency percentiles, None where not measured.
        checked: the result equals the exact expectation for the events that were emitted.
        rss_mb: peak resident memory.
        cores: that the process was pinned to.
        events, seconds: measured.
        load1: load average at the end.
    """

    workload: str
    config: dict[str, object]
    eps: int
    eps_core: int
    eps_cpu_s: int | None
    checked: bool
    rss_mb: int
    cores: int
    events: int
    seconds: float
    load1: float
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    peer: str = "workbench"

    def to_json(self) -> str:
        """The result as one line of JSON."""
        return json.dumps(asdict(self))


class Meter:
    """Counts wall time and CPU time of this process while it is open (a context manager)."""

    seconds: float
    cpu_seconds: float

    def __enter__(self) -> Meter:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        self.cores = len(os.sched_getaffinity(0))
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._wall
        self.cpu_seconds = time.process_time() - self._cpu

    def result(
        self,
        workload: str,
        config: dict[str, object],
        events: int,
        checked: bool,
        percentiles_ms: tuple[float | None, float | None, float | None] = (None, None, None),
    ) -> Result:
        """The result of `events` events while the meter was open."""
        p50_ms, p90_ms, p99_ms = percentiles_ms
        return Result(
            workload=workload,
            config=config,
            eps=round(events / self.seconds),
            eps_core=round(events / self.seconds / self.cores),
            eps_cpu_s=round(events / self.cpu_seconds),
            checked=checked,
            rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024,
            cores=self.cores,
            events=events,
            seconds=round(self.seconds, 2),
            load1=round(os.getloadavg()[0], 2),
            p50_ms=p50_ms,
            p90_ms=p90_ms,
            p99_ms=p99_ms,
        )
