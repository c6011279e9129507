"""An interruption of a running job, such as a failure and its recovery, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["canceling", "waiting", "restoring", "catching up"]
InterruptionKind = Literal["failure", "rescaling", "take-over", "restore"]


@dataclass(frozen=True, slots=True)
class PhaseFrame:
    """A part of an interruption; processing times, `end_us` is None while it lasts."""

    name: Phase
    start_us: int
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class InterruptionFrame:
    """Why a job did not go on as before, and how it came back.

    Attributes:
        kind: ``take-over`` by a standby process; ``restore``: the job began with a checkpoint or savepoint.
        what: has happened, such as ``"aggregate[1] failed"``.
        why: the failure's message; empty where nothing has failed.
        start_us: processing time.
        end_us: when the sources had read again what they had read before; None before that.
        phases: in order. A restart that fails adds further ones.
        due_us: when the next attempt begins, while it is waited for.
        checkpoint: from which the tasks went on; None: from the beginning, or not known yet.
        records_again: records between that checkpoint and what the sources had read, counted; None where not known.
        records_left: how many of these are still to be read.
        state: ``lasts``, ``over``, ``failed again`` (before it was over) or ``ended`` (the job did).
        sentence: all of it in words.
        replays: False where the sources continue after the last record that they had read, without a checkpoint.
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
    state: Literal["lasts", "over", "failed again", "ended"]
    sentence: str
    replays: bool = True
