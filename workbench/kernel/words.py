"""The words of a magic's line, without the quotation marks that keep a word with spaces together."""

from __future__ import annotations

from IPython.utils.process import arg_split

from workbench.errors import SettingError


def words_of(line: str) -> list[str]:
    """The words of `line`; those within quotation marks are one word, without the marks.

    Raises:
        SettingError: a quotation mark without its second.
    """
    try:
        return [unquoted(word) for word in arg_split(line)]
    except ValueError:
        raise SettingError(f"a quotation mark in {line.strip()!r} has no second: close it") from None


def unquoted(word: str) -> str:
    """The word without the marks around it; IPython leaves them there."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
