"""Secrets in URLs, taken out of whatever people or logs get to see."""

from __future__ import annotations

import re

HIDDEN = "***"

# What follows a colon may be a password with any characters in it, unless it is a port.
# A path that was made of a URL has lost one slash; a drive has one letter.
_USER = re.compile(r"(?<=\w\w:/)(/?)(?:[^\s/?#:@]+:(?!\d+(?:[/?#\s]|$))\S*|[^\s/?#]*)(?=@)")
# In the text of a program: where an f-string puts the value of an expression. That begins with a name, because what
# begins with a quote may be the secret, and has no format, which may be a password behind a colon.
_FIELD = r"\{[A-Za-z_]\w*(?:\.\w+|\[[^{}\[\]]*\]|\([^{}()]*\))*(?:![rsa])?\}"
_FIELDS = re.compile(rf"/?{_FIELD}(?::{_FIELD})?")
_PARAMETER = re.compile(
    r"([?&;][\w.-]*(?:pass|pwd|secret|token|key|signature|sig|credential|auth)[\w.-]*=)"
    rf"(?:(?P<field>{_FIELD})(?=[\s&;#'\"]|$)|[^\s&;#'\"]*)",
    re.IGNORECASE,
)
_PLACE = re.compile(rf"[^\s'\"]*(?:/|=){re.escape(HIDDEN)}[^\s'\"]*")


def redacted(text: str) -> str:
    """The text with the user and password of every URL in it hidden, and every parameter that looks like a secret.

    What stands in braces, such as ``{KEY}`` in an f-string, is only a place for a secret, and stays.

    Example:
        >>> redacted("cannot open postgresql://ann:pa55@db.example/flights?sslkey=abc&mode=rw")
        'cannot open postgresql://***@db.example/flights?sslkey=***&mode=rw'
    """
    if ":/" in text:
        text = _USER.sub(_user_hidden, text)
    return _PARAMETER.sub(_value_hidden, text) if "=" in text else text


def _user_hidden(found: re.Match[str]) -> str:
    return found[0] if _FIELDS.fullmatch(found[0]) else found[1] + HIDDEN


def _value_hidden(found: re.Match[str]) -> str:
    return found[0] if found["field"] else found[1] + HIDDEN


def hidden_places(text: str) -> list[str]:
    """The words of a redacted text in which something is hidden, each once.

    Example:
        >>> hidden_places("wb.savepoints('s3://***@bucket/jobs')")
        ['s3://***@bucket/jobs']
    """
    return list(dict.fromkeys(_PLACE.findall(text)))
