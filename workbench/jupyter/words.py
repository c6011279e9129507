"""The words of a magic's line, without the quotation marks that keep a word with spaces together."""

from __future__ import annotations

from IPython.utils.process import arg_split

from workbench.errors import SettingError

_LINE_MAX = 10_000
"""Characters; options are matched with each other, so that a long line would take minutes."""
_SHOWN = 60


def words_of(line: str) -> list[str]:
    """The words of `line`; those within quotation marks are one word, without the marks.

    Raises:
        SettingError: a quotation mark without its second, or more text than a line of options has.
    """
    if len(line) > _LINE_MAX:
        raise SettingError(
            f"the line {line[:_SHOWN]!r}... has {len(line):,} characters, and at most {_LINE_MAX:,} are read"
        )
    try:
        return [unquoted(word) for word in arg_split(line)]
    except ValueError:
        raise SettingError(f"a quotation mark in {line.strip()!r} has no second: close it") from None


def unquoted(word: str) -> str:
    """The word without the marks around it; IPython leaves them there."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
