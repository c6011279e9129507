"""Reads the content of a checkpoint for the tasks that resume from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from workbench.arguments import option
from workbench.errors import CheckpointError, CorruptCheckpointError
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.changed_types import ChangedTypeError, as_written
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.exchange.in_flight import TASK
from workbench.runtime.storage import CheckpointStorage, Manifest

READ_AHEAD = "$read_ahead"
"""Name of what a source has read but not sent, in its snapshot; only sources that collect batches have it."""
_SHOWN = 300


class States(dict[str, list[Snapshot]]):
    """The snapshots of all former subtasks, by operator uid.

    Attributes:
        place: the checkpoint's folder, for errors.
    """

    def __init__(self, place: str, states: Mapping[str, list[Snapshot]] | None = None) -> None:
        super().__init__(states or {})
        self.place = place

    def check_sent(self, uid: str) -> None:
        """Reject the state of a source that has read more than it has sent.

        Raises:
            CheckpointError: it has.
        """
        if any(READ_AHEAD in snapshot for snapshot in self.get(uid, [])):
            raise CheckpointError(
                f"in {self.place} the source {uid!r} had read records of later batches: resume with "
                "fault_tolerance='micro-batches', and take another savepoint to change the architecture"
            )

    @contextmanager
    def taken_by(self, uid: str, what: str) -> Iterator[None]:
        """Translate errors raised in this context: the state of an operator does not have the expected form.

        Args:
            uid: of the operator.
            what: names the reader of the state, such as ``operator 'counts'``.

        Raises:
            CorruptCheckpointError: instead of a ValueError and similar errors.
            CheckpointError: it was written by another kind of operator, or by windows with another trigger or other
                aggregates, which checkpoints do not record; earlier versions do not even record the kind of operator.
        """
        try:
            yield
        except KeyError as error:
            pieces = sorted({name for snapshot in self[uid] for name in snapshot})
            wrote, instead = "another kind of operator", ""
            if {"windows", "watermarks"} <= set(pieces):
                wrote = "windows with another trigger or evictor, or other aggregates,"
                instead = "restore the earlier ones, or "
            raise CheckpointError(
                f"the state of {what} lacks {_missing(error)!r} (it has {', '.join(pieces) or 'nothing'}), so {wrote} "
                f"wrote it: {instead}give this operator another uid to start it afresh"
            ) from error
        except ChangedTypeError as error:
            raise CheckpointError(
                f"the state of {what} in {self.place} does not fit this program: {error}; convert the column to the "
                "former type before this operator, or give the operator another uid to start it afresh"
            ) from error
        except (ValueError, TypeError, IndexError, OverflowError, MemoryError, pa.ArrowException) as error:
            raise CorruptCheckpointError(
                f"the state of {what} in {self.place} cannot be restored ({_shown(error)}): it is not what this "
                "version writes; restore another checkpoint, or give the operator another uid to start it afresh"
            ) from error


def _missing(error: KeyError) -> str:
    """What a snapshot lacks: a piece, or a column of one, which Arrow names in a sentence."""
    text = str(error.args[0])
    return as_written(text.split('"')[1]) if text.startswith("Field ") else text


def _shown(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__)[:_SHOWN]


def read_states(storage: CheckpointStorage, manifest: Manifest, graph: PhysicalGraph) -> States:
    """All states of a checkpoint, verified before anything is restored.

    Raises:
        CorruptCheckpointError: a file is missing, torn or altered.
        CheckpointError: it holds state of an operator that this pipeline does not have.
    """
    states = States(manifest.place)
    for file in manifest.files:
        for uid, snapshot in storage.states(manifest, file).items():
            if uid not in manifest.ignored:
                states.setdefault(uid, []).append(snapshot)
    known = {TASK, *(uid for vertex in graph.vertices for uid in vertex.uids)}
    for uid, snapshots in states.items():
        if uid not in known and any(snapshots):
            raise CheckpointError(
                f"checkpoint {manifest.checkpoint_id} of job {manifest.job!r} has state of operator {uid!r}, which "
                f"this pipeline does not have (it has {', '.join(sorted(known))}): run the pipeline that wrote it, "
                f"or choose another {option('checkpoint_dir', '')}"
            )
    return states
