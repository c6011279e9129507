"""Two streams that one function processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from workbench.api.streams.building import operator_node
from workbench.api.streams.joining import by_keys
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.functions.user_function import Record, SchemaLike
from workbench.operators.process.connect import ConnectedMap, ConnectedProcess, CoProcessFunction
from workbench.origin import Origin, caller

if TYPE_CHECKING:
    from workbench.api.streams.stream import Stream


class ConnectedStreams:
    """Two streams, to be processed together; made by `Stream.connect`.

    Source: F1-4; Flink's ``ConnectedStreams``.

    Example:
        >>> words, numbers = wb.Stream.from_table(pa.table({"w": ["a"]})), wb.Stream.from_table(pa.table({"n": [1]}))
        >>> words.connect(numbers)
        ConnectedStreams: ...
    """

    def __init__(
        self, first: Stream, second: Stream, first_keys: tuple[str, ...], second_keys: tuple[str, ...]
    ) -> None:
        self._first = first
        self._second = second
        self._first_keys = first_keys
        self._second_keys = second_keys

    def __repr__(self) -> str:
        by = f" on {', '.join(self._first_keys)}" if self._first_keys else ""
        return f"ConnectedStreams{by}: {self._first!r} and {self._second!r}"

    def process(
        self,
        function: CoProcessFunction,
        schema: SchemaLike,
        *,
        side_outputs: Mapping[str, SchemaLike] | None = None,
    ) -> Stream:
        """Call ``process1`` for each record of the first stream and ``process2`` for each of the second.

        Source: Flink's ``KeyedCoProcessFunction`` and ``BroadcastProcessFunction``.

        Args:
            function: a `CoProcessFunction`. Its results have the event time of the record that it is called for.
            schema: of its results, a pyarrow.Schema or a dict of Arrow types by name.
            side_outputs: schema of each side output by its tag, for ``ctx.output(tag, record)``.

        Raises:
            PlanError: the function, a key or a schema is not valid; keyed state without keys, or broadcast state
            without a broadcast stream.
            RecordError: while running, when the function raises or returns something else.

        Example:
            >>> import pyarrow as pa
            >>> import workbench as wb
            >>> class Matched(wb.functions.CoProcessFunction):
            ...     order = wb.state.ValueState(pa.string())
            ...
            ...     def process1(self, order, state):
            ...         state.order = order["what"]
            ...
            ...     def process2(self, payment, state):
            ...         return {"id": payment["id"], "paid": state.order}
            >>> orders = wb.Stream.from_table(pa.table({"id": [1], "what": ["tea"]}))
            >>> payments = wb.Stream.from_table(pa.table({"id": [1]}))
            >>> paid = orders.connect(payments, on="id").process(Matched(), {"id": pa.int64(), "paid": pa.string()})
        """
        origin = caller()
        broadcasts = self._second._end.exchange == "broadcast"
        other_keys = () if broadcasts else self._second_keys
        spec = ConnectedProcess(
            self._first_keys,
            function,
            schema,
            side_outputs=dict(side_outputs or {}),
            origin=origin,
            other_keys=other_keys,
            broadcasts=broadcasts,
        )
        return self._node(spec, origin)

    def map(self, first: Callable[[Record], Record], second: Callable[[Record], Record], schema: SchemaLike) -> Stream:
        """Convert each record of both streams to one of `schema`, with a function for each stream.

        Source: F1-4; Flink's ``CoMapFunction``.

        Args:
            first: from a record (a dict) of the first stream to a record of `schema`.
            second: the same for the second stream.
            schema: of the results of both, a pyarrow.Schema or a dict of Arrow types by name.

        Raises:
            PlanError: an invalid schema.
            RecordError: while running, when a function raises or returns something else.

        Example:
            >>> words = wb.Stream.from_table(pa.table({"w": ["a"]}))
            >>> both = words.connect(wb.Stream.from_table(pa.table({"n": [1]})))
            >>> text = both.map(
            ...     lambda word: {"text": word["w"]}, lambda number: {"text": str(number["n"])}, {"text": pa.string()}
            ... )
            >>> job = text.sink_to(wb.TableSink("text")).run("connected-map")
            >>> job.wait("60s"), sorted(job.table()["text"].to_pylist())
            ('FINISHED', ['1', 'a'])
        """
        origin = caller()
        return self._node(ConnectedMap(first, second, schema, origin), origin)

    def _node(self, spec: OperatorSpec, origin: Origin | None) -> Stream:
        first, second = self._first._end, self._second._end
        if self._first_keys:
            first = by_keys(first, self._first_keys)
            if second.exchange != "broadcast":
                second = by_keys(second, self._second_keys)
        return self._first._made(operator_node(spec, (first, second), origin))
