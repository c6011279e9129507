"""Jobs of one pipeline on common axes, what differs in words, and a column of controls for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.api.pictures.mechanism import mechanism_of
from workbench.api.pictures.side_by_side import (
    FIGURES,
    checkpointing,
    differences,
    figures,
    set_to,
    settings_that_differ,
    verdict,
)
from workbench.dashboard.charts import wording
from workbench.dashboard.charts.badges import BADGES
from workbench.dashboard.charts.html import column, none, row, written
from workbench.dashboard.charts.time_chart import SPACING_MS, WINDOW_MS, TimeChart
from workbench.dashboard.contract.knobs import Knobs
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.frames import Frame

STYLES = (
    ("accent", "solid"),
    ("violet", "dashed"),
    ("good", "dotted"),
    ("warn", "solid"),
    ("bad", "dashed"),
    ("accent", "dotted"),
    ("violet", "solid"),
    ("good", "dashed"),
)
"""The line of each lane, in all charts."""
FEW_LANES = 3
"""With more lanes, each has the sliders of its architecture only."""
KNOBS = ("buffer_timeout", "buffer_size", "checkpoint_interval", "checkpoint_mode", "rate", "speed", "parallelism")
CHARTS = {
    "p50": ("Latency, p50", "shortMilliseconds", "{0.0} ms"),
    "p99": ("Latency, p99", "shortMilliseconds", "{0.0} ms"),
    "records per second": ("Records in per second", "shortNumber", "{0.0a} rec/s"),
    "buffers per second": ("Buffers per second", "shortNumber", "{0.0a} buffers/s"),
}
"""Of each figure that is drawn: what stands above it, how its ticks are written, and its unit."""
BUFFERING = {"buffer_timeout", "buffer_size"}
UNITS = {"records per second": "records/s", "buffers per second": "buffers/s"}
"""How figures are called where there is little room."""


class LanesPart(Part):
    """The lanes; its job is a `Lanes`."""

    hint = "one line for each lane, on the same axes"
    rest_us = 350_000

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        lanes = easel.job.jobs  # type: ignore[attr-defined]
        lines = {lane: STYLES[place % len(STYLES)] for place, lane in enumerate(lanes)}
        self._many = len(lanes) > FEW_LANES
        self._words = easel.texts.piece("What differs", "lanes_table" if self._many else "lanes_words", role="status")
        self._charts = {
            name: TimeChart(
                easel.paint,
                easel.texts,
                easel.window,
                lines,
                ticks=ticks,
                label=title,
                unit=unit,
                pixels=150 - 20 * self._many,
                keyed=not self._many,  # the table is the key
                marks=lines,
            )
            for name, (title, ticks, unit) in CHARTS.items()
        }
        self._heads = {lane: easel.texts.piece(f"Lane {lane}", "lanes_head") for lane in lanes}
        self._knobs = {
            lane: Knobs(replace(easel, job=job), _knobs_of(job, many=self._many)) for lane, job in lanes.items()
        }
        drawn = [
            column([written(f"<h4>{CHARTS[name][0]}</h4>", "lanes_title"), *chart.models])
            for name, chart in self._charts.items()
        ]
        controls = [
            column([self._heads[lane].div, *self._knobs[lane].models])
            for lane in lanes
            if self._knobs[lane].models or not self._many
        ]
        rows = row(drawn, "lanes_row", "lanes_charts"), row(controls, "lanes_row")
        self.models = [column([self._words.div, *rows], "whole", spacing=10)]
        self.asides = self._left_out(drawn)
        self.inputs = tuple(item for knobs in self._knobs.values() for item in knobs.inputs)
        self._lines = lines
        for time_us, frames in self._past():
            self._append(time_us, frames)

    def update(self, frame: Frame) -> None:
        """Draw the newest frame of every lane."""
        frames = self.easel.job.newest()  # type: ignore[attr-defined]
        self._append(max(own.time_us for own in frames.values()), frames)
        if not self._many:  # the marks of many would hide the lines
            for chart in self._charts.values():
                chart.annotate_each(frames)
        differ = settings_that_differ(list(frames.values()))
        told = self._table(frames) if self._many else _compared(frames)
        self._words.write(told or none("The lanes have not reported yet."))
        for lane, own in frames.items():
            if self._many:
                self._heads[lane].write(f"<h4>{wording.html_text(lane)}</h4>")
            else:
                self._heads[lane].write(self._head(lane, own, differ))
            self._knobs[lane].update(own)

    def _left_out(self, drawn: Sequence[Any]) -> list[Any]:
        """What a lecture has no room for: all but latency, what the settings that differ cost, and their sliders."""
        differ = settings_that_differ(list(self.easel.job.newest().values()))  # type: ignore[attr-defined]
        cost = "records per second" if differ and BUFFERING.isdisjoint(differ) else "buffers per second"
        moved = [name for name in KNOBS if name in differ][:2] or ["buffer_timeout"]
        charts = [cell for name, cell in zip(CHARTS, drawn, strict=True) if name not in ("p50", cost)]
        sliders = [
            slider.model
            for knobs in self._knobs.values()
            for name, slider in knobs.sliders.items()
            if name not in moved
        ]
        return charts + sliders

    def _past(self) -> list[tuple[int, dict[str, Frame]]]:
        """What the charts can show of the history, as far apart as their points are."""
        found: list[tuple[int, dict[str, Frame]]] = []
        history = self.easel.job.history()  # type: ignore[attr-defined]
        for time_us, frames in history:
            recent = history[-1][0] - time_us <= WINDOW_MS * 1_000
            if recent and (not found or time_us - found[-1][0] >= SPACING_MS * 1_000):
                found.append((time_us, frames))
        return found

    def _append(self, time_us: int, frames: dict[str, Frame]) -> None:
        measured = {lane: figures(frame) for lane, frame in frames.items()}
        for name, chart in self._charts.items():
            chart.append(time_us, {lane: own[name] for lane, own in measured.items()})

    def _head(self, lane: str, frame: Frame, differ: list[str]) -> str:
        """The lane's line, name and state, what only it is set to, and its figures."""
        colour, dash = self._lines[lane]
        tone, sign = BADGES[frame.state]
        own = figures(frame)
        told = {
            name: wording.milliseconds(own[name]) if not name.endswith("second") else wording.short(own[name])
            for name in FIGURES
        }
        numbers = "".join(
            f"<span><b>{value}</b><small>{UNITS.get(name, name)}</small></span>" for name, value in told.items()
        )
        options = ", ".join(set_to(name, frame) for name in differ)
        return (
            f"<h4><i style='border-top:4px {dash} var(--wb-{colour})'></i>{wording.html_text(lane)} "
            f"<span class='{tone}'>{sign} {frame.state}</span></h4>"
            f"<p class='muted'>{wording.html_text(options)}&nbsp;</p>"
            f"<p class='figures'>{numbers}</p>{_happened(frame)}"
        )

    def _table(self, frames: dict[str, Frame]) -> str:
        """A row for each lane: its line, its figures, and what its fault tolerance has cost up to now."""
        costs = {lane: _costs(frame) for lane, frame in frames.items()}
        titles = list(dict.fromkeys(title for own in costs.values() for title in own))
        head = "".join(f"<th>{title}</th>" for title in ("lane", *FIGURES[:3], *titles))
        rows = []
        for lane, frame in frames.items():
            colour, dash = self._lines[lane]
            tone, sign = BADGES[frame.state]
            own = figures(frame)
            cells = [wording.milliseconds(own["p50"]), wording.milliseconds(own["p99"])]
            cells += [wording.short(own["records per second"]), *(costs[lane].get(title, "") for title in titles)]
            rows.append(
                f"<tr><td><i style='border-top:4px {dash} var(--wb-{colour})'></i>{wording.html_text(lane)}"
                f"<span class='{tone}'>{sign} {frame.state}</span></td>"
                f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            )
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""


def _compared(frames: dict[str, Frame]) -> str:
    """Which lane is best, then how each differs from the first, and what checkpoints cost and save."""
    best, *others = map(wording.html_text, (verdict(frames), *differences(frames), *checkpointing(frames)))
    more = "".join(f"<p class='more'>{one}</p>" for one in others)
    return f"<p class='verdict'>{best}</p>{more}"


def _happened(frame: Frame) -> str:
    """What has happened in a lane last, in a place that is always as high: below it are sliders that somebody holds."""
    happened = [(one.start_us, one.sentence) for one in frame.interruptions]
    happened += [(one.time_us, one.sentence) for one in frame.changes]
    told = wording.html_text(max(happened, default=(0, ""))[1])
    return f"<p class='happened' title='{told}'>{told or '&nbsp;'}</p>"


def _knobs_of(job: Any, *, many: bool) -> tuple[str, ...]:
    """The settings that have a slider in a lane."""
    frame = job.recorder.latest()
    own = () if frame is None else tuple(knob for knob, value in frame.knobs.items() if value is not None)
    return own if many else (*KNOBS, *own)


def _costs(frame: Frame) -> dict[str, str]:
    """What the architecture of a job has cost up to now."""
    cost = mechanism_of(frame)
    return {
        "messages": wording.short(cost.messages),
        "written": wording.size(cost.bytes),
        "read again": wording.short(cost.records_again),
        "recovery": wording.milliseconds(cost.recovery_ms),
        "stood still": wording.milliseconds(cost.stall_ms or None),
        "timed out": "" if frame.acks is None else wording.short(cost.timed_out),
        "queued": "" if frame.batches is None else wording.short(cost.queued),
    }
