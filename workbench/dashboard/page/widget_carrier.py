"""Carries views with a Jupyter widget, for front ends whose outputs have no other connection to the kernel.

It replaces Panel's comms and changes nothing else: patches, answers and pace are those of `transport`. There are two
widgets for the same reason as there are two comms: only the kernel sends on one, only the page on the other. Each time
a page renders the widget, it asks for a view and receives a new one; so a page that is reloaded, or that shows the
output twice, has live views.

A message of a page is a mapping with the page's name for the view (``view``) and the request (``ask``):

- ``scripts``: BokehJS, because it is not on the page yet; the answer contains it as compressed texts.
- ``open``: a view; the answer is its document, or a sentence (``problem``).
- ``ready``: the view is shown, and frames may come.
- ``change``: a user's action (``data``), in Panel's format.
- ``close``: the view is gone.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import bokeh
import panel
import traitlets
from anywidget import AnyWidget
from ipywidgets import Widget
from panel.io.notebook import PYVIZ_PROXY

from workbench.dashboard.charts.static import script
from workbench.dashboard.page.transport import Bundle, Line
from workbench.raised import described

VIEW_TYPE = "application/vnd.jupyter.widget-view+json"
_BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js"
SCRIPTS = (
    *(_BOKEH / f"{name}.min.js" for name in ("bokeh", "bokeh-widgets", "bokeh-tables")),
    Path(panel.__file__).parent / "dist" / "panel.min.js",
)
"""What Panel's models need, and these, in the order in which a page runs it."""

CLOSED = "This dashboard was closed: run the cell again to see the live job."

_log = logging.getLogger(__name__)


@cache
def scripts() -> tuple[bytes, ...]:
    """The texts of `SCRIPTS`, compressed by gzip: 0.7 MB, which a page gets once and no notebook stores."""
    return tuple(gzip.compress(path.read_bytes(), mtime=0) for path in SCRIPTS)


class Subshell:
    """A thread of the kernel that handles messages of pages while a cell runs, for pages that name no subshell.

    JupyterLab creates a subshell for each comm. VS Code does not, so messages of its pages would wait for the end of
    the cell.
    """

    def __init__(self) -> None:
        self._id: str | None = None

    def id(self, kernel: Any) -> str | None:
        """Its name; None: the kernel has no subshells. Called in the kernel's shell channel thread, which makes it."""
        thread = getattr(kernel, "shell_channel_thread", None)
        if thread is None:
            return None
        if self._id not in thread.manager.list_subshell():
            self._id = thread.manager._create_subshell()
        return self._id


SUBSHELL = Subshell()
"""Of this kernel, made when the first page speaks that needs it."""


_PAGE = (
    f"{script('widget')}\n"
    f"export default {{render: renderWith({json.dumps(bokeh.__version__)}, () => {{\n{PYVIZ_PROXY}\n}})}}"
)
"""The page's side: a module as anywidget takes it."""


class Face(AnyWidget):  # type: ignore[misc]
    """The widget that a page renders, and on which the kernel sends frames.

    Attributes:
        control: the id of the widget on which the page sends.
    """

    _esm = _PAGE
    control = traitlets.Unicode().tag(sync=True)


class Channel:
    """The part of Panel's comms that a `Line` uses, implemented with a widget.

    Args:
        widget: that carries it.
        view: the page's name for its view.
        on_msg: called with the page's changes.
        on_open: called when the page shows the view.
    """

    def __init__(
        self,
        widget: Any,
        view: str,
        on_msg: Callable[[dict[str, Any]], None] | None = None,
        on_open: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.id = uuid4().hex
        self.on_msg, self.on_open = on_msg, on_open
        self._comm: Channel | None = None
        self._widget, self._view = widget, view

    def init(self) -> None:
        """Note that the page listens from now on."""
        self._comm = self

    def send(self, data: Any = None, metadata: Any = None, buffers: Any = None) -> None:
        """Send a message to the page, in Panel's format."""
        self._widget.send({"view": self._view, "data": data, "metadata": metadata or {}}, buffers)

    def close(self) -> None:
        """Stop sending."""
        self._comm = None


class Channels:
    """Makes the two channels of one view; it replaces Panel's comm manager."""

    def __init__(self, face: Any, control: Any, view: str) -> None:
        self._face, self._control, self._view = face, control, view

    def get_server_comm(self) -> Channel:
        """The channel on which the kernel sends."""
        return Channel(self._face, self._view)

    def get_client_comm(
        self, on_msg: Callable[[dict[str, Any]], None], on_open: Callable[[dict[str, Any]], None]
    ) -> Channel:
        """The channel on which the page sends."""
        self.control = Channel(self._control, self._view, on_msg, on_open)
        return self.control


class WidgetCarrier:
    """One output of a notebook, and the views that pages show of it.

    Args:
        connect: makes a fresh view and returns its line, which is to use these channels.
    """

    def __init__(self, connect: Callable[[Channels], Line]) -> None:
        self._connect = connect
        self._lines: dict[str, tuple[Line, Channel]] = {}
        self._asked: set[tuple[str, str]] = set()
        self._is_closed = False
        self._control = Widget()
        self._face = Face(control=self._control.model_id)
        comm = self._control.comm
        # In place of on_msg(), which would run IPython's pre_execute and post_execute hooks around each message.
        self._of_the_widget = comm.handle_msg
        comm.handle_msg = self._handle
        # ipykernel would have the thread that last sent on a comm handle the answers; opening a widget's comm sends, so
        # the page would wait for the cell.
        comm._reply_subshell_for = lambda data, named: named or SUBSHELL.id(comm.kernel)

    def render(self, text: str) -> Bundle:
        """The MIME bundle that shows the widget, with `text` for front ends that cannot show it, and its metadata."""
        spec = {"version_major": 2, "version_minor": 0, "model_id": self._face.model_id}
        return {VIEW_TYPE: spec, "text/plain": text}, {}

    def close(self) -> None:
        """Forget the pages, which keep their content."""
        self._is_closed = True
        for line, _ in self._lines.values():
            line.close()
        self._lines.clear()

    def _handle(self, message: dict[str, Any]) -> None:
        data = message["content"]["data"]
        if data.get("method") != "custom":
            self._of_the_widget(message)
            return
        try:
            self._act(data["content"], message.get("buffers", ()))
        except Exception:  # noqa: BLE001 - the next message may be a good one
            _log.exception("a message of the dashboard's widget could not be handled")

    def _act(self, content: dict[str, Any], buffers: Any) -> None:
        view, ask = content["view"], content["ask"]
        if ask != "change":  # a page that is not heard at once asks again
            if (view, ask) in self._asked:
                return
            self._asked.add((view, ask))
        if ask == "scripts":
            self._control.send({"view": view, "scripts": len(scripts())}, list(scripts()))
        elif ask == "open":
            self._control.send({"view": view, **self._open(view)})
        elif view in self._lines:
            self._answer(*self._lines[view], ask, content, buffers)

    def _open(self, view: str) -> dict[str, Any]:
        """The answer to a page that asks for a view: its document, or a sentence why there is none."""
        if self._is_closed:
            return {"problem": CLOSED}
        try:
            channels = Channels(self._face, self._control, view)
            line = self._connect(channels)
            document = line.document()
        except Exception as error:  # noqa: BLE001 - whatever it is, the person who looks must hear of it
            _log.exception("a view of the dashboard could not be made")
            return {"problem": f"The dashboard could not be created ({described(error)})."}
        self._lines[view] = line, channels.control
        return document

    def _answer(self, line: Line, control: Channel, ask: str, content: dict[str, Any], buffers: Any) -> None:
        if ask == "ready" and control.on_open is not None:
            control.init()
            control.on_open({})
        elif ask == "close":
            line.close()
            del self._lines[content["view"]]
        elif ask == "change" and control.on_msg is not None:
            try:
                control.on_msg({**content["data"], "_buffers": dict(enumerate(buffers))})
            finally:  # the page waits for it before it sends more
                control.send(metadata={"msg_type": "Ready"})
