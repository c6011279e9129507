"""The checksum of a file that a checkpoint needs, as text that names its algorithm: ``crc32:1c291ca3``.

It detects damage (a partly written, truncated or altered file), not forgery. CRC-32 detects every change within 32
consecutive bits and all but one in four billion of the others. It costs less than half as much as SHA-256, even on
processors with instructions for SHA-256.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.errors import CheckpointError

_CRC32 = "crc32"


class RunningChecksum:
    """The checksum of bytes that are processed piece by piece.

    Attributes:
        size: the number of bytes so far.

    Example:
        >>> running = RunningChecksum()
        >>> [len(piece) for piece in running.over([b"ro", b"ws"])]
        [2, 2]
        >>> running.text(), running.size
        ('crc32:0a8bf4a1', 4)
    """

    __slots__ = ("_value", "size")

    def __init__(self) -> None:
        self.size = 0
        self._value = 0

    def over(self, pieces: Iterable[Any]) -> Iterator[Any]:
        """The unchanged pieces, each counted when it is taken."""
        for piece in pieces:
            self.size += len(piece)
            self._value = zlib.crc32(piece, self._value)
            yield piece

    def text(self) -> str:
        """The `checksum` of all bytes so far."""
        return f"{_CRC32}:{self._value:08x}"


def checksum(data: Any) -> str:
    """The checksum of some bytes (any buffer).

    Example:
        >>> checksum(b"rows")
        'crc32:0a8bf4a1'
    """
    return f"{_CRC32}:{zlib.crc32(data):08x}"


def matches(data: Any, expected: str, what: str) -> bool:
    """Whether these bytes have the recorded checksum; `what` names the file in an error.

    Raises:
        CheckpointError: it was recorded with an algorithm that this version does not have.
    """
    return agree(checksum(data), expected, what)


def agree(found: str, expected: str, what: str) -> bool:
    """Whether a file has the recorded checksum; `what` names it in an error.

    Raises:
        CheckpointError: it was recorded with an algorithm that this version does not have.
    """
    name = expected.partition(":")[0]
    if name != _CRC32:
        raise CheckpointError(
            f"{what} has a checksum of kind {name!r}, and this version supports only {_CRC32!r}: restore it with the "
            "version that wrote it"
        )
    return found == expected
