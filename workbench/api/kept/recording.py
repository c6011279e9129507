"""Flight recordings: the telemetry of a run, stored in a file for later inspection."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.api.pictures.status import Table
from workbench.arguments import path_of
from workbench.durations import format_instant
from workbench.errors import SettingError
from workbench.packages import needed
from workbench.telemetry.frames import Frame
from workbench.telemetry.recording import read_frames, write_frames

_OF_SPARK = b'{"format": "workbench recording of Spark"'


class Recording:
    """The frames of a run, made by `Job.recording`; it has the same views as a running job.

    It holds counts and names but no records, and no code.

    Source: not in Flink; like a flight recorder. Its metrics are Flink's.

    Args:
        job: the job's name.
        frames: in the order of time, at least one.

    Raises:
        SettingError: there are no frames.

    Attributes:
        name: the job's.
        frames: immutable, about ten per second in the last half minute and two per second before.

    Example:
        >>> import tempfile
        >>> job = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.DiscardSink()).run("recorded")
        >>> job.wait("60s")
        'FINISHED'
        >>> path = tempfile.mkdtemp() + "/run.recording"
        >>> recording = job.recording(path)
        >>> again = wb.Recording.open(path)
        >>> again.name, again.frames == recording.frames, again.frames[-1].state
        ('recorded', True, 'FINISHED')
    """

    def __init__(self, job: str, frames: Sequence[Frame]) -> None:
        if not frames:
            raise SettingError(f"nothing has been recorded of the job {job!r} yet: let it run for a moment")
        self.name = job
        self.frames = tuple(frames)

    @staticmethod
    def open(path: str | Path) -> Recording:
        """Read a recording from a file; one of a job on Spark has the picture of ``job.dashboard()``, but no frames.

        Args:
            path: of a file that `Job.recording` or `save` wrote.

        Raises:
            SettingError: there is no such file, or it is not a complete recording.
        """
        file = path_of(path, "path")
        if _is_of_spark(file):
            of_spark = needed("workbench.spark.watching.recording", "a recording of a job on Spark")
            return of_spark.SparkRecording.open(file)  # type: ignore[no-any-return]
        return Recording(*read_frames(file))

    def save(self, path: str | Path) -> Path:
        """Write it to a file, as compressed JSON lines.

        Args:
            path: of the file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.
        """
        target = path_of(path, "path")
        write_frames(target, self.name, self.frames)
        return target

    def dashboard(self, carrier: str | None = None) -> Any:
        """The views of the dashboard with a slider over the time of the run, for display in a cell.

        Args:
            carrier: as for `Job.dashboard`.

        Raises:
            SettingError: no such carrier.
        """
        return needed("workbench.dashboard.shown.playback", "a dashboard").Playback(self, carrier)

    def report(self, path: str | Path) -> Path:
        """Write the run to one HTML file that needs no network; see `Job.report`.

        Args:
            path: of the HTML file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.
        """
        write = needed("workbench.dashboard.shown.report", "a report").write_report
        written: Path = write(path_of(path, "path"), self.name, self.frames)
        return written

    def events(self) -> Table:
        """The log of the run, oldest first: each line once, with its time in UTC."""
        seen = {event: None for frame in self.frames for event in frame.events}
        return Table([{"time": format_instant(e.time_us), "kind": e.kind, "what": e.text} for e in seen])

    def __repr__(self) -> str:
        first, last = self.frames[0], self.frames[-1]
        seconds = (last.time_us - first.time_us) / 1e6
        return f"<Recording of job {self.name!r}: {len(self.frames)} frames over {seconds:.1f} s, to {last.state}>"


def _is_of_spark(file: Path) -> bool:
    """Whether a file begins as a recording of a job on Spark does."""
    try:
        with gzip.open(file, "rb") as opened:
            return opened.read(len(_OF_SPARK)) == _OF_SPARK
    except (OSError, EOFError, zlib.error):
        return False  # reading it as any other recording says why
