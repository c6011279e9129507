"""How rows stand in messages and texts, and how they are read from them, whatever stands there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .judge import Found, Unreadable
from .rows import Row


def message(row: Row) -> bytes:
    """A row as a message.

    Example:
        >>> message({"id": 1})
        b'{"id": 1}'
    """
    return json.dumps(row).encode()


def read_message(value: bytes) -> Found:
    """A message as a row.

    Example:
        >>> read_message(b'{"id": 1}'), read_message(b"{")
        ({'id': 1}, Unreadable(what="b'{'"))
    """
    try:
        found = json.loads(value)
    except ValueError:
        return Unreadable(repr(value))
    return found if isinstance(found, dict) else Unreadable(repr(value))


def read_texts(fields: Mapping[bytes, bytes] | Mapping[str, str], columns: Mapping[str, type]) -> Found:
    """Texts by column as a row, with values of the columns' types.

    Example:
        >>> read_texts({"id": "1", "text": "a"}, {"id": int, "text": str})
        {'id': 1, 'text': 'a'}
        >>> read_texts({"id": "one"}, {"id": int})
        Unreadable(what="{'id': 'one'}")
    """
    try:
        texts = {_text(name): _text(value) for name, value in fields.items()}
        return {name: columns.get(name, str)(value) for name, value in texts.items()}
    except ValueError:
        return Unreadable(repr(fields))


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
