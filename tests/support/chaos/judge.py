"""The judge: compares rows that another program reads from an output with those that must be there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from .rows import Row


class Promise(Enum):
    """What the documentation of a source and a sink promises together."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    NEITHER = "lost or repeated"


@dataclass(frozen=True)
class Unreadable:
    """What stands in an output instead of a row."""

    what: str


Found = Row | Unreadable

KINDS = ("lost", "doubled", "reordered", "changed", "unreadable", "gone")


@dataclass
class Verdict:
    """How many rows of an output are wrong, and the first of each kind.

    Attributes:
        rows: that were found and compared.
        wrong: by kind: lost, doubled, reordered within their key, changed (also: never fed), unreadable, or gone,
            which were there before.
        examples: a text of each kind.
        repeated: rows that are there again as the promise allows.
        missed: rows that are missing as the promise allows.
    """

    rows: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    missed: int = 0

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def note(self, kind: str, text: str) -> None:
        """Count a wrong row."""
        assert kind in KINDS
        self.wrong[kind] += 1
        self.examples.setdefault(kind, text[:400])

    def __str__(self) -> str:
        figures = ", ".join(f"{self.wrong[kind]} {kind} (first: {self.examples[kind]})" for kind in self.wrong)
        return figures or "fine"


def judge_log(
    expected: Sequence[Row],
    found: Iterable[Found],
    identity: Sequence[str],
    promise: Promise,
    *,
    whole: bool = True,
) -> Verdict:
    """Judge rows that a sink appends.

    Args:
        expected: the rows in the order in which each key's must come; ``key`` is their key.
        found: the rows in the order of the output.
        identity: the columns that tell a row from all others.
        promise: a row that comes again, as it was, is fine with at-least-once; its first coming keeps the order. A row
            that is missing is fine with at-most-once. Both are fine behind a source at most once and a sink at least
            once.
        whole: whether the input has ended; otherwise rows that are to come are not lost.
    """
    verdict = Verdict()
    names = tuple(identity)
    place = {tuple(each[name] for name in names): at for at, each in enumerate(expected)}
    comings: Counter[int] = Counter()
    furthest: dict[object, int] = {}
    for each in found:
        verdict.rows += 1
        if isinstance(each, Unreadable):
            verdict.note("unreadable", each.what)
            continue
        at = place.get(tuple(each.get(name) for name in names))
        if at is None:
            verdict.note("changed", f"{each} was never fed")
            continue
        if each != expected[at]:
            verdict.note("changed", f"{each} instead of {expected[at]}")
        comings[at] += 1
        if comings[at] > 1:
            if promise in (Promise.AT_LEAST_ONCE, Promise.NEITHER):
                verdict.repeated += 1
            else:
                verdict.note("doubled", str(each))
        elif at < furthest.get(each["key"], -1):
            verdict.note("reordered", f"{each} comes after {expected[furthest[each['key']]]}")
        furthest[each["key"]] = max(at, furthest.get(each["key"], -1))
    for at in range(len(expected)) if whole else ():
        if not comings[at]:
            if promise in (Promise.AT_MOST_ONCE, Promise.NEITHER):
                verdict.missed += 1
            else:
                verdict.note("lost", str(expected[at]))
    return verdict


def judge_table(expected: Sequence[Row], found: Iterable[Found], identity: Sequence[str]) -> Verdict:
    """Judge the rows of an output that is updated by key, at the end.

    Args:
        expected: its rows.
        found: what is there.
        identity: the columns that tell a row from all others.
    """
    verdict = Verdict()
    names = tuple(identity)
    left = {tuple(each[name] for name in names): each for each in expected}
    seen = set()
    for each in found:
        verdict.rows += 1
        if isinstance(each, Unreadable):
            verdict.note("unreadable", each.what)
            continue
        key = tuple(each.get(name) for name in names)
        if key in seen:
            verdict.note("doubled", str(each))
            continue
        seen.add(key)
        right = left.pop(key, None)
        if right is None:
            verdict.note("changed", f"{each} must not be there")
        elif each != right:
            verdict.note("changed", f"{each} instead of {right}")
    for each in left.values():
        verdict.note("lost", str(each))
    return verdict


def judge_kept(before: Iterable[Found], now: Iterable[Found]) -> Verdict:
    """Judge whether an output that is only added to still begins with what was there before."""
    verdict = Verdict()
    there = Counter(map(repr, now))
    for each, times in (Counter(map(repr, before)) - there).items():
        for _ in range(times):
            verdict.note("gone", each)
    return verdict
