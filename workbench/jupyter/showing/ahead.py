"""Imports what the first dashboard needs as soon as a front end is there, while the user writes the cell that shows it.

These imports take longer than anything else between the cell and its picture: about 1.5 s of 2 s.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module

DASHBOARD = "workbench.dashboard.shown.show"


def import_ahead() -> threading.Thread | None:
    """Import the dashboard in a thread of its own; a cell that needs it meanwhile waits for the rest.

    Returns:
        The thread; None if the dashboard has been imported before.
    """
    if DASHBOARD in sys.modules:
        return None
    thread = threading.Thread(target=_import, name="workbench-ahead", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    with suppress(ModuleNotFoundError):  # whoever asks for a dashboard is told which package is missing
        import_module(DASHBOARD)
