"""A program as users write it, to be read by a type checker and never run: `test_typed_program.py` checks it strictly.

What `reveal_type` and the comment behind it say must agree; a line with `type: ignore` must be a mistake.
"""

from __future__ import annotations

from typing import Any, reveal_type

import pyarrow as pa

import workbench as wb
from workbench import col


class Sessions(wb.functions.ProcessFunction):
    """Counts clicks until half a minute of silence."""

    clicks = wb.state.ValueState(pa.int64(), default=0)

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        state.clicks += 1
        reveal_type(ctx.key)  # Any
        reveal_type(ctx.timestamp)  # int | None
        if ctx.timestamp is not None:
            ctx.register_event_timer(ctx.timestamp + 30_000_000)
        ctx.register_event_timer("soon")  # type: ignore[arg-type]

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        return {"user": ctx.key, "clicks": state.clicks}


class Matched(wb.functions.CoProcessFunction):
    """Puts an order beside its payment."""

    order = wb.state.ValueState(pa.string())

    def process1(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ConnectedContext) -> None:
        state.order = record["what"]

    def process2(
        self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ConnectedContext
    ) -> dict[str, Any]:
        return {"id": record["id"], "paid": state.order}


class Shifts(wb.windows.WindowAssigner):
    """Eight hours each."""

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        start = time_us - time_us % 28_800_000_000
        return [(start, start + 28_800_000_000)]


class Positive(wb.windows.Evictor):
    """Keeps what is above zero."""

    columns = ("delay",)

    def keep(self, records: pa.RecordBatch, times: Any) -> Any:
        return records["delay"].to_numpy() > 0


class OnTenth(wb.triggers.Trigger):
    """Fires at the tenth record."""

    def on_record(
        self, time_us: int, window: wb.windows.Window, context: wb.triggers.TriggerContext
    ) -> wb.triggers.Action:
        reveal_type(window.start_time)  # datetime.datetime
        reveal_type(context.event_timers)  # set[int]
        return wb.triggers.Action.FIRE


# Streams -------------------------------------------------------------------------------------------------------------

flights = wb.Stream.from_table(pa.table({"origin": ["JFK"], "delay": [7], "t": [0]}), event_time="t", rate=1000)
reveal_type(flights)  # Stream
reveal_type(wb.Stream.replay("flights.log", speed="600x", out_of_orderness="1h"))  # Stream
reveal_type(wb.Stream.from_files(["a.csv"], {"n": pa.int64()}, format="csv"))  # Stream
reveal_type(wb.Stream.hybrid(flights, wb.Stream.from_socket("localhost", 9999)))  # Stream
wb.Stream.from_table(pa.table({}), rate="fast")  # type: ignore[arg-type]
wb.Stream.from_files("a.xml", format="xml")  # type: ignore[arg-type]

late = flights.filter(col("delay") > 15).with_columns(hours=col("delay") / 60, day="date(t)")
reveal_type(late)  # Stream
reveal_type(late.columns)  # list[str]
reveal_type(late.schema)  # Any
reveal_type(flights.map(lambda record: record, keep=["origin"]))  # Stream
reveal_type(flights.flat_map(lambda record: [record, record], {"origin": pa.string()}))  # Stream
reveal_type(flights.split({"late": "delay > 15"}))  # dict[str, Stream]
reveal_type(flights.select("origin", twice=col("delay") * 2).union(flights).rebalance())  # Stream
flights.filter(15)  # type: ignore[arg-type]
flights.map(lambda record: record, compile=True)  # type: ignore[call-arg]

# Keys, windows, state ------------------------------------------------------------------------------------------------

by_origin = flights.key_by("origin")
reveal_type(by_origin)  # KeyedStream
reveal_type(by_origin.aggregate(n=wb.count(), worst=wb.max("delay")))  # Stream
reveal_type(by_origin.reduce(lambda held, new: held | new))  # Stream
reveal_type(by_origin.process(Sessions(), {"user": pa.string(), "clicks": pa.int64()}))  # Stream
by_origin.process(Sessions(), {"user": pa.string()}, state_backend="cloud")  # type: ignore[arg-type]
by_origin.aggregate(middle=wb.median("delay"))  # type: ignore[arg-type]

hours = by_origin.window(
    wb.tumbling("1h"), allowed_lateness="1h", trigger=wb.triggers.early("1min"), evictor=wb.windows.keep_last(9)
)
reveal_type(hours)  # WindowedStream
reveal_type(hours.aggregate(n=wb.count(), middle=wb.median("delay"), top=wb.top_k("delay", 3)))  # Stream
reveal_type(hours.apply(lambda key, window, records: {"rows": records.num_rows}, {"rows": pa.int64()}))  # Stream
reveal_type(by_origin.window(Shifts(), trigger=OnTenth(), evictor=Positive()))  # WindowedStream
tens = wb.triggers.purging(wb.triggers.on_count(10))
reveal_type(flights.window(wb.session(column="gap"), trigger=tens))  # WindowedStream
by_origin.window("1h")  # type: ignore[arg-type]
by_origin.window(wb.tumbling("1h"), time="ingestion")  # type: ignore[arg-type]
wb.tumbling(3600)  # type: ignore[arg-type]

# Two streams ---------------------------------------------------------------------------------------------------------

reveal_type(flights.join(pa.table({"origin": ["JFK"]}), on="origin"))  # Stream
reveal_type(flights.join(late, on="origin", window=wb.tumbling("1h"), how="left"))  # Stream
reveal_type(flights.join(late, on={"origin": "origin"}, between=("-5min", "10min")))  # Stream
reveal_type(flights.connect(late, on="origin"))  # ConnectedStreams
reveal_type(flights.connect(late, on="origin").process(Matched(), {"id": pa.int64(), "paid": pa.string()}))  # Stream
flights.join(late, on="origin", window=wb.tumbling("1h"), how="cross")  # type: ignore[call-overload]

# Expressions ---------------------------------------------------------------------------------------------------------

reveal_type(col("delay") > 15)  # Expression
reveal_type((col("delay") == 15) & ~col("origin").is_in(["JFK"]) | col("t").is_null())  # Expression
reveal_type(wb.when("delay > 60").then("bad").otherwise("good").alias("how"))  # Expression
reveal_type(wb.coalesce(col("delay"), 0).cast("double").round(2))  # Expression
reveal_type(wb.expr("delay * 2").columns)  # tuple[str, ...]

# Jobs ----------------------------------------------------------------------------------------------------------------

pipeline = late.sink_to(wb.TableSink("late")) + flights.sink_to(wb.ParquetSink("out"))
reveal_type(pipeline)  # Pipeline
reveal_type(pipeline.explain(parallelism=4).channels)  # int
job = pipeline.run("flights", parallelism=2, buffer_timeout="50ms", checkpoint_dir="checkpoints", resume=True)
reveal_type(job)  # Job
reveal_type(job.wait("60s"))  # str
reveal_type(job.over)  # bool
reveal_type(job.status()["records_in"])  # Any
reveal_type(job.metrics()[0])  # dict[str, Any]
reveal_type(job.checkpoints()[0].id)  # int
reveal_type(job.operator_state("aggregate").get("JFK"))  # dict[str, Any] | None
reveal_type(job.tune(buffer_timeout="5ms", parallelism=3))  # Status
reveal_type(job.savepoint("before"))  # str
reveal_type(job.restore("before"))  # Job
reveal_type(wb.jobs())  # dict[str, Job]
pipeline.run("flights", parallelism="2")  # type: ignore[arg-type]
pipeline.run("flights", driver="remote")  # type: ignore[arg-type]
flights.sink_to("late")  # type: ignore[arg-type]
job.fail(3)  # type: ignore[arg-type]
