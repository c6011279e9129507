"""A comparison of architectures, as the table of the documents with what was observed, and in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from workbench.api.pictures.documents_table import documents_html, prices
from workbench.api.pictures.status import Table

Row = Mapping[str, Any]
EXACT = "exactly-once"
COLUMNS = {
    "architecture": "architecture",
    "claimed": "claimed",
    "observed": "observed",
    "lost": "rows lost",
    "doubled": "rows doubled",
    "too_low": "counts too low by",
    "too_high": "counts too high by",
    "records": "records",
    "failures": "failures",
    "records_again": "records read again",
    "recovery_ms": "recovery, ms",
    "records_per_second": "records/s",
    "p50_ms": "latency p50, ms",
    "p99_ms": "p99, ms",
    "buffers": "buffers sent",
    "messages": "extra messages",
    "checkpoints": "checkpoints",
    "bytes": "bytes written",
    "stall_ms": "sources stood still, ms",
    "timed_out": "roots timed out",
    "queued": "batches waited",
    "refused": "tried by zombies",
}
"""The titles of the columns, by their names in the Arrow table."""
_STYLE = "body{font:14px/1.5 system-ui,sans-serif;margin:24px;color-scheme:light dark}li{margin:3px 0}"


def keeps(row: Row) -> bool:
    """Whether results agree with the guarantee that their architecture claims.

    Example:
        >>> keeps({"claimed": "at-least-once", "observed": "exactly-once"})
        True
        >>> keeps({"claimed": "at-least-once", "observed": "at-most-once"})
        False
    """
    return row["observed"] in (EXACT, row["claimed"])


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the faults did under each architecture but the first row, which has none, and which of them did best."""
    compared = rows[1:]
    told = [_sentence(row) for row in compared]
    exact = [row for row in compared if row["observed"] == EXACT]
    others = [row["architecture"] for row in compared if row["observed"] != EXACT]
    if not exact:
        return [*told, "None of them has every result exactly once."]
    names = _listed([row["architecture"] for row in exact])
    best = f"Every result exactly once: {names}{f'; not {_listed(others)}' if others else ''}."
    for column, what, unit in _PRIZES:
        known = [row for row in exact if row[column] is not None]
        if len(known) > 1:
            first = min(known, key=lambda row: row[column])
            best += f" {what}: {first['architecture']} ({first[column]:,.{0 if first[column] >= 100 else 1}f} {unit})."
    return [*told, best]


_PRIZES: tuple[tuple[str, str, str], ...] = (
    ("p99_ms", "The lowest latency", "ms p99"),
    ("recovery_ms", "The shortest recovery", "ms"),
)
"""What architectures with exact results are compared by: the column, in words, and its unit; less is better. Not by
throughput: that of a paced source is its rate."""


def _sentence(row: Row) -> str:
    low = [_counted(row["lost"], "row", "lost"), row["too_low"] and f"counts too low by {row['too_low']:,}"]
    high = [_counted(row["doubled"], "row", "doubled"), row["too_high"] and f"counts too high by {row['too_high']:,}"]
    wrong = _listed([each for each in (*low, *high) if each]) or "each result once"
    breaks = "" if keeps(row) else f", although it claims {row['claimed']}"
    after = ""
    if row["failures"]:
        times = "a failure" if row["failures"] == 1 else f"{row['failures']} failures"
        took = "" if row["recovery_ms"] is None else f", recovered in {row['recovery_ms']:,.0f} ms"
        after = f" After {times} it read {row['records_again']:,} records again{took}."
    if row["timed_out"]:
        after += f" {row['timed_out']:,} roots timed out and were replayed needlessly."
    if row["refused"]:
        after += f" What its replaced task tried when it woke up, {row['refused']:,} in all, had no effect."
    return f"{row['architecture']}: {wrong}{breaks}.{after}"


def _counted(number: int, what: str, fate: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'} {fate}" if number else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def verdicts_html(rows: Sequence[Row], documents: Sequence[Mapping[str, str]] = ()) -> str:
    """Who pays no price, the documents' table, and folded the sentences and all figures, as a part of a page."""
    *each, best = sentences(rows)
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in each)
    table = Table([{title: row[name] for name, title in COLUMNS.items()} for row in rows])
    unfolded = "" if documents else " open"
    return (
        f"{_without_price(documents)}<p>{escape(best)}</p>{documents_html(documents)}"
        f"<details{unfolded}><summary>what happened to each, in sentences</summary><ul>{told}</ul></details>"
        f"<details{unfolded}><summary>all figures</summary>{table._repr_html_()}</details>"
    )


def _without_price(documents: Sequence[Mapping[str, str]]) -> str:
    """The architectures that pay no price, and for one alone what was observed of it instead."""
    cheap = [row for row in documents if not prices(row)]
    if not cheap or len(documents) < 2:
        return ""
    told = f"No price in any column: {_listed([row['architecture'] for row in cheap])}."
    if len(cheap) == 1:
        seen = [f"{name} {cheap[0][f'{name}_observed']}" for name in ("guarantee", "latency", "throughput", "overhead")]
        told = f"Only {cheap[0]['architecture']} pays no price: {'; '.join(seen)}. Each ✗ is a price."
    return f"<p style='font-size:115%'><b>{escape(told)}</b></p>"


def verdicts_page(rows: Sequence[Row], documents: Sequence[Mapping[str, str]], title: str) -> str:
    """A page with the sentences and the tables, which needs no network."""
    return (
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{verdicts_html(rows, documents)}</body></html>\n"
    )
