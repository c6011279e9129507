"""A job that replaces a running one: every reason to refuse it is reported before the running one is stopped."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from waiting import until

import workbench as wb
from workbench.api.job import registry

BODY = "\nimport pyarrow as pa, workbench as wb\nwb.Stream.from_table(pa.table({'n': list(range(100_000))}), rate=200)"
COUNTS = BODY + ".key_by('n').aggregate(m=wb.count()).uid('counts')"


def run(shell: InteractiveShell, line: str, body: str = BODY) -> str:
    """What `%%stream` with this line says."""
    with capture_output() as captured:
        shell.run_cell(f"%%stream replaced {line}{body}")
    return captured.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--restore nothing", "CheckpointError: there is no savepoint 'nothing' in 'kept'"),
        ("--resume --checkpoint-interval soon", "SettingError: checkpoint_interval is 'soon'"),
        ("--resume --restart often", "SettingError: "),
    ],
)
@pytest.mark.parametrize("interval", ["50ms", "disabled"])
def test_a_job_runs_on_when_its_replacement_is_refused(
    shell: InteractiveShell, interval: str, options: str, sentence: str
) -> None:
    run(shell, f"--checkpoint-dir kept --checkpoint-interval {interval}")
    job = wb.job("replaced")
    if interval == "50ms":
        until(job.checkpoints)
    assert sentence in run(shell, f"--checkpoint-dir kept --replace {options}")
    assert wb.job("replaced") is job
    assert job.state == "RUNNING"


@pytest.mark.parametrize(
    ("options", "body", "sentence"),
    [
        ("--driver steping", BODY, "SettingError: unknown driver 'steping': did you mean 'stepping'?"),
        ("--speed 600x", BODY, "SettingError: speed applies only to a replayed history"),
        ("--restore one", BODY, "CheckpointError: --restore also needs a --checkpoint-dir"),
        ("-p 40000", BODY, "PlanError: "),
        ("", BODY + ".uid('twice').filter('n > 1').uid('twice')", "PlanError: "),
        ("", BODY + ".sink_to(wb.ParquetSink('rows'))", "CommittedRowsError: "),
        ("--checkpoint-dir kept --resume", COUNTS, "CheckpointError: "),
        (
            "--checkpoint-dir kept --restore half",
            COUNTS,
            "CheckpointError: savepoints/half of job 'replaced' has state",
        ),
    ],
)
def test_a_job_runs_on_when_its_replacement_cannot_run(
    shell: InteractiveShell, options: str, body: str, sentence: str
) -> None:
    rows = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.ParquetSink("rows")).run("rows")
    rows.wait("60s")
    run(shell, "--checkpoint-dir kept", COUNTS.replace("counts", "other"))
    job = wb.job("replaced")
    job.savepoint("half")
    assert sentence in run(shell, f"--replace {options}", body)
    assert wb.job("replaced") is job
    assert job.state == "RUNNING"


def test_a_job_that_is_replaced_is_gone_on_with(shell: InteractiveShell) -> None:
    run(shell, "--checkpoint-dir kept --checkpoint-interval 50ms")
    first = wb.job("replaced")
    folder = first.savepoint("kept-one")
    run(shell, "--checkpoint-dir kept --replace --resume")
    second = wb.job("replaced")
    assert (first.state, second.state) == ("FINISHED", "RUNNING")
    run(shell, "--checkpoint-dir kept --replace --restore kept-one")
    third = wb.job("replaced")
    assert (second.state, third.state) == ("FINISHED", "RUNNING")
    assert run(shell, f"--checkpoint-dir other --replace --restore {folder}").count("Error") == 0
    assert (third.state, wb.job("replaced").state) == ("FINISHED", "RUNNING")


def test_a_directory_that_was_used_is_told_of_in_the_words_of_the_magic(shell: InteractiveShell) -> None:
    run(shell, "--checkpoint-dir kept")
    job = wb.job("replaced")
    job.stop()
    job.wait("60s")
    said = run(shell, "--checkpoint-dir kept")
    assert "stopped before the end of its input: continue it with --resume, start over with --replace" in said
    assert "=True" not in said
    assert wb.job("replaced") is job


def counted(name: str = "n", **options: object) -> wb.types.Job:
    stream = wb.Stream.from_table(pa.table({name: list(range(100_000))}), rate=2_000)
    return stream.sink_to(wb.TableSink("rows")).run("replaced", **options)


def test_a_run_replaces_a_job() -> None:
    first = counted()
    with pytest.raises(
        wb.errors.JobError, match=r"stop it first \(job.stop\(\)\), let this run stop it \(replace=True\)"
    ):
        counted()
    second = counted(replace=True)
    assert (first.state, second.state) == ("FINISHED", "RUNNING")
    assert wb.job("replaced") is second
    second.cancel()
    assert counted(replace=True).state == "RUNNING"  # an ended one is no obstacle


@pytest.mark.parametrize(
    "options",
    [
        {"parallelism": 0},
        {"parallelism": 40_000},
        {"speed": "600x"},
        {"checkpoint_dir": "kept", "restore": "nothing"},
        {"replace": "yes"},
    ],
    ids=str,
)
def test_a_job_runs_on_when_the_run_that_replaces_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    monkeypatch.chdir(tmp_path)
    first = counted(checkpoint_dir="kept", checkpoint_interval="disabled")
    with pytest.raises(wb.errors.WorkbenchError):
        counted(**{"replace": True, **options})
    assert first.state == "RUNNING"
    assert wb.job("replaced") is first
    again = counted(checkpoint_dir="kept", resume=True, replace=True)
    assert (first.state, again.state) == ("FINISHED", "RUNNING")
    first_rows = first.table("rows").num_rows
    assert again.table("rows")["n"].to_pylist()[:first_rows] == list(range(first_rows))  # it goes on from there


def test_a_job_that_does_not_stop_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REPLACE_PATIENCE_S", 0.05)
    entered, opened = threading.Event(), threading.Event()

    def hold(batch: pa.RecordBatch) -> None:
        entered.set()
        opened.wait(60)

    stream = wb.Stream.from_table(pa.table({"n": list(range(100_000))}), rate=2_000)
    first = stream.sink_to(wb.CallbackSink(hold)).run("replaced")
    assert entered.wait(60)
    with pytest.raises(
        wb.errors.JobError, match=r"is still RUNNING, and will end as soon as it can.*; job.cancel\(\) ends it without"
    ):
        counted(replace=True)
    assert wb.job("replaced") is first
    opened.set()
    assert first.wait("60s") == "FINISHED"
