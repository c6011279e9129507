"""The handle of a job on Spark: its verbs, its figures, and what it says where Spark has no such verb; needs no Java.

A query in this process takes the place of Spark's; ``tests/spark/test_engine_spark.py`` has the same verbs on Spark.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pipelines.expected import counted
from pyspark.sql import SparkSession
from query_here import run_here
from waiting import until

import workbench as wb
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.failures import sentence_of, sentence_of_question
from workbench.spark.jobs import query_runner
from workbench.spark.jobs.absent import METHODS

SECOND = 1_000_000
ROWS = 1_000
ALL = 10_000


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    return run_here(monkeypatch)


def sessions(late: int = 0) -> Any:
    """Session windows over 1,000 records in disorder, of which the last ones come a day late."""
    seconds = [at - (at % 10 == 9) * 40 - (at >= ROWS - late) * 86_400 for at in range(ROWS)]
    times = [(1_600_000_000 + at) * SECOND for at in seconds]
    rows = pa.table({"k": [at % 3 for at in range(ROWS)], "t": pa.array(times, pa.timestamp("us", "UTC"))})
    events = wb.Stream.from_table(rows, event_time="t", out_of_orderness="60s")
    windows = events.key_by("k").window(wb.session("2s")).aggregate(n=wb.count())
    return windows.sink_to(wb.TableSink("out"))


def start(gate: threading.Semaphore, batches: int, name: str, **options: Any) -> Any:
    """A job that has gone through so many batches and waits."""
    job = sessions().run(name, engine="spark", **options)
    gate.release(batches)
    until(lambda: job.status()["batches"] == batches)
    return job


def kernel() -> Any:
    job = sessions().run("here")
    assert job.wait("120s") == "FINISHED"
    return counted(job.table())


def test_a_paused_job_reads_nothing_and_continues_where_it_was(gate: threading.Semaphore) -> None:
    job = start(gate, 2, "paused")
    query = job.query
    job.pause()
    assert (job.state, job.status()["paused"], job.over, query.isActive) == ("SUSPENDED", True, False, False)
    gate.release(ALL)
    with pytest.raises(wb.errors.JobError, match="still SUSPENDED"):
        job.wait("200ms")
    assert len(job.checkpoints()) == 2
    job.resume()
    job.resume()  # a running job is left alone
    assert job.query is not query
    assert job.wait("120s") == "FINISHED"
    assert job.complete
    assert counted(job.table()) == kernel()
    assert [record.checkpoint_id for record in job.checkpoints()] == list(range(len(job.checkpoints())))
    with pytest.raises(wb.errors.JobError, match="is FINISHED: run the pipeline again"):
        job.pause()


def test_the_interval_and_the_size_of_batches_are_tuned_by_a_restart_from_the_last_batch(
    gate: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, int]] = []
    start_carried = query_runner.start_carried

    def noted(*where: Any, **given: Any) -> Any:
        started.append((given["interval"], given["batch_rows"]))
        return start_carried(*where, **given)

    monkeypatch.setattr(query_runner, "start_carried", noted)
    job = start(gate, 2, "tuned")
    assert (job.status()["checkpoint_interval"], job.status()["batch_size"]) == ("disabled", "default")
    job.tune(checkpoint_interval="5s", batch_size=70)
    assert (job.state, job.status()["checkpoint_interval"], job.status()["batch_size"]) == ("RUNNING", "5s", 70)
    job.tune(checkpoint_interval="5000ms", batch_size="70")  # as it is: the query goes on
    told = job.dashboard().html()
    assert "Tuned: trigger interval disabled → 5s, records per batch default → 70, from batch 2 on." in told
    assert "A batch begins every 5s, and has about 70 records. To change that" in told
    job.pause()
    job.tune(checkpoint_interval="disabled")
    assert (job.state, len(started)) == ("SUSPENDED", 2)
    job.resume()
    assert started[1:] == [("5000 milliseconds", 70), ("0 milliseconds", 70)]
    gate.release(ALL)
    assert job.wait("120s") == "FINISHED"
    assert counted(job.table()) == kernel()
    with pytest.raises(wb.errors.JobError, match="is FINISHED: run the pipeline again"):
        job.tune(batch_size=5)


def test_a_stopped_job_is_continued_by_the_next_run(gate: threading.Semaphore, tmp_path: Path) -> None:
    job = start(gate, 3, "stopped", checkpoint_dir=tmp_path / "c")
    job.stop()
    assert (job.state, job.complete) == ("FINISHED", False)
    rest = sessions().run("stopped", engine="spark", checkpoint_dir=tmp_path / "c", resume=True)
    gate.release(ALL)
    assert rest.wait("120s") == "FINISHED"
    assert rest.complete
    assert rest.checkpoints()[0].checkpoint_id == 3
    assert counted(rest.table()) == kernel()


def test_a_paused_job_can_be_stopped_and_a_canceled_one_says_so(gate: threading.Semaphore) -> None:
    job = start(gate, 1, "stopped-in-pause")
    job.pause()
    job.stop()
    assert job.state == "FINISHED"
    other = start(gate, 1, "canceled")
    other.cancel()
    assert (other.state, other.wait("1s")) == ("CANCELED", "CANCELED")


def test_late_records_are_counted_once(gate: threading.Semaphore) -> None:
    job = sessions(late=100).run("late", engine="spark")
    gate.release(ALL)
    assert job.wait("120s") == "FINISHED"
    late = job.status()["late_records"]
    assert late == 100
    assert sum(job.table()["n"].to_pylist()) + late == ROWS
    told = job.late_records()
    assert {row["task"].partition("[")[0] for row in told} == {"aggregate"}
    assert sum(row["late"] for row in told) == late
    assert len(job.late_records("aggregate")) == len(told)
    assert len(job.late_records("table")) == 0
    figures = [{"vertex": "v1", "subtask": 0, "watermark": 0, "operators": {"aggregate": {"late": 7}}}]
    job._runner.write(Batch(job.checkpoints()[-1].checkpoint_id, [], figures))  # a batch that Spark runs again
    assert job.status()["late_records"] == late


def test_a_savepoint_is_a_checkpoint_directory_from_which_a_run_continues(
    gate: threading.Semaphore, tmp_path: Path
) -> None:
    job = start(gate, 3, "saved", checkpoint_dir=tmp_path / "c")
    folder = job.savepoint("monday")
    assert (job.state, job.query.isActive, folder) == ("RUNNING", True, str(tmp_path / "c" / "savepoints" / "monday"))
    with pytest.raises(wb.errors.CheckpointError, match="the savepoint 'monday' exists already"):
        job.savepoint("monday")
    with pytest.raises(wb.errors.CheckpointError, match="cannot be a file name"):
        job.savepoint("../monday")
    job.pause()
    job.savepoint("tuesday")  # of a job that is paused, which stays so
    assert (job.state, job.savepoints()) == ("SUSPENDED", ["monday", "tuesday"])
    job.resume()
    gate.release(ALL)
    assert job.wait("120s") == "FINISHED"
    other = sessions().run("other", engine="spark", checkpoint_dir=folder, resume=True)
    assert other.wait("120s") == "FINISHED"
    assert other.checkpoints()[0].checkpoint_id == 3
    assert counted(other.table()) == counted(job.table()) == kernel()
    with pytest.raises(wb.errors.JobError, match="is FINISHED: run the pipeline again"):
        job.savepoint("wednesday")
    bare = sessions().run("bare", engine="spark")
    with pytest.raises(wb.errors.JobError, match="'bare' has no checkpoint directory, which a savepoint copies"):
        bare.savepoint("monday")


def test_what_spark_does_not_have_is_a_sentence(gate: threading.Semaphore) -> None:
    job = start(gate, 1, "absent")
    for name in METHODS:
        with pytest.raises(wb.errors.JobError, match=r"^a job on Spark .*: \w+"):
            getattr(job, name)
    with pytest.raises(AttributeError):
        _ = job.nothing
    with pytest.raises(wb.errors.JobError, match="a job on Spark cannot be compared"):
        wb.compare(job, job)
    with pytest.raises(wb.errors.SettingError, match="buffer_timeout cannot be set with engine='spark': Spark has"):
        job.tune(buffer_timeout="5ms")
    with pytest.raises(wb.errors.SettingError, match="did you mean 'parallelism'"):
        job.tune(paralelism=3)
    with pytest.raises(wb.errors.JobError, match="parallelism cannot be changed while a job runs on Spark"):
        job.tune(parallelism=3)
    with pytest.raises(wb.errors.SettingError, match="batch_size is 0: it must be above zero"):
        job.tune(batch_size=0)
    with pytest.raises(wb.errors.SettingError, match="checkpoint_interval"):
        job.tune(checkpoint_interval="often")
    assert job.graph().tier == "carried"
    job.stop()


def test_it_is_among_the_jobs_and_its_name_is_taken_while_it_runs(gate: threading.Semaphore, tmp_path: Path) -> None:
    job = start(gate, 1, "counts", checkpoint_dir=tmp_path / "c")
    assert wb.jobs()["counts"] is wb.job("counts") is job
    assert job.engine == "spark"
    with pytest.raises(wb.errors.JobError, match="a job 'counts' is RUNNING: stop it first"):
        sessions().run("counts", engine="spark")
    with pytest.raises(wb.errors.CheckpointError, match="add resume=True"):
        sessions().run("counts", engine="spark", checkpoint_dir=tmp_path / "c", replace=True)
    assert job.state == "RUNNING"  # what cannot start replaces nothing
    other = sessions().run("counts", engine="spark", replace=True)
    assert (job.state, wb.job("counts")) == ("FINISHED", other)
    here = sessions().run("counts", replace=True)
    assert (other.state, here.engine) == ("FINISHED", "kernel")
    here.wait("120s")


def test_it_shows_itself_and_writes_a_report(gate: threading.Semaphore, tmp_path: Path) -> None:
    job = start(gate, 2, "shown")
    watched = job.dashboard()
    assert not watched.over
    assert "batch 0 to 1" in watched.html()
    job.stop()
    watched.look()
    assert watched.over
    page = job.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "batch 0 to 1" in page
    assert "<script" not in page
    job.recording(tmp_path / "run.recording")
    kept: Any = wb.Recording.open(tmp_path / "run.recording")
    assert [(query.name, query.state, len(query.batches)) for query in kept.queries] == [("shown", "FINISHED", 2)]
    with pytest.raises(wb.errors.JobError, match="the job 'shown' runs on Spark and has no page"):
        wb.serve(job)


def test_a_generator_is_carried_and_gives_its_rows(gate: threading.Semaphore) -> None:
    def squares(first: int, n: int) -> pa.RecordBatch:
        return pa.record_batch({"n": [at * at for at in range(first, first + n)]})

    numbers = wb.Stream.from_generator(squares, {"n": pa.int64()}, event_time="n", limit=250)
    made = numbers.sink_to(wb.TableSink("out"))
    plan = made.explain(engine="spark")
    assert (plan.operators[0].tier, plan.operators[0].reason) == ("carried", "only the workbench can read this source")
    job = made.run("squares", engine="spark")
    gate.release(ALL)
    assert job.wait("120s") == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == [at * at for at in range(250)]
    assert len(job.checkpoints()) >= 3


# Where it cannot begin ----------------------------------------------------------------------------------------------


def test_without_java_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr("workbench.spark.java.find_spec", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(wb.errors.HistoryError, match=r"^Spark needs Java 17 or newer \(none was found\): run 'pip "):
        sessions().run("no-java", engine="spark", checkpoint_dir=tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert "no-java" not in wb.jobs()


def refused() -> None:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        (SimpleNamespace(_jsc=None), "the Spark session has been stopped: create a new one, or leave spark out"),
        (SimpleNamespace(_jsc=SimpleNamespace(sc=refused)), "the JVM of the Spark session has ended"),
        (
            SimpleNamespace(
                _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)), pythonExec="/no/python"
            ),
            "the workers of the Spark session run /no/python, which does not exist on this machine",
        ),
    ],
)
def test_a_session_that_is_gone_is_a_sentence(context: Any, sentence: str, tmp_path: Path) -> None:
    gone = SparkSession.__new__(SparkSession)
    gone._sc = context
    with pytest.raises(wb.errors.SettingError, match=sentence):
        sessions().run("gone", engine="spark", spark=gone, checkpoint_dir=tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_session_of_spark_connect_is_a_sentence() -> None:
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(wb.errors.SettingError, match="with Spark Connect it would run in another process"):
        sessions().run("connect", engine="spark", spark=kind())


@pytest.mark.parametrize("said", ["websockets.exceptions.InvalidState: connection is closing", "KeyboardInterrupt"])
def test_an_exception_of_any_name_is_a_sentence(said: str) -> None:
    frames = '  File "source_runner.py", line 281, in main\n    offset = reader.latestOffset()\n             ^^^^\n'
    text = f"[PYTHON_ERROR] Failed: Traceback (most recent call last):\n{frames}{said}\n SQLSTATE: 38000\n"
    assert sentence_of(f"{text}=== Streaming Query ===\nIdentifier: feeds [id = 1]\n") == said


def test_a_jvm_that_ended_is_a_sentence() -> None:
    gone = (
        ConnectionResetError(104, "reset"),
        Exception("An error occurred while trying to connect to the Java server"),
        Exception('the return value of "org.apache.spark.SparkContext.dagScheduler()" is null'),
    )
    for error in gone:
        assert sentence_of_question(error).startswith("the JVM of Spark has ended: run the pipeline again")
        assert sentence_of_question(error, 52).startswith("a JVM of Spark ran out of memory: give it more")
    assert sentence_of_question(ValueError("ValueError: 7")) == "ValueError: 7"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "job aborted\njava.lang.OutOfMemoryError: Java heap space\n at org",
            "a JVM of Spark ran out of memory: give it",
        ),
        (
            "ExecutorLostFailure Reason: Command exited with code 52\n at org",
            "a JVM of Spark ran out of memory: give it",
        ),
        (
            "x\nExecutorLostFailure (executor 1 exited)\n at org.apache",
            "an executor was lost: ExecutorLostFailure (exec",
        ),
        (
            "[STREAM_FAILED] x\norg.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n at org",
            "a Python process of Spark ended in the middle of a batch: the system may have killed it because memory",
        ),
        (
            "org.apache.spark.SparkException: Python worker failed to connect back.\n at org",
            "a Python process did not start within the ten seconds that Spark waits, as happens on a busy",
        ),
        (
            "x\npy4j.protocol.Py4JJavaError: calling o28.getResult.\n: org.apache.spark.SparkException: aborted\n"
            "Caused by: java.lang.RuntimeException: Stream 'a' was not found.\n at org",
            "RuntimeException: Stream 'a' was not found.",
        ),
        ("[STREAM_FAILED] x\nTraceback\nKeyError: 'k'\n at org.apache", "KeyError: 'k'"),
        ("[STREAM_FAILED] the first line\n at org.apache", "[STREAM_FAILED] the first line"),
    ],
)
def test_an_error_of_spark_is_one_sentence(text: str, sentence: str) -> None:
    assert sentence_of(text).startswith(sentence)
    assert "\n" not in sentence_of(text)
