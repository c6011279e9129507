"""Runs a work once: warm-up, measurement, end, check."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.api.job.job import Job
from workbench.cli.scratch import scratch_folder
from workbench.lab.bench.measuring.measure import Meter, Result
from workbench.lab.bench.works.work import Work

WARM_UP = 0.4
"""Share of the time that is not measured."""
MEASURED = 0.97
"""Share of a bounded input at which measuring ends: the last subtask to finish leaves a core idle."""
PATIENCE = "120s"

Progress = Callable[[float], None]
"""Receives the share of the time that has passed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of a run.

    Attributes:
        parallelism: subtasks; the process is pinned to as many cores.
        seconds: of the run, warm-up included.
        buffer_timeout_ms: of every output.
        checkpoint_s: seconds between checkpoints, written to a temporary folder; 0 for none.
        fault_tolerance: the architecture.
        rate: records per second; 0 for full speed.
    """

    parallelism: int = 2
    seconds: float = 6.0
    buffer_timeout_ms: int = 100
    checkpoint_s: int = 0
    fault_tolerance: str = "snapshots"
    rate: int = 0


def run_trial(make: Callable[[], Work], setting: Setting, on_progress: Progress) -> Result:
    """Run the work once and check its result.

    Args:
        make: creates the work.
        setting: of the run.
        on_progress: receives the progress.
    """
    with pinned(setting.parallelism), scratch_folder("workbench-bench-") as folder:
        checkpoints = Path(folder) / "checkpoints" if setting.checkpoint_s else None
        work = make()
        if work.fires_at_end:
            return _bounded(make, setting, checkpoints, on_progress)
        job = _start(work, setting, checkpoints, None)
        sleep(0.0, WARM_UP, setting.seconds, on_progress)
        work.start_measuring()
        before = work.emitted.count
        with Meter() as meter:
            sleep(WARM_UP, 1.0, setting.seconds, on_progress)
            while not (events := work.emitted.count - before) and not job.over:  # a busy machine, for a short time
                time.sleep(0.01)
        job.stop(wait=False)
        job.wait(PATIENCE)
        return _result(work, setting, job, meter, events)


def _bounded(make: Callable[[], Work], setting: Setting, checkpoints: Path | None, on_progress: Progress) -> Result:
    """A run that measures the speed, then one over as many events as take the rest of the time.

    A run that was over before anything of it could be measured is done again with four times the events.
    """
    trial = make()
    job = _start(trial, setting, None, None)
    sleep(0.0, WARM_UP / 2, setting.seconds, on_progress)
    before, begin = trial.emitted.count, time.perf_counter()
    sleep(WARM_UP / 2, WARM_UP, setting.seconds, on_progress)
    per_second = (trial.emitted.count - before) / (time.perf_counter() - begin)
    job.cancel(wait=False)
    job.wait(PATIENCE)
    limit = max(1, int(per_second * setting.seconds * (1 - WARM_UP)))
    while not (result := _limited(make(), setting, checkpoints, limit, on_progress)).events:
        limit *= 4
        checkpoints = checkpoints and checkpoints.with_name(f"checkpoints-{limit}")
    on_progress(1.0)
    return result


def _limited(work: Work, setting: Setting, checkpoints: Path | None, limit: int, on_progress: Progress) -> Result:
    job = _start(work, setting, checkpoints, limit)
    work.start_measuring()
    before = work.emitted.count
    with Meter() as meter:
        while (events := work.emitted.count) < MEASURED * limit and not job.over:
            on_progress(WARM_UP + (1 - WARM_UP) * events / limit)
            time.sleep(0.01)
        events -= before
    job.wait(PATIENCE)
    return _result(work, setting, job, meter, events)


def _start(work: Work, setting: Setting, checkpoints: Path | None, limit: int | None) -> Job:
    return work.pipeline(limit).run(
        f"bench-{work.workload}",
        parallelism=setting.parallelism,
        buffer_timeout=f"{setting.buffer_timeout_ms}ms",
        checkpoint_interval=f"{setting.checkpoint_s}s" if setting.checkpoint_s else None,
        fault_tolerance=setting.fault_tolerance,
        checkpoint_dir=checkpoints,
    )


def _result(work: Work, setting: Setting, job: Job, meter: Meter, events: int) -> Result:
    config: dict[str, object] = {"p": setting.parallelism, **work.config()}
    if work.workload == "W2":
        config |= {"timeout": setting.buffer_timeout_ms, "checkpoint": setting.checkpoint_s, "rate": setting.rate}
    if setting.checkpoint_s:
        config["completed"] = job.status()["checkpoints"]
    return meter.result(work.workload, config, events, work.exact(), work.percentiles_ms())


@contextmanager
def pinned(cores: int) -> Iterator[None]:
    """Run threads that are started in this context on at most `cores` cores (if the system supports it)."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


def sleep(begin: float, end: float, seconds: float, on_progress: Progress) -> None:
    """Wait from the share `begin` to the share `end` of a run of `seconds`."""
    start = time.perf_counter()
    while (passed := begin + (time.perf_counter() - start) / seconds) < end:
        on_progress(passed)
        time.sleep(min(0.1, max(0.0, end - passed) * seconds))
    on_progress(end)
