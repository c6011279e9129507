"""How a notebook shows an object with views: a fresh set of figures, over separate comms or as a widget."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from workbench.dashboard.page.carrier import WIDGET, WIDGETS, choose
from workbench.dashboard.page.transport import Line

OF_JOB = "workbench"
"""In the metadata of what a cell shows: the ``job`` that it is about. JupyterLab's extension looks for it."""

VIEW = "application/vnd.jupyter.widget-view+json"
"""The type of a widget in a MIME bundle."""


class Shown:
    """An object that a notebook shows, each time with separate figures.

    Args:
        carrier: the connection to the page, ``"comm"`` or ``"widget"``; None: the one that suits the front end.

    Attributes:
        about: the name of the job that it shows; None: it shows no single one.
        without_widgets: the line below the text that replaces a widget.

    Raises:
        SettingError: no such carrier.
    """

    without_widgets = ""
    about: str | None = None

    def __init__(self, carrier: str | None) -> None:
        self._carrier = choose(carrier)
        self._held: list[Any] = []  # the page's connection must live as long as this object

    def _connect(self, comms: Any = None) -> Line:
        """A connection to a page, with a fresh set of figures."""
        raise NotImplementedError  # abstract

    def widget(self) -> str:
        """The id of a new widget that shows it, for another widget that has it inside."""
        made = import_module(WIDGETS).WidgetCarrier(self._connect)
        self._held.append(made)
        return str(made.render("")[0][VIEW]["model_id"])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        if self._carrier == WIDGET:
            widget = import_module(WIDGETS).WidgetCarrier(self._connect)
            self._held.append(widget)
            return widget.render(f"{self!r}\n{self.without_widgets}")
        data, metadata = self._connect().render()
        about = {} if self.about is None else {OF_JOB: {"job": self.about}}
        return {**data, "text/plain": repr(self)}, {**metadata, **about}
