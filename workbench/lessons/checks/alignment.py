"""TODO of exercise alignment."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program

BARRIER = "barrier"


def judge(answer: Any, chance: Random) -> None:
    """Feed a task from several channels, in a random order, with two checkpoints."""
    channels = chance.randrange(2, 4)
    task = Called(answer, channels, kind="a task", methods=("record(channel, n)", "barrier(channel)"))
    queues = [_channel(chance) for _ in range(channels)]
    told: list[str] = []
    passed = [0] * channels  # the barriers of each channel so far
    checkpoints = [0, 0]
    for index, queue in enumerate(queues):
        cuts = [at for at, element in enumerate(queue) if element == BARRIER]
        checkpoints[0] += sum(n for n in list(queue)[: cuts[0]] if n != BARRIER)
        checkpoints[1] += sum(n for n in list(queue)[: cuts[1]] if n != BARRIER)
        passed[index] = 0
    done = 0
    while any(queues):
        index = chance.choice([index for index, queue in enumerate(queues) if queue])
        element = queues[index].popleft()
        if element != BARRIER:
            told.append(f"record({index}, {element})")
            task("record", index, element)
            _held_back(task, passed, index, done, told)
            continue
        if passed[index] > done:  # a second barrier while the first is being aligned: the next checkpoint waits
            queues[index].appendleft(element)
            others = [other for other, queue in enumerate(queues) if queue and passed[other] <= done]
            if not others:
                raise ViolatedError(
                    "progress", f"the task never takes its snapshot, after {_shown(told)}", calls=task.calls
                )
            continue
        passed[index] += 1
        told.append(f"barrier({index})")
        found = task("barrier", index)
        complete = all(n > done for n in passed)
        _compare(found, checkpoints[done], complete, told, task)
        done += complete
    right = sum(n for queue in told for n in _number(queue))
    if getattr(task.object, "total", None) != right:
        raise ViolatedError(
            "no loss",
            f"at the end, `total` is {getattr(task.object, 'total', None)} after {_shown(told)}; the sum of all records is "
            f"{right}. Records that waited during the alignment have to be processed afterwards.",
            calls=[*task.calls, "it.total"],
        )


def _channel(chance: Random) -> deque[Any]:
    parts = [[chance.randrange(1, 9) for _ in range(chance.randrange(0, 4))] for _ in range(3)]
    return deque([*parts[0], BARRIER, *parts[1], BARRIER, *parts[2]])


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
            f"after {_shown(told)}, `total` is {getattr(task.object, 'total', None)}, but should be {right}, because no "
            "barrier is missing: a record is added immediately or, if it had to wait, after the alignment.",
            calls=[*task.calls, "it.total"],
        )


def _compare(found: Any, right: int, complete: bool, told: list[str], task: Called) -> None:
    if not complete:
        if found is not None:
            raise ViolatedError(
                "a consistent cut",
                f"after {_shown(told)}, the snapshot {found} is returned, although not all channels have sent their barrier. "
                "Return None before the last barrier.",
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
    judge, 200, "200 orders of records and barriers on two and three channels: each snapshot is consistent."
)
