"""An interruption of a running job, such as a failure and its recovery, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["canceling", "waiting", "restoring", "catching up"]
InterruptionKind = Literal["failure", "rescaling", "take-over", "restore"]


@dataclass(frozen=True, slots=True)
class PhaseFrame:
    """A phase of an interruption, in processing time; `end_us` is None while it lasts."""

    name: Phase
    start_us: int
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class InterruptionFrame:
    """The cause of an interruption, and the recovery from it.

    Attributes:
        kind: ``take-over`` by a standby process; ``restore``: the job began with a checkpoint or savepoint.
        what: what happened, such as ``"aggregate[1] failed"``.
        why: the failure's message; empty if nothing has failed.
        start_us: processing time.
        end_us: when the sources had caught up with their former positions; None before that.
        phases: in order. A restart that fails adds further phases.
        due_us: when the next attempt begins, during a restart delay.
        checkpoint: that the tasks were restored from; None: they began from the start, or it is not known yet.
        records_again: the number of records between that checkpoint and the sources' former positions; None: not known.
        records_left: how many of these are still to be read.
        state: ``lasts``, ``over``, ``failed again`` or ``rescaled`` (before it was over) or ``ended`` (with the job).
        sentence: the whole interruption in words.
        replays: False if the sources continue after the last record that they had read, without a checkpoint.
    """

    kind: InterruptionKind
    what: str
    why: str
    start_us: int
    end_us: int | None
    phases: tuple[PhaseFrame, ...]
    due_us: int | None
    checkpoint: int | None
    records_again: int | None
    records_left: int
    state: Literal["lasts", "over", "failed again", "rescaled", "ended"]
    sentence: str
    replays: bool = True
