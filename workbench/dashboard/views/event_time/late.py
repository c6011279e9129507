"""Late records that were dropped: the last few of them, with how far event time was ahead and who sent them."""

from __future__ import annotations

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, table
from workbench.telemetry.frames import Frame, LateFrame

LISTED = 20


def latest(frame: Frame, most: int = LISTED) -> list[tuple[str, LateFrame]]:
    """The last late records with the tasks that dropped them, those of the furthest watermark first."""
    found = [(task.name, late) for task in frame.tasks for late in reversed(task.late)]
    return sorted(found, key=lambda item: -item[1].watermark_us)[:most]


def line(frame: Frame) -> str:
    """The very last one in a line of HTML; empty where there is none."""
    found = latest(frame, 1)
    if not found:
        return ""
    task, late = found[0]
    key = f"<b>{wording.html_text(wording.plain(late.key, 24))}</b> " if late.key else ""
    behind = "after the end" if late.behind_us is None else f"{wording.span(late.behind_us)} behind"
    return (
        f"<p title='{wording.html_text(late.record)}'>the last: {key}of {wording.instant(late.event_time_us)}, "
        f"{behind}, {_channel(task, late)}</p>"
    )


def html(frame: Frame) -> str:
    """The last ones as a table."""
    found = latest(frame)
    if not found:
        return none("No late records.")
    lines = [
        f"<tr><th>{wording.html_text(wording.plain(late.key, 40))}</th><td>{wording.instant(late.event_time_us)}</td>"
        f"<td>{wording.instant(late.watermark_us)}</td><td class='n'>{wording.span(late.behind_us)}</td>"
        f"<td>{_channel(task, late)}</td>"
        f"<td class='record' title='{wording.html_text(late.record)}'>{wording.html_text(late.record)}</td></tr>"
        for task, late in found
    ]
    return table(("key", "event time (UTC)", "watermark", "behind", "channel", "record"), lines, ("behind",))


def _channel(task: str, late: LateFrame) -> str:
    here = wording.html_text(task)
    return here if late.source is None else f"{wording.html_text(late.source)} → {here}"
