"""Shows untrusted text: terminals do not interpret it, and none of it is invisible."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with invisible and control characters, except line breaks and tabs, written as escapes.

    Example:
        >>> print(printable("a\\x1b[2Jb"), printable("naïve"))
        a\\x1b[2Jb naïve
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _written_out(letter) for letter in text)


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
