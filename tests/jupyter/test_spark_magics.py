"""``%%stream --engine spark`` and ``%stream watch`` in a shell; a query in this process takes the place of Spark's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from query_here import report, run_here
from shell_cells import failure, run

import workbench as wb
from workbench.jupyter.completion import candidates
from workbench.jupyter.completion import options as options_after
from workbench.jupyter.told import told_head

CELL = "%%stream counts --engine spark\nnumbers.map(lambda row: row)"


@pytest.fixture
def gate(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    monkeypatch.setattr("workbench.spark.session.session", lambda master, progress: None)
    shell.user_ns.update(numbers=wb.Stream.from_table(pa.table({"n": list(range(500))})), wb=wb)
    yield run_here(monkeypatch)
    for job in wb.jobs().values():
        job.cancel()


def row_of(shell: InteractiveShell, job: str) -> tuple[str, ...]:
    """Its row in the list of jobs, which has those of other tests, too."""
    return next(row for row in run(shell, "%stream list").rows if row[0] == job)


def test_a_cell_runs_on_spark_and_the_verbs_reach_its_job(shell: InteractiveShell, gate: threading.Semaphore) -> None:
    job = run(shell, CELL.replace("spark\n", "spark -o mine\n"))
    assert (job.engine, shell.user_ns["mine"], job._run.cell.line) == ("spark", job, "counts --engine spark -o mine")
    row = row_of(shell, "counts")
    assert row == ("counts", "RUNNING", "-", "-", "0", "tier=carried")
    assert run(shell, "%stream status counts")["tier"] == "carried"
    assert run(shell, "%stream plan").tier == "carried"
    run(shell, "%stream pause")
    assert told_head(job).paused
    run(shell, "%stream resume counts")
    gate.release(1_000)
    assert job.wait("120s") == "FINISHED"
    assert len(job.table("counts")) == 500
    row = row_of(shell, "counts")
    assert (row[1], int(row[4])) == ("FINISHED", len(job.checkpoints()))
    head = told_head(job)
    assert (head.state, head.late, head.restarts) == ("FINISHED", 0, None)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("seek 2013-07-01", "a job on Spark cannot seek to another offset: start it again in another directory"),
        ("step", "a job on Spark runs in micro-batches and takes no steps"),
        ("set buffer_timeout=5ms", "buffer_timeout cannot be set with engine='spark': Spark has no buffers"),
        ("set parallelism=4", "parallelism cannot be changed while a job runs on Spark: stop it"),
        ("checkpoint", "a job on Spark takes no checkpoints on request: every batch is one"),
        ("savepoint monday", "the job 'counts' has no checkpoint directory, which a savepoint copies"),
        ("restore monday", "a job on Spark cannot be restored while it runs: stop it, and run with checkpoint_dir="),
        ("show counts graph", "a job on Spark has no views of the kernel's dashboard"),
        ("fail aggregate[0]", "a job on Spark cannot be failed from here"),
        ("compare counts acks", "a job on Spark cannot be compared"),
        ("state aggregate", "a job on Spark keeps its state in Spark's state stores"),
    ],
)
def test_a_verb_that_spark_does_not_have_says_why(
    shell: InteractiveShell, gate: threading.Semaphore, line: str, sentence: str
) -> None:
    run(shell, CELL)
    assert sentence in failure(shell, f"%stream {line}")
    assert wb.job("counts").state == "RUNNING"


def test_a_changed_cell_replaces_its_job_and_a_mistake_does_not(
    shell: InteractiveShell, gate: threading.Semaphore
) -> None:
    first = run(shell, CELL)
    with capture_output() as printed:
        assert run(shell, CELL) is first
    assert "which is still running: '%%stream counts --replace' starts it" in str(printed.outputs) + printed.stdout
    mistakes = {
        "--engine sparc": "unknown engine 'sparc': did you mean 'spark'?",
        "--engine spark --buffer-timeout 5ms": "Spark has no buffers between operators",
        "--engine spark --master loc": "spark='loc' is not a supported master",
        "--master local[2]": "--master needs Spark: add --engine spark, or remove --master",
        "--engine spark --driver stepping": "driver cannot be set with engine='spark': leave it out",
    }
    for options, sentence in mistakes.items():
        assert sentence in failure(shell, f"%%stream counts {options} --replace\nnumbers")
    assert first.state == "RUNNING"
    second = run(shell, CELL.replace("\n", " --replace\n"))
    assert (first.state, second.state, wb.job("counts")) == ("FINISHED", "RUNNING", second)


def of_pyspark(kind: str, **values: Any) -> Any:
    """An object whose class has the name of one of PySpark's."""
    return type(kind, (SimpleNamespace,), {"__module__": "pyspark.sql"})(**values)


def a_query(name: str) -> Any:
    return of_pyspark(
        "StreamingQuery", name=name, id=name, runId=name, isActive=True, recentProgress=[report(0, 7)],
        lastProgress=report(0, 7), exception=lambda: None,
    )  # fmt: skip


def test_watch_finds_queries_and_sessions_by_their_variables(shell: InteractiveShell) -> None:
    assert "no variable holds a streaming query or a session of PySpark" in failure(shell, "%stream watch")
    words = shell.user_ns["words"] = a_query("word count")
    watched = run(shell, "%stream watch")
    assert [query.name for query in watched.queries] == ["word count"]
    shell.user_ns.update(joined=a_query("join"), number=7)
    assert "name what to watch, '%stream watch NAME', from words, joined" in failure(shell, "%stream watch")
    assert [query.name for query in run(shell, "%stream watch joined").queries] == ["join"]
    shell.user_ns["spark"] = of_pyspark("SparkSession", streams=SimpleNamespace(active=[words]))
    assert [query.name for query in run(shell, "%stream watch").queries] == ["word count"]  # the session has all
    assert "the variable 'number' holds an object of class int, not a streaming query" in failure(
        shell, "%stream watch number"
    )
    assert "unknown query or session 'word': did you mean 'words'?" in failure(shell, "%stream watch word")
    assert "%stream watch takes [NAME], not 2 words" in failure(shell, "%stream watch words joined")
    with provisionalcompleter():
        found = {each.text for each in shell.Completer.completions("%stream watch w", 15)}
    assert found == {"words"}
    assert list(candidates(["watch"], shell.user_ns))[:3] == ["words", "joined", "spark"]


def test_watch_takes_a_job_on_spark(shell: InteractiveShell, gate: threading.Semaphore) -> None:
    run(shell, CELL)
    assert [query.name for query in run(shell, "%stream watch counts").queries] == ["counts"]


def test_the_engine_is_in_help_and_completion(shell: InteractiveShell) -> None:
    assert "--engine" in str(shell.find_line_magic("stream").__doc__) + str(shell.find_cell_magic("stream").__doc__)
    with provisionalcompleter():
        line = "%%stream counts --engine "
        assert {each.text for each in shell.Completer.completions(line, len(line))} == {"kernel", "spark"}
    assert "local-cluster[2,1,1024]" in options_after(["counts", "--engine", "spark", "--master"])
    assert list(candidates(["run-on"], {}))[-2:] == ["kernel", "spark"]
    assert "local[2]" in candidates(["run-on", "spark"], {})
    assert not list(candidates(["run-on", "kernel"], {}))


def test_the_interval_of_batches_is_set_by_a_restart(shell: InteractiveShell, gate: threading.Semaphore) -> None:
    run(shell, CELL)
    told = str(run(shell, "%stream set counts checkpoint_interval=2s batch_size=100"))
    assert "counts: checkpoint_interval disabled → 2s" in told
    assert "counts: batch_size default → 100" in told
    gate.release(1_000)
    assert wb.job("counts").wait("120s") == "FINISHED"
    assert len(wb.job("counts").table()) == 500


def test_run_on_moves_a_job_to_the_other_engine(shell: InteractiveShell, gate: threading.Semaphore) -> None:
    on_spark = run(shell, CELL)
    gate.release(1_000)
    on_spark.wait("120s")
    here = run(shell, "%stream run-on counts kernel")
    assert (here.engine, here.wait("30s")) == ("kernel", "FINISHED")
    assert len(here.table()) == 500
    watched = run(shell, "%stream run-on counts spark local[2]")
    assert [query.name for query in watched.queries] == ["counts"]
    assert wb.job("counts").engine == "spark"
    assert "unknown engine 'flink'" in failure(shell, "%stream run-on counts flink")
