"""The table of the documents: what they claim of each architecture, and what was observed of it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    "micro-batches": Claim(
        "Trident, Spark Streaming",
        "exactly once",
        "high",
        "high",
        "micro-batch: windows are multiples of the batch",
        "low",
        "problematic: batches queue or grow",
        "no: the batch size changes results",
    ),
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
    "separation": "program apart from fault tolerance",
}
"""The titles of the columns, by their names."""


def documents_rows(rows: Sequence[Row], policies: Mapping[str, str], *, slow: bool) -> list[dict[str, str]]:
    """The table of the documents, with the architectures that were compared.

    Args:
        rows: of `ArchitectureComparison.table`; the first is the run without faults.
        policies: by lane, the name of its architecture.
        slow: a receiver was slow, so flow control was tried.

    Returns:
        For each row ``architecture``, ``system``, and for each name of `COLUMNS` that with ``_claimed`` and
        ``_observed``.
    """
    order = list(CLAIMS)
    found = []
    for row in sorted(rows[1:], key=lambda row: order.index(_name(row, policies))):
        claim = CLAIMS[_name(row, policies)]
        seen = _observed(row, rows[0], _name(row, policies), slow=slow)
        cells = {f"{name}_{kind}": text for name in COLUMNS for kind, text in _pair(claim, seen, name)}
        found.append({"architecture": row["architecture"], "system": claim.system, **cells})
    return found


def documents_html(rows: Sequence[Mapping[str, str]]) -> str:
    """The table as a part of a page; the claims are grey, what was observed stands beside them."""
    if not rows:
        return ""
    titles = "".join(f"<th colspan='2' style='{_CELL}'>{escape(title)}</th>" for title in COLUMNS.values())
    kinds = f"<th style='{_CELL};{_GREY}'>claimed</th><th style='{_CELL}'>observed</th>" * len(COLUMNS)
    head = f"<tr><th rowspan='2' style='{_CELL}'>architecture</th>{titles}</tr><tr>{kinds}</tr>"
    body = "".join(
        f"<tr><th style='{_CELL}'>{escape(row['architecture'])}<br><small>{escape(row['system'])}</small></th>"
        + "".join(
            f"<td style='{_CELL};{_GREY}'>{escape(row[f'{name}_claimed'])}</td>"
            f"<td style='{_CELL}'>{escape(row[f'{name}_observed'])}</td>"
            for name in COLUMNS
        )
        + "</tr>"
        for row in rows
    )
    return f"<div style='overflow-x:auto'><table style='{_TABLE}'>{head}{body}</table></div>"


_SNAPSHOTS = "snapshots"
_TABLE = "border-collapse:collapse;font-size:12px;line-height:1.35"
_CELL = (
    "padding:3px 8px;text-align:left;vertical-align:top;font-variant-numeric:tabular-nums;white-space:normal;"
    "border-bottom:1px solid color-mix(in srgb, currentColor 20%, transparent);min-width:72px"
)
_GREY = "opacity:.65;border-left:1px solid color-mix(in srgb, currentColor 20%, transparent)"


def _name(row: Row, policies: Mapping[str, str]) -> str:
    name = policies.get(row["architecture"], _SNAPSHOTS)
    return name if name in CLAIMS else _SNAPSHOTS


def _pair(claim: Claim, seen: Mapping[str, str], name: str) -> list[tuple[str, str]]:
    return [("claimed", getattr(claim, name)), ("observed", seen[name])]


def _observed(row: Row, reference: Row, name: str, *, slow: bool) -> dict[str, str]:
    return {
        "guarantee": _guarantee(row),
        "latency": "not measured"
        if row["p50_ms"] is None
        else f"{_short(row['p50_ms'])} ms, p99 {_short(row['p99_ms'])} ms{_stalls(row)}",
        "throughput": _throughput(row, reference),
        "model": "accepts this program, one batch after the other"
        if name == "micro-batches"
        else "runs this program record by record",
        "overhead": f"{row['messages']:,} messages, {_bytes(row['bytes'])} written",
        "flow_control": _flow(row, name) if slow else "not tried: add slow-receiver",
        "separation": _separation(row),
    }


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


def _throughput(row: Row, reference: Row) -> str:
    own, best = row["records_per_second"], reference["records_per_second"]
    if own is None or not best:
        return "not measured"
    return f"{own:,.0f}/s, {own / best:.2f} of a run without faults"


def _flow(row: Row, name: str) -> str:
    if name == "acks":
        return f"{row['timed_out']:,} roots replayed needlessly" if row["timed_out"] else "absorbed, no root timed out"
    if name == "micro-batches":
        return f"up to {row['queued']:,} batches waited"
    return "absorbed up to the sources"


def _separation(row: Row) -> str:
    if row["timed_out"]:
        return "the time-out decided what was replayed"
    same = not (row["lost"] or row["doubled"] or row["too_low"] or row["too_high"])
    return "results as without faults" if same else "results differ after the fault"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _bytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"
