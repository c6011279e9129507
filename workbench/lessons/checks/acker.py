"""Exercise `acker` of lesson 8: every order of the messages about small trees, trees with hundreds of records, two
trees at a time, and what is kept for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from random import Random
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from workbench.lessons.exercises.calls import SHARED, Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.memory import Memory
from workbench.lessons.exercises.programs import program

WORDS_PER_ROOT = 4
"""Of 64 bits: a few for the number of the root and for what is kept for it."""
WORDS_FREE = 8
RECORDS, ROOTS = 300, 60

Message = tuple[str, tuple[Any, ...]]


def _ids(count: int, root: int) -> list[int]:
    """Numbers of 62 bits, always the same; in neither their sums nor their XOR, parts cancel out."""
    chance = Random(f"ids of {root}")
    return [chance.getrandbits(62) + 1 for _ in range(count)]


def _messages(root: int, children: Mapping[int, Sequence[int]]) -> list[Message]:
    """The messages about a tree, which is given by the places of the records that each record produces."""
    ids = _ids(1 + sum(map(len, children.values())), root)
    updates = [("update", (root, one, [ids[each] for each in children.get(at, ())])) for at, one in enumerate(ids)]
    return [("begin", (root, ids[0])), *updates]


_SMALL = (
    _messages(1, {}),
    _messages(0, {0: [1]}),  # the root with the number 0
    _messages(2, {0: [1], 1: [2]}),
    _messages(3, {0: [1, 2, 3]}),
    _messages(4, {0: [1, 2], 2: [3]}),
    [*_messages(0, {0: [1]}), *_messages(1, {})],  # two roots
)


def every_order(answer: Any) -> None:
    """Send the messages about small trees in each order."""
    for messages in _SMALL:
        for order in permutations(messages):
            _send(_acker(answer), order)


def large(answer: Any) -> None:
    """Send the messages about a root with hundreds of records, in three orders; look at what is kept after each."""
    wide = _messages(5, {0: range(1, RECORDS)})
    deep = _messages(6, {at: [at + 1] for at in range(RECORDS)})
    for messages in (wide, wide[::-1], deep, deep[::-1], deep[::2] + deep[1::2]):
        memory = Memory([answer])
        _send(_acker(answer), messages, memory)


def many(answer: Any) -> None:
    """Send the messages about many roots, of each in turn; what is kept grows by a few numbers for each at most."""
    messages = [_messages(root, {0: range(1, 21)}) for root in range(ROOTS)]
    _send(_acker(answer), [message for turn in zip(*messages, strict=True) for message in turn], Memory([answer]))


def two_ackers(answer: Any) -> None:
    """Two ackers know nothing of each other."""
    first = _acker(answer, "first")
    second = _acker(answer, "second", first)
    messages = _messages(2, {0: [1], 1: [2]})
    for index, message in enumerate(messages):
        for acker in (first, second):
            try:
                _told(acker, message, len(messages) - 1 - index, message[0])
            except ViolatedError as found:
                raise ViolatedError(found.violated, found.words + SHARED, calls=found.calls) from None


def judge(answer: Any, chance: Random) -> None:
    """Send the messages about a few roots in a random order; each root is complete at its last message."""
    messages: list[Message] = []
    for root in range(chance.randrange(1, 5)):
        messages += _tree(chance, root, chance.choice((1, 2, 4, 9, 40)))
    chance.shuffle(messages)
    _send(_acker(answer), messages, Memory([answer]))


def _acker(answer: Any, name: str = "it", beside: Called | None = None) -> Called:
    methods = ("begin(root, id)", "update(root, processed, created)")
    return Called(answer, kind="an acker", methods=methods, name=name, beside=beside)


def _send(acker: Called, messages: Sequence[Message], memory: Memory | None = None) -> None:
    """Send messages, and compare each answer.

    Args:
        memory: of the class, to look at what is kept; None: do not look.
    """
    left: dict[int, int] = {}
    for _, (root, *_rest) in messages:
        left[root] = left.get(root, 0) + 1
    told: dict[int, list[str]] = {}
    before = 0 if memory is None else _words(memory.values())
    for name, arguments in messages:
        root = arguments[0]
        left[root] -= 1
        told.setdefault(root, []).append(_shown(name, arguments))
        _told(acker, (name, arguments), left[root], " ".join(told[root][-4:]))
        if memory is None:
            continue
        kept = _words([acker.object, memory.values()]) - before
        if kept > WORDS_PER_ROOT * len(told) + WORDS_FREE:
            raise ViolatedError(
                "a few bytes for each root",
                f"{kept} numbers of 64 bits are kept for {len(told)} {'root' if len(told) == 1 else 'roots'}. However "
                "many records are derived from a root, keep only one number for it.",
                calls=acker.calls if len(acker.calls) < 50 else (),
            )


def _told(acker: Called, message: Message, left: int, story: str) -> None:
    """Send one message, and compare the answer."""
    name, arguments = message
    complete = acker(name, *arguments)
    if complete and left:
        raise ViolatedError(
            "not complete too early",
            f"root {arguments[0]} is reported complete after {story}, but more messages about it are on their way: "
            f"{left}. A failure now would lose records.",
            calls=acker.calls,
        )
    if not complete and not left:
        raise ViolatedError(
            "complete at the end",
            f"all records of root {arguments[0]} are processed after {story}, but it is not complete: its source would "
            "send it again needlessly. Messages arrive in any order.",
            calls=acker.calls,
        )


def _shown(name: str, arguments: tuple[Any, ...]) -> str:
    text = f"{name}({', '.join(map(str, arguments))})"
    return text if len(text) < 200 else f"{text[:200]}...)"


def _tree(chance: Random, root: int, size: int) -> list[Message]:
    """The messages about a root that produces records, which produce records themselves."""
    ids = [chance.getrandbits(62) + 1 for _ in range(size)]
    children: dict[int, list[int]] = {one: [] for one in ids}
    for index in range(1, size):
        children[ids[chance.randrange(index)]].append(ids[index])
    return [("begin", (root, ids[0])), *(("update", (root, one, made)) for one, made in children.items())]


def _words(value: Any, seen: set[int] | None = None) -> int:
    """The size of what is kept, in numbers of 64 bits, wherever it is: in containers, objects and functions."""
    if isinstance(value, int):
        return max(1, -(-value.bit_length() // 64))
    if isinstance(value, str):
        return -(-len(value) // 8)
    if isinstance(value, float | complex):
        return 1
    seen = set() if seen is None else seen
    if value is None or isinstance(value, type | ModuleType | BuiltinFunctionType) or id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, FunctionType):
        return sum(_words(cell.cell_contents, seen) for cell in value.__closure__ or ())
    with suppress(TypeError):  # it is no buffer, as bytes and arrays of numbers are
        return -(-memoryview(value).nbytes // 8)
    inside = [*getattr(value, "__dict__", {}).values(), *_in_slots(value)]
    if isinstance(value, Mapping):
        inside += [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        inside += value
    return sum(_words(each, seen) for each in inside)


def _in_slots(it: Any) -> list[Any]:
    slots = [vars(kind).get("__slots__", ()) for kind in type(it).__mro__]
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    return [getattr(it, name, None) for name in names if name != "__dict__"]


JUDGE: Judge = program(
    (every_order, two_ackers, large, many),
    judge,
    60,
    f"every order of the messages about small trees, trees of {RECORDS} records, {ROOTS} roots, two ackers, and 60 "
    "drawn sets of trees: no root was complete too early or too late.",
)
