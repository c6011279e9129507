"""Values of JSON with one place changed: its type, size, sign, depth or name; entries dropped, doubled or moved."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

DEEP = "@deep@"
"""Stands for what is nested so deeply that Python's encoder cannot write it; `as_text` does."""
DEPTHS = (50, 2_000, 200_000)
NUMBERS = (
    *(
        0,
        1,
        -1,
        2,
        7,
        127,
        128,
        255,
        2**15,
        2**16,
        10**6,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**32,
        2**53 + 1,
        2**61,
        2**62,
    ),
    *(2**62 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, -(10**30), 10**400),
    *(0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf")),
)
NAMES = (
    *(
        "",
        " ",
        ".",
        "..",
        "/",
        "../outside/canary",
        "../../../outside/canary",
        "a/../../outside/canary",
        "./manifest.json",
    ),
    *(
        "a//b",
        "a/./b",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
        "/etc/passwd",
        "C:\\x",
        "..\\outside",
        "~",
        "~root",
    ),
    *(
        "a\0b",
        "\0",
        "\ud800",
        "\udfff\ud800",
        "é",
        "\u202e",
        "\ufeff",
        "\n",
        "a\nb",
        "x" * 300,
        "x" * 5_000,
        "x" * 200_000,
    ),
    *(
        "%2e%2e/outside",
        "*",
        "?",
        "{sha}",
        "{0}",
        "%s",
        "$HOME",
        "-",
        "--help",
        "__class__",
        "None",
        "null",
        "true",
        "NaN",
    ),
    *("0", "-1", "1e999", "9" * 30, "9" * 5_000, "١٢٣", "0x10", "1_000", "2013-07-01", "50ms", "max"),
)
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, "", "x", 0, 1, -1, 1.5, 2**63)


def changed(chance: Random, value: Any) -> Any:
    """A copy of a value in which one place is different, most likely."""
    holder = [copy.deepcopy(value)]
    container, key = _place(chance, holder)
    other, other_key = _place(chance, holder)
    old = container[key]
    match chance.randrange(8):
        case 0:
            container[key] = copy.deepcopy(chance.choice(_OTHERS))
        case 1:
            del container[key]
        case 2:
            container[key] = chance.choice(([old], {"x": old}, [old, old], DEEP))
        case 3:
            container[key] = copy.deepcopy(other[other_key])
        case 4 if isinstance(container, dict):
            container[chance.choice((*NAMES, str(key) * 2, str(key).upper()))] = container.pop(key)
        case 5 if isinstance(container, dict):
            container[chance.choice(NAMES)] = copy.deepcopy(other[other_key])
        case _:
            container[key] = _like(chance, old)
    return holder[0] if holder else None


def as_text(chance: Random, value: Any) -> bytes:
    """A value as JSON; sometimes with a key twice, a foreign beginning, or nested deeply."""
    text = json.dumps(value, ensure_ascii=chance.random() < 0.7)
    if f'"{DEEP}"' in text:
        depth = chance.choice(DEPTHS)
        begin, end = chance.choice((("[", "]"), ('{"x":', "}"), ("[", "")))
        text = text.replace(f'"{DEEP}"', begin * depth + "1" + end * depth, 1)
    match chance.randrange(40):
        case 0:
            text = text.replace("{", '{"format": 0, "version": "x", ', 1)
        case 1:
            text = f"\ufeff{text}"
        case 2:
            text += text
        case 3:
            text = text.replace("1", "1" * 5_000, 1)
        case 4:
            text = text.replace(":", chance.choice((":NaN, ", ":-Infinity,", ":", "", ": //")), 1)
    return text.encode("utf-8", chance.choice(("surrogatepass", "replace")))


def _place(chance: Random, holder: list[Any]) -> tuple[Any, Any]:
    """Some place within: what holds it, and its key or index there."""
    container: Any = holder
    key: Any = 0
    while isinstance(container[key], dict | list) and container[key] and chance.random() < 0.85:
        container = container[key]
        key = chance.choice(list(container)) if isinstance(container, dict) else chance.randrange(len(container))
    return container, key


def _like(chance: Random, old: Any) -> Any:
    """Another value of the same type."""
    kind: Callable[[Random, Any], Any] = _LIKE.get(type(old), lambda chance, old: chance.choice(_OTHERS))
    return kind(chance, old)


def _number(chance: Random, old: Any) -> Any:
    near = (old + 1, old - 1, -old, old * 2, old * 1_000, float(old) if abs(old) < 2**62 else old)
    return chance.choice(near if chance.random() < 0.5 else NUMBERS)


def _list(chance: Random, old: list[Any]) -> list[Any]:
    at = chance.randrange(len(old) + 1)
    match chance.randrange(6):
        case 0:
            return old[::-1]
        case 1:
            return chance.sample(old, len(old))
        case 2:
            return old[:at]
        case 3:
            return old[:at] + old
        case 4:
            return (old or [0]) * chance.choice((2, 100))
    return [*old[:at], chance.choice(_OTHERS), *old[at:]]


def _dict(chance: Random, old: dict[Any, Any]) -> dict[Any, Any]:
    keys = list(old)
    if chance.random() < 0.5:  # what belongs to one key comes to another
        return dict(zip(keys, chance.sample(list(old.values()), len(old)), strict=True))
    return {**{f"{key}{n}": old[key] for n in range(chance.choice((1, 100))) for key in keys}, **old}


_LIKE: dict[type, Callable[[Random, Any], Any]] = {
    bool: lambda chance, old: not old,
    int: _number,
    float: _number,
    str: lambda chance, old: chance.choice((*NAMES, old * 2, old[:-1], old.upper(), old[::-1], f"../{old}", f"/{old}")),
    list: _list,
    dict: _dict,
}
