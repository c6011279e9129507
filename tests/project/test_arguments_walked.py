"""Walks the signatures of all that is public: where a column's name goes, ``col`` goes; durations have all their forms.

An argument is found by what its type says, so a new one has to be added here, and to work.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from reference import exported

import workbench as wb
from workbench import col
from workbench.connectors.tables.table_source import TableSource
from workbench.operators.functions.dead_letters import SCHEMA

TABLE = pa.table(
    {"k": ["a", "b"], "n": [1, 2], "t": pa.array([0, 1], pa.timestamp("us")), "gap": pa.array([5, 5], pa.int64())}
)
OUT = {"m": pa.int64()}
DEAD = SCHEMA.empty_table()


def stream() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


def latest() -> wb.Stream:
    return stream().key_by("k").reduce(lambda held, new: new)


def arguments(kind: re.Pattern[str]) -> Iterator[str]:
    """``Stream.window(allowed_lateness)``: every public argument whose type or name is of a kind."""
    for name, value in exported().items():
        short = name.rpartition(".")[2]
        callables = {short: value} if callable(value) else {}
        if inspect.isclass(value):
            callables |= {f"{short}.{item}": made for item, made in inspect.getmembers(value, callable)}
        for place, made in callables.items():
            if "._" in place or not str(getattr(made, "__module__", "")).startswith("workbench"):
                continue
            for parameter in inspect.signature(made).parameters.values():
                if kind.search(f"{parameter.name}: {parameter.annotation}"):
                    yield f"{place}({parameter.name})"


# Columns -------------------------------------------------------------------------------------------------------------

A_COLUMN = re.compile(r"ColumnName|EventTimeColumn|\bOn\b|^(order_by|partition_columns): ")
SOCKET: dict[str, Any] = {"host": "localhost", "port": 9, "schema": TABLE.schema, "format": "json"}

COLUMNS: dict[str, Callable[[Callable[[str], Any], Path], object]] = {
    "Stream.from_table(event_time)": lambda c, _: wb.Stream.from_table(TABLE, event_time=c("t"), idle_after="1s"),
    "Stream.from_generator(event_time)": lambda c, _: wb.Stream.from_generator(
        lambda first, n: TABLE.to_batches()[0], TABLE.schema, event_time=c("t")
    ),
    "Stream.from_files(event_time)": lambda c, folder: wb.Stream.from_files(written(folder), event_time=c("t")),
    "Stream.from_dead_letters(event_time)": lambda c, _: wb.Stream.from_dead_letters(
        DEAD, TABLE.schema, event_time=c("t")
    ),
    "Stream.from_socket(event_time)": lambda c, _: wb.Stream.from_socket(**SOCKET, event_time=c("t")),
    "Stream.assign_timestamps(event_time)": lambda c, _: stream().assign_timestamps(c("t")),
    "Stream.select(columns)": lambda c, _: stream().select(c("k")),
    "Stream.drop(columns)": lambda c, _: stream().drop(c("k")),
    "Stream.rename(names)": lambda c, _: stream().rename({c("k"): "key"}),
    "Stream.key_by(keys)": lambda c, _: stream().key_by(c("k")),
    "Stream.group_by(keys)": lambda c, _: stream().group_by(c("k")),
    "Stream.over(keys)": lambda c, _: stream().over([c("k")], "rows", 1, {"m": wb.count()}),
    "Stream.over(order)": lambda c, _: (
        stream().group_by("k").aggregate(n=wb.count()).over([], "rows", 1, {"m": wb.count()}, order=c("k"))
    ),
    "Stream.distinct(columns)": lambda c, _: stream().distinct(c("k")),
    "KeyedStream.latest_by(order)": lambda c, _: stream().key_by("k").latest_by(c("t")),
    "KeyedStream.earliest_by(order)": lambda c, _: stream().key_by("k").earliest_by(c("t")),
    "KeyedStream.top_n(order)": lambda c, _: stream().key_by("k").top_n(2, c("t")),
    "Stream.as_changelog(key)": lambda c, _: stream().as_changelog(c("n"), op="k"),
    "Stream.as_changelog(op)": lambda c, _: stream().as_changelog("n", op=c("k")),
    "count_distinct(column)": lambda c, _: stream().group_by("k").aggregate(m=wb.count_distinct(c("n"))),
    "Stream.join(on)": lambda c, _: stream().join(TABLE, on={c("k"): c("k")}),
    "Stream.connect(on)": lambda c, _: stream().connect(stream(), on=[c("k")]),
    "Stream.lookup_async(key)": lambda c, _: stream().lookup_async(lambda k: None, key=[c("k")], schema=OUT),
    "Stream.map(columns)": lambda c, _: stream().map(lambda n: n, OUT, columns=c("n")),
    "Stream.map(keep)": lambda c, _: stream().map(lambda r: {"m": 1}, OUT, keep=c("n")),
    "Stream.flat_map(columns)": lambda c, _: stream().flat_map(lambda n: [n], OUT, columns=[c("n")]),
    "Stream.flat_map(keep)": lambda c, _: stream().flat_map(lambda r: [], OUT, keep=[c("n")]),
    "Stream.filter(columns)": lambda c, _: stream().filter(lambda n: True, columns=c("n")),
    "Stream.map_batches(event_time)": lambda c, _: stream().map_batches(lambda batch: batch, event_time=c("t")),
    "session(column)": lambda c, _: stream().window(wb.session(column=c("gap"))).aggregate(n=wb.count()),
    "count(column)": lambda c, _: stream().key_by("k").aggregate(m=wb.count(c("n"))),
    "sum(column)": lambda c, _: stream().key_by("k").aggregate(m=wb.sum(c("n"))),
    "min(column)": lambda c, _: stream().key_by("k").aggregate(m=wb.min(c("n"))),
    "max(column)": lambda c, _: stream().key_by("k").aggregate(m=wb.max(c("n"))),
    "mean(column)": lambda c, _: stream().key_by("k").aggregate(m=wb.mean(c("n"))),
    "median(column)": lambda c, _: stream().window(wb.tumbling("1s")).aggregate(m=wb.median(c("n"))),
    "top_k(column)": lambda c, _: stream().window(wb.tumbling("1s")).aggregate(m=wb.top_k(c("n"), 2)),
    "collect_list(column)": lambda c, _: stream().window(wb.tumbling("1s")).aggregate(m=wb.collect_list(c("n"))),
    **{
        f"History.{way}({argument})": lambda c, folder, argument=argument: history(folder, **{argument: c("t")})
        for way in ("from_arrow", "from_spark")
        for argument in ("event_time", "arrival_time")
    },
    "TableSink(upsert_key)": lambda c, _: latest().sink_to(wb.TableSink("x", upsert_key=c("k"))),
    "KafkaSource(event_time)": lambda c, _: wb.KafkaSource("localhost:9092", "a", TABLE.schema, event_time=c("t")),
    "NatsSink(key)": lambda c, _: wb.NatsSink("nats://h", "a", "b", key=c("t")),
    "NatsSource(event_time)": lambda c, _: wb.NatsSource("nats://h", "a", TABLE.schema, event_time=c("t")),
    "SqlLookup(key)": lambda c, _: wb.SqlLookup("postgresql://h/d", "a", TABLE.schema, key=c("k")),
    "RedisLookup(value)": lambda c, _: wb.RedisLookup("redis://h", "a", {"n": pa.int64()}, value=c("n")),
    "KafkaSink(key)": lambda c, _: wb.KafkaSink("localhost:9092", "a", key=c("k")),
    "KafkaSink(timestamp)": lambda c, _: wb.KafkaSink("localhost:9092", "a", timestamp=c("t")),
    **{
        f"{kind}(event_time)": lambda c, _, kind=kind, url=url: getattr(wb, kind)(url, TABLE.schema, event_time=c("t"))
        for kind, url in (("ServerEventSource", "http://h"), ("WebSocketSource", "ws://h"), ("MqttSource", "mqtt://h"))
    },
    **{
        f"SqlSource({argument})": lambda c, _, argument=argument: wb.SqlSource(
            "postgresql://h/d", "a", TABLE.schema, **{"key": "n", argument: c("n" if argument == "key" else "t")}
        )
        for argument in ("key", "event_time")
    },
    **{
        f"PostgresLogSource({argument})": lambda c, _, argument=argument: wb.PostgresLogSource(
            "postgresql://h/d",
            "a",
            TABLE.schema,
            slot="s",
            publication="p",
            **{"key": "n", argument: c("n" if argument == "key" else "t")},
        )
        for argument in ("key", "event_time")
    },
    "History.from_recording(event_time)": lambda c, folder: recorded(folder, event_time=c("t")),
    **{
        f"History.from_kafka({argument})": lambda c, folder, argument=argument: from_messages(
            folder, **{argument: c("t")}
        )
        for argument in ("event_time", "arrival_time")
    },
    **{
        f"History.{way}(partition_by)": lambda c, folder: history(folder, partition_by=c("k"))
        for way in ("from_arrow", "from_spark")
    },
    "History.from_recording(partition_by)": lambda c, folder: recorded(folder, event_time="t", partition_by=c("k")),
    "History.from_kafka(partition_by)": lambda c, folder: from_messages(folder, event_time="t", partition_by=c("k")),
    "RedisSource(event_time)": lambda c, _: wb.RedisSource(
        "redis://localhost", "orders", TABLE.schema, event_time=c("t")
    ),
    "RedisSink(upsert_key)": lambda c, _: wb.RedisSink("redis://localhost", "x", upsert_key=c("k")),
    "RedisSink(value)": lambda c, _: wb.RedisSink("redis://localhost", "x", upsert_key="k", value=c("n")),
    "SqlSink(upsert_key)": lambda c, folder: stream().sink_to(
        wb.SqlSink(f"sqlite:///{folder}/x", "x", upsert_key=c("k"))
    ),
}


def written(folder: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(TABLE, folder / "rows.parquet")
    return folder / "rows.parquet"


def history(folder: Path, **columns: Any) -> wb.Stream:
    times = {"event_time": "t", "arrival_time": "t"} | columns
    return wb.Stream.replay(wb.History.from_arrow(TABLE, folder / "log", progress=False, **times))


def recorded(folder: Path, **columns: Any) -> wb.Stream:
    if not (folder / "feed").exists():
        wb.Stream.from_table(TABLE).record_to(folder / "feed").run("record").wait("60s")
    return wb.Stream.replay(wb.History.from_recording(folder / "feed", folder / "log", progress=False, **columns))


def from_messages(folder: Path, **columns: Any) -> wb.Stream:
    source: Any = TableSource(TABLE, event_time="t")  # reading topics needs a broker
    times = {"arrival_time": "t"} | columns
    return wb.Stream.replay(wb.History.from_kafka(source, folder / "log", progress=False, **times))


def test_every_argument_that_names_columns_is_tried() -> None:
    found = set(arguments(A_COLUMN)) | {"Stream.rename(names)"}
    assert found - COLUMNS.keys() == set()
    assert len(found) > 25


@pytest.mark.parametrize("place", sorted(set(arguments(A_COLUMN))))
def test_a_column_may_be_written_with_col(place: str, tmp_path: Path) -> None:
    by_name = COLUMNS[place](lambda name: name, tmp_path)
    by_col = COLUMNS[place](col, tmp_path)
    assert repr(by_col) == repr(by_name)
    assert getattr(by_col, "schema", None) == getattr(by_name, "schema", None)
    with pytest.raises(wb.errors.WorkbenchError, match=r"missing|computes"):
        COLUMNS[place](lambda name: col("missing") + 1, tmp_path)
    with pytest.raises(wb.errors.WorkbenchError, match=r"function.*(takes|write) columns") as refused:
        COLUMNS[place](lambda name: len, tmp_path)
    assert "cell, line" not in str(refused.value)  # which is the constructor of one of our own classes


# Durations -----------------------------------------------------------------------------------------------------------

A_DURATION = re.compile(
    r"\bDuration\b|timedelta|Ttl|^(size|slide|step|gap|offset|every|span|ttl|timeout|delay|idle_after|max_drift|min_pause|by"
    r"|out_of_orderness|allowed_lateness|retry_delay|\w+_(timeout|interval|backoff|threshold)): (?!int)"
)
FORMS = ("1h", "1 hour", "60 min", "3600 seconds", timedelta(hours=1))


def run(**settings: Any) -> None:
    job = stream().sink_to(wb.DiscardSink()).run("walked", driver="stepping", **settings)
    job.cancel()


def with_job(call: Callable[[Any], object]) -> None:
    job = stream().sink_to(wb.DiscardSink()).run("walked")
    job.wait("60s")
    call(job)


def sources(name: str) -> dict[str, Callable[[Any, Path], object]]:
    """The sources that take an argument about event time."""
    more = {"max_drift": {"align": "g"}}.get(name, {})
    return {
        f"Stream.from_table({name})": lambda d, _: wb.Stream.from_table(TABLE, event_time="t", **more, **{name: d}),
        f"Stream.from_generator({name})": lambda d, _: wb.Stream.from_generator(
            lambda first, n: TABLE.to_batches()[0], TABLE.schema, event_time="t", **more, **{name: d}
        ),
        f"Stream.from_files({name})": lambda d, folder: wb.Stream.from_files(
            written(folder), event_time="t", **more, **{name: d}
        ),
        f"Stream.from_dead_letters({name})": lambda d, _: wb.Stream.from_dead_letters(
            DEAD, TABLE.schema, event_time="t", **more, **{name: d}
        ),
        f"Stream.from_socket({name})": lambda d, _: wb.Stream.from_socket(
            **SOCKET, event_time="t", **more, **{name: d}
        ),
        f"Stream.from_source({name})": lambda d, _: wb.Stream.from_source(
            TableSource(TABLE, event_time="t"), **more, **{name: d}
        ),
        f"Stream.replay({name})": lambda d, folder: wb.Stream.replay(
            wb.History.from_arrow(TABLE, folder / "log", event_time="t", arrival_time="t", progress=False),
            **more,
            **{name: d},
        ),
    }


KEYED: dict[str, Callable[[Any], Any]] = {
    "ValueState(ttl)": lambda d: wb.state.ValueState(pa.int64(), ttl=d),
    "ListState(ttl)": lambda d: wb.state.ListState(pa.int64(), ttl=d),
    "MapState(ttl)": lambda d: wb.state.MapState(pa.string(), pa.int64(), ttl=d),
    "ReducingState(ttl)": lambda d: wb.state.ReducingState(pa.int64(), max, ttl=d),
    "AggregatingState(ttl)": lambda d: wb.state.AggregatingState(pa.int64(), int, max, int, ttl=d),
}
DURATIONS: dict[str, Callable[[Any, Path], object]] = {
    "SqlSource(poll)": lambda d, _: wb.SqlSource("postgresql://h/d", "a", TABLE.schema, key="n", poll=d),
    "SqlSource(settle)": lambda d, _: wb.SqlSource("postgresql://h/d", "a", TABLE.schema, key="n", settle=d),
    "KafkaSource(discover)": lambda d, _: wb.KafkaSource("localhost:9092", "a", TABLE.schema, discover=d),
    "Stream.state_ttl(duration)": lambda d, _: stream().group_by("k").aggregate(n=wb.count()).state_ttl(d),
    "Stream.over(preceding)": lambda d, _: stream().over([], "range", d, {"m": wb.count()}),
    **sources("out_of_orderness"),
    **sources("idle_after"),
    **sources("max_drift"),
    **{place: lambda d, _, make=make: make(d).ttl_us for place, make in KEYED.items()},
    "Stream.from_socket(retry_delay)": lambda d, _: wb.Stream.from_socket(**SOCKET, retry_delay=d),
    "Stream.assign_timestamps(out_of_orderness)": lambda d, _: stream().assign_timestamps("t", out_of_orderness=d),
    "Stream.assign_timestamps(idle_after)": lambda d, _: stream().assign_timestamps("t", idle_after=d),
    "Stream.window(allowed_lateness)": lambda d, _: stream().window(wb.tumbling("1s"), allowed_lateness=d),
    "KeyedStream.window(allowed_lateness)": lambda d, _: (
        stream().key_by("k").window(wb.tumbling("1s"), allowed_lateness=d)
    ),
    "Pattern.within(duration)": lambda d, _: wb.pattern("a").next("b").within(d),
    "Stream.join(between)": lambda d, _: stream().join(stream(), on="k", between=("0s", d)),
    "Stream.lookup_async(timeout)": lambda d, _: stream().lookup_async(len, key="k", schema=OUT, timeout=d),
    "Stream.lookup_async(cache)": lambda d, _: stream().lookup_async(len, key="k", schema=OUT, cache=d),
    "Stream.collect(timeout)": lambda d, _: stream().collect(timeout=d),
    "Stream.show(timeout)": lambda d, _: stream().show(timeout=d),
    "tumbling(size)": lambda d, _: wb.tumbling(d),
    "tumbling(offset)": lambda d, _: wb.tumbling("1d", d),
    "cumulative(size)": lambda d, _: wb.windows.cumulative(d, "1min"),
    "cumulative(step)": lambda d, _: wb.windows.cumulative("1d", d),
    "cumulative(offset)": lambda d, _: wb.windows.cumulative("1d", "2h", d),
    "sliding(size)": lambda d, _: wb.sliding(d, "1min"),
    "sliding(slide)": lambda d, _: wb.sliding("1d", d),
    "sliding(offset)": lambda d, _: wb.sliding("1d", "2h", d),
    "session(gap)": lambda d, _: wb.session(d),
    "early(every)": lambda d, _: wb.triggers.early(d),
    "keep_since(span)": lambda d, _: wb.windows.keep_since(d),
    "acks(message_timeout)": lambda d, _: wb.acks(message_timeout=d),
    "changelog(changelog_interval)": lambda d, _: wb.changelog(d, "1d"),
    "changelog(offset_interval)": lambda d, _: wb.changelog("1us", d),
    "at_most_once(flush_interval)": lambda d, _: wb.at_most_once(d),
    "micro_batches(batch_interval)": lambda d, _: wb.micro_batches(d),
    "stop_the_world(interval)": lambda d, _: wb.stop_the_world(d),
    "fixed_delay(delay)": lambda d, _: wb.restart.fixed_delay(3, d),
    "failure_rate(delay)": lambda d, _: wb.restart.failure_rate(delay=d),
    "failure_rate(failure_rate_interval)": lambda d, _: wb.restart.failure_rate(failure_rate_interval=d),
    "exponential_delay(initial_backoff)": lambda d, _: wb.restart.exponential_delay(d, "1d"),
    "exponential_delay(max_backoff)": lambda d, _: wb.restart.exponential_delay("1s", d),
    "exponential_delay(reset_backoff_threshold)": lambda d, _: wb.restart.exponential_delay(reset_backoff_threshold=d),
    "Job.wait(timeout)": lambda d, _: with_job(lambda job: job.wait(d)),
    "Job.stop(timeout)": lambda d, _: with_job(lambda job: job.wait(d)),
    "Job.cancel(timeout)": lambda d, _: with_job(lambda job: job.cancel(timeout=d)),
    **{
        f"Pipeline.run({name})": lambda d, _, name=name: run(**{name: d})
        for name in ("buffer_timeout", "checkpoint_interval", "checkpoint_timeout", "min_pause")
    },
}


def test_every_argument_that_is_a_duration_is_tried() -> None:
    found = {place for place in arguments(A_DURATION) if place.split("(")[0].split(".")[0] not in OF_JOBS}
    assert found - DURATIONS.keys() == set()
    assert len(found) > 40


OF_JOBS = {"WindowedStream", "Job", "Pipeline", "FoundJob", "Snapshot", "Recording", "compare", "serve"}
"""Settings have a table of their own, some are tried here, too; nobody writes ``WindowedStream(...)``."""


@pytest.mark.parametrize("place", DURATIONS)
def test_a_duration_has_all_its_forms(place: str, tmp_path: Path) -> None:
    made = [repr(DURATIONS[place](form, tmp_path)) for form in FORMS]
    assert made == made[:1] * len(FORMS)
    for wrong in ("1 parsec", "soon"):
        with pytest.raises(wb.errors.WorkbenchError, match=re.escape(wrong)):
            DURATIONS[place](wrong, tmp_path)
