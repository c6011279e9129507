"""An output that is redrawn while an action runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from IPython.display import HTML, display

_EVERY_S = 1.0


def show(html: Callable[[], str], over: Callable[[], bool]) -> None:
    """Display HTML below the cell, and draw it again every second until nothing changes any more.

    Args:
        html: the picture now.
        over: whether it will stay as it is.
    """
    handle = display(HTML(html()), display_id=True)
    if handle is None:
        return

    def again() -> None:
        drawn = ""
        pause = threading.Event()
        while True:
            last, now = over(), html()
            if now != drawn:
                handle.update(HTML(now))
                drawn = now
            if last:
                return
            pause.wait(_EVERY_S)

    threading.Thread(target=again, name="redrawn", daemon=True).start()
