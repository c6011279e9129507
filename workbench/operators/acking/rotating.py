"""Entries that time out together: a ring of buckets instead of a timer for each entry (Storm: RotatingMap)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Entry = TypeVar("Entry")

BUCKETS = 3


class RotatingBuckets(Generic[Entry]):
    """A table by id whose entries are expelled after a time-out, at the latest after one and a half.

    New entries go to the youngest bucket. Every half of the time-out the oldest bucket is expelled as a whole. So an
    entry costs nothing until then, whatever the number of entries.

    Source: Storm, ``RotatingMap``: an entry stays for `timeout` to ``timeout * (1 + 1 / (buckets - 1))``.

    Args:
        timeout_us: microseconds, above zero.

    Example:
        >>> pending = RotatingBuckets[str](100)
        >>> pending.put(7, "a", now_us=0)
        >>> pending.expelled(99), pending.ages
        ({}, [0, 1, 0])
        >>> pending.expelled(150), len(pending)
        ({7: 'a'}, 0)
    """

    __slots__ = ("_buckets", "_interval_us", "due_us")

    def __init__(self, timeout_us: int) -> None:
        self._buckets: deque[dict[int, Entry]] = deque({} for _ in range(BUCKETS))
        self.due_us: int | None = None
        self.retime(timeout_us)

    def retime(self, timeout_us: int) -> None:
        """Change the time-out: the present interval ends as before, those that follow are of the new length."""
        self._interval_us = max(1, timeout_us // (BUCKETS - 1))

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    @property
    def ages(self) -> list[int]:
        """The number of entries in each bucket, the youngest first."""
        return [len(bucket) for bucket in self._buckets]

    def newest(self) -> Iterator[int]:
        """The ids, in the opposite order of their addition; nothing may be added or removed meanwhile."""
        for bucket in self._buckets:
            yield from reversed(bucket)

    def get(self, key: int) -> Entry | None:
        """The entry; None: there is none."""
        for bucket in self._buckets:
            if key in bucket:
                return bucket[key]
        return None

    def put(self, key: int, entry: Entry, now_us: int) -> None:
        """Add an entry that is not there yet."""
        if self.due_us is None:
            self.due_us = now_us + self._interval_us
        self._buckets[0][key] = entry

    def pop(self, key: int) -> Entry | None:
        """Remove an entry; None: there is none."""
        for bucket in self._buckets:
            if key in bucket:
                return bucket.pop(key)
        return None

    def expelled(self, now_us: int) -> dict[int, Entry]:
        """Turn the ring as often as is due; returns the entries that have timed out, oldest first."""
        gone: dict[int, Entry] = {}
        while self.due_us is not None and self.due_us <= now_us:
            gone.update(self._buckets.pop())
            self._buckets.appendleft({})
            self.due_us = self.due_us + self._interval_us if len(self) else None
        return gone
