"""The HTML pieces that several views share: a styled Div, a card with a title, a small bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.models import Column, ColumnDataSource, Div, InlineStyleSheet

TABLE_CSS = """
:host { width: 100%; color: var(--wb-ink); font-size: 12px; line-height: 1.45; }
.bk-clearfix { display: block; width: 100%; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0 8px 0 0; font-weight: 400; white-space: nowrap; unicode-bidi: isolate; }
tr.head th { color: var(--wb-muted); font-size: 11px; padding-bottom: 2px; }
tr.task th { font-weight: 600; }
.n { text-align: right; padding-right: 12px; }
p { margin: 0; }
p.none { color: var(--wb-muted); padding: 6px 0; }
.bar { display: inline-block; vertical-align: middle; width: 64px; height: 7px; border-radius: 2px;
  background: var(--wb-track); overflow: hidden; }
.bar > i { display: block; height: 100%; }
.good { color: var(--wb-good); } .warn { color: var(--wb-warn); } .bad { color: var(--wb-bad); }
.muted { color: var(--wb-muted); }
"""

CARD_CSS = """
:host { background: var(--wb-card); border: 1px solid var(--wb-line); border-radius: 8px; padding: 8px 12px 8px;
  min-width: 0; overflow: hidden; box-sizing: border-box; }
"""

TITLE_CSS = """
:host { color: var(--wb-ink); font-size: 13px; width: 100%; margin-bottom: 2px; }
h3 { margin: 0; font-size: 13px; font-weight: 600; line-height: 20px; color: var(--wb-ink); display: flex; gap: 10px;
  align-items: baseline; }
h3 span { white-space: nowrap; }
h3 small { font-weight: 400; font-size: 11px; line-height: 16px; color: var(--wb-muted); }
.bk-clearfix { display: block; width: 100%; }
h3 small span { margin-right: 4px; }
h3 b { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 4px; }
"""

_HATCHED = "repeating-linear-gradient(135deg,#888 0 3px,#fff 3px 5px)"
KEY_IDLE_BUSY = (
    "<span><b style='background:#5db1ff'></b>idle</span> <span><b style='background:#ee6464'></b>busy</span> "
    f"<span><b style='background:{_HATCHED}'></b>back-pressured</span>"
)
KEY_BUFFERS = (
    f"<span><b style='background:{_HATCHED}'></b>at the sender</span> "
    "<span><b style='background:var(--wb-accent)'></b>at the receiver, of those granted</span> <span>"
    "<b style='background:repeating-linear-gradient(135deg,var(--wb-warn) 0 3px,#fff 3px 5px)'></b>held back</span>"
)
KEY_CHECKPOINTS = (
    "<b style='background:var(--wb-accent)'></b>duration <span style='color:var(--wb-violet)'>◆</span>&nbsp;size"
)


def bar(fraction: float, colour: str) -> str:
    """A horizontal bar, filled to `fraction` (0 to 1), in a named colour."""
    filled = max(0.0, min(1.0, fraction)) * 100
    return f"<span class='bar'><i style='width:{filled:.0f}%;background:var(--wb-{colour})'></i></span>"


class Piece:
    """A part of the page that is written in HTML.

    Attributes:
        div: the model that holds its place in the layout.
    """

    def __init__(self, texts: ColumnDataSource, name: str, div: Div) -> None:
        self.div = div
        self._texts, self._name = texts, name

    @property
    def html(self) -> str:
        """What is written now."""
        return str(self._texts.data[self._name][0])

    def write(self, html: str) -> None:
        """Show other HTML; whatever comes from data or users must have been escaped."""
        if html != self.html:
            self._texts.patch({self._name: [(0, html)]})


class Choice:
    """Which row of a piece somebody has chosen: elements with ``data-choose='12'`` are chosen by a click, or by the key
    that presses a button in them. The page tells what the row is, not where: rows move while it does.

    Attributes:
        source: the page writes the ``row`` there, and how many ``times`` somebody has chosen one.
    """

    def __init__(self, chosen: Callable[[str], object]) -> None:
        self.source = ColumnDataSource({"row": [""], "times": [0]})
        self.source.on_change("data", lambda _attribute, _old, new: chosen(str(new["row"][0])))


class Texts:
    """All HTML of one view, in one data source that the page's script writes into the Divs.

    Changing the text of a Div makes BokehJS lay out the whole page anew, every chart included, and that several times
    a frame; writing its inner HTML from a script does not.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource()
        self.divs: dict[str, Div] = {}
        self.choices: dict[str, Choice] = {}

    def piece(self, label: str, css: str = "", role: str = "region", choice: Choice | None = None) -> Piece:
        """An empty part, named for assistive technology; `choice` hears which of its rows somebody chooses."""
        name = f"piece {len(self.divs)}"
        div = Div(
            text="", sizing_mode="stretch_width", margin=0, disable_math=True,
            stylesheets=[InlineStyleSheet(css=TABLE_CSS + css)], html_attributes={"role": role, "aria-label": label},
        )  # fmt: skip
        self.divs[name] = div
        if choice is not None:
            self.choices[name] = choice
        self.source.add([""], name)
        return Piece(self.source, name, div)

    def settle(self) -> None:
        """Put what is written now into the Divs themselves, so that the page shows it before its script runs."""
        for name, div in self.divs.items():
            div.text = self.source.data[name][0]


def scrolled(model: Any, pixels: int) -> Column:
    """A model that scrolls where it is higher than that; it takes more where its card has room to spare.

    Its height depends on its own only up to `pixels`, so a card does not grow, and nothing jumps, while rows come and
    go. Shadows at its edges tell that there is more.
    """
    css = f":host {{ flex: 1 1 {pixels}px !important; {_SCROLLED_CSS} }} {_UNSQUEEZED_CSS}"
    return Column(children=[model], sizing_mode="stretch_width", margin=0, stylesheets=[InlineStyleSheet(css=css)])


_UNSQUEEZED_CSS = ":host > * { flex: none !important; max-height: none; }"


_SCROLLED_CSS = """
min-height: 0; max-height: max-content !important; overflow: auto; scrollbar-width: thin; margin-bottom: 4px;
background: linear-gradient(var(--wb-card) 40%, transparent) top / 100% 20px no-repeat local,
  linear-gradient(transparent, var(--wb-card) 60%) bottom / 100% 20px no-repeat local,
  linear-gradient(var(--wb-line), transparent) top / 100% 7px no-repeat scroll,
  linear-gradient(transparent, var(--wb-line)) bottom / 100% 7px no-repeat scroll;
"""


def heading(title: str, hint: str = "") -> Div:
    """A title, and a hint in small print; both are ours (HTML is allowed)."""
    return Div(
        text=f"<h3><span>{title}</span><small>{hint}</small></h3>", sizing_mode="stretch_width", margin=0,
        disable_math=True, stylesheets=[InlineStyleSheet(css=TITLE_CSS)],
    )  # fmt: skip


def card(title: str, hint: str, children: list[Any], name: str, scroll_px: int | None = None) -> Column:
    """A framed part of the dashboard: title, a hint in small print, and the content, which may scroll.

    Args:
        title, hint: text that is ours (HTML is allowed).
        children: the models inside.
        name: CSS class by which the layout places the card.
        scroll_px: height of the content, in pixels, above which it scrolls.
    """
    if scroll_px is not None:
        css = f":host {{ max-height: {scroll_px}px; overflow: hidden auto; scrollbar-width: thin; }}"
        children = [
            Column(children=children, sizing_mode="stretch_width", stylesheets=[InlineStyleSheet(css=css)], margin=0)
        ]
    return Column(
        children=[heading(title, hint), *children], sizing_mode="stretch_width", margin=0,
        css_classes=["wb-card", f"wb-{name}"], stylesheets=[InlineStyleSheet(css=CARD_CSS)],
    )  # fmt: skip
