"""The sinks of a query, in the driver: each micro-batch is an epoch, committed exactly once.

The protocol is that of checkpoints in the kernel: a sink pre-commits the rows of a batch in its snapshot, which is
written to the checkpoint directory under the number of the batch; then it commits. If the process dies before Spark has
recorded the end of a batch, Spark runs the batch again under the same number. If its snapshot exists, the batch is not
written again; only its commit is repeated, which is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from workbench.connectors.contract.base import Sink
from workbench.connectors.parts.part_files import write_pieces_durably
from workbench.connectors.tables.tables import Tables
from workbench.durable.disk import make_folder_durably
from workbench.elements import Records
from workbench.errors import CheckpointError
from workbench.operators.contract.base import Counters, Operator, OperatorContext, Snapshot
from workbench.plan.logical import Node
from workbench.runtime.storage.encoding import decode, encode


class _Nowhere:
    def emit(self, records: Records) -> None:
        """A sink emits nothing."""

    def emit_side(self, tag: str, records: Records) -> None:
        """As above."""


class Epochs:
    """The sinks of one run.

    Args:
        sinks: uid and node of each.
        job, run: as in ``OperatorContext``.
        folder: for the snapshots, and the files of tables; None: nothing survives the end of the process.
        tables: to which TableSinks commit.

    Attributes:
        committed: the number of the last committed batch; -1: none.
        rows: the number of written rows, by the uid of the sink.
    """

    def __init__(
        self, sinks: Sequence[tuple[str, Node]], job: str, run: str, folder: Path | None, tables: Tables
    ) -> None:
        self._folder = None if folder is None else folder / "epochs"
        self.rows: dict[str, int] = {uid: 0 for uid, _ in sinks}
        self.committed = -1
        self._operators: dict[str, Operator] = {}
        saved = self._latest()
        for uid, node in sinks:
            assert isinstance(node.spec, Sink)
            operator = node.spec.create(node.inputs[0].schema)
            context = OperatorContext(job=job, uid=uid, counters=Counters(), tables=tables, data_dir=folder, run=run)
            operator.open(context)
            self._operators[uid] = operator
            if saved.get(uid):
                operator.restore([saved[uid]])
            if self.committed >= 0:
                operator.notify_complete(self.committed + 1)

    def write(self, batch: int, rows: Iterable[tuple[str, Records]]) -> None:
        """Write and commit a batch, unless that has been done already.

        Args:
            batch: its number in Spark, from 0.
            rows: for the sinks, by uid, in order.

        Raises:
            SinkError: a sink cannot write them.
            RecordError: the function of a CallbackSink raised.
        """
        if batch <= self.committed:
            return
        for uid, records in rows:
            self._operators[uid].process(records, 0, _Nowhere())
            self.rows[uid] += len(records)
        epoch = batch + 1  # epochs begin with 1
        states = {uid: operator.snapshot(epoch) for uid, operator in self._operators.items()}
        encoded = encode(states)
        if self._folder is not None:
            make_folder_durably(self._folder, private=True)
            write_pieces_durably(str(self._folder / f"{epoch}.epoch"), encoded.pieces())
        for operator in self._operators.values():
            operator.notify_complete(epoch)
        self.committed = batch
        if self._folder is not None:
            for file in self._folder.glob("*.epoch"):
                if int(file.stem) < epoch:
                    file.unlink()

    def close(self) -> None:
        """Release the resources of the sinks."""
        for operator in self._operators.values():
            with suppress(Exception):  # everything is committed, or will be repeated
                operator.close()

    def _latest(self) -> dict[str, Snapshot]:
        if self._folder is None or not self._folder.is_dir():
            return {}
        epochs = [int(file.stem) for file in self._folder.glob("*.epoch") if file.stem.isdecimal()]
        if not epochs:
            return {}
        file = self._folder / f"{max(epochs)}.epoch"
        try:
            content = pa.py_buffer(file.read_bytes())
        except OSError as error:
            raise CheckpointError(f"the state of the sinks cannot be read from {file}: {error.strerror}") from error
        self.committed = max(epochs) - 1
        return decode(content, str(file))
