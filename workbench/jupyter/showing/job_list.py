"""The list of jobs that ``%stream list`` displays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from workbench.durations import format_instant
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import reached

COLUMNS = ("job", "state", "records/s", "watermark", "checkpoints", "settings")


@dataclass(frozen=True, slots=True)
class JobList:
    """Jobs as a table: one tuple of text per job, in the order of COLUMNS."""

    rows: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(jobs: Mapping[str, Any]) -> JobList:
        """Read the newest telemetry frame of each job, and the status of those on Spark."""
        return JobList(tuple(_row(name, job) for name, job in jobs.items()))

    def __repr__(self) -> str:
        if not self.rows:
            return "no jobs"
        table = [COLUMNS, *self.rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
        lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in table)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        if not self.rows:
            return "<p>no jobs</p>"
        head = "".join(f"<th>{escape(text)}</th>" for text in COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(name: str, job: Any) -> tuple[str, ...]:
    if job.engine == "spark":
        return _row_on_spark(name, job.status())
    frame: Frame | None = job.recorder.latest()
    if frame is None:
        return (name, str(job.state), "-", "-", "-", "-")
    rate = frame.metrics.get("numRecordsInPerSecond") or 0
    completed = frame.metrics.get("numberOfCompletedCheckpoints") or 0
    settings = ", ".join(f"{key}={value}" for key, value in frame.settings.items() if value is not None)
    return (name, str(job.state), f"{float(rate):,.0f}", format_instant(reached(frame)), str(completed), settings)


def _row_on_spark(name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    """What is not measured is a dash."""
    rate = told["rows_per_second"]
    shown = "-" if rate is None else f"{rate:,.0f}"
    return (name, str(told["state"]), shown, told["watermark"] or "-", str(told["batches"]), f"tier={told['tier']}")
