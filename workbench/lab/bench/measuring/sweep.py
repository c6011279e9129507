"""E4: the effect of the buffer timeout on latency and throughput."""

from __future__ import annotations

from pathlib import Path

from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.report import Report
from workbench.lab.bench.measuring.suites import LATENCY_RATE


class Sweep(Report):
    """A report with a picture."""

    def save(self, path: str | Path) -> Path:
        """Write the picture into an HTML file that needs no network."""
        target = Path(path)
        target.write_text(self._page(), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from workbench.dashboard.measured.sweep import framed

        return framed(self._page())

    def _page(self) -> str:
        from workbench.dashboard.measured.sweep import SweepPoint, sweep_page

        at_rate, at_full_speed = (self._by_timeout(rate) for rate in (LATENCY_RATE, 0))
        points = [
            SweepPoint(timeout, slow.p50_ms, slow.p90_ms, slow.p99_ms, at_full_speed[timeout].eps)
            for timeout, slow in sorted(at_rate.items())
            if timeout in at_full_speed
        ]
        return sweep_page(points, LATENCY_RATE)

    def _by_timeout(self, rate: int) -> dict[int, Result]:
        found: dict[int, Result] = {}
        for result in self.medians():
            timeout = result.config.get("timeout")
            if result.config.get("rate") == rate and isinstance(timeout, int):
                found[timeout] = result
        return found
