"""Jobs that can be continued: found in their checkpoint directories, after their process has ended or died."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from inspect import signature
from pathlib import Path

from workbench.api.kept.job_record import RECORD, JobRecord, known_directories
from workbench.api.running.pipeline import Pipeline
from workbench.arguments import location_of
from workbench.clock import SystemClock
from workbench.durable.holder import is_alive
from workbench.durable.kind import kind_of
from workbench.durations import format_instant
from workbench.errors import CheckpointError, sentence_of
from workbench.printable import printable
from workbench.redaction import redacted
from workbench.runtime.storage import CheckpointReader, Holder, Manifest
from workbench.runtime.storage.files import Files, LocalFiles
from workbench.runtime.storage.holding import LOCK
from workbench.runtime.storage.lease import lessee
from workbench.runtime.storage.locations import folder_in, looked_into, open_files

_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job that was found in a checkpoint directory; it does not run in this process.

    Attributes:
        record: the record that it has left.
        directory: its location, a path or URI.
        checkpoint: its latest complete checkpoint; None: it has none.
        holder: the process that seems to run it.
        problem: why its checkpoints cannot be read; None: they can.

    Source: F2-16.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
        >>> pipeline.run("small", checkpoint_dir=folder).wait("60s")
        'FINISHED'
        >>> [(found.name, found.resumable, found.record.state) for found in wb.found_jobs(folder)]
        [('small', False, 'FINISHED')]
    """

    record: JobRecord
    directory: str
    checkpoint: Manifest | None
    holder: Holder | None
    problem: str | None = None

    def __repr__(self) -> str:
        return ", ".join(self.facts)

    @property
    def name(self) -> str:
        """The job's name."""
        return self.record.name

    @property
    def resumable(self) -> bool:
        """Whether it has a checkpoint to resume from and unfinished work, and no other process runs it."""
        return self.checkpoint is not None and self.holder is None and not self._has_read_everything

    @property
    def _has_read_everything(self) -> bool:
        return self.record.has_read_everything(self.checkpoint)

    @property
    def call(self) -> str:
        """The call that continues it; its pipeline is in the program that started it. Secrets in a URI are masked."""
        usual = signature(Pipeline.run).parameters
        chosen = {
            setting: value
            for setting, value in self.record.settings.items()
            if setting not in usual or str(usual[setting].default) != str(value)
        }
        given = {"checkpoint_dir": redacted(self.directory), **chosen, "resume": True}
        return f"run({self.name!r}, {', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def facts(self) -> tuple[str, str, str, str]:
        """Name, progress or problem, how it was started and where it is, as text."""
        reached = "no checkpoint yet"
        if self.checkpoint is not None:
            done = format_instant(self.checkpoint.completed_us)
            reached = f"checkpoint {self.checkpoint.checkpoint_id} of {done}"
        if self._has_read_everything:
            reached = "finished"
        if self.problem is not None:
            reached = self.problem
        if self.holder is not None:
            reached = f"run by {self.holder}"
        started = "Python" if self.record.cell is None else "%%stream"
        facts = self.name, reached, f"started with {started}{self.record.writer}", redacted(self.directory)
        return tuple(map(printable, facts))  # type: ignore[return-value]  # as many


class FoundJobs(tuple[FoundJob, ...]):
    """Found jobs, displayed as a table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no jobs"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td style='{_CELL}'>{escape(text)}</td>" for text in job.facts) + "</tr>" for job in self
        )
        return f"<table>{rows}</table>" if rows else "<p>no jobs</p>"


def found_jobs(directory: str | Path | None = None) -> FoundJobs:
    """The jobs in a checkpoint directory and the folders directly in it; nothing is run or changed.

    Source: F2-16.

    Args:
        directory: a path or URI; None: all directories of jobs that were started in this working directory while
            ``%load_ext workbench`` was active.

    Returns:
        At most one for each directory; `FoundJob.resumable` shows which can be continued, `FoundJob.problem` why the
        checkpoints of one cannot be read.

    Raises:
        CheckpointError: the directory cannot be read.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=100).sink_to(wb.TableSink("numbers"))
        >>> job = numbers.run("numbers", checkpoint_dir=folder, checkpoint_interval="1s")
        >>> job.stop(); job.wait("60s")  # it has read some of them
        'FINISHED'
        >>> found = wb.found_jobs(folder)[0]
        >>> found.name, found.resumable
        ('numbers', True)
        >>> print(found.call.replace(folder, "FOLDER"))
        run('numbers', checkpoint_dir='FOLDER', checkpoint_interval='1s', resume=True)
    """
    if directory is None:
        known = known_directories()
        return FoundJobs(_all_in([] if known is None else known.locations(), deep=False))
    return FoundJobs(_all_in([location_of(directory, "the directory")], deep=True))


def _all_in(locations: Iterable[str], *, deep: bool) -> Iterable[FoundJob]:
    for location in locations:
        if deep and "://" not in location and not _is_folder(location):
            raise CheckpointError(f"there is no directory {location!r} to look for jobs in")
        names: Sequence[str] = ()
        if deep:
            files = open_files(location)
            with looked_into(files):
                names = files.folders()
        for place in (location, *(folder_in(location, name) for name in names)):
            if (job := _found(place)) is not None:
                yield job


def _is_folder(location: str) -> bool:
    try:
        return kind_of(location) == "folder"
    except OSError as error:
        raise CheckpointError(
            f"the directory {location!r} cannot be listed ({error.strerror}): give this user permission to read it"
        ) from None


def _found(location: str) -> FoundJob | None:
    """The job in a directory; None if there is none, or if it cannot be read now."""
    try:
        files = open_files(location)
        reader = CheckpointReader(files)
        record = JobRecord.from_json(reader.bytes_of(RECORD)) if files.exists(RECORD) else None
        if record is None:
            return None
        holder = _holder(files, reader)
        try:
            return FoundJob(record, location, reader.latest(), holder)
        except CheckpointError as error:  # of this job alone: the others must still be found
            return FoundJob(record, location, None, holder, sentence_of(error))
    except (OSError, CheckpointError):
        return None


def _holder(files: Files, reader: CheckpointReader) -> Holder | None:
    """The process that owns a directory, unless it is known to be dead; a resume finds out for certain."""
    if not isinstance(files, LocalFiles):
        return lessee(files, SystemClock().now_us())
    holder = Holder.read(reader.bytes_of(LOCK).decode(errors="replace")) if files.exists(LOCK) else None
    if holder is not None and holder.host == platform.node() and not is_alive(holder.pid):
        return None
    return holder
