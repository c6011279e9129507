"""The facts that a Redis server reports about a stream, from which lags and lost entries are computed.

The server counts all added entries and the existing ones, but not the entries before an ID. If no entry was deleted in
the middle of the stream, the count up to a position follows from these numbers and from the entries read.

Source: Redis, XINFO STREAM, and how XINFO GROUPS counts the lag of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.connectors.redis.entry_ids import BEGINNING, Id, parsed_id, written_id


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a stream at some time.

    Attributes:
        last: the ID of the last added entry.
        added: the number of entries ever added; 0: the server does not count them.
    """

    last: Id
    added: int


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The answer to XINFO STREAM.

    Attributes:
        length: the number of existing entries.
        last: the ID of the last added entry.
        first: the ID of the first existing entry, or None.
        deleted: the greatest ID that was deleted by XDEL, not by trimming.
        added: the number of entries ever added; None: the server does not count them (before Redis 7).
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

    @property
    def end(self) -> StreamEnd:
        """The end of the stream now."""
        return StreamEnd(self.last, self.added or 0)

    def behind(self, position: Id, counted: int | None) -> int | None:
        """The number of entries ever added with an ID up to a position, or None if unknown.

        Args:
            position: an ID.
            counted: the same number, from an earlier answer and the entries read since.

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
            return None  # the number of deleted entries after it is unknown
        return gone + 1 if position == self.first else counted

    def lag(self, position: Id, counted: int | None) -> int | None:
        """The number of existing entries after a position, or None if unknown.

        Args:
            position: an ID.
            counted: how many entries lie behind it.
        """
        if position >= self.last:
            return 0
        return None if self.added is None or counted is None else max(self.added - counted, 0)

    def lost(self, position: Id, counted: int | None) -> int:
        """The number of entries after a position that were trimmed, or deleted from the stream's beginning, as far as
        known.

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

    def replaced(self, position: Id, counted: int | None, known: StreamEnd | None) -> str:
        """Why this cannot be the stream that a position is of, if entries are lost by that; empty: no reason is known.

        A stream that was begun again with greater IDs is read on, unless entries of the former one were not read.

        Args:
            position: the ID of the last entry that was read.
            counted: how many entries lie behind it.
            known: the stream's end at an earlier time.

        Example:
            >>> facts = StreamFacts(length=2, last=(9, 0), first=(8, 0), deleted=(0, 0), added=2)
            >>> facts.replaced((12, 0), 2, None)
            'it now ends at 9-0'
            >>> facts.replaced((8, 0), 3, None)
            'it has had 2 entries, but 3 up to the position'
            >>> facts.replaced((7, 0), 3, None)
            ''
            >>> facts.replaced((6, 0), 3, StreamEnd((7, 0), 4))
            'the former one ended at 7-0'
        """
        if position > self.last:
            return f"it now ends at {written_id(self.last)}"
        begins_later = self.first is None or self.first > position
        if self.added is not None and counted is not None and self.added < counted and not begins_later:
            return f"it has had {self.added:,} entries, but {counted:,} up to the position"
        if known is None or known.last <= position or not self._is_another(known):
            return ""
        return f"the former one ended at {written_id(known.last)}"

    def _is_another(self, known: StreamEnd) -> bool:
        """Whether a stream with such an end cannot have become this one."""
        if self.last < known.last:
            return True
        if self.added is None or not known.added:
            return False
        newer = self.added - known.added
        is_newer = self.first is not None and self.first > known.last
        return newer < 0 or (is_newer and self.length > newer)

    def must_have(self, position: Id) -> bool:
        """Whether an entry that was read must still exist.

        Example:
            >>> facts = StreamFacts(length=2, last=(9, 0), first=(6, 0), deleted=(7, 0), added=4)
            >>> [facts.must_have(position) for position in [(5, 0), (7, 0), (8, 0)]]
            [False, False, True]
        """
        was_trimmed = self.first is None or position < self.first
        return self.added is not None and not was_trimmed and self.deleted < position
