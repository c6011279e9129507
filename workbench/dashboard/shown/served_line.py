"""Carries one view to the page of the Bokeh server that shows it: a frame is one message.

Bokeh's server sends every change of a model as a message of its own, and the page takes each of them apart and paints
in between. So the changes of a frame are collected and written as one patch, and this text is the only change that
the server sees; the page applies the patch.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from bokeh.document import Document
from bokeh.models import ColumnDataSource
from panel.io.model import diff

from workbench.dashboard.charts.static import callback
from workbench.dashboard.shown.view import View


class ServedLine:
    """The connection between the kernel and one served page.

    Args:
        document: of the page.
        view: that it shows.

    Attributes:
        lock: held while the view's models are used; only the server's thread uses them.
        script: to be run on the page when it is ready.
    """

    is_open = True

    def __init__(self, document: Document, view: View) -> None:
        self.lock = RLock()
        self._document = document
        self._patches = ColumnDataSource({"patch": [""]})
        self.script = callback("applyPatches", root=view.root, patches=self._patches, start=view.script)
        view.root.tags = [*view.root.tags, self.script]

    def push(self, change: Callable[[], None]) -> int:
        """Apply a change to the models and send all changes; returns the number of bytes."""
        self._document.hold("collect")
        try:
            change()
            message = diff(self._document, binary=False)
        finally:
            self._document.unhold()
        if message is None:
            return 0
        patch = str(message.content_json)
        self._patches.data = {"patch": [patch]}
        return len(patch)

    def close(self) -> None:
        """The server forgets the page when its connection ends."""
