"""The head of the dashboard: which job, how it is, how fast it runs, in numbers and in words."""

from __future__ import annotations

import math
import re

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.badges import BADGES
from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.sources import number_of
from workbench.dashboard.contract.recent_failure import failure_now
from workbench.dashboard.views.event_time.holders import late_records
from workbench.dashboard.views.event_time.lateness import kept, totals
from workbench.dashboard.views.latency import percentiles
from workbench.durations import format_speed
from workbench.telemetry.diagnosis import NONE
from workbench.telemetry.frames import Frame, ReplayFrame
from workbench.telemetry.reached import event_time_lag

MANY_LATE = 0.001
"""The share of records that are too late from which it is told with the state of the job."""
NEW_US = 60_000_000
"""So long what has happened stands out."""
HINT = "<p class='past'>The effects of changed settings, failures and unusual input appear here.</p>"
"""Where nothing has happened: the place stays, so that the sliders below do not move when something does."""
SILENT = (
    "<span style='display:var(--wb-if-lost,inline)'>The kernel has been silent: it is busy, or this output is from an "
    "earlier session. Run the cell again to see the live job.</span><span style='display:var(--wb-if-ended,none)'>The "
    "kernel was restarted, which ended this job: this view shows its last state. Run the cell that starts it.</span>"
)
"""What a page says that has heard nothing for a while, or knows that nothing more will come."""
SILENCE = f"<span class='silence' role='status'>{SILENT}</span>"


def figures(frame: Frame) -> tuple[tuple[str, str, str], ...]:
    """The head's numbers: (label, value, unit)."""
    rate_in, running, restarts = (
        number_of(frame.metrics, name) for name in ("numRecordsInPerSecond", "runningTime", "numRestarts")
    )
    latency = percentiles(frame)
    figures_ = [
        ("records in", wording.short(rate_in), "/s"),
        ("latency p50", wording.milliseconds(latency["p50"]), ""),
        ("latency p99", wording.milliseconds(latency["p99"]), ""),
        ("event-time lag", wording.span(event_time_lag(frame)), ""),
        ("running", wording.span(None if running is None else int(running * 1000)), ""),
        ("restarts", wording.count(restarts), ""),
        ("late records", wording.count(sum(late_records(frame).values())), ""),
    ]
    figures_.extend((f"rows in {name}", wording.count(rows), "") for name, rows in list(frame.tables.items())[:3])
    return tuple(figures_)


def headline(frame: Frame) -> str:
    """What a running job does, in words; empty for others, whose state says it."""
    if frame.state != "RUNNING":
        return ""
    if frame.paused:
        return "Paused: the sources read nothing, and what is in flight is still processed."
    if _is_held(frame):
        return "All of its history has been read, and at_end = hold keeps it open: it finishes with at_end = finish."
    told = [f"Reads {wording.short(number_of(frame.metrics, 'numRecordsInPerSecond'))} records/s."]
    latency, behind = percentiles(frame), event_time_lag(frame)
    if latency["p50"] is not None:
        half, most = (wording.milliseconds(latency[name]) for name in ("p50", "p99"))
        told.append(f"Half reach a sink within {half}, 99 % within {most}.")
    if behind:
        where = "at the sinks" if latency["p50"] is None else "there"
        told.append(f"Event time {where} is {wording.span(behind)} behind the sources.")
    if frame.backpressure == NONE:
        told.append(NONE)
    return " ".join(told)


def _is_held(frame: Frame) -> bool:
    at_end = frame.replay is not None and replay_share(frame.replay) >= 1.0
    return at_end and frame.settings.get("at_end") == "hold" and not frame.metrics.get("numRecordsInPerSecond")


def replay_share(replay: ReplayFrame) -> float:
    """The share of the history that has been read, 0 to 1: by records if their number is known, else by time."""
    if replay.records_total > 0:
        return min(1.0, replay.records_read / replay.records_total)
    length = replay.end_us - replay.start_us
    return min(1.0, max(0.0, (replay.position_us - replay.start_us) / length)) if length > 0 else 0.0


def replay_html(replay: ReplayFrame) -> str:
    """The position of the replay."""
    share = replay_share(replay)
    speed = format_speed(replay.speed if replay.speed > 0 else math.inf)
    return (
        f"<span class='replay'>history <b>{wording.instant(replay.position_us)}</b>"
        f"<span class='bar'><i style='width:{share * 100:.1f}%;background:var(--wb-accent)'></i></span>"
        f"{share * 100:.1f} % of {wording.count(replay.records_total)} records at {speed}</span>"
    )


def failure_html(frame: Frame) -> str:
    """The failure of the job; empty if there is none."""
    if not frame.failure or frame.state not in ("FAILED", "FAILING"):
        return ""
    return f"<p class='failure' role='alert'>✗ {wording.html_text(frame.failure)}</p>"


def pressure_html(frame: Frame) -> str:
    """What holds the job back; empty where nothing does, which the headline says."""
    kind = "pressure" if frame.state == "RUNNING" else "past"
    return "" if frame.backpressure == NONE else f"<p class='{kind}'>{wording.html_text(frame.backpressure)}</p>"


def findings_html(frame: Frame) -> str:
    """What else is wrong with its input, a paragraph each."""
    found = filter(None, (*frame.findings, lost(frame)))
    return "".join(f"<p class='news finding'>{wording.html_text(sentence)}</p>" for sentence in found)


def lost(frame: Frame) -> str:
    """How many records came too late for their windows, and which bound would have kept them; empty if it is few."""
    counts = totals(frame)
    if counts.late < MANY_LATE * counts.at_windows or not counts.late or frame.state != "RUNNING":
        return ""
    went = "were dropped" if counts.dropped >= counts.aside else "went to the side output"
    since = "Since the tasks restarted, " * any(task.attempt for task in frame.tasks)
    told = f"{wording.count(counts.late)} of {wording.count(counts.at_windows)} records came too late for their windows"
    return f"{since}{told} and {went}. {kept(counts)}".rstrip()


def interruption_html(frame: Frame) -> str:
    """The last interruption as it goes on, or how it went; empty where there was none."""
    if not frame.interruptions:
        return ""
    last = frame.interruptions[-1]
    lasts = last.state == "lasts"
    role, begun = (" role='status'", "") if lasts else ("", f"{wording.clock(last.start_us)} UTC: ")
    shown = "warn" if lasts else _aged(frame, last.start_us)
    return f"<p class='{shown}'{role}>{begun}{wording.html_text(last.sentence)}</p>"


def change_html(frame: Frame) -> str:
    """The last changed setting, and what it did; empty where none was changed."""
    if not frame.changes:
        return ""
    last = frame.changes[-1]
    return (
        f"<p class='{_aged(frame, last.time_us)}'>{wording.clock(last.time_us)} UTC: "
        f"{wording.html_text(last.sentence)}</p>"
    )


def _aged(frame: Frame, time_us: int) -> str:
    """How what happened then is written: what is new stands out."""
    return "news" if frame.state == "RUNNING" and frame.time_us - time_us < NEW_US else "past"


def _state(frame: Frame) -> str:
    colour, sign = BADGES[frame.state]
    paused = "<b class='warn'>paused</b>" if frame.paused else ""
    return (
        f"<span class='heard'><span class='badge {colour}'>{sign} {frame.state}</span>{paused}</span>"
        f"<span class='silent'><span class='badge muted'>? not connected</span> last seen {frame.state}</span>"
    )


def _minor(label: str, value: str) -> bool:
    """Whether a narrow head leaves this figure out."""
    return label == "running" or (label in ("restarts", "late records") and value == "0")


LECTURE = (
    "<button type='button' class='lecture' data-opens='lecture' title='Lecture mode: one scene at a time, in large "
    "type (key L)'>Lecture <kbd>L</kbd></button>"
)


def html(frame: Frame, name: str) -> str:
    """The full header: always as high, whatever is told.

    A person who points at what has happened, or moves the focus there, is shown all of it.
    """
    numbers = "".join(
        f"<span class='fig{' minor' * _minor(label, value)}'><b>{value}<i>{unit}</i></b>"
        f"<small>{wording.html_text(label)}</small></span>"
        for label, value, unit in figures(frame)
    )
    replay = "" if frame.replay is None else replay_html(frame.replay)
    failure = failure_html(frame)
    if not failure and (past := failure_now(frame)):
        failure = f"<p class='past'>last failure: {wording.html_text(past)}</p>"
    if told := interruption_html(frame):
        failure = told if not failure_html(frame) else failure + told
    name = wording.html_text(name)
    happens = f"{pressure_html(frame)}{findings_html(frame)}{_in_order(frame, failure)}"
    said = f"<span class='heard'>{wording.html_text(headline(frame))}</span>{SILENCE}"
    return (
        f"<div class='top'><span class='who'><b title='{name}'>{name}</b>{_state(frame)}{LECTURE}</span>"
        f"<span class='figs'>{numbers}</span></div>"
        f"<div class='next'><span class='said'>{said}</span>{replay}</div>"
        f"<div class='happens'{_read(happens)}>{happens or HINT * (frame.state == 'RUNNING')}</div>"
    )


def waiting_html(name: str) -> str:
    """The header before the first frame."""
    return (
        f"<div class='top'><span class='who'><b>{wording.html_text(name)}</b>"
        "<span class='badge muted'>○ waiting for data</span></span></div>"
        "<div class='next'><span class='said'><span class='heard'>The job has not reported yet. This view updates when "
        f"it does.</span>{SILENCE}</span></div>"
    )


def news_html(frame: Frame) -> str:
    """What a lecture tells above its scene: what has happened last, then what is unusual in the input."""
    told = _in_order(frame, interruption_html(frame)) + findings_html(frame)
    return told or HINT * (frame.state == "RUNNING")


def slim_html(frame: Frame, name: str) -> str:
    """The header of a single part: one line, and two for what has happened, so that it is always as high.

    A person who points at these two lines is shown all of what has happened, and so is one who moves the focus there.
    """
    name = wording.html_text(name)
    calm = f"<span class='calm'>{NONE}</span>" if frame.backpressure == NONE else ""
    news = _in_order(frame, interruption_html(frame))
    happens = f"{failure_html(frame)}{news}{pressure_html(frame)}{findings_html(frame)}"
    return (
        f"<div class='line'><b class='name' title='{name}'>{name}</b>{_state(frame)}{calm}{LECTURE}</div>"
        f"<div class='brief'{_read(happens)}>{SILENCE}{happens or HINT * (frame.state == 'RUNNING')}</div>"
    )


def _in_order(frame: Frame, interrupted: str) -> str:
    """What tells of the last interruption, and the last changed setting: what was later first."""
    last_us = max((one.start_us for one in frame.interruptions), default=0)
    is_later = bool(frame.changes) and frame.changes[-1].time_us > last_us
    changed = change_html(frame)
    return changed + interrupted if is_later else interrupted + changed


def _read(sentences: str) -> str:
    """Attributes of the place of these paragraphs, which has no room for many: all of them can be read there."""
    return f" tabindex='0' title='{_plain(sentences)}'" if sentences else ""


def _plain(sentences: str) -> str:
    """Paragraphs as lines of plain text, still escaped."""
    return re.sub("<[^>]*>", "", sentences.replace("</p><p", "</p>\n<p"))


class HeaderView:
    """The header: full, or in one line."""

    def __init__(self, name: str, texts: Texts, slim: bool = False) -> None:
        self._name, self._html = name, slim_html if slim else html
        self._piece = texts.piece(f"State of job {name}", "header")
        self._piece.write(waiting_html(name))
        self.div = self._piece.div

    def update(self, frame: Frame) -> None:
        self._piece.write(self._html(frame, self._name))
