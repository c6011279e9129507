"""Lesson 7: distributed snapshots (F2-7 to F2-15, at least once, unaligned, E5, E7, D5)."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Exercise, ViolatedError
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.question import Choice, Number, Option

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


LESSON = LessonPlan(
    number="07",
    title="Snapshots",
    promise="Afterwards you can take a consistent snapshot of a running system by hand, and explain why it is consistent.",
    questions=(
        Number(
            "offset",
            "A source counts 1, 2, 3, ... One task sums the even numbers, another the odd ones. The odd sum has just become "
            "9. Which offset of the source matches this state?",
            "numbers read",
            "1 + 3 + 5 = 9, and the 6 has not been read: five numbers.",
            factor=1.0,
        ),
        Choice(
            "behind",
            "A task has two inputs. The barrier has arrived on one and not on the other. What does the task do with "
            "records that arrive behind the barrier?",
            (
                Option("It processes them immediately.", lambda what: what == "processed"),
                Option("They wait until the other barrier arrives.", lambda what: what == "blocked"),
                Option("It sends them back.", lambda what: what == "returned"),
            ),
            "They do not belong to the snapshot. If they were processed before it is taken, it would contain them.",
        ),
        Number(
            "careless",
            "Now the task does not wait (at least once). Each source sends the numbers 1 to 8. At the snapshot, 5, 6, 7 and "
            "8 of one source are already in the sums. Then a task fails. The even sum should be 40. What is it?",
            "even sum",
            "The source goes back to the position after 4 and sends 6 and 8 again, which are already in the snapshot.",
            factor=1.0,
        ),
        Choice(
            "interval",
            "You take a snapshot ten times as often. Which rows does the job write in the end?",
            (
                Option("The same rows, whatever the interval.", lambda same: same is True),
                Option("Slightly different ones: each snapshot interrupts the sums.", lambda same: same is False),
            ),
            "Checkpoints do not affect the rows. (With micro-batches, the interval can: see lesson 8.)",
        ),
    ),
    exercises=(
        Exercise(
            "alignment",
            "Write the alignment: a class `Task(channels)` with two methods. `record(channel, n)` adds n to `total` and "
            "returns None. `barrier(channel)` returns None until the barriers of all channels have arrived, and then a "
            "snapshot of the total, a number. A second checkpoint may follow.",
            (
                "Keep the set of channels whose barrier has arrived, and a list of records that have to wait.",
                "`record`: if the channel is in the set, append n to the list; else add it to the total.",
                "`barrier`: add the channel to the set; if it has all channels, copy the total, clear the set, add the "
                "records in the list to the total, clear the list, and return the copy.",
            ),
            program(
                judge, 200, "200 orders of records and barriers on two and three channels: each snapshot is consistent."
            ),
        ),
    ),
)
