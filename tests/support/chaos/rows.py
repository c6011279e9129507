"""The rows that are fed, and what must come of them: functions of their numbers alone, which every process can ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

Row = dict[str, object]

KEYS = 11
PARTS = 2
"""Partitions, streams or files that a source reads; the rows of a key are in one of them, in their order."""

ODD = (
    *("", "plain", "it's", 'a "quoted" one', "comma, semicolon; tab\t.", "two\nlines", "back\\slash \\n", "%s {x} $1"),
    *("żółć", "日本語", "🙂", "NULL", "null", " blanks ", "' OR 1=1 --", "x" * 300),
)
"""Texts that a format or a protocol may damage."""

AT_ONCE = 7
"""Rows of one transaction."""


def row(number: int) -> Row:
    """A row that is fed.

    Example:
        >>> row(2)["id"], row(2)["key"], row(2)["text"]
        (2, 2, "00000002 it's")
    """
    chance = Random(number)
    odd = ODD[number % len(ODD)]
    return {
        "id": number,
        "key": (number * 7 + number // 5) % KEYS if number > 20 else number % KEYS,
        "value": chance.randrange(-(1 << 40), 1 << 40),
        "text": f"{number:08d} {odd}",
    }


def part_of(given: Row) -> int:
    """The partition of a row."""
    key = given["key"]
    assert isinstance(key, int)
    return key % PARTS


def passed(given: Iterable[Row]) -> list[Row]:
    """What the map makes of rows: another column.

    Example:
        >>> passed([{"id": 1, "value": 3}])
        [{'id': 1, 'value': 3, 'twice': 6}]
    """
    return [{**each, "twice": _whole(each["value"]) * 2} for each in given]


def counted(given: Iterable[Row]) -> list[Row]:
    """What the aggregate of a key makes of rows: for each, the figures of its key so far.

    Example:
        >>> [(each["key"], each["n"], each["total"]) for each in counted(
        ...     [{"id": 1, "key": 5, "value": 3}, {"id": 2, "key": 5, "value": 4}])]
        [(5, 1, 3), (5, 2, 7)]
    """
    latest: dict[object, Row] = {}
    found = []
    for each in given:
        before = latest.get(each["key"], {"n": 0, "total": 0})
        now: Row = {
            "key": each["key"],
            "n": _whole(before["n"]) + 1,
            "id": each["id"],
            "total": _whole(before["total"]) + _whole(each["value"]),
        }
        latest[each["key"]] = now
        found.append(now)
    return found


def last_of_keys(given: Iterable[Row]) -> list[Row]:
    """The last row of each key."""
    return list({each["key"]: each for each in given}.values())


@dataclass(frozen=True)
class Change:
    """What happens to a table when a row is added: earlier rows are replaced and deleted, if they are there."""

    added: int
    replaced: tuple[int, ...]
    deleted: tuple[int, ...]


def change(number: int) -> Change:
    """How this row is fed to a table."""
    chance = Random(f"change {number}")
    earlier = range(max(0, number - 40), number)
    return Change(
        number,
        tuple(sorted(chance.sample(earlier, min(chance.randrange(3), len(earlier))))),
        (chance.choice(earlier),) if earlier and chance.random() < 0.2 else (),
    )


def replaced(given: Row) -> Row:
    """A row after it was replaced once more: it belongs to another group.

    Example:
        >>> replaced({"id": 1, "key": 10, "value": 3, "text": "a"})
        {'id': 1, 'key': 0, 'value': 4, 'text': 'a+'}
    """
    key = (_whole(given["key"]) + 1) % KEYS
    return {**given, "key": key, "value": _whole(given["value"]) + 1, "text": f"{given['text']}+"}


def table_of(numbers: range) -> list[Row]:
    """The rows of a table after all changes."""
    table: dict[int, Row] = {}
    for each in map(change, numbers):
        table[each.added] = row(each.added)
        table |= {number: replaced(table[number]) for number in each.replaced if number in table}
        for number in each.deleted:
            table.pop(number, None)
    return list(table.values())


def grouped(given: Iterable[Row]) -> list[Row]:
    """The number of rows and the total of each key."""
    return [{"key": each["key"], "n": each["n"], "total": each["total"]} for each in last_of_keys(counted(given))]


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
