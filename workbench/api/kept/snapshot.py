"""Inspection of a checkpoint or savepoint, without the program that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from workbench.api.pictures.status import Table
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.durable.delayed_encoding import GONE
from workbench.durable.kind import kind_of
from workbench.durations import format_instant
from workbench.errors import CheckpointError, CorruptCheckpointError, unknown
from workbench.operators.contract.base import Json
from workbench.operators.contract.base import Snapshot as OperatorSnapshot
from workbench.redaction import redacted
from workbench.runtime.exchange.in_flight import TASK, pieces_in
from workbench.runtime.storage import (
    CheckpointReader,
    DirectoryStorage,
    Manifest,
    folder_named,
    open_files,
)
from workbench.runtime.storage.files import Files, LocalFiles
from workbench.runtime.storage.locations import looked_into, without_options
from workbench.runtime.tasks.source_task import WATERMARKS

_FLOW = ("from", "side_output", "to", "input", "sender", "receiver", "receivers", "held")
_PREFIXES = ("key:", "cell:", "state:", "column:", "held:")
"""Prefixes of columns in snapshots; the user's name follows."""


class Snapshot:
    """A complete checkpoint or savepoint: its state as Arrow tables, the positions of its sources, in-flight records.

    Nothing is locked or changed, and every file is verified against its checksum when it is read.

    Source: F2-7, E10; Flink's State Processor API.

    Args:
        files: the directory around its folder; use `Snapshot.open`.
        place: the folder's name.

    Attributes:
        manifest: job, kind, times, parallelism, and the files with sizes and checksums.

    Raises:
        CorruptCheckpointError: its manifest is missing or damaged.
        CheckpointError: another version wrote it.

    Example:
        >>> import tempfile
        >>> clicks = pa.table({"user": ["a", "b", "a"], "n": [1, 2, 3]})
        >>> counts = wb.Stream.from_table(clicks, rate=1).uid("clicks").key_by("user").aggregate(n=wb.count())
        >>> job = counts.uid("counts").sink_to(wb.DiscardSink()).run("look", checkpoint_dir=tempfile.mkdtemp())
        >>> snapshot = wb.Snapshot.open(job.savepoint("now"))
        >>> job.cancel(); job.wait("60s")
        'CANCELED'
        >>> snapshot.name, snapshot.kind, snapshot.job
        ('now', 'savepoint', 'look')
        >>> snapshot.operator_state("counts").schema.names
        ['user', 'count()']
        >>> sorted(snapshot.offsets)
        ['clicks']
    """

    def __init__(self, files: Files, place: str) -> None:
        self._reader = CheckpointReader(files)
        self.manifest: Manifest = self._reader.manifest(place)
        self._path = files.path_of(place)

    @classmethod
    def open(cls, path: str | Path) -> Snapshot:
        """Open the checkpoint or savepoint in a folder.

        Source: E10.

        Args:
            path: of its folder, or a URI, for example the result of `Job.savepoint`.

        Raises:
            CheckpointError: there is none, or its directory cannot be read.
            CorruptCheckpointError: its manifest is damaged.
        """
        found = folder_named(path)
        if found is None:
            raise CheckpointError(
                f"{redacted(str(path))!r} contains no complete checkpoint: name the folder of a savepoint or a chk-... "
                "folder, see wb.savepoints(checkpoint_dir)"
            )
        return cls(*found)

    @property
    def path(self) -> str:
        """Its folder."""
        return self._path

    @property
    def name(self) -> str:
        """Of its folder."""
        return self.manifest.place.rpartition("/")[2]

    @property
    def job(self) -> str:
        """The job's name."""
        return self.manifest.job

    @property
    def kind(self) -> str:
        """Periodic, manual, savepoint or final."""
        return self.manifest.kind

    @property
    def checkpoint_id(self) -> int:
        """Its number, from 1."""
        return self.manifest.checkpoint_id

    @cached_property
    def operators(self) -> Table:
        """A row for each operator: its uid, parallelism, and the names of its tables with their rows."""
        rows: dict[str, dict[str, int]] = {uid: {} for uid in self.manifest.parallelism}
        for uid, snapshot in self._snapshots():
            for name, value in snapshot.items():
                if isinstance(value, pa.Table) and uid in rows:
                    rows[uid][name] = rows[uid].get(name, 0) + value.num_rows
        return Table(
            {"operator": uid, "parallelism": self.manifest.parallelism[uid], "rows": tables}
            for uid, tables in rows.items()
        )

    def operator_state(self, uid: str, table: str | None = None) -> pa.Table:
        """A table of an operator's state, the rows of all its subtasks: key columns, then values.

        Source: F2-7.

        Args:
            uid: of the operator.
            table: its name, if there are several (`tables` has all of them, including timers); None: the main one.

        Raises:
            CheckpointError: no such operator, or no such table.
            CorruptCheckpointError: a file is missing or damaged.
        """
        tables = self.tables(uid)
        if not tables:
            raise CheckpointError(f"the operator {uid!r} has no tables of state in {self.path}: see values({uid!r})")
        if table is not None and table not in tables:
            raise CheckpointError(unknown("table", table, tables))
        return next(iter(tables.values())) if table is None else tables[table]

    def tables(self, uid: str) -> dict[str, pa.Table]:
        """All tables of an operator's state by name: keyed state, timers, waiting records.

        Source: F2-7.

        Args:
            uid: of the operator.

        Raises:
            CheckpointError: no such operator.
            CorruptCheckpointError: a file is missing or damaged.
        """
        found: dict[str, list[pa.Table]] = {}
        for snapshot in self._of(uid):
            for name, value in snapshot.items():
                if isinstance(value, pa.Table):
                    found.setdefault(name, []).append(value)
        with self._understood(uid):
            return {name: _plain(pa.concat_tables(parts, promote_options="default")) for name, parts in found.items()}

    def values(self, uid: str) -> list[dict[str, Json]]:
        """The parts of an operator's state that are not tables, such as watermarks: by name, for each subtask.

        Source: F2-7.

        Args:
            uid: of the operator.

        Raises:
            CheckpointError: no such operator.
            CorruptCheckpointError: a file is missing or damaged.
        """
        return [
            {name: cast(Json, value) for name, value in snapshot.items() if not isinstance(value, pa.Table)}
            for snapshot in self._of(uid)
        ]

    @property
    def offsets(self) -> dict[str, list[dict[str, Json]]]:
        """The position from which each source resumes: by its uid, for each subtask."""
        found: dict[str, list[dict[str, Json]]] = {}
        for uid, snapshot in self._snapshots():
            if WATERMARKS in snapshot:
                position = {name: cast(Json, value) for name, value in snapshot.items() if name != WATERMARKS}
                found.setdefault(uid, []).append(position)
        return found

    @property
    def in_flight(self) -> list[dict[str, Any]]:
        """The records that an unaligned barrier had overtaken: for each channel its place, and a table of the records.

        An aligned checkpoint has none.
        """
        found = []
        for uid, snapshot in self._snapshots():
            if uid == TASK:
                with self._understood(uid):
                    found += [
                        {**dict(zip(_FLOW, flow, strict=True)), "records": table} for flow, table in pieces_in(snapshot)
                    ]
        return found

    def to_dict(self) -> dict[str, Any]:
        """The manifest, operators and offsets as plain data."""
        manifest = self.manifest
        return {
            **{name: getattr(self, name) for name in ("path", "name", "job", "kind", "checkpoint_id")},
            "triggered_us": manifest.triggered_us,
            "completed_us": manifest.completed_us,
            "size_bytes": manifest.size_bytes,
            "parallelism": dict(manifest.parallelism),
            "max_parallelism": manifest.max_parallelism,
            "operators": list(self.operators),
            "offsets": self.offsets,
        }

    def __repr__(self) -> str:
        return "\n".join(f"{name:<12}{value}" for name, value in self._facts().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left;padding-right:12px'>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table>{rows}</table>"

    def _facts(self) -> dict[str, str]:
        manifest = self.manifest
        stateful = [uid for uid in manifest.parallelism if uid in manifest.operators]
        return {
            "snapshot": f"{self.name} ({self.kind}, checkpoint {self.checkpoint_id})",
            "job": self.job,
            "taken": f"{format_instant(manifest.completed_us)} UTC",
            "size": f"{manifest.size_bytes:,} bytes",
            "state of": ", ".join(f"{uid} x {manifest.parallelism[uid]}" for uid in stateful) or "no operator",
            "key groups": f"{manifest.max_parallelism:,}",
            "path": self.path,
        }

    def _of(self, uid: str) -> list[OperatorSnapshot]:
        if uid not in self.manifest.parallelism:
            raise CheckpointError(unknown("operator", uid, self.manifest.parallelism))
        return [snapshot for own, snapshot in self._snapshots() if own == uid]

    @contextmanager
    def _understood(self, uid: str) -> Iterator[None]:
        """Add the operator's uid to errors about tables that do not belong together."""
        try:
            yield
        except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
            raise CorruptCheckpointError(
                f"the state of {uid!r} in {self.path} cannot be read ({error}): this version did not write it"
            ) from error

    def _snapshots(self) -> Iterator[tuple[str, OperatorSnapshot]]:
        """Every operator's part in every task's file."""
        for file in self.manifest.files:
            yield from self._reader.states(self.manifest, file).items()


def _plain(table: pa.Table) -> pa.Table:
    """The columns under the names that users gave them, if these are unique; of each key the valid row."""
    if GONE.name in table.schema.names:
        latest = LatestRows([name for name in table.schema.names if name.startswith("key:")], table.schema)
        for batch in table.to_batches():
            latest.add(batch)
        table = latest.table()
        table = table.filter(pc.fill_null(pc.invert(table.column(GONE.name)), True)).drop_columns([GONE.name])
    names = table.schema.names
    short = [next((name.removeprefix(each) for each in _PREFIXES if name.startswith(each)), name) for name in names]
    return table.rename_columns([new if short.count(new) == 1 else old for old, new in zip(names, short, strict=True)])


def savepoints(checkpoint_dir: str | Path) -> list[Snapshot]:
    """The savepoints in a checkpoint directory, oldest first; a job may run in it.

    Source: E10; Flink's savepoints.

    Args:
        checkpoint_dir: a path or a URI.

    Raises:
        CheckpointError: there is no such directory, it cannot be read, or another version wrote a savepoint.
        CorruptCheckpointError: a savepoint's manifest is damaged.

    Example:
        >>> import tempfile
        >>> wb.savepoints(tempfile.mkdtemp())
        []
    """
    files = open_files(checkpoint_dir)
    shown = redacted(str(checkpoint_dir))
    reader = CheckpointReader(files)
    with looked_into(files):
        if isinstance(files, LocalFiles) and kind_of(files.path_of("")) != "folder":  # stores have no empty folders
            raise CheckpointError(f"{shown!r} is not a checkpoint directory: name the checkpoint_dir of a job")
        places = [f"savepoints/{name}" for name in files.folders("savepoints")]
        found = [Snapshot(files, place) for place in places if reader.is_complete(place)]
    return sorted(found, key=lambda each: each.checkpoint_id)


def delete_savepoint(path: str | Path) -> None:
    """Delete a savepoint, with the files that only it needs.

    Source: E10; Flink's savepoints.

    Args:
        path: of its folder, or a URI.

    Raises:
        CheckpointError: there is no savepoint, a job is running in its directory, or the directory's job would resume
        from it.

    Example:
        >>> try:
        ...     wb.delete_savepoint("checkpoints/savepoints/nothing")
        ... except wb.errors.CheckpointError as error:
        ...     print(error)
        'checkpoints/savepoints/nothing' contains no complete savepoint: see wb.savepoints(checkpoint_dir)
    """
    head, question, options = without_options(str(path))
    root, _, name = head.rstrip("/").rpartition("/")
    found = folder_named(path)
    if found is None or root.rpartition("/")[2] != "savepoints":
        raise CheckpointError(
            f"{redacted(str(path))!r} contains no complete savepoint: see wb.savepoints(checkpoint_dir)"
        )
    storage = DirectoryStorage(root.removesuffix("savepoints") + question + options or ".")
    try:
        place = f"savepoints/{name}"
        latest = storage.latest()
        if latest is not None and latest.place == place:
            raise CheckpointError(
                f"the savepoint {name!r} is not deleted: the job in {storage.shown!r} would restart from it; let the "
                "job take another checkpoint first, or delete the whole directory"
            )
        storage.discard(place)
    finally:
        storage.close()
