"""The checksum of a file that a checkpoint needs, as text that names its algorithm: ``crc32:1c291ca3``.

It tells damage (a torn, truncated or altered file) from what was written; it does not keep out a forger. CRC-32 finds
every change within 32 bits in a row and all but one in four billion of the others, at less than half of the cost of
SHA-256, even where the processor has instructions for that one.
"""

from __future__ import annotations

import zlib
from typing import Any

from workbench.errors import CheckpointError

_CRC32 = "crc32"


def checksum(*pieces: Any) -> str:
    """The checksum of some bytes (any buffers, one behind the other).

    Example:
        >>> checksum(b"ro", b"ws")
        'crc32:0a8bf4a1'
    """
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return f"{_CRC32}:{value:08x}"


def matches(data: Any, expected: str, what: str) -> bool:
    """Whether these bytes have the checksum that was written down; `what` names the file in an error.

    Raises:
        CheckpointError: it was written down by an algorithm that this version does not have.
    """
    name = expected.partition(":")[0]
    if name != _CRC32:
        raise CheckpointError(
            f"{what} has a checksum of the kind {name!r}, and this version knows {_CRC32!r} only: restore it with the"
            " version that wrote it"
        )
    return checksum(data) == expected
