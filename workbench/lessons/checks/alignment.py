"""Exercise `alignment` of lesson 7: every order of a few records and barriers, records that are 0, a channel alone, and
further checkpoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import SHARED, Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program

BARRIER = "barrier"
Queue = Sequence[Any]
"""What arrives on a channel: numbers and barriers; each channel has as many barriers."""

_EVERY_ORDER: tuple[tuple[Queue, ...], ...] = (
    ((1, BARRIER, 2), (4, BARRIER, 8)),
    ((1, BARRIER, 2, BARRIER, 4), (8, BARRIER, 16, BARRIER, 32)),
    ((1, BARRIER, 2), (4, BARRIER, 8), (16, BARRIER, 32)),
    ((BARRIER, BARRIER, 5), (3, BARRIER, 0, BARRIER)),
    ((0, BARRIER, -3, BARRIER, 0), (3, BARRIER, 0, BARRIER, -7)),
    ((4, BARRIER, 1, BARRIER, BARRIER, 2),),  # one channel
    ((1, BARRIER, 2, 2, 2), (4, BARRIER, 8)),  # several records of a channel wait, and they are equal
    ((1, BARRIER), (2, BARRIER), (BARRIER,), (BARRIER, 4)),  # four channels
)
"""Sums of different powers of two differ, so a snapshot tells which records it contains."""


def every_order(answer: Any) -> None:
    """Feed a task with each order in which a few records and barriers can arrive."""
    for queues in _EVERY_ORDER:
        script: list[list[int]] = []  # for each choice, the one that is taken, and the number of options
        while True:
            _feed(answer, queues, _scripted(script))
            while script and script[-1][0] + 1 == script[-1][1]:
                script.pop()
            if not script:
                break
            script[-1][0] += 1


def _scripted(script: list[list[int]]) -> Callable[[list[int]], int]:
    """Choose as the script says; beyond it, take the first option, and write it down."""
    place = 0

    def choose(options: list[int]) -> int:
        nonlocal place
        if place == len(script):
            script.append([0, len(options)])
        place += 1
        return options[script[place - 1][0]]

    return choose


def two_tasks(answer: Any) -> None:
    """Two tasks at the same time know nothing of each other."""
    queues = ((1, BARRIER, 2, BARRIER, 4), (8, BARRIER, 16, BARRIER, 32))
    first = _task(answer, queues, "first")
    second = _task(answer, queues, "second", first)
    others = _steps(second, queues[::-1], lambda options: options[-1])
    try:
        for _ in _steps(first, queues, lambda options: options[0]):
            next(others, None)
        for _ in others:
            pass
    except ViolatedError as found:
        raise ViolatedError(found.violated, found.words + SHARED, calls=found.calls) from None


def judge(answer: Any, chance: Random) -> None:
    """Feed a task from several channels, in a random order, with two checkpoints."""
    queues = [_channel(chance) for _ in range(chance.choice((2, 3, 3, 5)))]
    _feed(answer, queues, chance.choice)


def _feed(answer: Any, channels: Sequence[Queue], choose: Callable[[list[int]], int]) -> None:
    for _ in _steps(_task(answer, channels, "it"), channels, choose):
        pass


def _task(answer: Any, channels: Sequence[Queue], name: str, beside: Called | None = None) -> Called:
    methods = ("record(channel, n)", "barrier(channel)")
    return Called(answer, len(channels), kind="a task", methods=methods, name=name, beside=beside)


def _steps(task: Called, channels: Sequence[Queue], choose: Callable[[list[int]], int]) -> Iterator[None]:
    """Feed a task, element by element.

    Args:
        task: of the learner's class.
        channels: what arrives on each of them.
        choose: the channel of the next element, among those on which one may arrive.
    """
    queues = [deque(channel) for channel in channels]
    told: list[str] = []
    passed = [0] * len(queues)  # the barriers of each channel so far
    done = 0
    while any(queues):
        # A second barrier while the first is being aligned: the next checkpoint waits.
        free = [at for at, queue in enumerate(queues) if queue and (queue[0] != BARRIER or passed[at] <= done)]
        index = choose(free)
        element = queues[index].popleft()
        if element != BARRIER:
            told.append(f"record({index}, {element})")
            task("record", index, element)
            _held_back(task, passed, index, done, told)
        else:
            passed[index] += 1
            told.append(f"barrier({index})")
            found = task("barrier", index)
            complete = all(n > done for n in passed)
            _compare(found, sum(_before(channel, done) for channel in channels), complete, told, task)
            done += complete
        yield
    right = sum(n for queue in told for n in _number(queue))
    if getattr(task.object, "total", None) != right:
        raise ViolatedError(
            "no loss",
            f"at the end, `total` is {getattr(task.object, 'total', None)} after {_shown(told)}; the sum of all "
            f"records is {right}. Records that waited during the alignment have to be processed afterwards.",
            calls=[*task.calls, f"{task.name}.total"],
        )


def _before(channel: Queue, checkpoint: int) -> int:
    """The sum of the records before a barrier."""
    places = [at for at, element in enumerate(channel) if element == BARRIER]
    return sum(element for element in channel[: places[checkpoint]] if element != BARRIER)


def _channel(chance: Random) -> Queue:
    parts = [[chance.randrange(0, 9) for _ in range(chance.randrange(0, 4))] for _ in range(3)]
    return (*parts[0], BARRIER, *parts[1], BARRIER, *parts[2])


def _number(call: str) -> list[int]:
    return [int(call.rpartition(" ")[2].rstrip(")"))] if call.startswith("record") else []


def _held_back(task: Called, passed: list[int], index: int, done: int, told: list[str]) -> None:
    """Check that records of channels that are not blocked are processed immediately."""
    if passed[index] > done or any(n > done for n in passed):
        return
    right = sum(n for call in told for n in _number(call))
    if getattr(task.object, "total", None) != right:
        raise ViolatedError(
            "no needless waiting",
            f"after {_shown(told)}, `total` is {getattr(task.object, 'total', None)}, but should be {right}, because "
            "no barrier is missing: a record is added immediately or, if it had to wait, after the alignment.",
            calls=[*task.calls, f"{task.name}.total"],
        )


def _compare(found: Any, right: int, complete: bool, told: list[str], task: Called) -> None:
    if not complete:
        if found is not None:
            raise ViolatedError(
                "a consistent cut",
                f"after {_shown(told)}, the snapshot {found} is returned, although not all channels have sent "
                "their barrier. Return None before the last barrier.",
                calls=task.calls,
            )
        return
    if found is None:
        raise ViolatedError(
            "progress",
            f"after {_shown(told)}, all barriers have arrived, but no snapshot is returned.",
            calls=task.calls,
        )
    if found != right:
        more = "It contains records from behind a barrier: their channel has to wait." if found > right else ""
        less = "It lacks records that arrived before the barriers." if found < right else ""
        raise ViolatedError(
            "a consistent cut",
            f"after {_shown(told)}, the snapshot is {found}; the sum of the records before the barriers is {right}. "
            f"{more}{less}",
            calls=task.calls,
        )


def _shown(told: list[str]) -> str:
    return " ".join(told) if len(told) <= 4 else "... " + " ".join(told[-4:])


JUDGE: Judge = program(
    (every_order, two_tasks),
    judge,
    100,
    "every order of a few records and barriers on up to four channels, two tasks at the same time, and 100 drawn "
    "orders: each snapshot is consistent.",
)
