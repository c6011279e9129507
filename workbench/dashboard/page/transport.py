"""Carries one view to the notebook page that shows it, and the page's actions back.

A view has its own Bokeh document and two comms: only the kernel sends on `telemetry`, and only the page sends on
`control`. The kernel answers a comm's messages on the thread that last sent on it; because the two are separate, a
slider acts while a cell is busy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from threading import RLock
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from panel.io.model import add_to_doc, diff
from panel.io.notebook import JupyterCommManagerBinary, render_mimebundle, send
from panel.models.comm_manager import CommManager

from workbench.dashboard.page.assets import loader_html

Bundle = tuple[dict[str, Any], dict[str, Any]]

_log = logging.getLogger(__name__)


class ControlComm(JupyterCommManagerBinary.client_comm):  # type: ignore[misc]
    """The page's comm to the kernel, whose messages are handled without affecting the cell that runs meanwhile.

    The class that it replaces redirects ``sys.stdout`` while it handles a message. A page answers each frame, on a
    separate thread, so output of a running cell at that moment was lost.
    """

    def _handle_open(self, comm: Any, message: dict[str, Any]) -> None:
        # A page that has not heard the kernel yet opens its comm again, and a page that was loaded again does so too.
        # Both times the kernel makes another object of the same name; the first one must go without closing it.
        _forget(self._comm)
        super()._handle_open(comm, message)
        # In place of on_msg(), which would run IPython's pre_execute and post_execute hooks around each message: in the
        # middle of a running cell these would, for example, flush the cell's half-drawn figures.
        comm.handle_msg = self._handle_msg

    def _handle_msg(self, message: dict[str, Any]) -> None:
        data = self.decode(message)
        reply = {"msg_type": "Ready", "comm_id": data.pop("comm_id", None)}
        try:
            self._on_msg(data)
        except Exception:  # noqa: BLE001 - the page waits for the reply, and the next message may be a good one
            _log.exception("a message of the dashboard's page could not be handled")
        self.send(metadata=reply)


def _forget(comm: Any) -> None:
    """Drop a replaced comm without closing it: otherwise the garbage collector closes it on the page."""
    if comm is not None:
        comm._closed = True


class Comms(JupyterCommManagerBinary):  # type: ignore[misc]
    """Makes the comms of a display."""

    client_comm = ControlComm


class Line:
    """The connection between the kernel and one display of a view.

    Args:
        document: holds the view's root model alone.
        script: a CustomJS that the root refers to, to be run on the page once it shows the view.
        inputs: the models that the page may change, which may become more; what else changes there (sizes, colours)
            is its own affair.
        greet: changes something as soon as the connection to the page is open, so that the page notices it; needed if
            nothing else is sent.
        comms: makes the two comms; None: Panel's do.

    Attributes:
        heard: called when the page opens its connection, or sends a request.
    """

    def __init__(
        self,
        document: Document,
        script: Any,
        inputs: Collection[Any],
        greet: Callable[[], None] | None = None,
        comms: Any = None,
    ) -> None:
        self.lock = RLock()
        """Held while the view's models are read or changed."""
        self.bytes_sent = 0
        self.heard: Callable[[], None] = lambda: None
        self._document, self._script_id = document, script.id
        self._inputs = inputs
        self._greet = greet
        self._changed: dict[tuple[Any, str], None] = {}
        self._root = root = document.roots[0]
        self._rendered = frozenset(model.id for model in document.models)
        comms = Comms if comms is None else comms
        self._telemetry = comms.get_server_comm()
        self._manager = CommManager(comm_id=self._telemetry.id, plot_id=root.ref["id"])
        self._control = comms.get_client_comm(on_msg=self._receive, on_open=self._answer)
        self._manager.client_comm_id = self._control.id

    @property
    def is_open(self) -> bool:
        """Whether the page has answered, so that telemetry reaches it."""
        return self._telemetry._comm is not None

    def render(self) -> Bundle:
        """The MIME bundle that shows the view, and its metadata."""
        with self.lock:
            data, metadata = render_mimebundle(self._root, self._document, self._telemetry, self._manager)
            self._document.callbacks._held_events = []
        html = loader_html(self._root.ref["id"], self._script_id, self._acted()) + data["text/html"]
        return {**data, "text/html": html}, metadata

    def document(self) -> dict[str, Any]:
        """What a page needs that makes the view by itself: ``document`` (JSON), the ids of its ``root``, of the script
        to ``start`` there and of the ``inputs``.
        """
        with self.lock:
            add_to_doc(self._root, self._document, True)
            self._document.add_root(self._manager)
            text = serialize_json(self._document.to_json(deferred=False))
            self._document.callbacks._held_events = []
        ids = {"root": self._root.id, "start": self._script_id, "inputs": sorted(self._acted())}
        return {"document": text, **ids}

    def push(self, change: Callable[[], None] | None = None) -> int:
        """Apply a change to the models and send all changes to the page.

        Returns:
            The number of bytes sent.
        """
        with self.lock:
            if change is not None:
                change()
            return self._flush()

    def close(self) -> None:
        """Drop the connection to the page."""
        for comm in (self._telemetry, self._control):
            Comms._comms.pop(comm.id, None)
            if comm._comm is not None:
                comm.close()

    def _answer(self, _message: dict[str, Any]) -> None:
        """Connect to a page that has opened its comm, and confirm this: until then the page repeats its request.

        A page that was reloaded has the view as it was rendered, and receives everything that has changed since.
        """
        _forget(self._telemetry._comm)
        self._telemetry.init()
        with self.lock:
            self._document.models._new_models |= {m for m in self._document.models if m.id not in self._rendered}
            for model, attribute in self._changed:
                change = ModelChangedEvent(self._document, model, attribute, getattr(model, attribute))
                self._document.callbacks._held_events.append(change)
            self.push(self._greet)
        self.heard()

    def _receive(self, message: dict[str, Any]) -> None:
        """Apply the page's changes and run the callbacks; changes that the callbacks make are sent to the page.

        The document is on hold, so that it collects changes until they are sent. It also collects the page's own
        changes, which must not be sent back, and does not run their callbacks.
        """
        with self.lock:
            self._flush()
            message["content"]["events"] = [event for event in message["content"]["events"] if self._is_input(event)]
            patch = self._manager.assemble(message)
            patch.apply_to_document(self._document, self._telemetry.id)
            changes, self._document.callbacks._held_events = self._document.callbacks._held_events, []
            self._remember(changes)
            for change in changes:
                if change.setter != self._telemetry.id:  # what a pressed button has changed already
                    self._document.callbacks._held_events.append(change)
                elif change.callback_invoker is not None:
                    change.callback_invoker()
            self._flush()
        self.heard()

    def _is_input(self, event: dict[str, Any]) -> bool:
        """A pressed button, or a change of a model that the page may change."""
        return event["kind"] == "MessageSent" or event.get("model", {}).get("id") in self._acted()

    def _acted(self) -> set[str]:
        return {model.id for model in self._inputs}

    def _flush(self) -> int:
        if not self.is_open:
            return 0
        self._remember(self._document.callbacks._held_events)
        message = diff(self._document, binary=False)
        if message is None:
            return 0
        send(self._telemetry, message)
        sent = len(message.header_json) + len(message.metadata_json) + len(message.content_json)
        self.bytes_sent += sent
        return sent

    def _remember(self, changes: Iterable[Any]) -> None:
        """Keep changes that a page with the originally rendered view has not received."""
        self._changed.update({(change.model, change.attr): None for change in changes if hasattr(change, "attr")})
