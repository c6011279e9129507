"""The queue of micro-batches, and how long each has taken."""

from __future__ import annotations

from workbench.dashboard.charts.html import bar, none, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.durations import format_duration
from workbench.telemetry.batches.queue import BatchesFrame, BatchFrame
from workbench.telemetry.frames import Frame

RECENT = 5
"""Batches of which the processing time is averaged."""
_COLUMNS = ("txid", "checkpoint", "state", "records", "waited", "processing, against the interval")


def html(frame: Frame) -> str:
    """The queue in one line, and a row for each batch, the newest first.

    The bar is full where processing takes as long as the interval: then the queue grows.
    """
    batches = frame.batches
    if batches is None:
        return none("There are no batches: start the job with fault_tolerance=wb.micro_batches().")
    rows = [_row(each, batches.interval_us) for each in (*batches.open[::-1], *batches.ended[::-1])]
    return f"<p>{summary(batches)}</p><p>{verdict(batches)}</p>" + (
        table(_COLUMNS, rows) if rows else none("No batch was cut.")
    )


def summary(batches: BatchesFrame) -> str:
    """Such as ``committed up to txid 7; 1 running, 2 waiting; a batch every 1s``."""
    states = [each.state for each in batches.open]
    running = states.count("running")
    return (
        f"committed up to txid {batches.committed_txid}; {running} running, {len(states) - running} waiting; "
        f"a batch every {format_duration(batches.interval_us)}"
    )


def verdict(batches: BatchesFrame) -> str:
    """Whether batches are processed as fast as they are collected.

    Example:
        >>> done = [BatchFrame(n, n, "committed", False, 10, 0, 400) for n in (1, 2)]
        >>> verdict(BatchesFrame(1_000, 1, 2, (), tuple(done)))
        'processing takes 40 % of the interval'
    """
    done = [batch for batch in batches.ended if batch.state == "committed" and batch.processed_us is not None]
    running = [
        batch for batch in batches.open if batch.state == "running" and (batch.processed_us or 0) > batches.interval_us
    ]
    times = [batch.processed_us or 0 for batch in (*done[-RECENT:], *running)]
    if not times:
        return "no batch has been processed"
    part = sum(times) / len(times) / batches.interval_us
    at_a_time = f", {batches.max_pending} at a time" if batches.max_pending > 1 else ""
    told = f"processing takes {part:.0%} of the interval{at_a_time}".replace("%", " %")
    if part <= batches.max_pending:
        return told
    return f"<b>the queue grows</b>: {told}; a longer batch_interval or a faster operator ends that"


def _row(batch: BatchFrame, interval_us: int) -> str:
    state = f"{batch.state}, again" if batch.replayed else batch.state
    processed = ""
    if batch.processed_us is not None:
        part = batch.processed_us / interval_us
        colour = "bad" if part > 1 or batch.state == "failed" else "accent"
        processed = f"{bar(min(part, 1.0), colour)} {batch.processed_us / 1_000:,.1f} ms"
    return (
        f"<tr><td>{batch.txid}</td><td>{batch.checkpoint_id}</td><td>{state}</td><td>{batch.records:,}</td>"
        f"<td>{batch.waited_us / 1_000:,.1f} ms</td><td>{processed}</td></tr>"
    )


class BatchesPart(Part):
    """A line and a table."""

    hint = "a bar in full: as long as the interval"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Batches")
        self.models = [self._piece.div]

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame))
