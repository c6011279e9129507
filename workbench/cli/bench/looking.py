"""What it costs a job to be looked at: the wide job at full speed in a kernel, without a page, with one, without."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from workbench.cli.bench.chromium import Chromium
from workbench.cli.bench.notebook_kernel import NotebookKernel
from workbench.cli.checks.machine import find_browser
from workbench.errors import SettingError

SECONDS = 8.0
"""Of each of the three measurements."""
WARM_UP_S = 5.0
SETTLING_S = 2.5
"""After the page has been opened or closed."""
WHOLE_PAGE = (1440, 2400)
"""A screen on which all nine views are seen at once."""
CELL_EVERY_S = 0.2
TUNINGS = ("0ms", "50ms", "10ms", "100ms")
TUNING_PATIENCE_S = 5.0

_COUNT = """
window.workbench = {painted: 0, bytes: 0, answered: 0}
const Socket = window.WebSocket
window.WebSocket = class extends Socket {
  constructor(...rest) {
    super(...rest)
    this.addEventListener("message", (event) => { workbench.bytes += event.data.length ?? event.data.byteLength })
  }
  send(data) {
    workbench.answered += data.length ?? data.byteLength
    super.send(data)
  }
}
"""
_MODELS = "[...Bokeh.documents[0]._all_models.values()]"
_READY = f"""window.Bokeh?.documents?.length > 0 && (() => {{
  const sources = {_MODELS}.filter((model) => model.type === "ColumnDataSource")
  const pulse = sources.find((source) => source.columns().join() === "beat,live")
  const echo = sources.find((source) => source.columns().join() === "beat")
  if (pulse === undefined || pulse.get_column("beat")[0] < 3) return false
  if (workbench.echo === undefined) {{
    workbench.echo = echo
    echo.properties.data.change.connect(() => workbench.painted += 1)
  }}
  return true
}})()"""
_TUNE = """new Promise((resolve) => {
  const slider = %s.find((model) => model.name === "buffer_timeout")
  const texts = %s.find((model) => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
  const wanted = `in force: <b>${%s}</b>`, begin = Date.now()
  const seen = () => texts.columns().some((name) => texts.get_column(name)[0] === wanted)
  const look = () => {
    if (seen() || Date.now() - begin > %d) resolve([begin, seen() ? Date.now() - begin : -1])
    else setTimeout(look, 5)
  }
  slider.value = slider.format.args.steps.indexOf(%s)
  look()
})"""


@dataclass(frozen=True, slots=True)
class Phase:
    """One measurement.

    Attributes:
        seconds: that it took.
        events: that the source emitted meanwhile.
        cpu_s: CPU seconds of the kernel's process.
        feed_cpu_s: of its threads that feed the page.
        cells_ms: what a cell ``1+1`` took, in milliseconds, in order.
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
        return Phase(
            self.seconds + other.seconds,
            self.events + other.events,
            self.cpu_s + other.cpu_s,
            self.feed_cpu_s + other.feed_cpu_s,
            self.cells_ms + other.cells_ms,
        )


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of it; milliseconds unless the name says otherwise.

    Attributes:
        screen: of the page, in pixels.
        eps_alone, eps_seen: events per wall-clock second without a page and with one.
        eps_cpu_s_alone, eps_cpu_s_seen: per CPU second of the kernel's process.
        kept, kept_cpu: the second of each as a share of the first.
        alone_again: the speed without a page after it as a share of that before it; as far from 1 as this is, so far
            other work on the machine disturbs the other ratios.
        frames_per_s: frames that the page has painted.
        bytes_per_s: that the page has received.
        feed_cpu: share of one core that the threads which feed the page took.
        browser_cpu: share of one core that the browser took.
        in_force_ms: from moving a slider on the page to the setting in force, median.
        in_force_ms_max: of the slowest.
        shown_ms: until the page says so, median.
        cell_ms, cell_ms_p99: what a cell ``1+1`` took with the page open.
        cell_alone_ms, cell_alone_ms_p99: and without.
        checked: the job's results are right.
    """

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
        return json.dumps({"peer": "workbench", "workload": "W5", "config": {"tasks": 40}, **asdict(self)})

    def describe(self) -> str:
        """A few lines."""
        return "\n".join(
            (
                f"throughput  {self.kept:.1%} of {self.eps_alone / 1e6:.1f} M events/s with the page open; "
                f"per CPU second of the kernel {self.kept_cpu:.1%} of {self.eps_cpu_s_alone / 1e6:.1f} M "
                f"(without it again {self.alone_again:.1%} of without it before)",
                f"page        {self.frames_per_s:.1f} frames/s painted, {self.bytes_per_s / 1e3:.0f} kB/s; "
                f"{self.feed_cpu:.1%} of a core feeds it, the browser takes {self.browser_cpu:.0%}",
                f"slider      in force after {self.in_force_ms:.0f} ms (at most {self.in_force_ms_max:.0f}), "
                f"on the page after {self.shown_ms:.0f} ms",
                f"cell 1+1    {self.cell_ms:.1f} ms (p99 {self.cell_ms_p99:.0f}) with the page, "
                f"{self.cell_alone_ms:.1f} ms (p99 {self.cell_alone_ms_p99:.0f}) without",
                f"result      {'exact' if self.checked else 'WRONG'}",
            )
        )


def look(
    seconds: float = SECONDS,
    screen: tuple[int, int] = WHOLE_PAGE,
    on_phase: Callable[[str], None] = lambda phase: None,
) -> Looked:
    """Measure once.

    Args:
        seconds: of each of the three measurements.
        screen: of the page, in pixels.
        on_phase: is told what comes next.

    Raises:
        SettingError: there is no Chromium.
    """
    program = find_browser()
    if program is None:
        raise SettingError("there is no Chromium to open the page in: install it, or name it in WORKBENCH_CHROMIUM")
    on_phase("a kernel starts the job")
    with NotebookKernel() as kernel:
        kernel.run("from workbench.cli.bench.shown_job import ShownJob; shown = ShownJob()")
        url = kernel.ask("shown.url")
        time.sleep(WARM_UP_S)
        on_phase("without a page")
        before = _measure(kernel, seconds)
        on_phase("the page is opened")
        with Chromium(program, screen) as page:
            _open(page, url)
            time.sleep(SETTLING_S)
            on_phase("with the page")
            browser_s, counted = page.cpu_seconds(), page.ask("({...workbench, echo: 0})")
            seen = _measure(kernel, seconds)
            counts, browser_s = page.ask("({...workbench, echo: 0})"), page.cpu_seconds() - browser_s
            on_phase("the slider is moved")
            tuned = [_tune(kernel, page, value) for value in TUNINGS]
        time.sleep(SETTLING_S)
        on_phase("without a page again")
        after = _measure(kernel, seconds)
        on_phase("the job ends")
        checked = bool(kernel.ask("shown.end()"))
    return compare(
        before=before,
        seen=seen,
        after=after,
        screen=screen,
        painted=counts["painted"] - counted["painted"],
        received=counts["bytes"] - counted["bytes"],
        browser_s=browser_s,
        tuned=tuned,
        checked=checked,
    )


def compare(
    before: Phase,
    seen: Phase,
    after: Phase,
    screen: tuple[int, int],
    painted: int,
    received: int,
    browser_s: float,
    tuned: list[tuple[float, float]],
    checked: bool,
) -> Looked:
    """What follows from the measurements.

    Args:
        before, seen, after: without a page, with one, and without again.
        screen: of the page, in pixels.
        painted, received: frames and bytes of the page meanwhile.
        browser_s: CPU seconds of the browser meanwhile.
        tuned: milliseconds of each tuning until it was in force, and until the page said so.
        checked: the job's results are right.
    """
    alone = before.followed_by(after)
    return Looked(
        screen=screen,
        eps_alone=round(alone.eps),
        eps_seen=round(seen.eps),
        eps_cpu_s_alone=round(alone.eps_cpu_s),
        eps_cpu_s_seen=round(seen.eps_cpu_s),
        kept=round(seen.eps / alone.eps, 4),
        kept_cpu=round(seen.eps_cpu_s / alone.eps_cpu_s, 4),
        alone_again=round(after.eps / before.eps, 4),
        frames_per_s=round(painted / seen.seconds, 2),
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


def _measure(kernel: NotebookKernel, seconds: float) -> Phase:
    """For so long, a cell five times a second: a notebook is used while the job runs."""
    cells: list[float] = []
    begin = kernel.ask("shown.reading()")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        took = kernel.cell_seconds("1+1")
        cells.append(took * 1e3)
        time.sleep(max(0.0, CELL_EVERY_S - took))
    end = kernel.ask("shown.reading()")
    took, events, cpu_s, feed_s = (now - then for now, then in zip(end, begin, strict=True))
    return Phase(took, int(events), cpu_s, feed_s, tuple(cells))


def _open(page: Chromium, url: str, patience_s: float = 60.0) -> None:
    """Open the page and wait until it shows frames."""
    page.open(url, _COUNT)
    until = time.perf_counter() + patience_s
    while not page.ask(_READY):
        if time.perf_counter() > until:
            raise SettingError(f"the page has shown no frame within {patience_s:g} s: is the machine very busy?")
        time.sleep(0.2)


def _tune(kernel: NotebookKernel, page: Chromium, value: str) -> tuple[float, float]:
    """Milliseconds from moving the slider until the setting is in force, and until the page shows it."""
    words = json.dumps(value)
    begin_ms, shown_ms = page.ask(_TUNE % (_MODELS, _MODELS, words, TUNING_PATIENCE_S * 1e3, words))
    told: list[int] = kernel.ask("shown.tunings()")
    force_ms = min((at / 1e3 - begin_ms for at in told if at / 1e3 >= begin_ms - 2), default=TUNING_PATIENCE_S * 1e3)
    return force_ms, shown_ms if shown_ms >= 0 else TUNING_PATIENCE_S * 1e3


def p99(values: tuple[float, ...]) -> float:
    """The value that 99 % stay below or reach; the greatest of fewer than a hundred."""
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]
