"""A frame of the queue of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.runtime.batches.queue import Batch, BatchQueue
from workbench.runtime.job.master import Master

SHOWN = 20
"""The maximum number of batches in a frame that have ended."""


@dataclass(frozen=True, slots=True)
class BatchFrame:
    """One batch.

    Attributes:
        txid: its number.
        checkpoint_id: of the checkpoint that commits it.
        state: of its processing.
        replayed: whether it is processed again.
        records: the number of records that the sources have collected for it.
        waited_us: from its cut to its release, or until now.
        processed_us: from its release to its end, or until now; None: it has not been released.
    """

    txid: int
    checkpoint_id: int
    state: Literal["collecting", "waiting", "running", "committed", "failed"]
    replayed: bool
    records: int
    waited_us: int
    processed_us: int | None


@dataclass(frozen=True, slots=True)
class BatchesFrame:
    """The queue of batches.

    Attributes:
        interval_us: how long records are collected for a batch.
        max_pending: the maximum number of batches that are processed at the same time.
        committed_txid: the number of the last committed batch; 0: none.
        open: batches that have not been committed, oldest first.
        ended: the last batches that were committed or failed, oldest first.
    """

    interval_us: int
    max_pending: int
    committed_txid: int
    open: tuple[BatchFrame, ...]
    ended: tuple[BatchFrame, ...]


def batches_frame(master: Master, now_us: int) -> BatchesFrame | None:
    """A frame of the batches; None if there are none."""
    queue, batched = master.services.parts, master.settings.policy.batches
    if not isinstance(queue, BatchQueue) or batched is None:
        return None
    return BatchesFrame(
        batched.interval_us,
        batched.max_pending,
        queue.committed_txid,
        tuple(_frame(batch, now_us) for batch in queue.open.copy()),
        tuple(_frame(batch, now_us) for batch in list(queue.ended.copy())[-SHOWN:]),
    )


def _frame(batch: Batch, now_us: int) -> BatchFrame:
    started_us, until_us = batch.started_us, batch.ended_us or now_us
    return BatchFrame(
        batch.txid,
        batch.checkpoint_id,
        batch.state,
        batch.replayed,
        batch.records,
        max(0, (started_us or until_us) - batch.opened_us),
        None if started_us is None else max(0, until_us - started_us),
    )
