"""What a Redis server tells of a stream, and how many of its entries lie behind a position: for lags and lost entries.

The server counts the entries that were ever added, and those that are there, but not those before an ID. Where nothing
was deleted in the middle of the stream, the count behind a position follows from these numbers and from what was read.

Source: Redis, XINFO STREAM, and how XINFO GROUPS counts the lag of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.connectors.redis.entries import BEGINNING, Id, parsed_id


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The answer to XINFO STREAM.

    Attributes:
        length: how many entries are there.
        last: the ID of the last entry that was added.
        first: the ID of the first entry that is there; None: there is none.
        deleted: the greatest ID that was deleted by name (XDEL); trimming does not count.
        added: how many entries were ever added; None: the server does not count them (before Redis 7).
    """

    length: int
    last: Id
    first: Id | None
    deleted: Id
    added: int | None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> StreamFacts:
        """The facts in an answer of the client."""
        first = info["first-entry"]
        return cls(
            info["length"],
            parsed_id(info["last-generated-id"].decode()),
            None if first is None else parsed_id(first[0].decode()),
            parsed_id(info["max-deleted-entry-id"].decode()) if "max-deleted-entry-id" in info else BEGINNING,
            info.get("entries-added"),
        )

    def behind(self, position: Id, counted: int | None) -> int | None:
        """How many entries that were ever added have an ID up to a position; None: not known.

        Args:
            position: an ID.
            counted: the same, from an earlier answer and what was read since.

        Example:
            >>> facts = StreamFacts(length=2, last=(9, 0), first=(8, 0), deleted=(0, 0), added=4)
            >>> [facts.behind(position, None) for position in [(7, 0), (8, 0), (9, 0)]]
            [2, 3, 4]
            >>> StreamFacts(length=3, last=(9, 0), first=(6, 0), deleted=(8, 0), added=4).behind((7, 0), 2) is None
            True
        """
        if self.added is None or position >= self.last:
            return self.added
        gone = self.added - self.length
        if self.first is None or position < self.first:
            return gone
        if position < self.deleted:
            return None  # how many entries after it were deleted is not told
        return gone + 1 if position == self.first else counted

    def lag(self, position: Id, counted: int | None) -> int | None:
        """How many entries after a position are there; None: not known.

        Args:
            position: an ID.
            counted: how many entries lie behind it.
        """
        if position >= self.last:
            return 0
        return None if self.added is None or counted is None else max(self.added - counted, 0)

    def lost(self, position: Id, counted: int | None) -> int:
        """How many entries after a position were trimmed, or deleted from the stream's beginning; 0: none is known.

        Args:
            position: an ID.
            counted: how many entries lie behind it.

        Example:
            >>> StreamFacts(length=2, last=(9, 0), first=(8, 0), deleted=(0, 0), added=4).lost((6, 0), 1)
            1
        """
        if self.added is None or counted is None or position >= self.last:
            return 0
        if self.first is not None and self.first <= position:
            return 0
        return max(self.added - self.length - counted, 0)
