"""The frame of a picture: two axes with ticks, the colours, and the text alternative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 20.0, 18.0, 52.0
SERIES = ("#0a66c2", "#b35900", "#806080", "#c08080")
"""Distinguishable for colour-blind people, and readable on white and on black; each series also has its own dashes."""
DASHES = ("", "7 4", "2 3", "10 3 2 3")

_STYLE = """
.wb-lesson{max-width:100%;height:auto;font-family:system-ui,sans-serif;color:var(--jp-ui-font-color1,CanvasText)}
.wb-lesson text{fill:currentColor;font-size:13px} .wb-lesson .soft{opacity:.78}
.wb-lesson .axis{stroke:currentColor;stroke-opacity:.7} .wb-lesson .grid{stroke:currentColor;stroke-opacity:.13}
"""


class Picture:
    """A picture in a cell; as text, its description."""

    def __init__(self, svg: str, words: str) -> None:
        self.svg = svg
        self.words = words

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>"


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its name, its ticks (position and text), and the range that it covers."""

    name: str
    ticks: Sequence[tuple[float, str]]
    low: float
    high: float

    def part(self, value: float) -> float:
        """The position of a value in the range, 0 at the lower end and 1 at the upper end."""
        return (value - self.low) / ((self.high - self.low) or 1.0)


def across(axis: Axis, value: float) -> float:
    """The horizontal place of a value."""
    return LEFT + axis.part(value) * (WIDTH - LEFT - RIGHT)


def up(axis: Axis, value: float) -> float:
    """The vertical place of a value."""
    return HEIGHT - BOTTOM - axis.part(value) * (HEIGHT - TOP - BOTTOM)


def framed(x: Axis, y: Axis, inside: str, words: str) -> Picture:
    """A picture with its axes."""
    parts = []
    for value, text in x.ticks:
        at = across(x, value)
        parts.append(f"<line class='grid' x1='{at:.1f}' x2='{at:.1f}' y1='{TOP}' y2='{HEIGHT - BOTTOM}'/>")
        parts.append(f"<text x='{at:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle'>{escape(text)}</text>")
    for value, text in y.ticks:
        at = up(y, value)
        parts.append(f"<line class='grid' x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{at:.1f}' y2='{at:.1f}'/>")
        parts.append(f"<text x='{LEFT - 8}' y='{at + 4:.1f}' text-anchor='end'>{escape(text)}</text>")
    parts += [
        f"<path class='axis' fill='none' d='M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}'/>",
        f"<text class='soft' x='{WIDTH - RIGHT}' y='{HEIGHT - 12}' text-anchor='end'>{escape(x.name)} →</text>",
        f"<text class='soft' x='{LEFT + 6}' y='{TOP + 4}'>↑ {escape(y.name)}</text>",
    ]
    svg = (
        f"<svg class='wb-lesson' role='img' aria-label='{escape(words, quote=True)}' width='{WIDTH:.0f}' "
        f"viewBox='0 0 {WIDTH:.0f} {HEIGHT:.0f}' xmlns='http://www.w3.org/2000/svg'><style>{_STYLE}</style>"
        f"{''.join(parts)}{inside}</svg>"
    )
    return Picture(svg, words)
