"""Sentences as runs of text with marked numbers, so that a page can set numbers apart without any HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_UNITS = "ns|us|µs|ms|s|min|h|d|(?:k|M|G)?B(?:/s)?|%|x|times|records/s|rec/s|/s"
_NUMBER = re.compile(rf"(?<![\w\[.,:#/'\"-])-?\d++(?:,\d{{3}})*+(?:\.\d++)?+(?: ?(?:{_UNITS}))?(?![\w\]'\"]|[-:/.,]\d)")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a sentence, with its unit.

    Attributes:
        n: as it is written, such as ``"2.9 ms"``.
    """

    n: str


Sentence = tuple[str | Figure, ...]


def runs(text: str) -> Sentence:
    """The runs of a sentence; names such as ``aggregate[1]``, dates and addresses are no numbers.

    Example:
        >>> runs("Latency 50 ms, because aggregate[1] is slow")
        ('Latency ', Figure(n='50 ms'), ', because aggregate[1] is slow')
    """
    found: list[str | Figure] = []
    end = 0
    for match in _NUMBER.finditer(text):
        found += [text[end : match.start()]] * (match.start() > end)
        found.append(Figure(match.group()))
        end = match.end()
    return (*found, *([text[end:]] * (end < len(text))))


def quoted(text: str | None) -> Sentence | None:
    """What someone else says: in the message of an error, the numbers are those of code and records.

    Example:
        >>> quoted("map function 'tax' raised ValueError: 5, line 12"), quoted("")
        (("map function 'tax' raised ValueError: 5, line 12",), None)
    """
    return (text,) if text else None


def text_of(sentence: Iterable[str | Figure]) -> str:
    """The sentence as text.

    Example:
        >>> text_of(runs("1.5 s of 20"))
        '1.5 s of 20'
    """
    return "".join(run if isinstance(run, str) else run.n for run in sentence)
