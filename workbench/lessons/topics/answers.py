"""Lesson 8: other answers to failure (E8, E9, D1 to D6 compared; acks, transactions, changelogs, micro-batches)."""

from __future__ import annotations

from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Exercise, ViolatedError
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.question import Choice, Option

NUMBERS_PER_ROOT = 4

Message = tuple[str, tuple[Any, ...]]


def judge(answer: Any, chance: Random) -> None:
    """Send the messages about a few roots in a random order; each root is complete at its last message."""
    acker = Called(answer, kind="an acker", methods=("begin(root, id)", "update(root, processed, created)"))
    messages: list[tuple[int, Message]] = []
    for root in range(chance.randrange(1, 5)):
        messages += [(root, message) for message in _tree(chance, root, chance.choice((1, 2, 4, 9, 40)))]
    chance.shuffle(messages)
    left = {root: sum(r == root for r, _ in messages) for root, _ in messages}
    told: dict[int, list[str]] = {}
    for root, (name, arguments) in messages:
        left[root] -= 1
        told.setdefault(root, []).append(f"{name}({', '.join(map(str, arguments))})")
        complete = acker(name, *arguments)
        story = " ".join(told[root][-4:])
        if complete and left[root]:
            raise ViolatedError(
                "not complete too early",
                f"root {root} is reported complete after {story}, but more messages about it are on their way: "
                f"{left[root]}. "
                "A failure now would lose records.",
                calls=acker.calls,
            )
        if not complete and not left[root]:
            raise ViolatedError(
                "complete at the end",
                f"all records of root {root} are processed after {story}, but it is not complete: its source would send "
                "it again needlessly. Messages arrive in any order.",
                calls=acker.calls,
            )
        pending = sum(1 for n in left.values() if n)
        if (kept := _numbers(getattr(acker.object, "__dict__", {}))) > NUMBERS_PER_ROOT * (pending + 2):
            raise ViolatedError(
                "a few bytes for each root",
                f"{kept} numbers are kept for {pending} incomplete roots. However many records are derived from a root, "
                "keep only one number for it, and none when it is complete.",
                calls=acker.calls,
            )


def _tree(chance: Random, root: int, size: int) -> list[Message]:
    """The messages about a root that produces records, which produce records themselves."""
    ids = [chance.getrandbits(62) + 1 for _ in range(size)]
    children: dict[int, list[int]] = {one: [] for one in ids}
    for index in range(1, size):
        children[ids[chance.randrange(index)]].append(ids[index])
    return [("begin", (root, ids[0])), *(("update", (root, one, made)) for one, made in children.items())]


def _numbers(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_numbers(each) for each in [*value.keys(), *value.values()])
    if isinstance(value, list | tuple | set | frozenset):
        return sum(map(_numbers, value))
    return 1 if isinstance(value, int) else 0


LESSON = LessonPlan(
    number="08",
    title="Other answers",
    promise="Afterwards you can compare fault-tolerance architectures by what they save, cost and guarantee.",
    questions=(
        Choice(
            "batches",
            "A query counts the records of every 5 seconds; one record arrives per second. It runs in micro-batches of "
            "10 seconds, and its windows are rounded up to whole batches. What does it count?",
            (
                Option("5: the window says so.", lambda n: n == 5),
                Option("10: a window is as long as the batch.", lambda n: n == 10),
                Option("2.5", lambda n: n == 2.5),
            ),
            "In this architecture, the batch interval is part of the program: if you change it for speed, the windows have to "
            "follow, and the results change.",
        ),
        Choice(
            "weakest",
            "One task dies. Which architectures end with the right counts?",
            (
                Option("All of them.", lambda right: right == 6),
                Option(
                    "Those whose copy of the state matches the positions of the sources.", lambda right: 1 < right < 6
                ),
                Option("Snapshots only.", lambda right: right <= 1),
            ),
            "Snapshots, transactions and micro-batches are exact. Acknowledgements and logs without transactions are not.",
        ),
        Choice(
            "stop",
            "A checkpoint is taken. What do the sources do under naive, stop-the-world checkpoints?",
            (
                Option("They continue to read.", lambda read: read > 0),
                Option("They wait until the copy is complete.", lambda read: read == 0),
            ),
            "It is simple and exact, and the pause grows with the state.",
        ),
    ),
    exercises=(
        Exercise(
            "acker",
            "Write Storm's acker: a class with `begin(root, id)`, which is called when a source has sent a record, and "
            "`update(root, processed, created)`, which is called when the record with the id `processed` is done and has "
            "produced records with the ids in the list `created`. Both return True exactly when the root and everything "
            "derived from it are done. Messages arrive in any order, and only a few numbers may be kept for each root.",
            (
                "Each id occurs twice: once as created (or begun), once as processed.",
                "`a ^ b ^ a` is `b`: with XOR, what occurs twice disappears, in any order.",
                "Keep one number for each root. XOR all ids of a message into it; if it is 0, the root is complete, and "
                "you can forget it.",
            ),
            program(
                judge,
                150,
                "150 sets of record trees, with their messages in any order: no root was complete too early or too late.",
            ),
        ),
    ),
)
