"""Results as a part of the dashboard: the latest committed rows of a TableSink, and a plot of one of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from time import monotonic

import pyarrow as pa
import pyarrow.compute as pc
from bokeh.models import ColumnDataSource, DataRange1d, DatetimeTickFormatter, HoverTool

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import column, none, scrolled
from workbench.dashboard.charts.html import table as html_table
from workbench.dashboard.charts.line_key import LineKey
from workbench.dashboard.charts.sources import refresh
from workbench.dashboard.charts.static import ticks
from workbench.dashboard.charts.time_chart import LONG_TIMES
from workbench.dashboard.contract.actions import choice, group, offer
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel, Part
from workbench.operators.contract.python_rows import python_rows, python_values
from workbench.operators.functions.dead_letters import as_json
from workbench.telemetry.diagnosis import waiting
from workbench.telemetry.frames import Frame

EVERY_S = 1.0
ROWS, ROWS_ALONE = 6, 40
PLOTTED = 400
"""The latest rows that are plotted."""
_LENGTHS_MS = {"s": 1_000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
COLOURS = (("accent", "solid"), ("violet", "dashed"), ("good", "dotted"), ("warn", "solid"), ("bad", "dashed"))
_LINES = {str(place): line for place, line in enumerate(COLOURS)}


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest rows of a table.

    Attributes:
        rows: how many there are in all.
        table: the last of them.
    """

    rows: int
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the plot: its name, and its points in the order of x."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def keys(table: pa.Table) -> list[str]:
    """The columns that tell whose row it is: those in front of ``window_start``, or the first text column, or a first
    column of whole numbers that come again and again.
    """
    names: list[str] = table.column_names
    if "window_start" in names:
        return names[: names.index("window_start")]
    texts = [f.name for f in table.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    if texts or table.num_columns < 2 or not pa.types.is_integer(table.schema.field(0).type):
        return texts[:1]
    return names[:1] if 2 * pc.count_distinct(table.column(0)).as_py() <= table.num_rows else []


def numbers(table: pa.Table) -> list[str]:
    """The columns that can be plotted."""
    own = keys(table)
    return [
        item.name
        for item in table.schema
        if item.name not in own and (pa.types.is_integer(item.type) or pa.types.is_floating(item.type))
    ]


def time_column(table: pa.Table) -> str | None:
    """The column that tells when: ``window_end``, or else the last one of a time type."""
    times = [item.name for item in table.schema if pa.types.is_timestamp(item.type) or pa.types.is_date(item.type)]
    return "window_end" if "window_end" in times else times[-1] if times else None


def series(latest: Latest, y: str) -> list[Series]:
    """The plotted column by key, at most five lines, those with the most points; all in one where there is no key.

    x is milliseconds since 1970 where a column tells a time, else the number of the row. Points are in the order of x:
    rows come as the sink's subtasks commit them. Rows in which the value or the time is missing are left out.
    """
    table = latest.table
    when = time_column(table)
    found: dict[str, list[tuple[float, float]]] = {}
    first = latest.rows - table.num_rows
    own = [[wording.plain(key, 24) for key in python_values(table.column(name))] for name in keys(table)]
    names = [" · ".join(parts) for parts in zip(*own, strict=True)] if own else [y] * table.num_rows
    times = [None] * table.num_rows if when is None else _milliseconds(table.column(when))
    for place, (name, time, value) in enumerate(zip(names, times, table.column(y).to_pylist(), strict=True)):
        if value is None or value != value or (when is not None and time is None):
            continue
        found.setdefault(name, []).append((float(first + place) if time is None else time, float(value)))
    fullest = sorted(found, key=lambda name: -len(found[name]))[: len(COLOURS)]
    return [Series(name, *zip(*sorted(found[name], key=itemgetter(0)), strict=True)) for name in sorted(fullest)]


def html(latest: Latest, most: int, why: str = "") -> str:
    """The latest rows, newest first; `why` there are none yet."""
    if not latest.rows:
        return none(f"No rows have been committed. {wording.html_text(why)}".rstrip())
    table = latest.table.slice(max(0, latest.table.num_rows - most))
    heads = [wording.html_text(wording.plain(name, 40)) for name in table.column_names]
    lines = []
    for row in reversed(python_rows(table)):
        cells = "".join(
            f"<td{_missing(value)} title='{wording.html_text(wording.plain(_whole(value), 300))}'>"
            f"{wording.html_text(wording.plain(_shown(value), 60))}</td>"
            for value in row.values()
        )
        lines.append(f"<tr>{cells}</tr>")
    return html_table(heads, lines)


def _missing(value: object) -> str:
    return " class='muted'" if value is None else ""


def _whole(value: object) -> object:
    """The tooltip of a cell: all digits of a number."""
    return value if isinstance(value, float) else _shown(value)


def _shown(value: object) -> object:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return wording.number(value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():,.10g} s"
    if value is None or isinstance(value, bool | int | str | bytes):
        return value
    return as_json(value) if isinstance(value, Mapping | list) else str(value)


def _milliseconds(column: pa.ChunkedArray) -> list[float | None]:
    """Since 1970, of instants or dates of any unit, however far they are."""
    kind = column.type
    length = _LENGTHS_MS[kind.unit] if pa.types.is_timestamp(kind) else 86_400_000 if pa.types.is_date32(kind) else 1
    numbers = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
    return [None if number is None else number * length for number in numbers]


class SinkPart(Part):
    """One table at a time; its latest rows are read off the pump: every second, and once more when nothing moves."""

    hint = "committed rows, newest first"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._frame: Frame | None = None
        self._read_for: Frame | None = None
        self._read_at = -EVERY_S
        self._latest: Latest | None = None
        self._most = ROWS_ALONE if easel.alone else ROWS
        self.table, self.column = choice("Table"), choice("Column to plot", 120)
        self._count = easel.texts.piece("Number of rows", "row_count")
        self._html = easel.texts.piece("Latest rows", "sink")
        self.table.on_change("value", lambda _attribute, _old, _new: self._forget())
        self.column.on_change("value", lambda _attribute, _old, _new: self._show())
        self._lines = [ColumnDataSource({"x": [], "y": []}) for _ in COLOURS]
        self.figure = easel.paint.blank(
            "The latest results over time", 260 if easel.alone else 110, x_axis_type="datetime",
            x_range=DataRange1d(range_padding=0.02), y_range=DataRange1d(range_padding=0.1),
        )  # fmt: skip
        for source, (colour, dash) in zip(self._lines, COLOURS, strict=True):
            line = self.figure.line("x", "y", source=source, line_width=1.5, line_dash=dash)
            dots = self.figure.scatter("x", "y", source=source, size=4, line_color=None)
            easel.paint.set(line.glyph, line_color=colour)
            easel.paint.set(dots.glyph, fill_color=colour)
        self._key = LineKey(easel.texts, "the latest results", _LINES)
        self._key.show({})
        self.figure.yaxis.formatter = ticks("shortNumber")
        self.figure.yaxis.ticker.desired_num_ticks = 3
        self.figure.xaxis.ticker.desired_num_ticks = 4
        self._times, self._places = DatetimeTickFormatter(**LONG_TIMES), ticks("shortNumber")
        self.figure.add_tools(HoverTool(tooltips=[("value", "@y{0,0.[000]}")], mode="mouse"))
        easel.paint.plot(self.figure)
        self.models = [
            column([group(self.table, self.column, self._count.div), self._key.div, self.figure]),
            scrolled(self._html.div, 520 if easel.alone else 150),
        ]  # fmt: skip
        self.inputs = (self.table, self.column)

    def update(self, frame: Frame) -> None:
        self._frame = frame
        offer(self.table, list(frame.tables))
        if not frame.tables:
            self._html.write(none("This job has no TableSink."))
            return
        if self._latest is not None and not self._latest.rows:
            self._write(self._latest, frame)
        self._catch_up()

    def _catch_up(self) -> None:
        """Read the table, unless it was read for this frame already, or so lately that another frame is soon enough.

        Their number does not tell whether there are other rows: those of an upsert table take each other's places.
        """
        frame = self._frame
        if frame is None or frame is self._read_for or not self.table.value:
            return
        goes_on = frame.state not in OVER and self.easel.runs_live()
        if not goes_on or monotonic() - self._read_at >= EVERY_S:
            self._read(frame)

    def _read(self, frame: Frame) -> None:
        job, name = self.easel.job, self.table.value

        def read() -> Latest:
            table = job.table(name)
            return Latest(table.num_rows, table.slice(max(0, table.num_rows - PLOTTED)))

        def told(latest: Latest | None, problem: str | None) -> None:
            if name == self.table.value:
                if latest is None:
                    self._latest = None
                    self._html.write(none(wording.html_text(problem or "")))
                elif latest != self._latest:
                    self._latest = latest
                    self._show()
            self._catch_up()

        if self.easel.background.run("results", read, told):
            self._read_for, self._read_at = frame, monotonic()

    def _forget(self) -> None:
        self._latest = self._read_for = None
        self._read_at = -EVERY_S
        self._html.write("")
        self._catch_up()

    def _write(self, latest: Latest, frame: Frame | None) -> None:
        self._html.write(html(latest, self._most, "" if frame is None or frame.state in OVER else waiting(frame)))

    def _show(self) -> None:
        latest = self._latest
        if latest is None:
            return
        self._count.write(f"<b>{latest.rows:,}</b> rows")
        self._write(latest, self._frame)
        columns = numbers(latest.table)
        offer(self.column, columns)
        drawn = series(latest, self.column.value) if self.column.value in columns else []
        formatter = self._times if time_column(latest.table) else self._places
        if self.figure.xaxis[0].formatter is not formatter:
            self.figure.xaxis[0].formatter = formatter
        self._key.show({str(place): one.name for place, one in enumerate(drawn)})
        for place, source in enumerate(self._lines):
            one = drawn[place] if place < len(drawn) else Series("", (), ())
            refresh(source, {"x": list(one.x), "y": list(one.y)})
