"""What a headless run prints at its end: the table, the checkpoints, and what it took."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

import workbench as wb
from workbench.cli.main_job import NAME
from workbench.cli.run_folder import RunFolder
from workbench.durations import format_instant, format_speed, parse_speed
from workbench.telemetry.checkpoint_frames import CheckpointFrame

LAST_ROWS = 5
LAST_CHECKPOINTS = 5


@dataclass(slots=True)
class Effort:
    """Wall-clock time of a run since its tasks started, and CPU time on all cores."""

    wall_s: float
    cpu_s: float

    @staticmethod
    def begin() -> Effort:
        """Start measuring."""
        return Effort(-time.perf_counter(), -time.process_time())

    def end(self) -> None:
        """Stop measuring."""
        self.wall_s += time.perf_counter()
        self.cpu_s += time.process_time()


def print_outcome(console: Console, job: wb.types.Job, effort: Effort, folder: RunFolder, speed: str) -> None:
    """Print the table's totals and last rows, the checkpoints, the throughput, and the path of the rows."""
    table = job.table(NAME)
    console.print(totals(table))
    console.print(last_rows(table))
    console.print(checkpoints(job.checkpoints()))
    console.print(pace(int(job.status()["records_in"]), effort, parse_speed(speed)))
    console.print(f"{table.num_rows:,} rows are committed in {folder.output}/*.parquet.")


def pace(read: int, effort: Effort, speed: float) -> str:
    """A sentence on the throughput. A replay at a limited speed waits for its history, so only its throughput per CPU
    second means something.

    Example:
        >>> pace(9_000, Effort(wall_s=2.0, cpu_s=3.0), 3600.0)
        '9,000 flights in 2.0 s at 3600x: 3,000 per CPU second, since its tasks started (3.0 CPU seconds on all cores).'
    """
    by_clock = f": {read / effort.wall_s:,.0f} per second," if math.isinf(speed) else f" at {format_speed(speed)}:"
    return (
        f"{read:,} flights in {effort.wall_s:.1f} s{by_clock} {read / effort.cpu_s:,.0f} per CPU second, "
        f"since its tasks started ({effort.cpu_s:.1f} CPU seconds on all cores)."
    )


def totals(table: pa.Table) -> Table:
    """Windows, flights, mean delay over the flights and worst delay for each origin."""
    weighted = table.append_column("minutes", pc.multiply(table["mean_delay"], pc.cast(table["flights"], pa.float64())))
    sums = weighted.group_by("origin", use_threads=False).aggregate(
        [("window_start", "count"), ("flights", "sum"), ("minutes", "sum"), ("worst", "max")]
    )
    shown = Table("origin", "hours", "flights", "mean delay", "worst", title="Delays, by origin (minutes)")
    right_align(shown)
    for row in sums.sort_by("origin").to_pylist():
        mean = row["minutes_sum"] / row["flights_sum"]
        counts = (f"{row['window_start_count']:,}", f"{row['flights_sum']:,}")
        shown.add_row(row["origin"], *counts, f"{mean:.2f}", f"{row['worst_max']:g}")
    return shown


def last_rows(table: pa.Table) -> Table:
    """The last windows of the year."""
    ordered = table.sort_by([("window_start", "ascending"), ("origin", "ascending")])
    shown = Table("origin", "window_start", "flights", "mean_delay", "worst", title=f"The last {LAST_ROWS} rows (UTC)")
    right_align(shown)
    for row in ordered.slice(max(0, ordered.num_rows - LAST_ROWS)).to_pylist():
        start = row["window_start"].strftime("%Y-%m-%d %H:%M")
        shown.add_row(row["origin"], start, str(row["flights"]), f"{row['mean_delay']:.2f}", f"{row['worst']:g}")
    return shown


def checkpoints(taken: list[CheckpointFrame]) -> Table:
    """The most recent checkpoints."""
    complete = [checkpoint for checkpoint in taken if checkpoint.state == "COMPLETED"]
    failed = sum(checkpoint.state == "FAILED" for checkpoint in taken)
    caption = f"{len(complete)} complete" + (f", {failed} failed" if failed else "")
    shown = Table("checkpoint", "kind", "triggered", "duration", "size", title=f"Checkpoints: {caption}")
    right_align(shown)
    for checkpoint in complete[-LAST_CHECKPOINTS:]:
        shown.add_row(
            str(checkpoint.id),
            checkpoint.kind,
            format_instant(checkpoint.triggered_us - checkpoint.triggered_us % 1_000_000),
            f"{checkpoint.duration_ms:.0f} ms",
            f"{checkpoint.size_bytes / 1000:,.1f} kB",
        )
    return shown


def right_align(table: Table) -> None:
    """Right-align all columns but the first."""
    for column in table.columns[1:]:
        column.justify = "right"
