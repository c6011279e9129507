"""The common part of sinks to a message log: their guarantee, and the checks before they start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.base import Guarantee, Sink, SinkContext
from workbench.connectors.contract.upsert_key import check_upsert_key
from workbench.connectors.epochs.message_log import EpochLogic, MessageLog, SendLogic, check_fresh, check_restore
from workbench.connectors.messages.choosing import MessageFormatName
from workbench.errors import SinkError
from workbench.operators.contract.base import Operator, Snapshot


class MessageSink(Sink):
    """Base class of sinks that send each row as a message; a subclass defines the destination.

    Attributes:
        key: the columns of a message's key or subject.
        format: the format of messages.
        delivery: ``"at-least-once"`` sends rows as they arrive; other values send them once, with each checkpoint.
        target: the message log.
    """

    if TYPE_CHECKING:  # properties here would become the defaults of a dataclass's fields
        key: tuple[str, ...]
        format: MessageFormatName

        @property
        def delivery(self) -> str: ...

        @property
        def target(self) -> MessageLog: ...

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of `delivery`."""
        return "at-least-once" if self.delivery == "at-least-once" else "exactly-once"

    @property
    def guarantee_reason(self) -> str:
        """Why the guarantee is not stronger."""
        if self.guarantee == "exactly-once":
            return ""
        return "sends the rows since the last checkpoint again after a failure: choose delivery='exactly-once'"

    def check(self, schema: pa.Schema) -> None:
        """Reject columns that messages cannot contain; nothing is sent.

        Raises:
            PlanError: columns are unknown or invalid.
            SinkError: a column's type cannot be written.
        """
        check_upsert_key(self.key, schema, self.name)
        if self.format in ("raw", "avro"):
            self.target.format.check(schema)
        try:
            self.target.format.encode(pa.RecordBatch.from_pylist([], schema=schema))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise SinkError(f"messages of {self.format} cannot hold these rows: {error}; drop the column") from None

    def check_fresh(self, context: SinkContext) -> None:
        """Reject a start without a checkpoint if this job has sent rows before."""
        if self.guarantee == "exactly-once":
            check_fresh(self.target, f"{context.job}/{context.uid}")

    def check_restore(self, context: SinkContext, snapshots: Sequence[Snapshot]) -> None:
        """Reject a checkpoint that is older than rows already sent."""
        if self.guarantee == "exactly-once":
            check_restore(self.target, snapshots, context.schema, context.checkpoint)

    def create(self, schema: pa.Schema) -> Operator:
        log = self.target.of_subtask()
        return EpochLogic(log, schema) if self.guarantee == "exactly-once" else SendLogic(log)
