"""What one format is, and one input of it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

CHANGES = (1, 1, 1, 1, 2, 3, 8)
"""How many changes an input has: with one of them it is nearly right and comes far."""

FOREIGN = re.compile(r"(^|: )[A-Z]\w*(Error|Exception|Interrupt|Exit)\b")
"""An error in a sentence that is none of ours: those stand there without the name of their kind."""

Value = TypeVar("Value")


class WrongResultError(Exception):
    """An input was taken, and what came of it is not what it says."""


class Trial:
    """One input.

    Args:
        name: of the format.
        seed: all that is drawn for the input depends on it.
        folder: of this input's own, empty.
        outside: a folder that it must not touch.
        most: changes at most, where an input is made small.

    Attributes:
        chance: draws.
        story: what was changed.
    """

    def __init__(self, name: str, seed: int, folder: Path, outside: Path, most: int | None = None) -> None:
        self.chance = Random(f"{name} {seed}")
        self.folder = folder
        self.outside = outside
        self.story: list[str] = []
        self._most = most

    def changes(self) -> Iterator[int]:
        """As many numbers as there are changes to make."""
        drawn = self.chance.choice(CHANGES)
        yield from range(drawn if self._most is None else min(drawn, self._most))

    def changed(self, change: Callable[[Random, Value], Value], value: Value, what: str) -> Value:
        """`value` with one change; without it, where that change is none of such a value."""
        self.story.append(f"{change.__module__.rpartition('.')[2]}: {what}")
        with suppress(pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError):
            return change(self.chance, value)
        return value

    def must(self, holds: bool, problem: str) -> None:
        """Say that a result is wrong unless something holds.

        Raises:
            WrongResultError: with `problem`.
        """
        if not holds:
            raise WrongResultError(problem)


class Format(ABC):
    """Something that is read from outside.

    Attributes:
        name: tells it, for whoever replays an input.
        share: of all inputs; those that take long are few.
        memory_mb: that an input may take beyond what the process has.
    """

    name: ClassVar[str]
    share: ClassVar[int] = 4
    memory_mb: ClassVar[int] = 256

    def prepare(self, folder: Path) -> None:  # noqa: B027  texts need no files
        """Have the product write real files into `folder`, once for all processes; it stays as it is then."""

    def load(self, folder: Path, outside: Path) -> None:  # noqa: B027
        """Begin to make inputs of the files in `folder`, once in each process.

        Args:
            folder: that `prepare` has filled.
            outside: what is put there may be named by inputs and linked to, and must not be touched.
        """

    @abstractmethod
    def make(self, trial: Trial) -> Any:
        """Make an input: a real one with changes; what `read` takes beside the files in the trial's folder."""

    @abstractmethod
    def read(self, trial: Trial, made: Any) -> None:
        """Have the product read it; only this is watched.

        Raises:
            WorkbenchError: it is refused, as it may be.
            WrongResultError: it is taken for something that it is not.
        """
