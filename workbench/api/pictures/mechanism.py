"""The work of a job for its fault tolerance, in addition to its records: messages, bytes, repetitions and stalls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import Frame

_WAITING = ("collecting", "waiting")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The costs of an architecture, up to one moment.

    Attributes:
        messages: barriers, acknowledgements to and from ackers in the last attempt, and calls of a store.
        bytes: of checkpoints, and of transactions.
        records_again: that sources read again after failures or time-outs.
        recovery_ms: until the sources were where they had been, on average; None: nothing has failed.
        stall_ms: how long checkpoints have kept the sources from reading, in total.
        timed_out: roots that were replayed because they were not acknowledged in time.
        queued: micro-batches that wait.
    """

    messages: int
    bytes: int
    records_again: int
    recovery_ms: float | None
    stall_ms: float
    timed_out: int
    queued: int


def mechanism_of(frame: Frame, checkpoints: Iterable[CheckpointFrame] | None = None) -> Mechanism:
    """The costs up to a frame.

    Args:
        frame: of the job.
        checkpoints: all of them; None: those that the frame has, which are the last 50.
    """
    taken = list(frame.checkpoints if checkpoints is None else checkpoints)
    acks, stored, batches = frame.acks, frame.transactions, frame.batches
    failures = [one for one in frame.interruptions if one.kind == "failure"]
    recovered = [(one.end_us - one.start_us) / 1_000 for one in failures if one.end_us is not None]
    ackers = [vertex.metrics for vertex in frame.vertices if acks is not None and vertex.id == acks.vertex]
    to_ackers = sum(int(found.get("numRecordsIn") or 0) for found in ackers)
    return Mechanism(
        messages=len(taken) * len(frame.channels)
        + to_ackers
        + (0 if acks is None else acks.total("acked"))
        + (0 if stored is None else stored.round_trips),
        bytes=sum(one.size_bytes or 0 for one in taken) + (0 if stored is None else stored.written_bytes),
        records_again=sum(one.records_again or 0 for one in failures)
        + (0 if acks is None else acks.total("replayed_records")),
        recovery_ms=sum(recovered) / len(recovered) if recovered else None,
        stall_ms=sum(one.stall_ms or 0 for one in taken),
        timed_out=0 if acks is None else acks.total("failed"),
        queued=0 if batches is None else sum(each.state in _WAITING for each in batches.open),
    )
