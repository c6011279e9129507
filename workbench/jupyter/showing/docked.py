"""Where ``%%stream`` shows the dashboard of its job: docked beside the notebook, or in the cell."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence

from workbench.errors import SettingError
from workbench.jupyter.showing.advice import Advice

DOCK, CELL = "dock", "cell"
PLACES = {
    DOCK: "docked next to the notebook, in JupyterLab with the workbench's extension; elsewhere in the cell",
    CELL: "in the cell",
}

FRONT_PATIENCE_S = 1.5
"""How long after the cell that loads the workbench a front end may take to say that it docks. It asks once the cell has
ended, while the next one may run already."""

_chosen = [DOCK]
_fronts: set[str] = set()
_jobs: set[str] = set()
_arrived = threading.Event()
_expected_until_s = [-math.inf]


def choose_display(words: Sequence[str]) -> Advice:
    """``%stream display``: choose one of `PLACES`, or tell which one is chosen.

    Raises:
        SettingError: another word.
    """
    if len(words) > 1 or (words and words[0] not in PLACES):
        raise SettingError(f"%stream display takes {' or '.join(PLACES)}, not {' '.join(words)!r}")
    _chosen[:] = words or _chosen
    return Advice(f"%%stream shows dashboards {PLACES[_chosen[0]]} (display {_chosen[0]}).")


def expect_front() -> None:
    """The cell that loads the workbench has ended: a front end that docks may come now."""
    _expected_until_s[0] = time.monotonic() + FRONT_PATIENCE_S


def front_opened(comm_id: str) -> None:
    """A front end that docks is there."""
    _fronts.add(comm_id)
    _arrived.set()


def front_closed(comm_id: str) -> None:
    """A front end is gone."""
    _fronts.discard(comm_id)


def dock(job: str) -> bool:
    """Decide where the next job of that name is shown, before it starts; True: a front end docks it.

    Where the workbench has just been loaded, this waits for a front end, so that a notebook whose cells are run at once
    shows what it shows when they are run one by one.
    """
    if _chosen[0] == DOCK and not _fronts:
        _arrived.clear()
        if not _fronts:
            _arrived.wait(max(0.0, _expected_until_s[0] - time.monotonic()))
    is_docked = _chosen[0] == DOCK and bool(_fronts)
    (_jobs.add if is_docked else _jobs.discard)(job)
    return is_docked


def is_docked(job: str) -> bool:
    """Whether a front end is to dock the job."""
    return job in _jobs
