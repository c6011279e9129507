"""Runs on live threads that get in each other's way: one buffer per channel, and threads that switch all the time.

A simulation takes one step after the other; what only happens when two threads do something at once shows here. What
is checked is the result, the end (no run may stand still) and that nothing is left behind.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from left_behind import Resources

from workbench.api.beginning.opening import open_storage
from workbench.api.launching.assembling import build_master
from workbench.clock import SystemClock
from workbench.compiled import warm_up
from workbench.connectors.tables.tables import Tables
from workbench.drivers.live.live import LiveDriver
from workbench.lab.pipelines.checkpointing import draw_checkpointing
from workbench.lab.pipelines.committed import committed
from workbench.lab.pipelines.drawing import draw_aggregation
from workbench.lab.pipelines.inputs import Chance
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial
from workbench.lab.simulation.scenario import DrawTrial
from workbench.plan.physical import build_physical_graph
from workbench.runtime.job.master import Master
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import DirectoryStorage

SWITCH_INTERVAL_S = 1e-6
ENDS_WITHIN_S = 60.0
_NAMES = tuple(name for name in sorted(TOPOLOGIES) if name not in ("replayed", "silent"))
"""Pipelines that do without a clock of their own."""


@dataclass(frozen=True, slots=True)
class Contended:
    """What came of one run.

    Attributes:
        seed: drew the pipeline, the settings, and what was done to the job.
        pipeline: its name.
        problems: one sentence each.
        tuned: how often settings were changed while it ran.
        restarts: after failures.
    """

    seed: int
    pipeline: str
    problems: tuple[str, ...]
    tuned: int
    restarts: int


@contextmanager
def switching() -> Iterator[None]:
    """Threads give way to each other about as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def contend(seed: int, *, draw: DrawTrial | None = None, tunings: int = 3) -> Contended:
    """Run one pipeline on threads, with failures and changed settings, and compare what it gives.

    Args:
        seed: of everything that is drawn; the threads' order is not.
        draw: the pipeline; None: one of those that simulations run.
        tunings: how often settings are changed, as fast as the job takes them.

    Example:
        >>> contend(1).problems
        ()
    """
    warm_up()
    chance = Chance(f"{seed} contention")
    name = chance.choice(_NAMES)
    before = Resources.now()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-contention-")))
        trial = (draw or TOPOLOGIES[name])(chance, folder)
        graph = build_physical_graph(trial.pipeline.logical_graph(), chance.choice(trial.parallelisms))
        settings = _draw_settings(chance)
        on_disk = bool(trial.folders) or chance.random() < 0.3
        directory = folder / "checkpoints" if on_disk else None
        storage, manifest, first_id = open_storage(directory, resume=True, restore=None)
        clock = SystemClock()
        driver = LiveDriver(f"contention-{seed}", clock, lambda: False)
        master = build_master(
            "contention",
            graph.logical,
            graph,
            settings,
            storage,
            manifest,
            first_id,
            clock=clock,
            stage=driver,
            background=driver,
            observer=JobObserver(),
            tables=Tables(),
            data_dir=directory,
        )
        with switching():
            driver.run(master)
            tuned = _disturb(chance, master, driver, tunings)
            ended = driver.ended.wait(ENDS_WITHIN_S)  # the last change may take effect only now
        problems = _problems(driver.master, trial, ended=ended)
        if not ended:
            master.call(master.cancel)
            driver.ended.wait(ENDS_WITHIN_S)
        if isinstance(storage, DirectoryStorage):
            storage.close()
    problems += before.left_behind()
    return Contended(seed, name if draw is None else "", tuple(problems), tuned["times"], master.restarts)


def _problems(master: Master, trial: Trial, *, ended: bool) -> list[str]:
    if not ended:
        return [f"I11: the job is {master.state} after {ENDS_WITHIN_S:.0f} s"]
    if master.state != "FINISHED":
        return [f"the job is {master.state}: {master.failure}"]
    return [f"I7: {text}" for text in trial.verify(committed(master.services.tables, trial))]


def _draw_settings(chance: Random) -> Settings:
    settings = Settings(
        buffer_size=chance.choice((1, 2, 5, 64)),
        buffer_timeout_us=chance.choice((0, 1_000)),
        buffers_per_channel=1,
        floating_buffers=0,
        checkpoint_interval_us=chance.choice((2_000, 5_000)),
        watermark_interval_us=1_000,
        latency_interval_us=2_000,
        restart=FixedDelay(5, 0, counts_injected=False),
    )
    drawn = replace(draw_checkpointing(chance, settings), local_aggregation=draw_aggregation(chance))
    # At least once would give some rows twice, and only a simulation knows which.
    return drawn if drawn.policy.guarantee == "exactly-once" else settings


def _disturb(chance: Random, master: Master, driver: LiveDriver, tunings: int) -> Counter[str]:
    """Fail a task now and then and change settings, as long as the job runs; counts the changes as they are made."""
    tuned: Counter[str] = Counter()
    for number in range(tunings):
        settings = replace(
            master.settings,
            buffer_size=chance.choice((1, 2, 5, 64)),
            buffer_timeout_us=chance.choice((0, 1_000)),
            checkpoint_interval_us=chance.choice((None, 2_000, 5_000)),
        )

        def tune(settings: Settings = settings) -> None:
            master.apply(settings, "tuned")
            tuned["times"] += 1

        master.call(tune)
        tasks = [task for vertex in master.graph.vertices for task in vertex.tasks]
        victim = chance.choice(tasks)
        if number == 1 and chance.random() < 0.5:
            master.call(partial(master.crash, victim))
        if driver.ended.wait(0.002):
            break
    return tuned
