"""An executor whose answers are out for a while: barriers, crashes and other records come meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from workbench.operators.contract.executor import Answer, Inline


class SlowAnswer:
    """An answer that is there when it has been asked for a few times."""

    def __init__(self, answer: Answer, looks: int) -> None:
        self._answer = answer
        self._looks = looks

    def done(self) -> bool:
        self._looks -= 1
        return self._looks < 0

    def result(self) -> Any:
        return self._answer.result()


class Slow:
    """Takes its time, a different one for each call."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Answer:
        return SlowAnswer(Inline().submit(function, *arguments), self._chance.choice((0, 0, 1, 4)))
