"""Streams: immutable descriptions; every method returns a new one, and nothing runs until a pipeline does."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from workbench.api.building import located, operator_node
from workbench.api.event_time import StreamEventTime
from workbench.api.exchanging import StreamExchanges
from workbench.api.joining import StreamJoins
from workbench.api.keyed import KeyedStream
from workbench.api.pipeline import Pipeline
from workbench.api.sources import StreamSources
from workbench.api.transforming import StreamTransforms
from workbench.api.windowed import WindowedStream
from workbench.arguments import as_given, whole_number
from workbench.connectors.base import Sink
from workbench.durations import parse_duration
from workbench.errors import ExpressionError, PlanError, SettingError, WorkbenchError, unknown
from workbench.operators.base import OperatorSpec
from workbench.operators.dead_letters import TAG as DEAD_LETTERS
from workbench.origin import Origin, caller
from workbench.plan.logical import ExchangeKind, Input, Node
from workbench.plan.partitioner import Partitioner
from workbench.windows import Evictor, Schedule, TimeKind, Trigger, WindowAssigner


class Stream(StreamSources, StreamEventTime, StreamTransforms, StreamExchanges, StreamJoins):
    """A stream of records with named, typed columns.

    Streams are made by the class methods (``replay``, ``from_table``, ``from_files``, ``from_socket``, ...) and by the
    operators of other streams. A stream remembers how it was made and nothing else.

    Source: F1-1: the logical graph is what streams remember; Flink's ``DataStream``.

    Example:
        >>> table = pa.table({"n": [1, 2, 3]})
        >>> Stream.from_table(table).filter("n > 1").columns
        ['n']
    """

    def __init__(
        self,
        node: Node,
        *,
        exchange: ExchangeKind | None = None,
        tag: str | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        super().__init__(node)
        self._exchange: ExchangeKind | None = exchange
        self._tag = tag
        self._partitioner = partitioner

    # what it is --------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).schema.field("n").type
            DataType(int64)
        """
        return self._node.schema if self._tag is None else self._node.side_schemas[self._tag]

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"a": [1], "b": [2]})).columns
            ['a', 'b']
        """
        return list(self.schema.names)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Stream({fields}); nothing runs until sink_to(...).run(...)"

    # what follows -----------------------------------------------------------------------------------------------

    def key_by(self, *keys: str) -> KeyedStream:
        """Partition by key: all records with equal keys go to one subtask.

        Source: F1-3; Flink's ``keyBy``. Keys belong to key groups by a stable hash; `max_parallelism` of `Pipeline.run`
        is their number.

        Args:
            keys: names of columns; records with equal values in all of them have the same key, and null is a value like
                any other.

        Raises:
            PlanError: no key.
            ExpressionError: an unknown column, with the nearest name.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK", "LGA", "JFK"]}))
            >>> counts = flights.key_by("origin").aggregate(flights=wb.count())
            >>> job = counts.sink_to(wb.TableSink("counts", upsert="origin")).run("key_by", parallelism=2)
            >>> job.wait("60s"), sorted(job.table()["flights"].to_pylist())
            ('FINISHED', [1, 2])
        """
        origin = caller()
        if not keys:
            raise PlanError("key_by needs at least one column, for example key_by('origin')", origin=origin)
        for key in keys:
            self._check_column(key, origin)
        return KeyedStream(self, keys)

    def window(
        self,
        window: WindowAssigner,
        *,
        time: TimeKind = "event",
        allowed_lateness: str = "0s",
        trigger: Schedule | Trigger | None = None,
        evictor: Evictor | None = None,
    ) -> WindowedStream:
        """Group all records by windows, in one subtask; see `KeyedStream.window`.

        Source: F1-6 to F1-9; Flink's ``windowAll``.

        Args:
            window: for example ``wb.tumbling("1h")``.
            time, allowed_lateness, trigger, evictor: as for `KeyedStream.window`.

        Raises:
            SettingError: a lateness that is no duration, or settings that do not go together.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0, 1, 1_000_000]}), event_time="t")
            >>> job = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count()).sink_to(wb.TableSink("n")).run("window")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [2, 1])
        """
        lateness_us = parse_duration(allowed_lateness, "allowed_lateness")
        return WindowedStream(self, (), window, lateness_us, time=time, trigger=trigger, evictor=evictor)

    def side_output(self, tag: str) -> Stream:
        """A side output of the operator that made this stream: ``"late"`` of a window aggregate.

        Source: Flink's side outputs.

        Args:
            tag: its name.

        Raises:
            PlanError: the operator has no such side output; names those that it has.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0]}), event_time="t")
            >>> counts = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count())
            >>> counts.side_output("late").columns  # the records themselves
            ['t']
        """
        if not isinstance(tag, str) or tag not in self._node.side_schemas:
            raise PlanError(unknown("side output", tag, self._node.side_schemas), origin=caller())
        return Stream(self._node, tag=tag)

    def dead_letters(self) -> Stream:
        """The records that the operator before could not process; it has ``on_error="dead_letter"``.

        Columns: ``operator`` and ``subtask``, ``key`` (as text), ``position``, ``error``, ``record`` (as JSON text) and
        ``event_time``.

        ``position`` is where the record stands in its source, so that it can be found again: ``data.csv, row 17``,
        ``data.parquet#0, row 17`` (of that row group), ``table, row 17``, ``generator, row 17``, ``flights.log, channel
        0, offset 17``, counted from 0; ``data.csv, line 17``, counted from 1 as in editors, of text files that are read
        with ``on_error="dead_letter"``; of a socket its address alone. It is known where the operator is chained to its
        source and only ``filter``, ``select``, ``with_columns``, ``map``, ``flat_map`` and ``assign_timestamps`` stand
        between the two. Behind any exchange (``key_by``, ``rebalance``, ``union``, ...), a side output or another
        operator it is null.

        Source: I15; the dead-letter queues of messaging systems.

        Raises:
            PlanError: the operator keeps no dead letters.

        Example:
            >>> lines = wb.Stream.from_table(pa.table({"n": ["1", "two"]}))
            >>> numbers = lines.map(lambda record: {"n": int(record["n"])}, {"n": pa.int64()}, on_error="dead_letter")
            >>> pipeline = numbers.sink_to(wb.TableSink("good")) + numbers.dead_letters().sink_to(wb.TableSink("bad"))
            >>> job = pipeline.run("poison")
            >>> job.wait("60s"), job.table("good").to_pylist()
            ('FINISHED', [{'n': 1}])
            >>> job.table("bad").select(["position", "record"]).to_pylist()
            [{'position': 'table, row 1', 'record': '{"n": "two"}'}]
        """
        if DEAD_LETTERS not in self._node.side_schemas:
            raise PlanError(
                "the operator that made this stream fails on poison records: give it on_error='dead_letter'",
                origin=caller(),
            )
        return Stream(self._node, tag=DEAD_LETTERS)

    def uid(self, uid: str) -> Stream:
        """Name the operator that made this stream; a checkpoint finds its state by this name.

        Source: Flink's ``uid``: what a program that was changed finds its state by (E10).

        Args:
            uid: a name that no other operator of the pipeline has; it is also the one in graphs and metrics.

        Raises:
            SettingError: an empty name.
            PlanError: when the pipeline is run or explained, two operators of one name.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).uid("numbers")
            >>> stream.sink_to(wb.DiscardSink())
            Pipeline: numbers -> discard
        """
        return self._with_node(replace(self._node, uid=_named(uid, "uid")))

    def with_parallelism(self, parallelism: int) -> Stream:
        """The number of subtasks of the operator that made this stream; otherwise it is the job's.

        Source: F1-2, F2-2; Flink's ``setParallelism``.

        Args:
            parallelism: above zero.

        Raises:
            SettingError: a number below 1.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).with_parallelism(1)
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=4).channels  # one reads, four write
            4
        """
        if whole_number(parallelism, "parallelism", 0) == 0:
            raise SettingError(f"parallelism is {parallelism}: it must be above zero")
        return self._with_node(replace(self._node, parallelism=parallelism))

    def slot_sharing_group(self, name: str) -> Stream:
        """Keep the operator that made this stream, and those after it, out of the slots of other groups (F2-2).

        By default all operators share slots, so a slot holds one parallel slice of the whole pipeline.

        Source: Flink's ``slotSharingGroup``.

        Args:
            name: of the group; ``"default"`` is that of all operators that do not say otherwise.

        Raises:
            SettingError: an empty name.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).filter("n > 0").slot_sharing_group("filters")
            >>> len(stream.sink_to(wb.DiscardSink()).explain(parallelism=2).slots)  # two for the source, two more
            4
        """
        return self._with_node(replace(self._node, slot_sharing_group=_named(name, "slot_sharing_group")))

    def sink_to(self, sink: Sink) -> Pipeline:
        """End the stream in a sink; what comes back can be run.

        Source: F1-1; Flink's ``sinkTo``.

        Args:
            sink: for example ``wb.TableSink("delays")``, ``wb.ParquetSink("out/delays")`` or a `wb.CallbackSink`.

        Raises:
            SinkError: the sink cannot write these columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("numbers"))
            Pipeline: table -> numbers
        """
        origin = caller()
        if isinstance(sink, type) or not callable(getattr(sink, "check", None)):
            raise PlanError(
                f"sink_to got {as_given(sink)}, which is no sink: pass one, such as wb.TableSink('delays')",
                origin=origin,
            )
        try:
            sink.check(self.schema)
        except WorkbenchError as error:
            raise located(error, origin) from None
        return Pipeline((Node(sink, (self._input(),), self.schema, {}, None, origin),))

    # building ----------------------------------------------------------------------------------------------------

    def _input(self, exchange: ExchangeKind | None = None, keys: tuple[str, ...] = ()) -> Input:
        if exchange is not None:
            return Input(self._node, exchange, keys, self._tag)
        return Input(self._node, self._exchange, keys, self._tag, self._partitioner)

    def _derived(self, node: Node) -> Stream:
        return Stream(node)

    def _with_node(self, node: Node) -> Stream:
        return Stream(node, exchange=self._exchange, tag=self._tag, partitioner=self._partitioner)

    def _exchanged(self, exchange: ExchangeKind, partitioner: Partitioner | None = None) -> Stream:
        return Stream(self._node, exchange=exchange, tag=self._tag, partitioner=partitioner)

    def _then(self, spec: OperatorSpec, origin: Origin | None, *others: Stream) -> Stream:
        for other in others:
            if not isinstance(other, Stream):
                raise PlanError(f"{spec.kind} got {as_given(other)}, which is no stream: pass streams", origin=origin)
        return Stream(operator_node(spec, (self._input(), *(other._input() for other in others)), origin))

    def _check_column(self, name: str, origin: Origin | None) -> None:
        if name not in self.schema.names:
            raise ExpressionError(unknown("column", name, self.schema.names), origin=origin)


def _named(name: object, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise SettingError(f"{what} is {name!r}: write a name, for example {what}('delays')")
    return name
