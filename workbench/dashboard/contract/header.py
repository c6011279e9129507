"""The head of the dashboard: which job, how it is, how fast it runs, and what holds it back."""

from __future__ import annotations

import math

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.sources import number_of
from workbench.durations import format_speed
from workbench.telemetry.frames import Frame, ReplayFrame

BADGES = {
    "CREATED": ("muted", "○"), "INITIALIZING": ("accent", "◔"), "RUNNING": ("good", "●"), "FAILING": ("bad", "▲"),
    "RESTARTING": ("warn", "↺"), "CANCELLING": ("warn", "◑"), "CANCELED": ("muted", "■"), "FINISHED": ("accent", "✓"),
    "FAILED": ("bad", "✗"), "SUSPENDED": ("warn", "❚❚"),
}  # fmt: skip


def late_records(frame: Frame) -> int:
    """Records that came too late for every window, over all tasks."""
    return sum(int(task.metrics.get("numLateRecordsDropped") or 0) for task in frame.tasks)


def figures(frame: Frame) -> tuple[tuple[str, str, str], ...]:
    """The head's numbers: (label, value, unit)."""
    rate_in, rate_out, running, restarts = (
        number_of(frame.metrics, name)
        for name in ("numRecordsInPerSecond", "numRecordsOutPerSecond", "runningTime", "numRestarts")
    )
    figures_ = [
        ("records in", wording.short(rate_in), "/s"),
        ("records out", wording.short(rate_out), "/s"),
        ("running", wording.span(None if running is None else int(running * 1000)), ""),
        ("restarts", wording.count(restarts), ""),
        ("late records", wording.count(late_records(frame)), ""),
    ]
    figures_.extend((f"rows in {name}", wording.count(rows), "") for name, rows in list(frame.tables.items())[:3])
    return tuple(figures_)


def replay_share(replay: ReplayFrame) -> float:
    """How much of the history has been read, 0 to 1: by records where their number is known, else by time."""
    if replay.records_total > 0:
        return min(1.0, replay.records_read / replay.records_total)
    length = replay.end_us - replay.start_us
    return min(1.0, max(0.0, (replay.position_us - replay.start_us) / length)) if length > 0 else 0.0


def replay_html(replay: ReplayFrame) -> str:
    """Where the replay stands."""
    share = replay_share(replay)
    speed = format_speed(replay.speed if replay.speed > 0 else math.inf)
    return (
        f"<span class='replay'>history <b>{wording.instant(replay.position_us)}</b>"
        f"<span class='bar'><i style='width:{share * 100:.1f}%;background:var(--wb-accent)'></i></span>"
        f"{share * 100:.1f} % of {wording.count(replay.records_total)} records at {speed}</span>"
    )


def failure_html(frame: Frame) -> str:
    """What has brought the job down; empty where nothing has."""
    if not frame.failure or frame.state not in ("FAILED", "FAILING"):
        return ""
    return f"<p class='failure' role='alert'>✗ {wording.html_text(frame.failure)}</p>"


def _limits(frame: Frame) -> str:
    """What holds the job back."""
    return wording.html_text(" ".join((frame.backpressure, *frame.findings)))


def interruption_html(frame: Frame) -> str:
    """The last interruption as it goes on, or how it went; empty where there was none."""
    if not frame.interruptions:
        return ""
    last = frame.interruptions[-1]
    lasts = last.state == "lasts"
    role, begun = (" role='status'", "") if lasts else ("", f"{wording.clock(last.start_us)} UTC: ")
    return f"<p class='{'warn' if lasts else 'past'}'{role}>{begun}{wording.html_text(last.sentence)}</p>"


def _state(frame: Frame) -> str:
    colour, sign = BADGES[frame.state]
    paused = "<b class='warn'>paused</b>" if frame.paused else ""
    return (
        f"<span class='heard'><span class='badge {colour}'>{sign} {frame.state}</span>{paused}</span>"
        f"<span class='silent'><span class='badge muted'>? not connected</span> last seen {frame.state}</span>"
    )


def html(frame: Frame, name: str) -> str:
    """The whole head."""
    numbers = "".join(
        f"<span class='fig'><b>{value}<i>{unit}</i></b><small>{wording.html_text(label)}</small></span>"
        for label, value, unit in figures(frame)
    )
    replay = "" if frame.replay is None else replay_html(frame.replay)
    failure = failure_html(frame)
    if not failure and frame.failure:
        failure = f"<p class='past'>last failure: {wording.html_text(frame.failure)}</p>"
    if told := interruption_html(frame):
        failure = told if not failure_html(frame) else failure + told
    pressure, name = _limits(frame), wording.html_text(name)
    return (
        f"<div class='top'><span class='who'><b title='{name}'>{name}</b>{_state(frame)}</span>"
        f"<span class='figs'>{numbers}</span></div>"
        f"<div class='next'><span class='pressure'>{pressure}</span>{replay}</div>{failure}"
    )


def waiting_html(name: str) -> str:
    """The head before the first frame."""
    return (
        f"<div class='top'><span class='who'><b>{wording.html_text(name)}</b>"
        "<span class='badge muted'>○ waiting for data</span></span></div>"
        "<div class='next'><span class='pressure'>The job has not reported yet. This view updates when it "
        "does.</span></div>"
    )


def slim_html(frame: Frame, name: str) -> str:
    """The head of a part that stands alone: one line, and why the job has failed."""
    name = wording.html_text(name)
    return (
        f"<div class='next'><b class='name' title='{name}'>{name}</b> {_state(frame)}"
        f"<span class='pressure'>{_limits(frame)}</span></div>{failure_html(frame)}"
        f"{interruption_html(frame)}"
    )


class HeaderView:
    """The head: whole, or in one line."""

    def __init__(self, name: str, texts: Texts, slim: bool = False) -> None:
        self._name, self._html = name, slim_html if slim else html
        self._piece = texts.piece(f"State of job {name}", "header")
        self._piece.write(waiting_html(name))
        self.div = self._piece.div

    def update(self, frame: Frame) -> None:
        self._piece.write(self._html(frame, self._name))
