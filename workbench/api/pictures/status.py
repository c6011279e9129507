"""The results of `Job.status()` and `Job.metrics()`: plain data with a readable form."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from workbench.durations import format_instant
from workbench.wire.head import Head
from workbench.wire.sentences import Sentence, text_of
from workbench.wire.values import Instant

SHORT = 40
_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"


class Status(dict[str, Any]):
    """A dictionary with a readable form.

    Keys: job, state, paused; the present settings, by the names of ``wb.SETTINGS``, and restart (speed and rate are
    None if no source has one); slow_down and stall while they are in use; position and watermark (UTC text);
    records_in, records_out (received by the sinks); records_in_per_second, records_out_per_second;
    latency_p50_ms, latency_p95_ms, latency_p99_ms (from the sources to the slowest sink, None until measured);
    last_change (the last changed setting, and its measured effect); last_interruption (the last failure, rescaling or
    take-over, until the sources were where they had been); late_records; restarts; restart_due (UTC text,
    while a restart is pending); last_checkpoint (id), checkpoints (complete); committed_rows (by table); backpressure;
    failure; lost_connections (of sources, sinks and look-ups: the server, the error, the attempt that is due, and when
    the task fails); retained (what servers keep of their logs for the sources until a checkpoint confirms them, its
    state, and how much may be written before it is lost); stalled (the task in a call that has not returned for two
    seconds or more, since when and where, or the checkpoints' storage after ten seconds); lease (the owner of the
    checkpoint directory, since when).
    """

    def __repr__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{name:<{width}}  {_show(value)}" for name, value in self.items() if value not in (None, ""))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='{_CELL}'>{escape(name)}</th><td style='{_CELL}'>{escape(_show(value))}</td></tr>"
            for name, value in self.items()
            if value not in (None, "")
        )
        return f"<table>{rows}</table>"


def status_of(job: str, head: Head, settings: Mapping[str, Any]) -> Status:
    """The status from a head; settings are the present ones, which may be newer."""
    latency = head.latency
    names = ("p50", "p95", "p99")
    return Status(
        job=job,
        state=head.state,
        paused=head.paused,
        **settings,
        position=None if head.position_us is None else _instant(head.position_us),
        watermark=_instant(head.watermark_us),
        records_in=head.read,
        records_out=head.received,
        records_in_per_second=round(head.read_per_s or 0),
        records_out_per_second=round(head.received_per_s or 0),
        **{
            f"latency_{name}_ms": None if latency is None else round(getattr(latency, f"{name}_ms"), 2)
            for name in names
        },
        last_change=_text(head.change),
        last_interruption=_text(head.interruption),
        late_records=head.late or 0,
        restarts=head.restarts or 0,
        restart_due=None if head.restart_due_us is None else _instant(head.restart_due_us),
        last_checkpoint=head.checkpoint,
        checkpoints=head.checkpoints,
        committed_rows=dict(head.tables),
        backpressure=text_of(head.backpressure),
        failure=_text(head.failure),
        lost_connections=_text(head.connections),
        retained=_text(head.kept),
        **({} if head.roots is None else {"roots": dict(head.roots)}),
    )


def _instant(value: Instant) -> str:
    return value if isinstance(value, str) else format_instant(value)


def _text(sentence: Sentence | None) -> str | None:
    return None if sentence is None else text_of(sentence)


class Table(list[dict[str, Any]]):
    """A list of rows that is displayed as a table."""

    def __repr__(self) -> str:
        return (
            "\n".join(", ".join(f"{name}={_show(value)}" for name, value in row.items()) for row in self) or "no rows"
        )

    def _repr_html_(self) -> str:
        if not self:
            return "<i>no rows</i>"
        columns = list(dict.fromkeys(name for row in self for name in row))  # not every row has all of them
        head = "".join(f"<th style='{_CELL}'>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(_cell(_show(row[name]) if name in row else "") for name in columns) + "</tr>"
            for row in self
        )
        return f"<div style='overflow-x:auto'><table><tr>{head}</tr>{body}</table></div>"


def _cell(text: str) -> str:
    """A cell; a short text, such as the name of a slot, is not wrapped, however many columns there are."""
    unbroken = ";white-space:nowrap" if len(text) <= SHORT else ""
    return f"<td style='{_CELL}{unbroken}'>{escape(text)}</td>"


def _show(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "-" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else format_instant(value)
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_show(item)}" for key, item in value.items())
    return str(value)
