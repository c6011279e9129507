"""How much memory the bytes of an Avro message may take, by its schema.

Outside arrays and maps, a schema has so many values as it has fields. Within them, a message decides how many there
are, and one byte may stand for a whole record.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from workbench.connectors.files.record_limit import record_bytes, too_large

_VALUE, _MAP_ENTRY, _RECORD, _FIELD = 64, 160, 232, 48
"""Bytes of memory of Python's objects, at most: of a value without its content, and of what contains others."""
_LETTER = 4
"""Bytes of memory for each byte of text."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Values of a type in memory.

    Attributes:
        reads: how often a value is read from at the least; each time, one byte or more.
        fixed: bytes that a value takes whatever the message says.
        each: bytes that it takes further for each time that it is read from.
    """

    reads: int
    fixed: int
    each: float

    @property
    def as_item(self) -> float:
        """Bytes for each read of values of which a message has any number."""
        return self.fixed / max(1, self.reads) + self.each


class RecursiveSchemaError(ValueError):
    """A schema has a record within itself, which a message could nest deeper than the stack of the process."""


class EmptyItemsError(ValueError):
    """A schema has an array of values that take no bytes, so that a few bytes could hold any number of them."""


def growth_of(kind: Any) -> Growth:
    """How values of a parsed Avro type grow.

    Raises:
        RecursiveSchemaError, EmptyItemsError: no number of bytes limits their memory or depth.

    Example:
        >>> growth_of({"type": "array", "items": "long"}).each
        128.0
    """
    return _growth(kind, {})


def _growth(kind: Any, named: dict[str, Growth | None]) -> Growth:
    """`named` has the growth of the types so far; None: this type is within it."""
    if isinstance(kind, list):
        branches = [_growth(each, named) for each in kind]
        most = max(each.fixed / (1 + each.reads) + each.each for each in branches)
        return Growth(1 + min(each.reads for each in branches), 0, _VALUE + most)
    if isinstance(kind, str):
        if kind not in named:
            return Growth(0, 0, 0) if kind == "null" else Growth(1, _VALUE, 0)
        if (known := named[kind]) is None:
            raise RecursiveSchemaError(kind)
        return known
    form = kind["type"]
    if form in ("record", "error"):
        named[kind["name"]] = None
        parts = [_growth(each["type"], named) for each in kind["fields"]]
        own = _RECORD + _FIELD * len(parts) + sum(part.fixed for part in parts)
        named[kind["name"]] = made = Growth(
            sum(part.reads for part in parts), own, max((part.each for part in parts), default=0)
        )
        return made
    if form == "array":
        items = _growth(kind["items"], named)
        if not items.reads:
            raise EmptyItemsError
        return Growth(1, 2 * _VALUE, max(2.0 * _VALUE, items.as_item + 8))
    if form == "map":
        values = _growth(kind["values"], named)
        return Growth(1, _RECORD, max(float(_RECORD), values.fixed / (1 + values.reads) + values.each + _MAP_ENTRY))
    if form in ("fixed", "enum"):
        made = Growth(int(form == "enum" or kind["size"] > 0), _VALUE, 0)
        named[kind["name"]] = made
        return made
    found = _growth(form, named)
    return Growth(found.reads, 2 * found.fixed, found.each) if "logicalType" in kind else found


class LimitedBytes(io.BytesIO):
    """The bytes of a message, which are read so often at the most as `record_bytes` allows.

    Args:
        value: the message.
        growth: of its record.
    """

    def __init__(self, value: bytes, growth: Growth) -> None:
        super().__init__(value)
        left = record_bytes() - growth.fixed - _LETTER * len(value)
        self._left = int(left / growth.each) if growth.each else len(value) + 1

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise ValueError(too_large())
        return super().read(size)


def may_exceed(size: int, count: int, growth: Growth) -> bool:
    """Whether messages may take more memory than one record may.

    Args:
        size: of all of them, in bytes.
        count: their number.
        growth: of their records.
    """
    return count * growth.fixed + size * (growth.each + _LETTER) > record_bytes()
