"""Secrets in URLs, taken out of whatever people or logs get to see."""

from __future__ import annotations

import re

HIDDEN = "***"

# What follows a colon may be a password with any characters in it, unless it is a port.
_USER = re.compile(r"(?<=://)(?:[^\s/?#:@]+:(?!\d+(?:[/?#\s]|$))\S*|[^\s/?#]*)(?=@)")
_PARAMETER = re.compile(
    r"([?&;][\w.-]*(?:pass|pwd|secret|token|key|signature|sig|credential|auth)[\w.-]*=)[^\s&;#'\"]*", re.IGNORECASE
)


def redacted(text: str) -> str:
    """The text with the user and password of every URL in it hidden, and every parameter that looks like a secret.

    Example:
        >>> redacted("cannot open postgresql://ann:pa55@db.example/flights?sslkey=abc&mode=rw")
        'cannot open postgresql://***@db.example/flights?sslkey=***&mode=rw'
    """
    return _PARAMETER.sub(rf"\g<1>{HIDDEN}", _USER.sub(HIDDEN, text))
