"""Partial matches in HTML: for each key what has been bound, and what is waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, table

_ROWS_SHOWN = 3
"""Of one variable; of more, the first one and the last ones."""
_MATCHES_SHOWN = 4
"""Of one key."""


@dataclass(frozen=True, slots=True)
class KeyMatches:
    """The partial matches of one key.

    Attributes:
        key: by column.
        matches: as `MatchLogic.query` describes them.
        waiting: rows that the watermark has not passed.
    """

    key: Mapping[str, Any]
    matches: Sequence[Mapping[str, Any]]
    waiting: int


def ranked(items: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> list[KeyMatches]:
    """The keys with partial matches; those that have bound the most rows first.

    Args:
        items: keys and what a query of the operator returns for them.
    """
    found = [
        KeyMatches(key, value.get("partial_matches", ()), value.get("waiting_rows", 0))
        for key, value in items
        if value is not None
    ]
    return sorted((one for one in found if one.matches), key=lambda one: -max(map(_bound, one.matches)))


def html(keys: Sequence[KeyMatches], most: int) -> str:
    """A row for each partial match."""
    if not keys:
        return none("No key has a partial match: each row has completed one, or has begun none.")
    lines = []
    for one in keys[:most]:
        shown = one.matches[:_MATCHES_SHOWN]
        for at, match in enumerate(shown):
            name = wording.html_text(wording.plain(_key(one.key), 60)) if at == 0 else ""
            more = len(one.matches) - len(shown)
            rest = f" <small>and {more:,} more of this key</small>" if more and at == len(shown) - 1 else ""
            lines.append(
                f"<tr><th>{name}</th><td>{_path(match, one.key)}{rest}</td>"
                f"<td class='n'>{_time(match.get('begun'))}</td><td class='n'>{_time(match.get('until'))}</td></tr>"
            )
    return table(("key", "bound so far, and waited for", "since", "until"), lines, ("since", "until"))


def summary(keys: Sequence[KeyMatches], size: int, looked_at: int, pattern: str) -> str:
    """The pattern, and how many partial matches there are."""
    partial = sum(len(one.matches) for one in keys)
    looked = f" of the {looked_at:,} looked at" if looked_at < size else ""
    waiting = sum(one.waiting for one in keys)
    rows = f" · {waiting:,} of their rows wait for the watermark" if waiting else ""
    return (
        f"<p><b>{wording.html_text(wording.plain(pattern, 200))}</b></p>"
        f"<p><b>{partial:,}</b> partial matches of <b>{len(keys):,}</b> keys{looked}; {size:,} keys are known{rows}</p>"
    )


def _path(match: Mapping[str, Any], key: Mapping[str, Any]) -> str:
    chips = []
    for variable, rows in match.get("rows", {}).items():
        shown = list(rows)
        if len(shown) > _ROWS_SHOWN:
            shown = [shown[0], None, *shown[1 - _ROWS_SHOWN :]]
        values = " · ".join("…" if row is None else _row(row, key) for row in shown)
        times = f" ×{len(rows):,}" if len(rows) > 1 else ""
        name = wording.html_text(wording.plain(variable, 40))
        chips.append(f"<span class='bound'><b>{name}</b>{times} {values}</span>")
    waits = wording.html_text(wording.plain(match.get("waits_for", ""), 120))
    chips.append(f"<span class='waited'>waits for <b>{waits}</b></span>")
    return " → ".join(chips)


def _row(row: Mapping[str, Any], key: Mapping[str, Any]) -> str:
    values = [f"{name}={wording.plain(value, 24)}" for name, value in row.items() if name not in key]
    return wording.html_text(wording.plain(", ".join(values), 60))


def _bound(match: Mapping[str, Any]) -> int:
    return sum(len(rows) for rows in match.get("rows", {}).values())


def _time(text: object) -> str:
    """An instant as the operator tells it: only its time, with the date as a hint."""
    if not isinstance(text, str):
        return wording.NOTHING
    date, _, time = text.partition(" ")
    time = time.rstrip("0").rstrip(".") if "." in time else time
    return f"<span title='{wording.html_text(text)}'>{wording.html_text(time or date)}</span>"


def _key(key: Mapping[str, Any]) -> object:
    return next(iter(key.values())) if len(key) == 1 else ", ".join(f"{name}={value}" for name, value in key.items())
