"""Shows failures of jobs that no dashboard shows, below the cell that runs next."""

from __future__ import annotations

import sys
from typing import Any

from IPython.display import display

from workbench.api.job.endings import mark_told, untold_failure
from workbench.api.job.registry import jobs
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.showing.ahead import DASHBOARD
from workbench.jupyter.showing.docked import is_docked


def show_failed() -> None:
    """Show each failure once: not here if a call has raised it, or a dashboard has shown it or is about to."""
    for job in jobs().values():
        if (text := untold_failure(job)) and not _is_displayed(job):
            mark_told(job)
            display(Advice(text))


def _is_displayed(job: Any) -> bool:
    if is_docked(job.name):
        return True
    pump = getattr(sys.modules.get(DASHBOARD), "PUMP", None)  # None, too, while a thread imports the module
    return pump is not None and any(display.job is job for display in pump.displays)
