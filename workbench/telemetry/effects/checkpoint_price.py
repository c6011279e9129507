"""The cost of checkpoints: the time in which a task does nothing else, and the latency while one is taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.elements import Int64s
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.checkpoints.coordinator import HISTORY
from workbench.runtime.tasks.kept_markers import spread
from workbench.runtime.tasks.task import Task

HORIZON_US = 20_000_000
"""Older checkpoints and latency markers do not count; a task keeps its markers for about this long."""
ENOUGH = 240
"""The minimum number of travel times on each side of a comparison of percentiles."""


@dataclass(frozen=True, slots=True)
class CheckpointPrice:
    """The price of the checkpoints of the last seconds.

    Attributes:
        checkpoints: their number.
        share: of the time of the task that they delayed most, 0 to 1: the synchronous parts, and alignment if it
            blocks; for a source that they stop, the time until they were complete.
        task: its name.
        p99_ms: latency while none was in progress; None if there are too few markers.
        p99_inside_ms: latency of the markers that travelled while one was in progress.
    """

    checkpoints: int
    share: float
    task: str
    p99_ms: float | None = None
    p99_inside_ms: float | None = None

    @property
    def sentence(self) -> str:
        """The price in words.

        Example:
            >>> CheckpointPrice(12, 0.0083, "sum[0]", 9.0, 12.2).sentence
            'costs 0.8 % of the time of sum[0] and raises p99 from 9.0 to 12 ms while one is taken'
        """
        percent = f"{self.share * 100:.{1 if self.share < 0.095 else 0}f}"
        told = f"costs {'less than 0.1' if percent == '0.0' else percent} % of the time of {self.task}"
        if self.p99_ms is None or self.p99_inside_ms is None:
            return told
        if self.p99_inside_ms - self.p99_ms < max(0.1, 0.1 * self.p99_ms):
            return f"{told}; p99 is no higher while one is taken"
        low, high = (f"{ms:,.{1 if ms < 9.95 else 0}f}" for ms in (self.p99_ms, self.p99_inside_ms))
        return f"{told} and raises p99 from {low} to {high} ms while one is taken"


def checkpoint_price(
    records: Iterable[CheckpointRecord],
    ends: Sequence[Task],
    sources: Collection[str],
    now_us: int,
    since_us: int,
    recent_us: int = HORIZON_US,
) -> CheckpointPrice | None:
    """The price of checkpoints since a change of the settings; None before one is complete.

    Args:
        records: the history of checkpoints.
        ends: the tasks at which latency is measured: those without receivers.
        sources: the names of the source tasks.
        now_us: processing time.
        since_us: what was before does not count.
        recent_us: percentiles are over this time, as those that are shown beside them are; where it has too few
            checkpoints for that, over `HORIZON_US`.
    """
    from_us, kept = max(since_us, now_us - HORIZON_US), tuple(records)
    if len(kept) >= HISTORY:  # earlier ones are forgotten
        from_us = max(from_us, kept[0].triggered_us)
    found = [record for record in kept if record.triggered_us >= from_us]
    done = [record for record in found if record.state == "COMPLETED"]
    if not done or now_us <= from_us:
        return None
    spent: dict[str, int] = {}
    for record in done:
        policy = policy_of(record.mode)
        for name, ack in record.acknowledgements.copy().items():
            held = ack.alignment_us if policy.aligned and not ack.unaligned else 0
            if policy.stops_sources and name in sources and record.ended_us is not None:
                held = max(held, record.ended_us - ack.taken_us)
            spent[name] = spent.get(name, 0) + ack.sync_us + held
    task = max(spent, key=lambda name: spent[name])
    spans = [(record.triggered_us, record.ended_us or now_us) for record in found]
    share = spent[task] / (now_us - from_us)
    for span_us in (recent_us, HORIZON_US):
        sides = _split([_markers(end, from_us, now_us - span_us) for end in ends], spans)
        if min(map(len, sides)) >= ENOUGH:
            p99_inside, p99 = (float(np.percentile(each, 99)) / 1_000 for each in sides)
            return CheckpointPrice(len(done), share, task, p99, p99_inside)
    return CheckpointPrice(len(done), share, task)


def _markers(task: Task, from_us: int, since_us: int) -> tuple[Int64s, Int64s]:
    """When the records became due for which its markers stand that were sent from `from_us` on and have arrived since
    `since_us`, and how long they travelled."""
    arrived, travelled = spread(*task.markers.newest())
    sent = arrived - travelled
    counts = (sent >= from_us) & (arrived > since_us)
    return sent[counts], travelled[counts]


def _split(markers: Sequence[tuple[Int64s, Int64s]], spans: Sequence[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """The travel times of the markers that travelled within one of these spans, and those of the others."""
    sent = np.concatenate([each[0] for each in markers]) if markers else np.empty(0, np.int64)
    travelled = np.concatenate([each[1] for each in markers]) if markers else sent
    within = np.zeros(len(sent), np.bool_)
    for start_us, end_us in spans:
        within |= (sent <= end_us) & (sent + travelled >= start_us)
    return travelled[within], travelled[~within]
