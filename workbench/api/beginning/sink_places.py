"""Where the sinks of a job write: no two to one place, and none where the rows of another run lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from workbench.connectors.parts.file_sink import FileSink
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.parts.sink_folder import SinkFolder
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import PlanError
from workbench.operators.contract.base import Snapshot
from workbench.plan.logical import LogicalGraph
from workbench.runtime.storage import CheckpointStorage, DirectoryStorage


def check_sinks(logical: LogicalGraph, job: str, *, fresh: bool) -> None:
    """Refuse two sinks that would write to one place, and a fresh start onto the committed rows of another run."""
    taken: set[object] = set()
    for node in logical.nodes:
        spec = node.spec
        if isinstance(spec, TableSink | ParquetSink | FileSink | SqlSink):
            place = _place(spec)
            if place in taken:
                raise PlanError(f"two sinks write to {place!r}: give each its own name or path", origin=node.origin)
            taken.add(place)
        if fresh and isinstance(spec, ParquetSink | FileSink):
            spec.check_fresh()
        if fresh and isinstance(spec, SqlSink):
            spec.check_fresh(job, logical.uids[node])


def take_folders(logical: LogicalGraph, job: str, storage: CheckpointStorage) -> tuple[SinkFolder, ...]:
    """Take the folders of a job's sinks for it; who takes over the lease of its checkpoints takes them over, too.

    Raises:
        SinkError: another job writes to one of them.
    """
    taken: list[SinkFolder] = []
    leases = storage.leases if isinstance(storage, DirectoryStorage) else ("", "")
    try:
        for node in logical.nodes:
            if isinstance(node.spec, ParquetSink | FileSink):
                taken.append(SinkFolder(node.spec.folder, job, *leases))
    except BaseException:
        for folder in taken:
            folder.release()
        raise
    return tuple(taken)


def check_restore(logical: LogicalGraph, storage: CheckpointStorage, states: Mapping[str, Sequence[Snapshot]]) -> None:
    """Refuse to go back to a checkpoint, with these states by uid, that a sink could not restore."""
    for node, uid in logical.uids.items():
        spec, snapshots = node.spec, states.get(uid, ())
        if not snapshots:
            continue
        if isinstance(spec, ParquetSink | FileSink):
            spec.check_restore(snapshots)
        elif isinstance(spec, SqlSink):
            spec.check_restore(snapshots, node.schema)
        elif isinstance(spec, TableSink) and isinstance(storage, DirectoryStorage):
            spec.check_restore(snapshots, storage.directory, node.schema)


def check_tables(logical: LogicalGraph, storage: CheckpointStorage) -> None:
    """Refuse tables whose committed rows would end with the process although the checkpoints do not."""
    if isinstance(storage, DirectoryStorage) and storage.directory is None:
        for node in logical.nodes:
            if isinstance(node.spec, TableSink):
                raise PlanError(
                    f"the table {node.spec.name!r} cannot be kept in {storage.shown!r}: tables need a checkpoint_dir on"
                    " this machine; write to a ParquetSink, FileSink or SqlSink, or choose a local directory",
                    origin=node.origin,
                )


def _place(sink: TableSink | ParquetSink | FileSink | SqlSink) -> str:
    """What no other sink of the job may write to, whichever links lead there."""
    if isinstance(sink, TableSink):
        return sink.name
    if isinstance(sink, SqlSink):
        return f"{os.path.realpath(sink.target.database.path)}: {sink.table.lower()}"
    return os.path.realpath(sink.folder)
