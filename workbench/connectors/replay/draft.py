"""Writes a replay log so that a crash never leaves part of one."""

from __future__ import annotations

import errno
import glob
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from workbench.arguments import is_utf8
from workbench.connectors.replay.manifest import MANIFEST, LogFile, Manifest, Partitioned, describe_file
from workbench.durable.disk import make_folder_durably, sync_path
from workbench.durable.holder import is_alive
from workbench.durations import format_instant
from workbench.errors import HistoryError, told_by

_in_progress: dict[str, LogDraft] = {}
"""Where this process is writing logs; a draft's folder is named after its process, so each place has one writer."""


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Add the log's place to errors of the file system.

    Raises:
        HistoryError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else told_by(error)  # shorter than Arrow's text
        fix = "free some space or choose another path" if error.errno == errno.ENOSPC else "choose another path"
        raise HistoryError(f"cannot write a replay log at {path} ({why}): {fix}") from error


class LogDraft:
    """A log under construction, under a temporary name next to its final place; ``publish`` turns it into a log.

    The creator finally calls ``discard``, published or not. Every file is on disk before the manifest, and the manifest
    before the folder gets its name, so a crash at any point leaves either the previous log or none, never part of one.

    Attributes:
        partitioned, block_rows, order_column: of the manifest.
    """

    def __init__(self, path: Path, event_time: str, arrival_time: str) -> None:
        self._place = os.path.realpath(path)  # written to the target of a link
        place = Path(self._place)
        if not is_utf8(place):
            raise HistoryError(f"the path {self._place!r} is not UTF-8, which Arrow cannot open: choose another path")
        with writing(path):
            if place.exists() and not (place / MANIFEST).is_file() and (not place.is_dir() or any(place.iterdir())):
                raise HistoryError(f"{path} exists and is not a replay log: choose another path or remove it")
        if (mounted := os.path.ismount(place)) or place == Path.cwd():
            why = "where a file system is mounted" if mounted else "which is the working directory"
            raise HistoryError(f"a replay log cannot replace {path}, {why}: choose a folder in it")
        if _in_progress.setdefault(self._place, self) is not self:
            raise HistoryError(
                f"the replay log at {path} is being written by another thread: wait for it, or choose another path"
            )
        self._path = place
        self.partitioned: Partitioned | None = None
        self.block_rows, self.order_column = 1, ""
        self._times = (event_time, arrival_time)
        self._channels: list[list[LogFile]] = []
        self.folder = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        try:
            with writing(path):
                _remove_leftovers(place)
                make_folder_durably(place.parent)
                self.folder.mkdir()
        except BaseException:  # an interrupt, too: release the place
            self._leave()
            raise

    @property
    def rows(self) -> int:
        """The number of records added so far."""
        return sum(file.rows for channel in self._channels for file in channel)

    def add_channel(self) -> None:
        """Start the next channel."""
        self._channels.append([])
        (self.folder / f"channel-{len(self._channels) - 1}").mkdir()

    def add_file(self, file: Path) -> None:
        """Move a finished Parquet file to the end of the current channel; a file without rows is deleted.

        Raises:
            HistoryError: an arrival is null or decreases.
        """
        number = len(self._channels) - 1
        channel = self._channels[-1]
        previous_us = channel[-1].groups[-1].last_arrival_us if channel else None
        first_row = channel[-1].first_row + channel[-1].rows if channel else 0
        name = f"channel-{number}/{len(channel):05}-{{sha}}.parquet"
        described = describe_file(file, name, self._times, first_row, previous_us)
        if not described.groups:
            file.unlink()
            return
        sync_path(self._take(file, described.name))
        channel.append(described)

    def publish(self, schema: pa.Schema, fingerprint: Mapping[str, str], notes: Sequence[str], now_us: int) -> None:
        """Write the manifest, dated `now_us`, and give the folder its name, replacing an existing log."""
        channels = tuple(tuple(channel) for channel in self._channels)
        created_at = format_instant(now_us // 1_000_000 * 1_000_000)
        manifest = Manifest(
            schema,
            *self._times,
            channels,
            dict(fingerprint),
            tuple(notes),
            created_at,
            partitioned=self.partitioned,
            block_rows=self.block_rows,
            order_column=self.order_column,
        )
        for number in range(len(channels)):
            sync_path(self.folder / f"channel-{number}")
        target = self.folder / MANIFEST
        target.write_text(manifest.to_json(), encoding="utf-8")
        sync_path(target)
        sync_path(self.folder)
        old = self._path.with_name(f".{self._path.name}.{os.getpid()}.old")
        if self._path.exists():
            shutil.rmtree(old, ignore_errors=True)
            self._path.rename(old)
        self.folder.rename(self._path)
        sync_path(self._path.parent)
        shutil.rmtree(old, ignore_errors=True)

    def discard(self) -> None:
        """Delete unpublished files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._leave()

    def _take(self, file: Path, name: str) -> Path:
        return file.rename(self.folder / name)

    def _leave(self) -> None:
        _in_progress.pop(self._place, None)


def _remove_leftovers(path: Path) -> None:
    """Delete the drafts of this log from processes that no longer run."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        writer, kind = leftover.name.split(".")[-2:]
        if kind in ("tmp", "old") and writer.isdigit() and (int(writer) == os.getpid() or not is_alive(int(writer))):
            shutil.rmtree(leftover, ignore_errors=True)
