"""Guards of edges: boolean functions of conditions, as cubes that exclude each other.

A cube is two integers: the bits of conditions that must be true, and of those that must not be.
"""

from __future__ import annotations

Guard = list[tuple[int, int]]

ALWAYS: Guard = [(0, 0)]
NEVER: Guard = []


def when(bit: int | None) -> Guard:
    """The condition of this bit is true; None: always true."""
    return ALWAYS if bit is None else [(1 << bit, 0)]


def both(one: Guard, other: Guard) -> Guard:
    """Both are true.

    Example:
        >>> both(when(0), opposite(when(1)))
        [(1, 2)]
    """
    products = [(a | c, b | d) for a, b in one for c, d in other]
    return [(yes, no) for yes, no in products if not yes & no]


def opposite(guard: Guard) -> Guard:
    """The negation."""
    result = ALWAYS
    for yes, no in guard:
        parts: Guard = []
        known_yes = known_no = 0
        for bit in range(max(yes.bit_length(), no.bit_length())):
            mask = 1 << bit
            if yes & mask:
                parts.append((known_yes, known_no | mask))
                known_yes |= mask
            elif no & mask:
                parts.append((known_yes | mask, known_no))
                known_no |= mask
        result = both(result, parts)
    return result


def either(one: Guard, other: Guard) -> Guard:
    """At least one is true."""
    return one + both(opposite(one), other)
