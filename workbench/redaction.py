"""Secrets in URLs, taken out of whatever people or logs get to see."""

from __future__ import annotations

import re

HIDDEN = "***"

# What follows a colon may be a password with any characters in it, unless it is a port.
# A path that was made of a URL has lost one slash; a drive has one letter.
_USER = re.compile(r"(?<=\w\w:/)(/?)(?:[^\s/?#:@]+:(?!\d+(?:[/?#\s]|$))\S*|[^\s/?#]*)(?=@)")
_PARAMETER = re.compile(
    r"([?&;][\w.-]*(?:pass|pwd|secret|token|key|signature|sig|credential|auth)[\w.-]*=)[^\s&;#'\"]*", re.IGNORECASE
)
_PLACE = re.compile(rf"[^\s'\"]*(?:/|=){re.escape(HIDDEN)}[^\s'\"]*")


def redacted(text: str) -> str:
    """The text with the user and password of every URL in it hidden, and every parameter that looks like a secret.

    Example:
        >>> redacted("cannot open postgresql://ann:pa55@db.example/flights?sslkey=abc&mode=rw")
        'cannot open postgresql://***@db.example/flights?sslkey=***&mode=rw'
    """
    if ":/" in text:
        text = _USER.sub(rf"\g<1>{HIDDEN}", text)
    return _PARAMETER.sub(rf"\g<1>{HIDDEN}", text) if "=" in text else text


def hidden_places(text: str) -> list[str]:
    """The words of a redacted text in which something is hidden, each once.

    Example:
        >>> hidden_places("wb.savepoints('s3://***@bucket/jobs')")
        ['s3://***@bucket/jobs']
    """
    return list(dict.fromkeys(_PLACE.findall(text)))
