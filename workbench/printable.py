"""Text that somebody else may have written, shown as it is: no terminal acts on it, and nothing in it stays unseen."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything but line breaks and tabs that is not seen, or that a terminal takes for a command,
    written out.

    Example:
        >>> print(printable("a\\x1b[2Jb"), printable("naïve"))
        a\\x1b[2Jb naïve
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _written_out(letter) for letter in text)


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
