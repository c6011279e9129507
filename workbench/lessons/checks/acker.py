"""TODO of exercise acker."""

from __future__ import annotations

from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program

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


JUDGE: Judge = program(
    judge,
    150,
    "150 sets of record trees, with their messages in any order: no root was complete too early or too late.",
)
