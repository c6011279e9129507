"""A message of a lesson, as text for every front end and as a card for those that show HTML."""

from __future__ import annotations

from html import escape
from typing import Literal

Tone = Literal["plain", "asks", "good", "bad"]

_COLOURS: dict[Tone, str] = {
    "plain": "var(--jp-border-color1,#8c959f)",
    "asks": "var(--jp-brand-color1,#0a66c2)",
    "good": "var(--jp-success-color1,#1a7f37)",
    "bad": "var(--jp-error-color1,#c21f2a)",
}


class Said:
    """A heading and some lines, shown in a cell, or printed if the front end does not show HTML.

    Args:
        head: one short sentence.
        lines: further lines of text, without HTML.
        tone: decides the colour of the card's edge, which has the same meaning as the head.
        code: shown as a program below the lines.

    Example:
        >>> Said("Right.", ["Both are counted."], "good")
        Right.
          Both are counted.
    """

    def __init__(self, head: str, lines: list[str] | None = None, tone: Tone = "plain", code: str = "") -> None:
        self.head = head
        self.lines = tuple(lines or ())
        self.tone: Tone = tone
        self.code = code

    def __repr__(self) -> str:
        code = [f"    {line}" for line in self.code.splitlines()]
        return "\n".join([self.head, *(f"  {line}" for line in self.lines), *code])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div style='margin-top:3px'>{_inline(line)}</div>" for line in self.lines)
        code = f"<pre style='margin:8px 0 0;overflow-x:auto'>{escape(self.code)}</pre>" if self.code else ""
        return (
            f"<div role='status' style='border-left:4px solid {_COLOURS[self.tone]};padding:6px 12px;margin:4px 0;"
            f"max-width:820px;line-height:1.45'><b>{_inline(self.head)}</b>{lines}{code}</div>"
        )


class Verdict(Said):
    """What a check says about an answer.

    Args:
        passed: whether the answer is right.
        head, lines, code: as for `Said`.

    Attributes:
        passed: the same, for a script that grades.

    Example:
        >>> Verdict(False, "Not yet.").passed
        False
    """

    def __init__(self, passed: bool, head: str, lines: list[str] | None = None, code: str = "", *, tone: Tone = "bad"):
        super().__init__(head, lines, "good" if passed else tone, code)
        self.passed = passed


def _inline(text: str) -> str:
    """Escaped text in which `words between backticks` are code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a single backtick is a backtick
        return escape(text)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
