"""HTML pieces shared by several views: a styled Div, a card with a title, a small bar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bokeh.models import Column, ColumnDataSource, Div, Row

from workbench.dashboard.charts.static import sheet

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
        div: the model that represents it in the layout.
    """

    def __init__(self, texts: ColumnDataSource, name: str, div: Div) -> None:
        self.div = div
        self._texts, self._name = texts, name

    @property
    def html(self) -> str:
        """The current HTML."""
        return str(self._texts.data[self._name][0])

    def write(self, html: str) -> None:
        """Show other HTML; whatever comes from data or users must have been escaped."""
        if html != self.html:
            self._texts.patch({self._name: [(0, html)]})


class Choice:
    """The row of a piece that a user has chosen: elements with ``data-choose='12'`` are chosen by a click, or by the
    key that presses a button in them. The page sends the row's identity, not its position, because rows may move
    meanwhile.

    Attributes:
        source: the page writes the ``row`` there, and how many ``times`` somebody has chosen one.
    """

    def __init__(self, chosen: Callable[[str], object]) -> None:
        self.source = ColumnDataSource({"row": [""], "times": [0]})
        self.source.on_change("data", lambda _attribute, _old, new: chosen(str(new["row"][0])))


class Texts:
    """All HTML of one view, in data sources that the page's script writes into the Divs.

    Changing the text of a Div makes BokehJS lay out the whole page again, including every chart, and several times per
    frame; writing its inner HTML from a script does not.

    Attributes:
        source: holds the pieces that are made now.
        divs, choices: by the name of the piece.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource()
        self.divs: dict[str, Div] = {}
        self.choices: dict[str, Choice] = {}

    def piece(self, label: str, *styles: str, role: str = "region", choice: Choice | None = None) -> Piece:
        """An empty part, named for assistive technology; `choice` receives the row that a user chooses."""
        name = f"piece {len(self.divs)}"
        self.divs[name] = div = written("", "table", *styles, html_attributes={"role": role, "aria-label": label})
        if choice is not None:
            self.choices[name] = choice
        self.source.add([""], name)
        return Piece(self.source, name, div)

    def begin_source(self) -> None:
        """Put the pieces that are created from now on into another source: a page that has the first one need not
        receive it again.
        """
        self.source = ColumnDataSource()

    def settle(self) -> None:
        """Put the HTML of this source into the Divs themselves, so that the page shows it before its script runs."""
        for name, cells in self.source.data.items():
            self.divs[name].text = cells[0]


def column(children: Iterable[Any], *styles: str, **more: Any) -> Column:
    """Models below each other, as wide as their place."""
    return _box(Column, children, styles, more)


def row(children: Iterable[Any], *styles: str, **more: Any) -> Row:
    """Models next to each other, as wide as their place."""
    return _box(Row, children, styles, more)


def _box(kind: Any, children: Iterable[Any], styles: Sequence[str], more: Mapping[str, Any]) -> Any:
    return kind(
        children=list(children), sizing_mode="stretch_width", margin=0, stylesheets=[sheet(*styles)] if styles else [],
        **more,
    )  # fmt: skip


def scrolled(model: Any, pixels: int, *styles: str, **more: Any) -> Column:
    """A model that scrolls where it is higher than that, and than what its place on the screen allows anyway."""
    return column([model], "scrolled", *styles, styles={"--wb-room": f"{pixels}px"}, **more)


def written(text: str, *styles: str, **more: Any) -> Div:
    """HTML that is ours."""
    return Div(
        text=text, sizing_mode="stretch_width", margin=0, disable_math=True, stylesheets=[sheet(*styles)], **more
    )


def heading(title: str, hint: str = "") -> Div:
    """A title, and a hint in small print; both are ours (HTML is allowed)."""
    return written(f"<h3><span>{title}</span><small>{hint}</small></h3>", "title")


def card(title: str, hint: str, children: Iterable[Any], *classes: str) -> Column:
    """A framed part of the dashboard: title, a hint in small print, and the content.

    Args:
        title, hint: text that is ours (HTML is allowed).
        children: the models inside.
        classes: CSS classes by which the layout places the card.
    """
    return column(card_children(title, hint, children), "card", css_classes=["wb-card", *classes])


def card_children(title: str, hint: str, children: Iterable[Any]) -> list[Any]:
    """The models of a card: its title with the hint, and the content."""
    return [heading(title, hint), *children]


def table(heads: Iterable[str], rows: Iterable[str], right: Collection[str] = ()) -> str:
    """A table: its heads, some aligned to the right like their numbers, and its rows (``<tr>``)."""
    cells = (f"<th{CLASS_NUMBER if head in right else ''} scope='col'>{head}</th>" for head in heads)
    return f"<table><tr class='head'>{''.join(cells)}</tr>{''.join(rows)}</table>"


CLASS_NUMBER = " class='n'"


def none(sentence: str) -> str:
    """A placeholder for an empty part."""
    return f"<p class='none'>{sentence}</p>"
