"""The answers of Apache Kafka to clients that fetch messages of a topic that was deleted.

Tansu answers with an ID of zeros, not with the one that it was asked for, and librdkafka (2.5 to 2.16) crashes then.

Source: the Apache Kafka protocol guide: Fetch 13 to 17, error 100 (UNKNOWN_TOPIC_ID).
"""

from __future__ import annotations

import struct

_FETCH, _VERSIONS = 1, range(13, 18)
_UNKNOWN_TOPIC_ID = 100
_NO_TAGS = b"\0"
_ID = 16
_OF_PARTITION = 4 + 4 + 8 + 4 + 8 + 4
"""The bytes of a partition in a request: its number, and what was read of it."""


def unknown(request: bytes) -> bytes | None:
    """The answer to a request that fetches messages; None: it is another request, for the broker itself.

    Args:
        request: without its size, of a few topics with a few partitions.
    """
    kind, version, correlation, name_length = struct.unpack_from(">hhih", request)
    if kind != _FETCH:
        return None
    assert version in _VERSIONS, f"the client sends Fetch {version}"
    at = 10 + max(name_length, 0) + len(_NO_TAGS) + (4 if version < 15 else 0) + 4 + 4 + 4 + 1 + 4 + 4
    topics = request[at] - 1  # a small number has one byte
    at += 1
    answer = struct.pack(">i", correlation) + _NO_TAGS + struct.pack(">ihi", 0, 0, 0) + bytes([topics + 1])
    for _ in range(topics):
        partitions = request[at + _ID] - 1
        answer += request[at : at + _ID + 1]
        at += _ID + 1
        for _ in range(partitions):
            answer += request[at : at + 4] + struct.pack(">hqqq", _UNKNOWN_TOPIC_ID, -1, -1, -1)
            answer += b"\1" + struct.pack(">i", -1) + b"\1" + _NO_TAGS
            at += _OF_PARTITION + len(_NO_TAGS)
        at += len(_NO_TAGS)
        answer += _NO_TAGS
    return answer + _NO_TAGS
