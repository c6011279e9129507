"""The words of a magic's line, without the quotation marks that keep a word with spaces together."""

from __future__ import annotations

from IPython.utils.process import arg_split

from workbench.errors import SettingError

_LINE_MAX = 10_000
"""In characters; options are compared with each other, so a long line would take minutes."""
_SHOWN = 60


def words_of(line: str) -> list[str]:
    """The words of `line`; those within quotation marks are one word, without the marks.

    Raises:
        SettingError: an unclosed quotation mark, or a line that is too long.
    """
    if len(line) > _LINE_MAX:
        raise SettingError(
            f"the line {line[:_SHOWN]!r}... has {len(line):,} characters, more than the maximum of {_LINE_MAX:,}"
        )
    try:
        return [unquoted(word) for word in arg_split(line)]
    except ValueError:
        raise SettingError(f"a quotation mark in {line.strip()!r} is not closed: close it") from None


def unquoted(word: str) -> str:
    """The word without the marks around it; IPython leaves them there."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
