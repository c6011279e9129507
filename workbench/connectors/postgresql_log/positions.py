"""Positions in the log, and which transactions a copy of the table has seen already."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LSN = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
_SNAPSHOT = re.compile(r"([0-9]{1,20}):([0-9]{1,20}):((?:[0-9]{1,20})?(?:,[0-9]{1,20})*)")
_EPOCH = 1 << 32


def lsn_of(text: str) -> int:
    """A place in the log from PostgreSQL's notation.

    Raises:
        ValueError: not such a text.

    Example:
        >>> lsn_of("16/B374D848")
        97500059720
    """
    if (found := _LSN.fullmatch(text)) is None:
        raise ValueError(f"{text[:40]!r} is no place in a log")
    return int(found[1], 16) << 32 | int(found[2], 16)


def lsn_text(lsn: int) -> str:
    """PostgreSQL's notation of a place in the log.

    Example:
        >>> lsn_text(97500059720)
        '16/B374D848'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True, slots=True)
class Position:
    """How far the log has been read.

    Attributes:
        done: everything before it belongs to transactions that were read as a whole.
        commit: where the transaction that is being read commits; 0: none is.
        index: how many of its changes were read.
    """

    done: int
    commit: int = 0
    index: int = 0

    def __str__(self) -> str:
        return lsn_text(self.done) + (f" and {self.index} changes" if self.index else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """The transactions that one query has seen: PostgreSQL's ``pg_snapshot``.

    Attributes:
        low: all transactions before it are over.
        high: no transaction from it on had begun.
        running: those between the two that were not over.
    """

    low: int
    high: int
    running: frozenset[int]

    @staticmethod
    def parsed(text: str) -> Seen:
        """From PostgreSQL's notation.

        Raises:
            ValueError: not such a text.

        Example:
            >>> seen = Seen.parsed("10:14:11,13")
            >>> [xid for xid in range(9, 16) if seen.has(xid)]
            [9, 10, 12]
        """
        if (found := _SNAPSHOT.fullmatch(text)) is None:
            raise ValueError(f"{text[:40]!r} is no snapshot")
        running = frozenset(int(each) for each in found[3].split(",") if each)
        return Seen(int(found[1]), int(found[2]), running)

    def __str__(self) -> str:
        return f"{self.low}:{self.high}:{','.join(map(str, sorted(self.running)))}"

    def has(self, xid: int) -> bool:
        """Whether the query saw what a committed transaction did.

        Args:
            xid: its id, or the lower 32 bits of it, as the log has them: those nearest to the snapshot are meant.
        """
        if xid < _EPOCH <= self.high:
            xid |= self.high & ~(_EPOCH - 1)
            if xid > self.high + _EPOCH // 2:
                xid -= _EPOCH
            elif xid < self.high - _EPOCH // 2:
                xid += _EPOCH
        return xid < self.low or (xid < self.high and xid not in self.running)
