"""Waiting for what another thread or process does, however slow the machine is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

PATIENCE_S = 180.0
"""After which something does not come at all; no test says how long it may take."""


def until(
    reached: Callable[[], object], process: subprocess.Popen[str] | None = None, patience_s: float = PATIENCE_S
) -> None:
    """Return once `reached` gives something true. A question that takes long is asked less often: it keeps a core busy.

    The test fails when that does not happen, or when the process that is to make it happen ends before.
    """
    end_s = time.monotonic() + patience_s
    asked_s = time.monotonic()
    while not reached():
        assert process is None or process.poll() is None, f"the process has ended: {process.communicate()}"
        assert time.monotonic() < end_s, f"it has not happened within {patience_s:.0f} seconds"
        time.sleep(min(max(0.005, 2 * (time.monotonic() - asked_s)), 0.2))
        asked_s = time.monotonic()
