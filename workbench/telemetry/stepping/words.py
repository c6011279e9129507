"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 6
"""The maximum number of numbers in a list."""


def few(numbers: Sequence[object]) -> str:
    """The first numbers of a list, or other short things, and how many more there are.

    Example:
        >>> few([3, 4, 5]), few(range(9))
        ('3, 4, 5', '0, 1, 2, 3, 4, 5 and 3 more')
    """
    more = len(numbers) - SHOWN
    return ", ".join(map(str, numbers[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def plural(word: str, count: int) -> str:
    """A noun in the singular or the plural.

    Example:
        >>> plural("root", 1), plural("root", 2)
        ('root', 'roots')
    """
    return word if count == 1 else f"{word}s"


def are(count: int) -> str:
    """``is`` or ``are``.

    Example:
        >>> are(1), are(2)
        ('is', 'are')
    """
    return "is" if count == 1 else "are"


def run(first: int, count: int) -> str:
    """Consecutive ids.

    Example:
        >>> run(3, 1), run(3, 2)
        ('id 3', 'ids 3–4')
    """
    return f"id {first}" if count == 1 else f"ids {first}–{first + count - 1}"


def records(count: int) -> str:
    """A number of records.

    Example:
        >>> records(1), records(1_000)
        ('1 record', '1,000 records')
    """
    return f"{count:,} {plural('record', count)}"
