"""Compares the measurements with and without a page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """One measurement.

    Attributes:
        seconds: its duration.
        events: number of events that the source emitted.
        cpu_s: CPU seconds of the kernel's process.
        feed_cpu_s: CPU seconds of its threads that feed the page.
        cells_ms: durations of a cell ``1+1`` in milliseconds, in order.
    """

    seconds: float
    events: int
    cpu_s: float
    feed_cpu_s: float
    cells_ms: tuple[float, ...]

    @property
    def eps(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    @property
    def eps_cpu_s(self) -> float:
        """Events per CPU second of the kernel's process."""
        return self.events / self.cpu_s

    def followed_by(self, other: Phase) -> Phase:
        """Both as one measurement."""
        return Phase(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Looked:
    """The result; milliseconds unless the name says otherwise.

    Attributes:
        page: where the dashboard is shown, by its name in ``looking.PLACES``.
        views: number of views that are fed separately: the served page is one, docked views are many.
        screen: of the page, in pixels.
        eps_alone, eps_seen: events per wall-clock second without a page and with one.
        eps_cpu_s_alone, eps_cpu_s_seen: per CPU second of the kernel's process.
        kept, kept_cpu: the second of each as a share of the first.
        alone_again: the speed without a page afterwards, as a share of that before; its distance from 1 shows how much
            other work on the machine disturbs the other ratios.
        frames_per_s: painted frames, of the view that painted the fewest.
        bytes_per_s: received by the page.
        feed_cpu: share of one core used by the threads that feed the page.
        browser_cpu: share of one core used by the browser.
        in_force_ms: from moving a slider on the page until the setting has taken effect, median.
        in_force_ms_max: of the slowest.
        shown_ms: until the page shows it, median.
        cell_ms, cell_ms_p99: duration of a cell ``1+1`` with the page open.
        cell_alone_ms, cell_alone_ms_p99: and without it.
        checked: the job's results are right.
    """

    page: str
    views: int
    screen: tuple[int, int]
    eps_alone: int
    eps_seen: int
    eps_cpu_s_alone: int
    eps_cpu_s_seen: int
    kept: float
    kept_cpu: float
    alone_again: float
    frames_per_s: float
    bytes_per_s: int
    feed_cpu: float
    browser_cpu: float
    in_force_ms: float
    in_force_ms_max: float
    shown_ms: float
    cell_ms: float
    cell_ms_p99: float
    cell_alone_ms: float
    cell_alone_ms_p99: float
    checked: bool

    def to_json(self) -> str:
        """One line of JSON, with the fields that all benchmarks have."""
        return json.dumps(
            {"peer": "workbench", "workload": "W5", "config": {"tasks": 40, "page": self.page}, **asdict(self)}
        )

    def describe(self) -> str:
        """A few lines."""
        each = f" by the slowest of {self.views} views" if self.views > 1 else ""
        return "\n".join(
            (
                f"throughput  {self.kept:.1%} of {self.eps_alone / 1e6:.1f} M events/s with the page open; "
                f"per CPU second of the kernel {self.kept_cpu:.1%} of {self.eps_cpu_s_alone / 1e6:.1f} M "
                f"(without it again {self.alone_again:.1%} of without it before)",
                f"page        {self.frames_per_s:.1f} frames/s painted{each}, {self.bytes_per_s / 1e3:.0f} kB/s; "
                f"{self.feed_cpu:.1%} of a core feeds it, the browser takes {self.browser_cpu:.0%}",
                f"slider      in force after {self.in_force_ms:.0f} ms (at most {self.in_force_ms_max:.0f}), "
                f"on the page after {self.shown_ms:.0f} ms",
                f"cell 1+1    {self.cell_ms:.1f} ms (p99 {self.cell_ms_p99:.0f}) with the page, "
                f"{self.cell_alone_ms:.1f} ms (p99 {self.cell_alone_ms_p99:.0f}) without",
                f"result      {'exact' if self.checked else 'WRONG'}",
            )
        )


def compare(
    before: Phase,
    seen: Phase,
    after: Phase,
    page: str,
    screen: tuple[int, int],
    painted: Sequence[int],
    received: int,
    browser_s: float,
    tuned: list[tuple[float, float]],
    checked: bool,
) -> Looked:
    """Evaluate the measurements.

    Args:
        before, seen, after: without a page, with one, and without again.
        page: where the dashboard is shown.
        screen: of the page, in pixels.
        painted: frames that each view painted in the measurement.
        received: bytes that the page received in it.
        browser_s: CPU seconds of the browser in it.
        tuned: milliseconds of each tuning until it took effect, and until the page showed it.
        checked: the job's results are right.
    """
    alone = before.followed_by(after)
    return Looked(
        page=page,
        views=len(painted),
        screen=screen,
        eps_alone=round(alone.eps),
        eps_seen=round(seen.eps),
        eps_cpu_s_alone=round(alone.eps_cpu_s),
        eps_cpu_s_seen=round(seen.eps_cpu_s),
        kept=round(seen.eps / alone.eps, 4),
        kept_cpu=round(seen.eps_cpu_s / alone.eps_cpu_s, 4),
        alone_again=round(after.eps / before.eps, 4),
        frames_per_s=round(min(painted) / seen.seconds, 2),
        bytes_per_s=round(received / seen.seconds),
        feed_cpu=round(seen.feed_cpu_s / seen.seconds, 4),
        browser_cpu=round(browser_s / seen.seconds, 4),
        in_force_ms=round(statistics.median(force for force, _ in tuned), 1),
        in_force_ms_max=round(max(force for force, _ in tuned), 1),
        shown_ms=round(statistics.median(shown for _, shown in tuned), 1),
        cell_ms=round(statistics.median(seen.cells_ms), 2),
        cell_ms_p99=round(p99(seen.cells_ms), 2),
        cell_alone_ms=round(statistics.median(alone.cells_ms), 2),
        cell_alone_ms_p99=round(p99(alone.cells_ms), 2),
        checked=checked,
    )


def p99(values: tuple[float, ...]) -> float:
    """The value that 99 % stay below or reach; the greatest of fewer than a hundred."""
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]
