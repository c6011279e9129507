"""State with a time to live: lists and dicts whose elements expire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any, overload

Entry = tuple[Any, int]
"""A value, and the processing time at which it was written."""


class Moment:
    """The processing time of the present step, in microseconds; shared by all state of an operator."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0


class ExpiringMap(MutableMapping[Any, Any]):
    """A dict without the entries that were last written `ttl_us` ago or earlier.

    Example:
        >>> moment = Moment()
        >>> seen = ExpiringMap(moment, ttl_us=10)
        >>> seen["a"] = 1
        >>> moment.us = 10
        >>> dict(seen)
        {}
    """

    __slots__ = ("_entries", "_moment", "_purged_us", "_ttl_us")

    def __init__(self, moment: Moment, ttl_us: int, entries: Iterable[tuple[Any, Entry]] = ()) -> None:
        self._moment = moment
        self._ttl_us = ttl_us
        self._entries: dict[Any, Entry] = dict(entries)
        self._purged_us = -1

    def entries(self) -> dict[Any, Entry]:
        """The entries that have not expired, with their times."""
        if self._moment.us != self._purged_us:
            self._purged_us = self._moment.us
            limit = self._purged_us - self._ttl_us
            old = [key for key, (_, written_us) in self._entries.items() if written_us <= limit]
            for key in old:
                del self._entries[key]
        return self._entries

    def __getitem__(self, key: Any) -> Any:
        return self.entries()[key][0]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries()[key] = (value, self._moment.us)

    def __delitem__(self, key: Any) -> None:
        del self.entries()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entries())

    def __len__(self) -> int:
        return len(self.entries())

    def __repr__(self) -> str:
        return repr(dict(self))


class ExpiringList(MutableSequence[Any]):
    """A list without the elements that were written `ttl_us` ago or earlier; those behind them move up.

    Example:
        >>> moment = Moment()
        >>> items = ExpiringList(moment, ttl_us=10)
        >>> items.append("a")
        >>> moment.us = 5
        >>> items.append("b")
        >>> moment.us = 10
        >>> list(items)
        ['b']
    """

    __slots__ = ("_entries", "_moment", "_purged_us", "_ttl_us")

    def __init__(self, moment: Moment, ttl_us: int, entries: Iterable[Entry] = ()) -> None:
        self._moment = moment
        self._ttl_us = ttl_us
        self._entries: list[Entry] = list(entries)
        self._purged_us = -1

    def entries(self) -> list[Entry]:
        """The elements that have not expired, with their times."""
        if self._moment.us != self._purged_us:
            self._purged_us = self._moment.us
            limit = self._purged_us - self._ttl_us
            self._entries = [entry for entry in self._entries if entry[1] > limit]
        return self._entries

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        found = self.entries()[at]
        return [value for value, _ in found] if isinstance(found, list) else found[0]

    def __setitem__(self, at: Any, value: Any) -> None:
        now = self._moment.us
        self.entries()[at] = [(each, now) for each in value] if isinstance(at, slice) else (value, now)

    def __delitem__(self, at: int | slice) -> None:
        del self.entries()[at]

    def __len__(self) -> int:
        return len(self.entries())

    def insert(self, index: int, value: Any) -> None:
        """Insert `value` before the element at `index`."""
        self.entries().insert(index, (value, self._moment.us))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Iterable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
