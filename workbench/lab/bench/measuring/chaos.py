"""E5: a state machine per entity while tasks fail, with and without snapshots: false alerts, dips and catching up."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

import workbench as wb
from workbench.clock import SystemClock
from workbench.compiled import warm_up
from workbench.datasets.access_log import PARTITIONS, AccessLog, watch

RATE = 60_000
SECONDS = 30
FAILURE_EVERY_S = 5.0
CHECKPOINT_INTERVAL = "1s"
RESTART_DELAY = "500ms"
PARALLELISM = 2
VIOLATION_EVERY = 50
SAMPLE_S = 0.25
PATIENCE = "60s"
LEAD_US = 2_000_000
"""From the start of the job to the first event, so that a feed's listener does not miss the beginning."""
OPERATOR = "process"


@dataclass(frozen=True, slots=True)
class Moment:
    """The observations at one moment.

    Attributes:
        seconds: since the first event.
        generated: events per second that the generator emits.
        throughput: events per second that reached the state machines since the moment before.
        false_alerts: their number so far.
    """

    seconds: float
    generated: float
    throughput: float
    false_alerts: int


@dataclass(frozen=True, slots=True)
class Chaos:
    """One run.

    Attributes:
        snapshots: whether there were checkpoints, and a log that can be read again.
        rate: events per second.
        events: number of events generated.
        alerts: number of alerts raised.
        true_alerts: number of alerts that are correct.
        false_alerts: alerts that are wrong or duplicated.
        missed_alerts: alerts that are missing.
        failures: seconds at which a task failed.
        moments: the observations.
    """

    snapshots: bool
    rate: int
    events: int
    alerts: int
    true_alerts: int
    false_alerts: int
    missed_alerts: int
    failures: tuple[float, ...]
    moments: tuple[Moment, ...] = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether it raised every true alert once, and no other."""
        return self.false_alerts == 0 and self.missed_alerts == 0

    @property
    def as_told(self) -> bool:
        """Whether it behaved as expected: exact with snapshots, and false alerts without."""
        return self.exact if self.snapshots else self.false_alerts > 0

    @property
    def title(self) -> str:
        """The configuration, in words."""
        if self.snapshots:
            return f"With snapshots every {CHECKPOINT_INTERVAL}, from a log: {self.false_alerts:,} false alerts"
        return f"Without, from a feed that keeps nothing: {self.false_alerts:,} false alerts"

    def to_json(self) -> str:
        """The result as one line of JSON."""
        outcome = asdict(self)
        del outcome["moments"]
        config = {"p": PARALLELISM, "snapshots": outcome.pop("snapshots"), "rate": outcome.pop("rate")}
        return json.dumps({"peer": "workbench", "workload": "E5", "config": config, **outcome, "checked": self.as_told})

    def describe(self) -> str:
        """One line."""
        kind = "with snapshots" if self.snapshots else "without"
        peak = max(moment.throughput for moment in self.moments)
        return (
            f"{kind:14}  {self.events:,} events, {len(self.failures)} failures: {self.true_alerts:,} true alerts, "
            f"{self.false_alerts:,} false, {self.missed_alerts:,} missed; throughput up to {peak:,.0f}/s"
        )


def run_chaos(
    *,
    snapshots: bool,
    rate: int = RATE,
    seconds: float = SECONDS,
    failure_every_s: float = FAILURE_EVERY_S,
    on_moment: Callable[[Moment], None] = lambda moment: None,
) -> Chaos:
    """Run the job, and let one of its tasks fail every few seconds.

    Args:
        snapshots: checkpoints every second, and events from a log; otherwise from a feed that stores nothing.
        rate: events per second.
        seconds: duration of the events.
        failure_every_s: time between two failures.
        on_moment: receives each observation.
    """
    warm_up()
    clock = SystemClock()
    limit = int(rate * seconds) // PARTITIONS * PARTITIONS
    log = AccessLog(rate, limit, clock.now_us() + LEAD_US, violation_every=VIOLATION_EVERY, kept=snapshots)
    at_once: list[pa.RecordBatch] = []  # appending needs no lock
    sink = wb.TableSink("alerts") if snapshots else wb.CallbackSink(at_once.append)
    job = (
        watch(log.stream())
        .sink_to(sink)
        .run(
            "bench-chaos",
            parallelism=PARALLELISM,
            checkpoint_interval=CHECKPOINT_INTERVAL if snapshots else None,
            restart=f"fixed-delay:attempts=1000000,delay={RESTART_DELAY}",
        )
    )
    truth = Counter(log.alerts())

    def alerts() -> Counter[tuple[int, int]]:
        return _pairs([job.table("alerts")]) if snapshots else _pairs(at_once)

    watched = _Watch(job, log, clock, lambda: (alerts() - truth).total())
    failures: list[float] = []
    while not job.over:
        time.sleep(SAMPLE_S)
        if clock.now_us() < log.begin_us:
            continue
        on_moment(watched.look())
        if watched.moments[-1].seconds >= failure_every_s * (len(failures) + 1) and job.state == "RUNNING":
            if watched.moments[-1].seconds > seconds - 1.0:
                continue  # the rest of the log is read without failures
            job.fail(task=f"{OPERATOR}[{len(failures) % PARALLELISM}]")
            failures.append(watched.moments[-1].seconds)
    job.wait(PATIENCE)
    found = alerts()
    return Chaos(
        snapshots=snapshots,
        rate=rate,
        events=limit,
        alerts=found.total(),
        true_alerts=truth.total(),
        false_alerts=(found - truth).total(),
        missed_alerts=(truth - found).total(),
        failures=tuple(failures),
        moments=tuple(watched.moments),
    )


class _Watch:
    """Observes a running job."""

    def __init__(self, job: wb.types.Job, log: AccessLog, clock: SystemClock, false_alerts: Callable[[], int]) -> None:
        self._job = job
        self._log = log
        self._clock = clock
        self._false_alerts = false_alerts
        self._before: dict[str, int] = {}
        self._seen_us = log.begin_us
        self.moments: list[Moment] = []

    def look(self) -> Moment:
        """An observation of the present moment."""
        now_us = self._clock.now_us()
        got = self._received()
        elapsed = (now_us - self._seen_us) / 1e6
        existing = sum(self._log.existing(partition, now_us) for partition in range(PARTITIONS))
        moment = Moment(
            seconds=round((now_us - self._log.begin_us) / 1e6, 2),
            generated=float(self._log.rate) if existing < self._log.limit else 0.0,
            throughput=round(got / max(elapsed, SAMPLE_S / 2)),
            false_alerts=self._false_alerts(),
        )
        self._seen_us = now_us
        self.moments.append(moment)
        return moment

    def _received(self) -> int:
        """Events that reached the state machines since the last observation; counters of a new attempt start at
        zero."""
        more = 0
        for row in self._job.metrics():
            name = str(row["task"])
            if name.startswith(OPERATOR):
                count = int(str(row["numRecordsIn"]))
                before = self._before.get(name, 0)
                more += count - before if count >= before else count
                self._before[name] = count
        return more


def _pairs(parts: Sequence[pa.Table | pa.RecordBatch]) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for part in parts:
        found.update(zip(part.column("entity").to_pylist(), part.column("number").to_pylist(), strict=True))
    return found


def save(runs: Sequence[Chaos], path: Path) -> Path:
    """Write the picture into an HTML file that needs no network."""
    from workbench.dashboard.measured.chaos import ChaosRun, chaos_page

    shown = [
        ChaosRun(
            title=run.title,
            label="with snapshots" if run.snapshots else "without",
            failures=run.failures,
            seconds=[moment.seconds for moment in run.moments],
            generated=[moment.generated for moment in run.moments],
            throughput=[moment.throughput for moment in run.moments],
            false_alerts=[moment.false_alerts for moment in run.moments],
        )
        for run in runs
    ]
    path.write_text(chaos_page(shown), encoding="utf-8")
    return path
