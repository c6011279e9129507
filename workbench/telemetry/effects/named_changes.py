"""Changes of settings, and other things that are done to a job, in words."""

from __future__ import annotations

Names = dict[str, tuple[object, object]]
"""Changed settings, before and after; something else that was done has its name as both."""


def joined(earlier: Names, later: Names) -> Names:
    """Changes that follow each other, as one."""
    return earlier | {name: (earlier.get(name, values)[0], values[1]) for name, values in later.items()}


def all_of(names: Names, between: str = ", ") -> str:
    """Each of them in words."""
    return between.join(label(name, *values) for name, values in names.items())


def label(name: str, before: object, after: object) -> str:
    """A change in words.

    Example:
        >>> label("rate", "1000", "max"), label("rate", "max", "max"), label("paused", "paused", "paused")
        ('rate 1000 → max', 'rate max again', 'paused')
        >>> label("slow_down", "sum:9ms, map:5ms", "sum:20ms"), label("slow_down", None, "sum:20ms")
        ('slow_down 9ms → 20ms on sum, 5ms → off on map', 'slow_down 20ms on sum')
    """
    if after == name:
        return name
    if before == after:
        return f"{name} {'off' if after is None else after} again"
    if name == "slow_down":  # the value first: a long operator name would push it out of sight
        one, other = _by_operator(before), _by_operator(after)
        moved = [uid for uid in one | other if one.get(uid) != other.get(uid)]
        return "slow_down " + ", ".join(
            f"{f'{one[uid]} → ' if uid in one else ''}{other.get(uid, 'off')} on {uid}" for uid in moved
        )
    if before is None:
        return f"{name} {after}"
    return f"{name} {before} → {'off' if after is None else after}"


def _by_operator(shown: object) -> dict[str, str]:
    parts = () if shown is None else (part.rpartition(":") for part in str(shown).split(", "))
    return {uid: value for uid, _, value in parts}
