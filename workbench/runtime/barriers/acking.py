"""How records are acknowledged: the knobs of the architecture ``acks``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acking:
    """The knobs of record acknowledgements.

    Attributes:
        ackers: number of acker tasks.
        single: each record is a root of its own; otherwise each batch that a source reads.
        message_timeout_us: a root that is not acknowledged in this time is replayed.
        max_pending: roots of one source subtask that may be pending; it reads nothing while there are as many. None: no
            limit.

    Example:
        >>> Acking(ackers=1, single=False, message_timeout_us=30_000_000, max_pending=None).ackers
        1
    """

    ackers: int
    single: bool
    message_timeout_us: int
    max_pending: int | None
