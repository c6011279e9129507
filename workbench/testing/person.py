"""Somebody at the controls: what people do to a running job, at random moments of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from random import Random

from workbench.plan.physical import build_physical_graph
from workbench.runtime.master import Master
from workbench.runtime.rescaling import Rescale

_MOST_ACTIONS = 6
_LAST_STEP = 250


class Person:
    """Turns knobs, asks for checkpoints and savepoints, changes the speed, pauses and stops.

    Args:
        chance: draws what is done, and when.
        may_stop: whether the job can be stopped, because it can be resumed.
        parallelisms: among which the job may be rescaled.

    Attributes:
        rescaled: how often the job went on at another parallelism.
    """

    def __init__(self, chance: Random, *, may_stop: bool, parallelisms: Sequence[int]) -> None:
        self._chance = chance
        self._parallelisms = parallelisms
        self.rescaled = 0
        actions: list[Callable[[Master], None]] = [
            self._tune,
            self._checkpoint,
            self._savepoint,
            self._pause,
            self._speed,
            self._rescale,
        ]
        if may_stop:
            actions.append(self._stop)
        moments = sorted(chance.randint(1, _LAST_STEP) for _ in range(chance.randint(0, _MOST_ACTIONS)))
        self._plan = [(moment, chance.choice(actions)) for moment in moments]
        self._steps = 0
        self._savepoints = 0

    def after_step(self, master: Master) -> None:
        """Do what is due after one more step."""
        self._steps += 1
        while self._plan and self._plan[0][0] <= self._steps:
            self._plan.pop(0)[1](master)
        if master.paused and self._chance.random() < 0.02:
            self.resumes(master)

    def resumes(self, master: Master) -> bool:
        """Resume a paused job; whether it was paused."""
        if master.paused:
            master.call(lambda: master.sources.set_paused(False))
            return True
        return False

    def _tune(self, master: Master) -> None:
        chance = self._chance
        settings = replace(
            master.settings,
            buffer_size=chance.choice((1, 4, 64)),
            buffer_timeout_us=chance.choice((0, 1_000, None)),
            checkpoint_interval_us=chance.choice((None, 500, 5_000)),
        )
        master.call(lambda: master.apply(settings, "tuned"))

    def _checkpoint(self, master: Master) -> None:
        master.call(lambda: master.checkpoint("manual"))

    def _savepoint(self, master: Master) -> None:
        self._savepoints += 1
        name = f"s{self._savepoints}"
        master.call(lambda: master.checkpoint("savepoint", name))

    def _speed(self, master: Master) -> None:
        speed = self._chance.choice((inf, 0.1, 0.02))
        master.call(lambda: master.sources.set_speed(speed))

    def _rescale(self, master: Master) -> None:
        parallelism = self._chance.choice(self._parallelisms)
        graph = build_physical_graph(master.logical, parallelism)

        def done(reason: str | None) -> None:
            self.rescaled += reason is None

        master.call(lambda: master.rescale(Rescale(parallelism, graph, done)))

    def _pause(self, master: Master) -> None:
        master.call(lambda: master.sources.set_paused(True))

    def _stop(self, master: Master) -> None:
        master.call(master.stop)
