"""Progress of a job: a bar in a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from workbench.durations import format_instant
from workbench.telemetry.frames import Frame, ReplayFrame
from workbench.telemetry.reached import reached

LINE_PERIOD_S = 2.0


def headline(frame: Frame) -> str:
    """The progress of a job in one line."""
    replay = frame.replay
    read = f"{replay.records_read:,} flights" if replay is not None else "no replay"
    rate = float(frame.metrics.get("numRecordsInPerSecond") or 0)
    done = frame.metrics.get("numberOfCompletedCheckpoints") or 0
    watermark = format_instant(reached(frame)).partition(".")[0]
    return f"{read}  {rate:,.0f}/s  watermark {watermark}  checkpoints {done}"


def share_done(replay: ReplayFrame | None) -> float:
    """The share of the history that has been read, 0 to 1."""
    return replay.records_read / replay.records_total if replay is not None and replay.records_total else 0.0


class Bar:
    """A progress bar over the history, for a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[position]}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[headline]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("", total=1.0, position="-", headline="")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, frame: Frame) -> None:
        """Update the bar."""
        position = format_instant(frame.replay.position_us).partition(" ")[0] if frame.replay is not None else "-"
        self._progress.update(
            self._task, completed=share_done(frame.replay), position=position, headline=headline(frame)
        )


class Lines:
    """A line every two seconds, for a file or a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = 0.0

    def show(self, frame: Frame) -> None:
        """Print a line if one is due."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LINE_PERIOD_S
        self._console.print(f"{share_done(frame.replay):5.0%}  {headline(frame)}")


def display(console: Console) -> AbstractContextManager[Bar | Lines]:
    """A bar for a terminal, lines for a file or a pipe."""
    return Bar(console) if console.is_terminal else nullcontext(Lines(console))
