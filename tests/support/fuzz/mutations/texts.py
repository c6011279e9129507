"""Texts with one place changed: characters, words and lines dropped, doubled, moved, or nested deeply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from . import values

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


def changed(chance: Random, text: str, words: Sequence[str] = ()) -> str:
    """Another text, most likely.

    Args:
        chance: draws it.
        text: to change.
        words: of its language, that come into it.
    """
    pieces = _WORDS.findall(text) or [""]
    at, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    match chance.randrange(9):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(other, pieces[at])
        case 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 3 | 4 if words:
            pieces.insert(at, f" {chance.choice(words)} ")
        case 5:
            pieces[at] = chance.choice(values.NAMES)
        case 6:
            begin, end = chance.choice(
                (("(", ")"), ("NOT ", ""), ("-", ""), ("[", "]"), ("{", "}"), ("'", "'"), ("`", "`"))
            )
            depth = chance.choice((1, 3, 100, 20_000))
            pieces[at] = begin * depth + pieces[at] + end * depth
        case 7:
            pieces[at] = pieces[at] + f" {chance.choice(words or ('+',))} {pieces[at]}" * chance.choice((1, 30, 20_000))
        case _:
            spot = chance.randrange(len(text) + 1)
            return (
                text[:spot]
                + chr(chance.choice((0, 9, 10, 34, 39, 92, 0xD800, 0x301, chance.randrange(0x110000))))
                + text[spot:]
            )
    return "".join(pieces)
