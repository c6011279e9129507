"""Who gets a record: the methods of `Stream` that say how records are spread over the next operator's subtasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.api.building import expression, located
from workbench.errors import WorkbenchError
from workbench.expressions import Expression
from workbench.origin import caller
from workbench.plan.logical import ExchangeKind
from workbench.plan.partitioner import Partitioner

if TYPE_CHECKING:
    from workbench.api.stream import Stream


class StreamExchanges:
    """The exchanges; `Stream` inherits them."""

    if TYPE_CHECKING:

        @property
        def schema(self) -> pa.Schema: ...

        def _exchanged(self, exchange: ExchangeKind, partitioner: Partitioner | None = None) -> Stream: ...

    def rebalance(self) -> Stream:
        """Send the records to the next operator's subtasks in turn (F1-3).

        Source: Flink's ``rebalance``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).rebalance().filter("n > 0")
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=3).channels  # from each source to each filter
            9
        """
        return self._exchanged("rebalance")

    def broadcast(self) -> Stream:
        """Send every record to every subtask of the next operator (F1-3).

        Source: Flink's ``broadcast``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [7]})).broadcast().filter("n > 0")
            >>> job = stream.sink_to(wb.TableSink("copies")).run("broadcast", parallelism=3)
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [7, 7, 7])
        """
        return self._exchanged("broadcast")

    def rescale(self) -> Stream:
        """Send the records in turn to the sender's own share of the next operator's subtasks: fewer channels (F1-3).

        Source: Flink's ``rescale``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).with_parallelism(2).rescale().filter("n > 0")
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=4).channels  # each source has two filters
            4
        """
        return self._exchanged("rescale")

    def shuffle(self) -> Stream:
        """Send each record to a random subtask of the next operator (F1-3).

        Source: Flink's ``shuffle``.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).shuffle().filter("n > 0")
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=2).channels
            4
        """
        return self._exchanged("shuffle")

    def partition_by(self, target: str | Expression | Callable[[pa.RecordBatch], Any]) -> Stream:
        """Send each record to a subtask of your choice (F1-3).

        Source: Flink's ``partitionCustom``.

        Args:
            target: an integer expression such as ``"length(origin)"``, or a function from a batch to one integer per
                row; the subtask is that number modulo the number of subtasks.

        Raises:
            PlanError: the expression does not give integers.
            ExpressionError: it does not fit the columns.
            RecordError: while running, when the function fails or gives no integer for a row.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK"]}))
            >>> flights.partition_by("length(origin)").filter("origin IS NOT NULL").columns
            ['origin']
        """
        origin = caller()
        chosen = expression(target, origin) if isinstance(target, str) else target
        partitioner = Partitioner(chosen, origin)
        try:
            partitioner.compiled(self.schema)
        except WorkbenchError as error:
            raise located(error, origin) from None
        return self._exchanged("custom", partitioner)
