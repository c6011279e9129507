"""The runs of each benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from workbench.errors import SettingError
from workbench.lab.bench.measuring.bare import run_bare
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.trial import WARM_UP, Setting, run_trial
from workbench.lab.bench.measuring.trial import Progress as OnProgress
from workbench.lab.bench.works.blocks import BLOCK
from workbench.lab.bench.works.campaigns import Campaigns
from workbench.lab.bench.works.connectors.redis_campaigns import RedisCampaigns
from workbench.lab.bench.works.function import Function
from workbench.lab.bench.works.grep import Grep
from workbench.lab.bench.works.grouping import Grouping
from workbench.lab.bench.works.windows import Windows
from workbench.lab.bench.works.work import Work

KEYS = (10_000, BLOCK)
PARALLELISMS = (1, 2)
CHECKPOINTS_S = (0, 5, 1)
SECONDS = 6.0
CHECKPOINT_SECONDS = 2 * max(CHECKPOINTS_S) / (1 - WARM_UP)
"""Two checkpoints of the longest interval are in the measured part of every run, never one more or less."""
LATENCY_RATE = 100_000
TIMEOUTS_MS = (0, 5, 10, 50, 100)
SWEEP_TIMEOUTS_MS = (0, 1, 2, 5, 10, 20, 50, 100, 200)


_WORKS: dict[str, Callable[[], Work]] = {
    "grep": Grep,
    "windows": Windows,
    "campaigns": Campaigns,
    "redis": RedisCampaigns,
    "function": Function,
}
"""The benchmarks whose cases are all alike."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run.

    Attributes:
        work: ``grep``, ``grouping``, ``windows``, ``campaigns``, ``redis`` or ``function``, or ``bare grep``, which is
            no job.
        setting: how it is run.
        keys: of grouping.
    """

    work: str
    setting: Setting
    keys: int = KEYS[0]

    def make(self) -> Work:
        """The work, to be run once."""
        if self.work == "grouping":
            return Grouping(self.keys, self.setting.parallelism, self.setting.rate)
        return _WORKS[self.work]()

    def run(self, on_progress: OnProgress) -> Result:
        """Run it once."""
        if self.work == "bare grep":
            return run_bare(self.setting, on_progress)
        return run_trial(self.make, self.setting, on_progress)

    def describe(self) -> str:
        """One line for the progress bar."""
        setting = self.setting
        parts = [self.work, f"parallelism {setting.parallelism}"]
        if self.work == "grouping":
            parts += [f"{self.keys:,} keys", f"timeout {setting.buffer_timeout_ms} ms"]
        if setting.checkpoint_s:
            parts.append(f"checkpoints every {setting.checkpoint_s} s")
        if setting.rate:
            parts.append(f"{setting.rate:,}/s")
        return ", ".join(parts)


def _parallel(work: str) -> list[Case]:
    return [Case(work, Setting(parallelism)) for parallelism in PARALLELISMS]


def _timeouts(timeouts_ms: tuple[int, ...]) -> list[Case]:
    return [
        Case("grouping", Setting(buffer_timeout_ms=timeout_ms, rate=rate))
        for rate in (LATENCY_RATE, 0)
        for timeout_ms in timeouts_ms
    ]


_GREP = [Case(work, Setting(parallelism)) for parallelism in PARALLELISMS for work in ("grep", "bare grep")]
_GROUPING = [Case("grouping", Setting(parallelism), keys) for keys in KEYS for parallelism in PARALLELISMS]
_CHECKPOINT = [Case("grouping", Setting(checkpoint_s=seconds), keys) for keys in KEYS for seconds in CHECKPOINTS_S]
_CAMPAIGNS, _REDIS = (
    [Case(work, Setting(parallelism, checkpoint_s=1)) for parallelism in PARALLELISMS]
    for work in ("campaigns", "redis")
)
_SWEEP = _timeouts(SWEEP_TIMEOUTS_MS)
SUITES: dict[str, tuple[str, str, list[Case]]] = {
    "grep": ("W1", "a regular expression over lines of 100 bytes (E1)", _GREP),
    "grouping": ("W2", "a running count and sum per key, a row out for every record in (E2)", _GROUPING),
    "windows": ("W3", "counts per key in event-time windows (the Yahoo benchmark)", _parallel("windows")),
    "campaigns": ("W3", "the same with a join, its counts in SQLite every second, exactly once (E6)", _CAMPAIGNS),
    "redis": ("W3", "the same in a Redis server, also as a picture (E6; needs redis-server)", _REDIS),
    "function": ("W4", "a Python function per record, then one with keyed state", _parallel("function")),
    "latency": ("W2lat", "of every record at 100,000/s, for some buffer timeouts", _timeouts(TIMEOUTS_MS)),
    "checkpoint": ("W2", "what checkpoints every 5 s and every 1 s cost", _CHECKPOINT),
    "sweep": ("W2lat", "latency and throughput against the buffer timeout, as a picture (E4)", _SWEEP),
}
"""By name: the name of the work in scripts of other systems, what is measured, and the runs."""
APART = ("redis", "sweep")
"""Those that are not part of ``all``."""


def cases(
    name: str, seconds: float | None = None, *, keys: int | None = None, parallelism: int | None = None
) -> list[Case]:
    """The runs of a benchmark, or of ``all``; none twice.

    Args:
        name: one of SUITES, or ``all``.
        seconds: of each run; None: six, or for ``checkpoint`` the time of two checkpoints at the longest interval.
        keys, parallelism: skip the runs with others.

    Raises:
        SettingError: no run is left.
    """
    names = [each for each in SUITES if each not in APART] if name == "all" else [name]
    found = [
        replace(case, setting=replace(case.setting, seconds=seconds or _usual_seconds(each)))
        for each in names
        for case in SUITES[each][2]
        if (keys in (None, case.keys) or case.work != "grouping") and parallelism in (None, case.setting.parallelism)
    ]
    if not found:
        wanted = {"keys": keys, "parallelism": parallelism}
        asked = " and ".join(f"{option} {value}" for option, value in wanted.items() if value is not None)
        raise SettingError(f"no run of {name} has {asked}: leave it out, or choose another benchmark")
    return list(dict.fromkeys(found))


def _usual_seconds(name: str) -> float:
    return CHECKPOINT_SECONDS if name == "checkpoint" else SECONDS


def run_round(chosen: list[Case], title: str, *, quiet: bool = False) -> Iterator[Result]:
    """Run every case once; a bar shows the progress, in a terminal or a notebook, unless `quiet`.

    Args:
        chosen: the runs.
        title: of the bar, such as ``"round 1 of 3"``.
        quiet: show nothing.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    hidden = quiet or not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, transient=True, disable=hidden) as bars:
        bar = bars.add_task("", total=float(len(chosen)))
        for done, case in enumerate(chosen):
            bars.update(bar, completed=done, description=f"{title}: {case.describe()}")
            yield case.run(partial(_advance, bars, bar, done))


def _advance(bars: Progress, bar: TaskID, done: int, share: float) -> None:
    bars.update(bar, completed=done + share)
