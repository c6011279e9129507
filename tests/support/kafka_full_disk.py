"""The answers of a Kafka broker whose disk is full: no message is stored, and its log directory is offline.

Source: the Apache Kafka protocol guide: Produce 9 to 11, error 56 (KAFKA_STORAGE_ERROR).
"""

from __future__ import annotations

import struct

_PRODUCE, _VERSIONS = 0, range(9, 12)
_STORAGE_ERROR = 56
_NO_TAGS = b"\0"


def refused(request: bytes) -> bytes | None:
    """The answer to a request that stores messages; None: it is another request, for the broker itself.

    Args:
        request: without its size.
    """
    kind, version, correlation, name_length = struct.unpack_from(">hhih", request)
    if kind != _PRODUCE:
        return None
    assert version in _VERSIONS, f"the client sends Produce {version}"
    at = 10 + max(name_length, 0) + len(_NO_TAGS)
    length, at = _varint(request, at)  # of the transactional ID, and 1 more
    at += max(length - 1, 0) + 2 + 4  # which acknowledgements, and a time limit
    answer = struct.pack(">i", correlation) + _NO_TAGS
    topics, begin = _varint(request, at)
    answer += request[at:begin]
    at = begin
    for _ in range(topics - 1):
        length, begin = _varint(request, at)
        partitions, after = _varint(request, begin + length - 1)
        answer += request[at:after]
        at = after
        for _ in range(partitions - 1):
            number = request[at : at + 4]
            length, at = _varint(request, at + 4)
            at += length - 1 + len(_NO_TAGS)
            answer += number + struct.pack(">hqqq", _STORAGE_ERROR, -1, -1, -1) + b"\1\0" + _NO_TAGS
        at += len(_NO_TAGS)
        answer += _NO_TAGS
    return answer + struct.pack(">i", 0) + _NO_TAGS


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of 7 bits in each byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
