"""Pipelines on Spark Structured Streaming give the same rows as in the kernel."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pipelines.draft import Draft
from pipelines.expected import counted
from pipelines.generator import draw
from pipelines.running import with_files
from pyspark.sql import SparkSession
from waiting import until

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.connectors.replay.log import write_log
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import source_of
from workbench.spark.engine.sessions import active_kept
from workbench.spark.jobs import batch_limits
from workbench.spark.session import session as spark_session
from workbench.spark.session import spark_setting

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

SECOND = 1_000_000
FIRST_US = 1_600_000_000 * SECOND


@pytest.fixture(scope="module")
def spark() -> Any:
    return spark_session()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of two channels, the second of which would be late for a watermark over everything read so far."""
    chance = Random(7)
    n = 3_000
    arrived = [FIRST_US + at * SECOND for at in range(n)]
    table = pa.table(
        {
            "k": [chance.choice("abc") for _ in range(n)],
            "v": pa.array([chance.choice((None, *range(50))) for _ in range(n)], pa.int64()),
            "t": pa.array([at - chance.randint(0, 60) * SECOND for at in arrived], pa.timestamp("us", "UTC")),
            "arrived": pa.array(arrived, pa.timestamp("us", "UTC")),
        }
    )
    path = tmp_path_factory.mktemp("engine") / "events.log"
    write_log(table, path, event_time="t", arrival_time="arrived", channels=2, row_group_rows=500)
    return path


def events(log: Path) -> wb.Stream:
    return wb.Stream.replay(log, out_of_orderness="60s")


class AlternateSums(wb.functions.ProcessFunction):
    """Every second record of a key gives the sum so far, and a timer gives it again."""

    total = wb.state.ValueState(pa.int64())
    count = wb.state.ValueState(pa.int64())

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        state.total = (state.total or 0) + (record["v"] or 0)
        state.count = (state.count or 0) + 1
        ctx.register_event_timer(ctx.timestamp // (600 * SECOND) * 600 * SECOND + 600 * SECOND)
        return None

    def on_timer(self, time: int, state: Any, ctx: Any) -> Any:
        return {"k": ctx.key, "at": time}


def squares(first: int, n: int) -> pa.RecordBatch:
    return pa.record_batch({"n": [at * at for at in range(first, first + n)]})


AIRPORTS = pa.table({"k": ["a", "b"], "city": ["Aachen", "Bonn"]})


def of_all_kinds(read: wb.Stream) -> Pipeline:
    """Timers, sessions, count windows and rolling sums over one source, and a generator."""
    keyed = read.key_by("k")
    generated = wb.Stream.from_generator(squares, {"n": pa.int64()}, event_time="n", limit=100)
    return (
        keyed.process(AlternateSums(), {"k": pa.string(), "at": pa.int64()}).sink_to(wb.TableSink("timers"))
        + keyed.window(wb.session("3s")).aggregate(n=wb.count()).sink_to(wb.TableSink("sessions"))
        + keyed.window(wb.windows.count_tumbling(7)).aggregate(n=wb.count()).sink_to(wb.TableSink("sevens"))
        + keyed.aggregate(n=wb.count(), s=wb.sum("v")).sink_to(wb.TableSink("rolling"))
        + generated.sink_to(wb.TableSink("squares"))
    )


def tumbling(log: Path) -> Pipeline:
    doubled = events(log).filter("v IS NOT NULL").with_columns(double=wb.col("v") * 2)
    windows = doubled.key_by("k").window(wb.tumbling("1min"))
    return windows.aggregate(n=wb.count(), s=wb.sum("double"), m=wb.mean("v")).sink_to(wb.TableSink("out"))


def several_sinks(log: Path) -> Pipeline:
    both = events(log).union(events(log).filter("v > 40")).sink_to(wb.TableSink("all"))
    return tumbling(log) + both + events(log).join(AIRPORTS, on="k").select("city", "v").sink_to(wb.TableSink("cities"))


def sliding(log: Path) -> Pipeline:
    windows = events(log).join(AIRPORTS, on="k", how="left").key_by("city").window(wb.sliding("2min", "1min"))
    return windows.aggregate(n=wb.count(), most=wb.max("v"), mean=wb.mean("v")).sink_to(wb.TableSink("out"))


PIPELINES: dict[str, tuple[str, Callable[[Path], Pipeline]]] = {
    "whole": ("native", several_sinks),
    "batches": ("native", sliding),
    "carried": ("carried", lambda log: of_all_kinds(events(log))),
}


def test_a_sum_beyond_64_bits_fails_the_job_on_both_engines(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"k": ["a", "a"], "v": [2**62, 2**62], "t": pa.array([FIRST_US] * 2, pa.timestamp("us", "UTC"))})
    write_log(table, tmp_path / "large.log", event_time="t", arrival_time="t", channels=1)
    windows = events(tmp_path / "large.log").key_by("k").window(wb.tumbling("1min"))
    pipeline = windows.aggregate(s=wb.sum("v")).sink_to(wb.TableSink("out"))
    assert pipeline.explain(engine="spark").tier == "native"
    options: Any
    for options in ({"restart": wb.restart.no_restart()}, {"engine": "spark", "spark": spark}):
        with pytest.raises(wb.errors.JobError, match=r"sum\(.*v.*\) exceeded the range of int64: cast the column"):
            pipeline.run("large", replace=True, **options).wait("120s")


def test_a_frame_of_a_query_changes_the_active_session_in_no_thread(spark: Any) -> None:
    """A query that could not start is started again in a thread that has no active session."""
    own = spark.newSession()

    def make() -> None:
        with active_kept():
            own.createDataFrame(pa.table({"n": [1]}))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    make()
    assert SparkSession.getActiveSession() is spark


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_same_rows_on_both_engines(
    name: str, spark: Any, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Native pipelines read the log whole, by Spark's own reader, or in two batches."""
    tier, made = PIPELINES[name]
    if name == "batches":
        monkeypatch.setattr(batch_limits, "REREAD_ROWS", 2_000)
    assert made(log).explain(engine="spark").tier == tier
    here = made(log).run(f"kernel-{name}", parallelism=2)
    there = made(log).run(f"spark-{name}", engine="spark", spark=spark)
    assert SparkSession.getActiveSession() is spark
    assert here.wait("60s") == "FINISHED"
    assert there.wait("240s") == "FINISHED"
    tables = [node.spec.name for node in made(log).logical_graph().nodes if node.role == "sink"]
    for table in tables:
        mine, theirs = here.table(table), there.table(table)
        assert mine.schema.equals(theirs.schema)
        if table == "sevens":  # which records of a key meet in a count window depends on the order of the channels
            assert len(mine) == len(theirs)
        elif table == "rolling":
            assert counted(mine.select(["k", "n"])) == counted(theirs.select(["k", "n"]))
        else:
            assert counted(mine) == counted(theirs)
    assert there.checkpoints()[-1].phases_ms["addBatch"] > 0
    if tier == "native":
        assert (sum(batch.rows_in > 0 for batch in there.checkpoints()) > 1) is (name == "batches")
    assert wb.job(there.name) is there


def test_spark_is_compared_with_other_architectures_and_loses_nothing(
    spark: Any, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_limits, "REREAD_ROWS", 1_000)
    lanes = wb.compare(tumbling(log), ["spark"], faults="task-dies:at=1500", name="real")
    assert set(lanes.wait("240s").values()) == {"FINISHED"}
    [_, told] = lanes.table().to_pylist()
    assert (told["claimed"], told["observed"], told["failures"]) == ("exactly-once", "exactly-once", 1)
    assert 1_000 <= told["records_again"] < 2_500
    assert told["recovery_ms"] > 0


@pytest.mark.parametrize("seed", range(8) if os.environ.get("WORKBENCH_CLUSTERS") else (1,))
def test_a_random_pipeline_gives_the_rows_of_duckdb_on_spark(seed: int, spark: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="workbench-spark-") as folder:
        draft = Draft(Random(f"spark {seed}"), Path(folder), (1, 2))
        pipeline = draw(draft, 8)
        story = "\n".join(draft.story)
        job = pipeline.run(f"random-{seed}", engine="spark", spark=spark, parallelism=2)
        assert job.wait("240s") == "FINISHED", story
        found = with_files(draft, {table: job.table(table) for table in draft.tables})
        problems = [text for one in draft.expected if (text := one.problem(found))]
        assert not problems, "\n".join([*problems, story])


@pytest.mark.parametrize("native", [False, True])
def test_a_replay_keeps_the_order_of_arrival(spark: Any, tmp_path: Path, native: bool) -> None:
    """The last record of each key wins, of two channels that take turns record by record."""
    times = pa.array([(row // 3 + 1) * 1_000 for row in range(400)], pa.timestamp("us", "UTC"))
    table = pa.table({"n": range(400), "key": [f"k{row % 5}" for row in range(400)], "at": times})
    stream = wb.Stream.replay(write_log(table, tmp_path / "a.log", event_time="at", arrival_time="at"))
    if native:
        pipeline = stream.filter("n >= 0").sink_to(wb.TableSink("latest", upsert_key="key"))
    else:
        pipeline = stream.key_by("key").latest_by().sink_to(wb.TableSink("latest"))
    assert pipeline.explain(engine="spark").tier == ("native" if native else "carried")
    job = pipeline.run(f"order-{native}", engine="spark", spark=spark)
    job.wait("120s")
    assert sorted(job.table("latest")["n"].to_pylist()) == [395, 396, 397, 398, 399]


def test_a_function_that_cannot_be_sent_names_the_variable(spark: Any, log: Path) -> None:
    lock = threading.Lock()

    def locked(row: Any) -> Any:
        with lock:
            return row

    with pytest.raises(wb.errors.PlanError, match="'locked' uses the variable 'lock', a lock"):
        events(log).map(locked).sink_to(wb.DiscardSink()).run("locked", engine="spark", spark=spark)


def test_a_job_is_paused_resumed_stopped_and_continued_from_a_copy(
    spark: Any, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_limits, "REREAD_ROWS", 500)
    whole = events(log).filter("v > 3").sink_to(wb.TableSink("out"))
    job: Any = whole.run("first", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c", checkpoint_interval="1s")
    until(lambda: len(job.checkpoints()) >= 1)
    job.pause()
    assert (job.state, job.query.isActive, job.over) == ("SUSPENDED", False, False)
    before = len(job.checkpoints())
    job.resume()
    until(lambda: len(job.checkpoints()) > before)
    job.stop()
    assert (job.state, job.complete) == ("FINISHED", False)
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    monkeypatch.undo()
    rest = whole.run("rest", engine="spark", spark=spark, checkpoint_dir=tmp_path / "copy", resume=True)
    assert rest.wait("240s") == "FINISHED"
    here = whole.run("whole")
    here.wait("60s")
    assert counted(rest.table()) == counted(here.table())


def test_a_checkpoint_of_another_pipeline_is_rejected_and_unchanged(spark: Any, log: Path, tmp_path: Path) -> None:
    first = events(log).filter("v > 3").sink_to(wb.TableSink("out"))
    job = first.run("first", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c")
    assert job.wait("240s") == "FINISHED"
    other = events(log).key_by("k").window(wb.tumbling("1h")).aggregate(n=wb.count()).sink_to(wb.TableSink("out"))
    with pytest.raises(wb.errors.CheckpointError, match="add resume=True"):
        first.run("second", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c")
    with pytest.raises(wb.errors.CheckpointError, match="belong to a pipeline with the operator 'filter'"):
        other.run("other", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c", resume=True)
    with pytest.raises(wb.errors.CheckpointError, match="number of shuffle partitions: 2 then, 3 now"):
        first.run("wider", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c", resume=True, parallelism=3)
    again = first.run("again", engine="spark", spark=spark, checkpoint_dir=tmp_path / "c", resume=True)
    assert again.wait("60s") == "FINISHED"
    assert counted(again.table()) == counted(job.table())


def test_a_users_error_is_told_in_a_sentence(spark: Any, log: Path) -> None:
    job = events(log).map(lambda row: {"n": 1 // 0}, {"n": pa.int64()}).sink_to(wb.TableSink("out"))
    failing = job.run("failing", engine="spark", spark=spark)
    with pytest.raises(wb.errors.JobError, match="ZeroDivisionError"):
        failing.wait("240s")
    assert failing.state == "FAILED"


def test_what_spark_does_not_have_says_so(spark: Any, log: Path) -> None:
    with pytest.raises(wb.errors.SettingError, match="buffer_timeout cannot be set with engine='spark'"):
        events(log).sink_to(wb.DiscardSink()).run("x", engine="spark", spark=spark, buffer_timeout="5ms")
    with pytest.raises(wb.errors.SettingError, match="pass a SparkSession of classic PySpark"):
        events(log).sink_to(wb.DiscardSink()).run("x", engine="spark", spark=7)


def test_a_query_of_plain_pyspark_is_watched(spark: Any) -> None:
    from pyspark.sql import functions as f

    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    counts = rates.withWatermark("timestamp", "1 second").groupBy((f.col("value") % 3).alias("k")).count()
    writer = counts.writeStream.format("noop").outputMode("update").queryName("counts")
    with spark_setting(spark, "spark.sql.shuffle.partitions", "2"):
        query = writer.trigger(processingTime="100 milliseconds").start()
        try:
            watched = wb.watch(query)
            until(lambda: watched.look() or len(watched.queries[0].batches) >= 2)
        finally:
            query.stop()
    [seen] = watched.queries
    assert len(seen.batches) >= 2
    assert seen.batches[-1].rows > 0
    assert "addBatch" in seen.batches[-1].phases_ms
    html = watched.html()
    assert "State stores" in html
    assert "rate-micro-batch" in html or "Rate" in html


def test_the_report_of_the_last_lesson_has_the_same_rows_on_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in cells_of(source_of("12")):
        if cell.kind == "code" and cell.section <= 1:
            exec(cell.solved.replace("on_spark = False", "on_spark = True"), names)
    assert names["on_spark"] is True
    assert capsys.readouterr().out.endswith("the same rows\n")
