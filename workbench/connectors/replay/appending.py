"""Adds files to the end of a replay log, with one commit: the replacement of its manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from workbench.connectors.replay.draft import LogDraft, writing
from workbench.connectors.replay.manifest import MANIFEST, Manifest
from workbench.durable.disk import sync_path
from workbench.durable.folder_lock import FolderLock, TakenError
from workbench.durable.holder import Holder
from workbench.durations import format_instant
from workbench.errors import HistoryError

_LOCK = "append"


class LogAppend(LogDraft):
    """An append to a log; ``publish`` makes it part of the log.

    New files go into the folder of the log, where no reader sees them before the manifest names them. Readers of the
    log therefore continue unaffected, and a crash at any point leaves the log unchanged or with all added records.

    Source: tables of Delta Lake and Iceberg grow in this way, by files and then one name.

    Args:
        path: folder of the log.
        manifest: of the log.

    Raises:
        HistoryError: another process or thread writes the log, or its folder cannot be written.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path, manifest.event_time, manifest.arrival_time)
        self._before = manifest
        self._lock: FolderLock | None = None
        self._added: list[Path] = []
        try:
            with writing(path):
                self._lock = FolderLock(self._path, _LOCK, Holder.this_process("append"))
                self._remove_strays()
        except TakenError as taken:
            self.discard()
            raise HistoryError(f"records are being appended to {path} by {taken}: wait for it") from None
        except BaseException:
            self.discard()
            raise

    @property
    def rows(self) -> int:
        """The number of records added so far."""
        before = sum(file.rows for channel in self._before.channels[: len(self._channels)] for file in channel)
        return super().rows - before

    def add_channel(self) -> None:
        """Go to the end of the next channel."""
        self._channels.append(list(self._before.channels[len(self._channels)]))

    def publish(self, schema: pa.Schema, fingerprint: Mapping[str, str], notes: Sequence[str], now_us: int) -> None:
        """Replace the manifest with one that contains the added files; the schema of the log does not change."""
        place = self._path / MANIFEST
        if Manifest.from_json(place.read_text(encoding="utf-8"), self._path).identity != self._before.identity:
            raise HistoryError(f"the replay log at {self._path} was rewritten meanwhile: open it and append again")
        rows = tuple(sum(file.rows for file in channel) for channel in self._before.channels)
        manifest = Manifest(
            self._before.schema,
            *self._times,
            tuple(tuple(channel) for channel in self._channels),
            {**self._before.fingerprint, **fingerprint},
            (*self._before.notes, *notes),
            format_instant(now_us // 1_000_000 * 1_000_000),
            (*self._before.grown_from, self._before.identity),
            (*self._before.appended_after, rows),
            self._before.partitioned,
            self._before.block_rows,
            self._before.order_column,
        )
        for number in range(len(self._channels)):
            sync_path(self._path / f"channel-{number}")
        draft = self.folder / MANIFEST
        draft.write_text(manifest.to_json(), encoding="utf-8")
        sync_path(draft)
        draft.replace(place)
        self._added = []
        sync_path(self._path)

    def discard(self) -> None:
        """Delete unpublished files."""
        for file in self._added:
            file.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        super().discard()

    def _take(self, file: Path, name: str) -> Path:
        place = self._path / name
        place.parent.mkdir(exist_ok=True)
        self._added.append(place)
        os.replace(file, place)  # noqa: PTH105  an equal name is an equal content
        return place

    def _remove_strays(self) -> None:
        """Delete what a process has added that died before its commit."""
        known = {file.name for file in self._before.files}
        for file in self._path.glob("channel-*/*.parquet"):
            if file.relative_to(self._path).as_posix() not in known:
                file.unlink()
