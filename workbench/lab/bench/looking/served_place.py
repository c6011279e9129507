"""A job on its served page."""

from __future__ import annotations

from workbench.lab.bench.looking.chromium import Chromium
from workbench.lab.bench.looking.notebook_kernel import NotebookKernel
from workbench.lab.bench.looking.watching import call


class ServedPlace:
    """A kernel that runs the wide job and serves its dashboard; a browser while the dashboard is open.

    Args:
        program: the Chromium.
    """

    screen = (1440, 2400)
    """All ten views are visible at once."""
    views = 1

    def __init__(self, program: str) -> None:
        self._program = program
        self._browser: Chromium | None = None
        self.kernel = NotebookKernel()

    def __enter__(self) -> ServedPlace:
        self.kernel.__enter__()
        self.kernel.run("from workbench.lab.bench.looking.shown_job import ShownJob; shown = ShownJob(served=True)")
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        self.kernel.__exit__(*error)

    def open(self) -> Chromium:
        """Open the page in a separate browser."""
        self._browser = Chromium(self._program, self.screen)
        self._browser.open(self.kernel.ask("shown.url"), call("countBytes"))
        return self._browser

    def close(self) -> None:
        """Close the browser."""
        if self._browser is not None:
            self._browser.close()
            self._browser = None

    def cell_seconds(self) -> float:
        """The time from sending a cell to receiving its reply."""
        return self.kernel.cell_seconds("1+1")
