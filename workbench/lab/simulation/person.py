"""A user at the controls: actions on a running job, at random moments of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Literal

from workbench.lab.pipelines.checkpointing import draw_exactly_once
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.checkpoints.rescaling import Rescale
from workbench.runtime.job.master import Master

_MOST_ACTIONS = 4
_LAST_STEP = 100

Deed = Literal["tune", "checkpoint", "savepoint", "pause", "speed", "rescale", "stop"]


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a user.

    Attributes:
        step: the number of steps before it.
        what: the action.
        value: the seed of the values drawn for it.
    """

    step: int
    what: Deed
    value: int

    def __str__(self) -> str:
        return f"{self.what} after step {self.step}"


def draw_actions(chance: Random, *, may_stop: bool) -> tuple[Action, ...]:
    """Draw the actions of one run; sometimes two of them tune at the same moment.

    Args:
        chance: draws the actions and their times.
        may_stop: whether the job can be stopped, because it can be resumed.
    """
    deeds: list[Deed] = ["tune", "checkpoint", "savepoint", "pause", "speed", "rescale"]
    if may_stop:
        deeds.append("stop")
    actions = []
    for _ in range(chance.randint(0, _MOST_ACTIONS)):
        action = Action(chance.randint(1, _LAST_STEP), chance.choice(deeds), chance.randrange(1_000_000))
        actions.append(action)
        if action.what == "tune" and chance.random() < 0.3:
            actions.append(replace(action, value=chance.randrange(1_000_000)))
    return tuple(sorted(actions, key=lambda action: action.step))


class Person:
    """Performs the drawn actions.

    Args:
        actions: in the order of their steps.
        parallelisms: to choose from when the job is rescaled.
        graph_at: returns the job's plan at a parallelism.

    Attributes:
        rescaled: how often the job was rescaled.
    """

    def __init__(
        self, actions: Sequence[Action], parallelisms: Sequence[int], graph_at: Callable[[int], PhysicalGraph]
    ) -> None:
        self._plan = list(actions)
        self._parallelisms = parallelisms
        self._graph_at = graph_at
        self._steps = 0
        self._paused_at = 0
        self._savepoints = 0
        self.rescaled = 0

    def after_step(self, master: Master) -> None:
        """Perform what is due after one more step; a pause lasts for some steps."""
        self._steps += 1
        while self._plan and self._plan[0].step <= self._steps:
            self._do(self._plan.pop(0), master)
        if self._paused_at and self._steps > self._paused_at + 50:
            self.resumes(master)

    def resumes(self, master: Master) -> bool:
        """Resume a paused job; returns whether it was paused."""
        if master.paused:
            master.call(lambda: master.sources.set_paused(False))
            self._paused_at = 0
            return True
        return False

    def _do(self, action: Action, master: Master) -> None:
        chance = Random(action.value)
        match action.what:
            case "tune":
                self._tune(master, chance)
            case "checkpoint":
                master.call(lambda: master.checkpoint("manual"))
            case "savepoint":
                self._savepoints += 1
                name = f"s{self._savepoints}"
                master.call(lambda: master.checkpoint("savepoint", name))
            case "pause":
                self._paused_at = self._steps
                master.call(lambda: master.sources.set_paused(True))
            case "speed":
                speed = chance.choice((inf, 0.1, 0.02))
                master.call(lambda: master.sources.set_speed(speed))
            case "rescale":
                self._rescale(master, chance)
            case "stop":
                master.call(master.stop)

    def _tune(self, master: Master, chance: Random) -> None:
        settings = replace(
            master.settings,
            buffer_size=chance.choice((1, 4, 64)),
            buffer_timeout_us=chance.choice((0, 1_000, None)),
            checkpoint_interval_us=chance.choice((None, 500, 5_000)),
        )
        if settings.policy.guarantee == "exactly-once":  # in a weaker mode, the mode is kept for the whole run
            settings = draw_exactly_once(chance, settings)
        master.call(lambda: master.apply(settings, "tuned"))

    def _rescale(self, master: Master, chance: Random) -> None:
        parallelism = chance.choice(self._parallelisms)
        graph = self._graph_at(parallelism)

        def done(reason: str | None) -> None:
            self.rescaled += reason is None

        master.call(lambda: master.rescale(Rescale(parallelism, graph, done)))
