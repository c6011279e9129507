"""The common part of sinks to a row store: appending exactly once, or upserting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.base import Guarantee, Sink, SinkContext
from workbench.connectors.epochs.append import AppendLogic, check_restore
from workbench.connectors.epochs.row_store import RowStore, check_fresh
from workbench.connectors.epochs.upsert import UpsertLogic
from workbench.operators.contract.base import Operator, Snapshot


class RowSink(Sink):
    """Base class of sinks to a row store; with an `upsert_key`, a row replaces the row with the same key.

    Attributes:
        target: the store.
    """

    if TYPE_CHECKING:  # properties here would become the defaults of a dataclass's fields
        upsert_key: tuple[str, ...]

        @property
        def target(self) -> RowStore: ...

    @property
    def guarantee(self) -> Guarantee:
        """Upserts are repeated after a failure, with the same effect; appended rows are committed once."""
        return "at-least-once" if self.upsert_key else "exactly-once"

    @property
    def guarantee_reason(self) -> str:
        """Why the guarantee is not stronger."""
        return UpsertLogic.reason if self.upsert_key else ""

    def check_fresh(self, context: SinkContext) -> None:
        """Reject a start without a checkpoint if this job has appended rows before."""
        if not self.upsert_key:
            check_fresh(self.target, f"{context.job}/{context.uid}")

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Reject a checkpoint that is older than appended rows, or that no such sink has saved."""
        if not self.upsert_key:
            check_restore(self.target, snapshots, context.schema, context.checkpoint)

    def _written_by(self, target: RowStore, schema: pa.Schema, *, creates_table: bool) -> Operator:
        """Create the operator of one subtask, which writes to `target`: the store, with the pauses between attempts."""
        logic = UpsertLogic if self.upsert_key else AppendLogic
        return logic(target, schema, creates_table=creates_table)
