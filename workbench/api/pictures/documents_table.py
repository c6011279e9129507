"""The table of the documents: what they claim of each architecture, and what was observed of it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the documents' table.

    Attributes:
        system: whose architecture it is.
        guarantee, latency, throughput, model, overhead, flow_control, separation: its cells.
    """

    system: str
    guarantee: str
    latency: str
    throughput: str
    model: str
    overhead: str
    flow_control: str
    separation: str


_MICRO_BATCHES = Claim(
    "Trident, Spark Streaming",
    "exactly once",
    "high",
    "high",
    "micro-batch: windows are multiples of the batch",
    "low",
    "problematic: batches queue or grow",
    "no: the batch size changes results",
)

CLAIMS: Mapping[str, Claim] = {
    "acks": Claim(
        "Storm, Heron",
        "at least once",
        "very low",
        "low",
        "streaming",
        "high",
        "problematic: backpressure looks like failure",
        "partial: time-outs matter",
    ),
    "micro-batches": _MICRO_BATCHES,
    "spark": replace(_MICRO_BATCHES, system="Spark itself"),
    "transactions": Claim(
        "Dataflow, MillWheel",
        "exactly once",
        "low: the delay of a transaction",
        "medium to high: the store decides",
        "streaming",
        "depends on the store",
        "natural",
        "yes",
    ),
    "changelog": Claim(
        "Samza in 2015", "at least once", "low", "medium", "streaming", "depends on the log", "natural", "yes"
    ),
    "stop-the-world": Claim(
        "naive checkpoints",
        "exactly once",
        "stalls at each checkpoint",
        "reduced",
        "streaming",
        "grows with the state",
        "natural",
        "yes",
    ),
    "at-most-once": Claim("no mechanism", "at most once", "lowest", "highest", "streaming", "none", "natural", "yes"),
    "snapshots": Claim(
        "Flink", "exactly once", "very low", "high", "streaming", "low", "natural", "yes: the interval changes nothing"
    ),
}
"""By the name of the architecture, in the order of the documents' table; its last row is the one they argue for."""

COLUMNS = {
    "guarantee": "guarantee",
    "latency": "latency",
    "throughput": "throughput",
    "model": "model",
    "overhead": "overhead",
    "flow_control": "flow control",
    "separation": "independence",
}
"""The titles of the columns, by their names."""


def documents_rows(rows: Sequence[Row], policies: Mapping[str, str], *, slow: bool) -> list[dict[str, str]]:
    """The table of the documents, with the architectures that were compared.

    Args:
        rows: of `ArchitectureComparison.table`; the first is the run without faults.
        policies: by lane, the name of its architecture.
        slow: a receiver was slow, so flow control was tried.

    Returns:
        For each row ``architecture``, ``system``, and for each name of `COLUMNS` that with ``_claimed``, ``_observed``
        and ``_verdict``: ``"good"``, ``"bad"``, or empty where it was not tried.
    """
    order = list(CLAIMS)
    found = []
    for row in sorted(rows[1:], key=lambda row: order.index(_name(row, policies))):
        claim = CLAIMS[_name(row, policies)]
        seen = _observed(row, rows[0], _name(row, policies), slow=slow)
        tones = _verdicts(row, rows[0], _name(row, policies), slow=slow)
        cells: dict[str, str] = {}
        for name in COLUMNS:
            found_here = {"claimed": getattr(claim, name), "observed": seen[name], "verdict": tones[name]}
            cells |= {f"{name}_{kind}": text for kind, text in found_here.items()}
        found.append({"architecture": row["architecture"], "system": claim.system, **cells})
    return found


def documents_html(rows: Sequence[Mapping[str, str]]) -> str:
    """The table as a part of a page: in each cell what was observed, and below it in grey what the documents claim.

    A price is tinted, and so is a row without any; the others say how many they pay.
    """
    if not rows:
        return ""
    best = flawless(rows)
    kinds = f"<div style='font-weight:400'>observed<div style='{_GREY}'>claimed</div></div>"
    titles = "".join(f"<th style='{_CELL}'>{escape(title)}{kinds}</th>" for title in COLUMNS.values())
    head = f"<tr><th style='{_CELL}'>architecture</th>{titles}</tr>"
    body = "".join(
        f"<tr style='{_BEST if row['architecture'] in best else ''}'><th style='{_CELL}'>{escape(row['architecture'])}"
        f"<br><small>{escape(row['system'])}</small><br>{_sum(row)}</th>"
        + "".join(
            f"<td style='{_CELL};{_TINTS[row[f'{name}_verdict']]}'>"
            f"{_SIGNS[row[f'{name}_verdict']]}{escape(row[f'{name}_observed'])}"
            f"<div style='{_GREY}'>{escape(row[f'{name}_claimed'])}</div></td>"
            for name in COLUMNS
        )
        + "</tr>"
        for row in rows
    )
    untried = "" if all(row["flow_control_verdict"] for row in rows) else _UNTRIED
    return (
        f"<div style='overflow-x:auto'><table style='{_TABLE}'>{head}{body}</table></div>"
        f"<p style='{_LEGEND_STYLE}'>{_LEGEND}{untried}</p>"
    )


def prices(row: Mapping[str, str]) -> list[str]:
    """The titles of the columns in which an architecture pays a price.

    Example:
        >>> prices({f"{name}_verdict": "bad" if name == "latency" else "good" for name in COLUMNS})
        ['latency']
    """
    return [title for name, title in COLUMNS.items() if row[f"{name}_verdict"] == "bad"]


def flawless(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The architectures that pay no price in any column that was tried."""
    return [row["architecture"] for row in rows if not prices(row)]


def _sum(row: Mapping[str, str]) -> str:
    count = len(prices(row))
    return f"{_SIGNS['bad']}{count} price{'' if count == 1 else 's'}" if count else f"{_SIGNS['good']}no price"


_SIGNS = {
    "good": "<b style='color:#2a9d4e'>✓</b> ",
    "bad": "<b style='color:#e0483e'>✗</b> ",
    "": "",
}
_SNAPSHOTS = "snapshots"
_TABLE = "border-collapse:collapse;font-size:11px;line-height:1.3;width:100%"
_CELL = (
    "padding:3px 6px;text-align:left;vertical-align:top;font-variant-numeric:tabular-nums;white-space:normal;"
    "border-bottom:1px solid color-mix(in srgb, currentColor 20%, transparent);min-width:46px"
)
_GREY = "opacity:.65"
_BEST = "background:color-mix(in srgb, #2a9d4e 18%, transparent)"
_TINTS = {"good": "", "bad": "background:color-mix(in srgb, #e0483e 14%, transparent)", "": ""}


def _name(row: Row, policies: Mapping[str, str]) -> str:
    name = policies.get(row["architecture"], _SNAPSHOTS)
    return name if name in CLAIMS else _SNAPSHOTS


def _observed(row: Row, reference: Row, name: str, *, slow: bool) -> dict[str, str]:
    return {
        "guarantee": _guarantee(row),
        "latency": "not measured"
        if row["p50_ms"] is None
        else f"{_short(row['p50_ms'])} ms, p99 {_short(row['p99_ms'])} ms",
        "throughput": _throughput(row, reference),
        "model": "one batch after the other" if name in _BATCHED else "record by record",
        "overhead": "not measured"
        if row["messages"] is None
        else f"{_messages(row)}, {_bytes(row['bytes'])} written{_stalls(row)}",
        "flow_control": _flow(row, name) if slow else "not tried",
        "separation": _separation(row),
    }


_BATCHED = ("micro-batches", "spark")
_LATE_MS = 100
_KEEPS_UP = 0.8
_RECORDS_A_MESSAGE = 100


_LEGEND_STYLE = "font-size:11px;opacity:.65"
_LEGEND = (
    f"{_SIGNS['bad']}marks a price, {_SIGNS['good']}none, by thresholds of this workbench: wrong results; a median "
    f"latency above {_LATE_MS} ms; less than {_KEEPS_UP:.0%} of the throughput of the reference; batches of time; a "
    f"message for fewer than {_RECORDS_A_MESSAGE} records, or sources that stood still; needless replays, or more than "
    "one batch that waits; results that depend on a time-out."
)
"""The meaning of the table's symbols, which are a judgement."""
_UNTRIED = " The fault slow-receiver tries flow control."


def _verdicts(row: Row, reference: Row, name: str, *, slow: bool) -> dict[str, str]:
    """For each column whether what was observed is a price: wrong results, a tenth of a second, a fifth of the
    throughput, a message for fewer than a hundred records, a standstill, or needless work."""
    own, best = row["records_per_second"], reference["records_per_second"]
    wrong = row["lost"] or row["doubled"] or row["too_low"] or row["too_high"]
    slowed = row["p50_ms"] is not None and row["p50_ms"] > _LATE_MS
    costs = (row["messages"] or 0) * _RECORDS_A_MESSAGE > max(row["records"], 1) or bool(row["stall_ms"])
    needless = row["timed_out"] or (name == "micro-batches" and row["queued"] > 1)
    prices = {
        "guarantee": wrong,
        "latency": slowed,
        "throughput": own is not None and best and own < _KEEPS_UP * best,
        "model": name in _BATCHED,
        "overhead": costs,
        "flow_control": needless,
        "separation": wrong or row["timed_out"],
    }
    tried = {
        "latency": row["p50_ms"] is not None,
        "flow_control": slow,
        "throughput": own is not None,
        "overhead": row["messages"] is not None,
    }
    return {column: ("bad" if price else "good") if tried.get(column, True) else "" for column, price in prices.items()}


def _guarantee(row: Row) -> str:
    wrong = [
        f"{row[name]:,} {what}"
        for name, what in (("lost", "lost"), ("doubled", "doubled"), ("too_low", "too low"), ("too_high", "too high"))
        if row[name]
    ]
    after = "" if row["failures"] else ", nothing failed"
    return f"{row['observed'].replace('-', ' ')}{': ' if wrong else ''}{', '.join(wrong)}{after}"


def _stalls(row: Row) -> str:
    return f", sources stood still {_short(row['stall_ms'])} ms" if row["stall_ms"] else ""


def _messages(row: Row) -> str:
    each = row["records"] / max(row["messages"], 1)
    return f"1 message for {each:,.0f} records" if each >= 1.5 else f"{1 / max(each, 1e-9):,.1f} messages a record"


def _throughput(row: Row, reference: Row) -> str:
    own, best = row["records_per_second"], reference["records_per_second"]
    if own is None or not best:
        return "not measured"
    return f"{own:,.0f}/s, {own / best:.0%} of the reference"


def _flow(row: Row, name: str) -> str:
    if name == "acks":
        return f"{row['timed_out']:,} roots replayed needlessly" if row["timed_out"] else "absorbed"
    if name == "micro-batches":
        return f"{row['queued']:,} batch{'' if row['queued'] == 1 else 'es'} waited at a time"
    return "absorbed"


def _separation(row: Row) -> str:
    if row["timed_out"]:
        return "the time-out decided what was replayed"
    same = not (row["lost"] or row["doubled"] or row["too_low"] or row["too_high"])
    return "results as in the reference" if same else "results differ"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _bytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"
