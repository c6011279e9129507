"""How much memory one record of untrusted input may take, because a few bytes can claim any amount of it.

Compression, counts of values without bytes, and lines without an end make memory of little input. The input itself may
be of any size: the limit is that of one message, or of one line of a file, when it has been decompressed and decoded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from workbench.errors import SettingError

RECORD_MB = 64
"""The limit unless the setting says otherwise, in megabytes of 2**20 bytes."""
SETTING = "WORKBENCH_RECORD_MB"
"""The environment variable with another limit."""
_MB = 1 << 20
_MOST = 1 << 20


def record_bytes() -> int:
    """Bytes of memory that one record may take.

    Raises:
        SettingError: the setting is not a number of megabytes.

    Example:
        >>> record_bytes()
        67108864
    """
    text = os.environ.get(SETTING)
    if text is None:
        return RECORD_MB * _MB
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST)) and 1 <= int(text) <= _MOST):
        raise SettingError(f"{SETTING} is {text!r} in the environment: write megabytes, such as {RECORD_MB}")
    return int(text) * _MB


def check_sizes(values: Sequence[bytes]) -> None:
    """Reject records that are larger than one may be, before they are decoded.

    Args:
        values: messages, or lines.

    Raises:
        ValueError: one is.
    """
    if max(map(len, values), default=0) > record_bytes():
        raise ValueError(too_large())


def too_large(called: str = "it") -> str:
    """The sentence about a record beyond the limit, with the way to raise it.

    Args:
        called: the record.

    Example:
        >>> too_large("a line")
        'a line takes more than 64 MB of memory, the limit of a record: set WORKBENCH_RECORD_MB=... to raise it'
    """
    limit = record_bytes() // _MB
    return f"{called} takes more than {limit:,} MB of memory, the limit of a record: set {SETTING}=... to raise it"
