"""The display of jobs beside each other, in a cell or on a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.lanes.lanes import LANES, Lanes
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import View


def lanes_view(lanes: Any, hears: bool = True) -> View:
    """A fresh set of figures for a `Lanes`; `hears`: as for `View`."""
    return View(lanes, lanes.frames(), LANES.name, views=[LANES], hears=hears)


class LanesDashboard(Dashboard):
    """The live jobs of several lanes, for display in a cell.

    Args:
        jobs: by lane.
        carrier: as for `Dashboard`.

    Example:
        ``wb.compare(pipeline, a={}, b={"buffer_timeout": "0ms"}).dashboard()`` at the end of a cell.
    """

    without_widgets = "The lanes are not shown here, or no longer: run the cell again, or print the comparison."

    def __init__(self, jobs: Mapping[str, Watched], carrier: str | None = None) -> None:
        lanes: Any = Lanes(jobs)
        super().__init__(lanes, carrier=carrier)

    def view(self, hears: bool = True, staged: bool = False) -> View:
        """A fresh set of figures for all lanes."""
        return lanes_view(self._job, hears)
