"""The result of a soak: faults, recovery times, resources, and failed checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from workbench.lab.soak.resources import Held

FAILURES = ("task fails", "slot fails", "TaskManager fails", "coordinator fails", "failure during recovery")
"""Kinds of faults after which the job restarts from a checkpoint."""


@dataclass(frozen=True, slots=True)
class Suffered:
    """A fault and its recovery.

    Attributes:
        at_s: since the job began.
        kind: of fault.
        what: its target, in words.
        recovery_s: from the fault to the record at the sink that ended the longest silence after it.
    """

    at_s: float
    kind: str
    what: str
    recovery_s: float

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.kind:24}{self.recovery_s * 1_000:8,.0f} ms  {self.what}"


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long recoveries took.

    Attributes:
        count: number of faults.
        median_ms, p99_ms, max_ms: from the fault to the next record at the sink.
    """

    count: int
    median_ms: int
    p99_ms: int
    max_ms: int

    @classmethod
    def of(cls, faults: Sequence[Suffered]) -> Recovery:
        """The recoveries of these faults; all zero without any.

        Example:
            >>> Recovery.of([Suffered(0.0, "stall", "totals", seconds) for seconds in (1.0, 1.2, 1.1)])
            Recovery(count=3, median_ms=1100, p99_ms=1200, max_ms=1200)
        """
        if not faults:
            return cls(0, 0, 0, 0)
        took_ms = np.array([fault.recovery_s * 1_000 for fault in faults])
        median, p99 = np.percentile(took_ms, (50, 99), method="higher")
        return cls(len(faults), round(median), round(p99), round(took_ms.max()))


@dataclass(frozen=True, slots=True)
class Soaked:
    """One run.

    Attributes:
        seconds: duration from the job's start to its end.
        rate: requested records per second.
        seed: of the faults.
        records: number of records read; those that a recovery reads again count once.
        checkpoints: the number of the last one.
        looks: how often everything committed was compared with the expectation.
        faults: in order.
        before, most, after: resources before the job, the maximum while it ran, and after its end.
        growth: of memory after the warm-up, at equal parallelism and without what allocators keep for later, as a
            share; None if there was nothing to compare.
        violations: the failed checks.
    """

    seconds: float
    rate: float
    seed: int
    records: int
    checkpoints: int
    looks: int
    faults: tuple[Suffered, ...] = field(repr=False)
    before: Held
    most: Held
    after: Held
    growth: float | None
    violations: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.violations

    def of_failures(self) -> Recovery:
        """Of the faults after which the job restarted."""
        return Recovery.of([fault for fault in self.faults if fault.kind in FAILURES])

    def by_kind(self) -> dict[str, Recovery]:
        """By kind of fault."""
        kinds = sorted({fault.kind for fault in self.faults})
        return {kind: Recovery.of([fault for fault in self.faults if fault.kind == kind]) for kind in kinds}

    def to_json(self) -> str:
        """The outcome as one line of JSON."""
        outcome = asdict(self) | {
            "faults": len(self.faults),
            "recovery": asdict(self.of_failures()),
            "by_kind": {kind: asdict(recovery) for kind, recovery in self.by_kind().items()},
            "ok": self.ok,
        }
        return json.dumps({"peer": "workbench", "workload": "soak", **outcome})

    def describe(self) -> Iterator[str]:
        """A few lines."""
        failures = self.of_failures()
        yield f"{self.seconds:,.0f} s, {self.records:,} records, {self.checkpoints:,} checkpoints, {self.looks:,} looks"
        for kind, recovery in self.by_kind().items():
            yield (
                f"  {kind:24}{recovery.count:4}   median {recovery.median_ms:6,} ms   p99 {recovery.p99_ms:6,} ms"
                f"   most {recovery.max_ms:6,} ms"
            )
        yield (
            f"{failures.count} failures: records were emitted again after {failures.median_ms:,} ms (median), "
            f"{failures.p99_ms:,} ms (p99), {failures.max_ms:,} ms at most"
        )
        grown = "not comparable" if self.growth is None else f"{self.growth:+.1%} after the warm-up"
        yield (
            f"memory {grown}, at most {self.most.rss_mb:,.0f} MB; before, at most, after:"
            f" threads {self.before.threads}, {self.most.threads}, {self.after.threads};"
            f" open files {self.before.files}, {self.most.files}, {self.after.files};"
            f" sockets {self.before.sockets}, {self.most.sockets}, {self.after.sockets}"
        )
        for violation in self.violations:
            yield f"VIOLATION: {violation}"
        yield f"{len(self.violations)} violations" if self.violations else "All invariants were kept."
