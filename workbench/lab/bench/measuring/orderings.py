"""The orders of architectures that the documents tell, against what was measured here; and the documents' figures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from workbench.lab.bench.measuring.full_speed import ACKS, NONE, SNAPSHOTS, FullSpeed

DOCUMENTS = {
    ("E1", NONE): "Flink: 1,500,000/s on a core (A)",
    ("E1", SNAPSHOTS): "Flink, every 5 s: less than 2 % slower (A)",
    ("E1", "at-most-once"): "Storm without acks: 82,000/s on a core, p99 10 ms (A)",
    ("E1", ACKS): "Storm with acks: 4,700/s on a core, 30 to 120 ms (A)",
    ("E1", "micro-batches"): "Trident, batches of 200,000: 75,000/s on a core, p99 3,000 ms (A)",
    ("E2", NONE): "Flink: 720,000/s on a core (A)",
    ("E2", SNAPSHOTS): "Flink: 690,000/s on a core (A)",
    ("E2", ACKS): "Storm with acks: 2,600/s on a core (A)",
    ("E2", "changelog"): "Samza: 1,080,000/s for a store with a changelog, 1,100,000/s without (VLDB 2017)",
    ("E2", "transactions"): "MillWheel: 33.7 ms with strong productions, 3.6 ms without (VLDB 2013)",
}
"""By work and architecture, or what its name begins with: what the documents measured, on other machines."""
SNAPSHOTS_LEAVE = 0.96
SHARED = 10
"""Records in one write cost at most this part of the calls of a write for each."""
_BATCHES = "micro-batches"
_SINGLE, _COALESCED = "transactions", "transactions:coalesce"
_RECORD_AT_A_TIME = (SNAPSHOTS, "stop-the-world", "changelog", "at-most-once", "transactions")


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order that the documents tell, for one work.

    Attributes:
        work: ``"E1"`` or ``"E2"``.
        told: by the documents.
        holds: whether it is the order here.
        found: what was measured.
        why: what was measured of the reason, if it does not hold; empty if it does.
    """

    work: str
    told: str
    holds: bool
    found: str
    why: str = ""

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"peer": "workbench", "workload": "orders of the documents", **asdict(self)})

    def describe(self) -> str:
        """One line."""
        verdict = "as told" if self.holds else "NOT as told"
        return f"{self.work}, {verdict}: {self.told}. {self.found}.{self.why and ' '}{self.why}"


def documented(speed: FullSpeed) -> str:
    """What the documents measured of this architecture and work; empty if nothing.

    Example:
        >>> documented(FullSpeed("E1", "acks:granularity=record", 1, 1, None, None, None, 0.0, True))
        'Storm with acks: 4,700/s on a core, 30 to 120 ms (A)'
    """
    name = speed.architecture.partition(":")[0]
    if speed.architecture == _SINGLE or name == "changelog" or name == _BATCHES:
        return DOCUMENTS.get((speed.work, name), "")
    return DOCUMENTS.get((speed.work, speed.architecture), "")


def orderings(speeds: Sequence[FullSpeed]) -> Iterator[Ordering]:
    """Compare the runs with the orders of the documents, for each work; those of which nothing was measured are left
    out.

    Args:
        speeds: runs of some works and architectures.
    """
    for work in dict.fromkeys(speed.work for speed in speeds):
        runs = [speed for speed in speeds if speed.work == work]
        yield from _acks_cost_most(work, runs)
        yield from _batches_are_late(work, runs)
        yield from _transactions_call_the_store(work, runs)
        yield from _snapshots_cost_little(work, runs)


def _acks_cost_most(work: str, runs: Sequence[FullSpeed]) -> Iterator[Ordering]:
    acks = _one(runs, ACKS)
    others = [run for run in runs if run.architecture.partition(":")[0] in _RECORD_AT_A_TIME]
    if acks is None or not others:
        return
    slower = [run for run in others if run.eps_cpu_s < acks.eps_cpu_s]
    why = "; ".join(
        f"{run.architecture} takes {run.cpu_us:,.0f} µs of a core for a record, with {run.messages:.1f} calls of its "
        f"store, an acknowledged record {acks.cpu_us:,.0f} µs, with {acks.messages:.1f} messages"
        for run in slower
    )
    coalesced = next((run for run in others if run.architecture.startswith(_COALESCED)), None)
    if coalesced is not None and any(run.architecture == _SINGLE for run in slower):
        why += f"; where records share a write, it is {coalesced.cpu_us:,.1f} µs, so the calls cost it"
    found = f"{acks.eps_cpu_s:,} records per CPU second" + ("" if acks.part is None else f", {acks.part:.3%} of none")
    if slower:
        found += "; less: " + ", ".join(f"{run.architecture} {run.eps_cpu_s:,}" for run in slower)
    told = "acknowledging each record costs the most throughput of what works record by record"
    yield Ordering(work, told, not slower, found, why and f"{why}.")


def _batches_are_late(work: str, runs: Sequence[FullSpeed]) -> Iterator[Ordering]:
    known = {run.architecture: run.p50_ms for run in runs if run.p50_ms is not None}
    batches = next((name for name in known if name.startswith(_BATCHES)), None)
    if batches is None or len(known) < 2:
        return
    others = sorted((ms, name) for name, ms in known.items() if name != batches)
    highest, name = others[-1]
    later = [f"{other} ({ms:,.0f} ms)" for ms, other in others if ms > known[batches]]
    found = f"A median of {known[batches]:,.0f} ms; the highest of the others is {highest:,.0f} ms, {name}"
    why = f"At full speed records queue before the task that limits it: {', '.join(later)}." if later else ""
    yield Ordering(work, "micro-batches have the highest latency", not later, found, why)


def _transactions_call_the_store(work: str, runs: Sequence[FullSpeed]) -> Iterator[Ordering]:
    single = _one(runs, _SINGLE)
    coalesced = next((run for run in runs if run.architecture.startswith(_COALESCED)), None)
    if single is None or coalesced is None:
        return
    holds = single.messages >= 1 and coalesced.messages * SHARED < single.messages
    yield Ordering(
        work,
        "transactions call the store for each record, and far less where records share a write",
        holds,
        f"{single.messages:.2f} and {coalesced.messages:.4f} calls a record, {single.cpu_us:,.0f} and "
        f"{coalesced.cpu_us:,.1f} µs of a core",
        "" if holds else "The records came in batches of another size than the writes.",
    )


def _snapshots_cost_little(work: str, runs: Sequence[FullSpeed]) -> Iterator[Ordering]:
    kept = [run.eps_cpu_s for run in runs if run.architecture == SNAPSHOTS]
    alone = [run.eps_cpu_s for run in runs if run.architecture == NONE]
    if not kept or not alone:
        return
    part = statistics.median(kept) / max(statistics.median(alone), 1)
    holds = part >= SNAPSHOTS_LEAVE
    yield Ordering(
        work,
        "snapshots stay within 4 % of no mechanism",
        holds,
        f"{part:.1%} per CPU second, medians of {len(kept)} and {len(alone)} runs",
        "" if holds else f"The runs differ by {_spread(kept):.0%} and {_spread(alone):.0%} among themselves.",
    )


def _spread(found: Sequence[int]) -> float:
    return (max(found) - min(found)) / max(statistics.median(found), 1)


def _one(runs: Sequence[FullSpeed], name: str) -> FullSpeed | None:
    return next((run for run in runs if run.architecture == name), None)
