"""Joins the lines of comma-separated text that belong to one record, because a quoted value has line ends.

Some lines may not be records, and then a quote may be stray. A quote is taken for the beginning of a value with line
ends if a later line has the quote that ends it; otherwise its line stands alone, and the next one begins a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_END = ord("\n")
_HELD_MAX = 1 << 24
"""Bytes that are searched for the end of a quoted value."""


class QuotedLines:
    """Joins lines as they are read. Each line remains one item, so that items can be counted as lines: the first line
    of a record is replaced by the record, and the others are empty.

    Attributes:
        delimiter: one character, between values.

    Example:
        >>> lines = QuotedLines(",")
        >>> lines.add([b'1,"ann', b'of', b'x"', b'2,"bob']), lines.end()
        ([b'1,"ann\\nof\\nx"', b'', b''], [b'2,"bob'])
    """

    def __init__(self, delimiter: str) -> None:
        mark = re.escape(delimiter.encode())
        quoted = rb'"(?:[^"]++|"")*+'
        value = rb"(?:" + quoted + rb'"[^' + mark + rb"]*+|(?!\")[^" + mark + rb"]*+)"
        self._open = re.compile(rb"(?:" + value + mark + rb")*+" + quoted)
        value = rb"(?:" + quoted + rb'"\r?|[^"' + mark + rb"]*+)"
        self._whole = re.compile(value + rb"(?:" + mark + value + rb")*+")
        self._inside = re.compile(rb'(?:[^"]++|"")*+')
        self.delimiter = delimiter
        self._mark = delimiter.encode()
        self._held: list[bytes] = []

    def add(self, lines: Sequence[bytes]) -> list[bytes]:
        """The items for the lines whose record is known by now.

        Args:
            lines: the next ones, without their ends.
        """
        if not self._held and self._are_closed(b"\n".join(lines)):
            return list(lines)
        self._held += lines
        return self._items(ended=False)

    def end(self) -> list[bytes]:
        """The items for the remaining lines; no further line follows."""
        return self._items(ended=True)

    def is_open(self, record: bytes) -> bool:
        """Whether a record ends within a quoted value."""
        return self._open.fullmatch(record) is not None

    def is_whole(self, record: bytes) -> bool:
        """Whether each quote in a record begins or ends a value, or is doubled within one."""
        return self._whole.fullmatch(record) is not None

    def _are_closed(self, text: bytes) -> bool:
        """Whether each quote begins or ends a value, or is doubled within one, and no value has a line end."""
        letters = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(letters == ord('"'))
        if not len(quotes):
            return True
        if len(quotes) % 2:
            return False
        begins, ends = quotes[::2], quotes[1::2]
        around = np.concatenate(([_END], letters, [_END]))
        before, after = around[begins], around[ends + 2]
        doubled = begins[1:] == ends[:-1] + 1
        mark = self._mark[0]
        is_begin = (before == mark) | (before == _END)
        is_end = (after == mark) | (after == _END) | (after == ord("\r"))
        is_begin[1:] |= doubled
        is_end[:-1] |= doubled
        lines = np.flatnonzero(letters == _END)
        return bool(
            is_begin.all() and is_end.all() and (np.searchsorted(lines, begins) == np.searchsorted(lines, ends)).all()
        )

    def _items(self, *, ended: bool) -> list[bytes]:
        items: list[bytes] = []
        lines, at = self._held, 0
        for begin in [number for number, line in enumerate(lines) if b'"' in line]:
            if begin < at or not self.is_open(lines[begin]):
                continue
            items += lines[at:begin]
            at = begin
            last = self._end_of(begin)
            if last is None and not ended and sum(map(len, lines[begin:])) <= _HELD_MAX:
                break
            last = begin if last is None else last
            items.append(b"\n".join(lines[begin : last + 1]))
            items += [b""] * (last - begin)
            at = last + 1
        else:
            items += lines[at:]
            at = len(lines)
        self._held = lines[at:]
        return items

    def _end_of(self, begin: int) -> int | None:
        """The last line of the record that begins with an open quote in line `begin`; None: no line ends it."""
        for number in range(begin + 1, len(self._held)):
            line = self._held[number]
            if b'"' not in line:
                continue
            inside = self._inside.match(line)
            assert inside is not None, "it matches nothing, too"
            end = inside.end()
            if end == len(line):
                continue
            rest = line[end + 1 :].rstrip(b"\r")
            if rest and not rest.startswith(self._mark):
                begins = not end or line[:end].endswith(self._mark)
                return begin if begins else number  # a quote that begins a value: the earlier one is stray
            if not rest or not self.is_open(rest.removeprefix(self._mark)):
                return number
        return None
