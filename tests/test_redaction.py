"""Secrets in URLs: nothing that is shown or written down holds them."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.api.job_record import Cell
from workbench.dashboard.errands import Errands
from workbench.kernel.protocol import sentence
from workbench.redaction import redacted


def test_secrets_are_hidden() -> None:
    assert redacted("s3://key:se/cr@et@host/x") == "s3://***@host/x"
    assert redacted("http://host:8080/users/@me") == "http://host:8080/users/@me"
    assert redacted("https://ann@host/a?token=t&x=1&Api-Key=k") == "https://***@host/a?token=***&x=1&Api-Key=***"
    assert redacted("a: http://u:p@h and http://v:q@g.") == "a: http://***@h and http://***@g."
    assert redacted("nothing here: a@b, x=1, ?n=2") == "nothing here: a@b, x=1, ?n=2"
    assert redacted("no log at s3:/u:p@b/x, nor at C:/u@b") == "no log at s3:/***@b/x, nor at C:/u@b"  # made a path of


@pytest.mark.parametrize(
    "text",
    [
        'f"s3://{KEY}:{SECRET}@bucket/jobs?region=us-east-1"',
        'wb.found_jobs(f"s3://{user}@bucket", "ann@example")',
        "f's3://{os.environ[\"KEY\"]}:{keys.secret()!s}@bucket'",
        'f"s3://{KEY}:{SECRET}@bucket?secret_key={SECRET}&token={vault[0]}"',
        "f\"https://store/x?sig={os.environ['SIG']}&x=1\"",
    ],
)
def test_a_place_for_a_secret_is_none(text: str) -> None:
    assert redacted(text) == text
    cell = Cell(f"delays --checkpoint-dir {text}", text).without_secrets()
    assert (cell.body, cell.redacted) == (text, False)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("s3://{KEY}:pa55@bucket", "s3://***@bucket"),
        ("s3://ann:{SECRET}@bucket", "s3://***@bucket"),
        ("s3://{KEY}:pa{SECRET}@bucket", "s3://***@bucket"),
        ("s3://{KEY}:{SECRET}@55@bucket", "s3://***@bucket"),
        ("s3://{{pa55}}:{{pa55}}@bucket", "s3://***@bucket"),  # an f-string takes these as braces
        ("s3://{ann:pa55}@bucket", "s3://***@bucket"),
        ("s3://{'pa55'}:{'pa55'}@bucket", "s3://***@bucket"),
        ("https://store/x?token={pa55-4b1d-11}&x=1", "https://store/x?token=***&x=1"),
        ("https://store/x?token={T}pa55&x=1", "https://store/x?token=***&x=1"),
    ],
)
def test_what_is_more_than_a_place_for_a_secret_is_hidden(text: str, hidden: str) -> None:
    assert redacted(text) == hidden


SOURCE = """import workbench as wb, pyarrow as pa
numbers = wb.Stream.from_table(pa.table({'n': [1]}))
numbers.filter('nn > 1').sink_to(wb.DiscardSink()).run('x')  # as s3://key:pa55@bucket/x
"""


def test_errors_and_logs_show_no_secrets(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1]}))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: wb.History.open("s3://key:pa55@bucket/x"),
        lambda: wb.Stream.from_files("s3://key:pa55@bucket/x"),
        lambda: wb.Recording.open("s3://key:pa55@bucket/x"),
        lambda: numbers.sink_to(wb.ParquetSink("s3://key:pa55@bucket/x")),
    )
    for attempt in attempts:
        with pytest.raises(wb.WorkbenchError, match=r"\*\*\*@bucket") as caught:
            attempt()
        assert "pa55" not in str(caught.value) + repr(caught.value) + caught.value.message

    (tmp_path / "program.py").write_text(SOURCE)
    with pytest.raises(wb.WorkbenchError, match=r"program.py, line 3: .*s3://\*\*\*@bucket") as caught:
        runpy.run_path(str(tmp_path / "program.py"))
    assert "pa55" not in str(caught.value)

    def fails(rows: pa.RecordBatch) -> pa.RecordBatch:
        raise OSError("no access to s3://key:pa55@bucket/x")

    job = numbers.map_batches(fails).sink_to(wb.DiscardSink()).run("fails", restart=wb.no_restart())
    with pytest.raises(wb.JobError) as failed:
        job.wait("60s")
    recording = job.recording(tmp_path / "x.recording")
    frames = repr([asdict(frame) for frame in recording.frames])
    assert "s3://***@bucket/x" in frames
    assert "pa55" not in frames + str(failed.value) + repr(job.status()) + repr(recording.events())
    assert "pa55" not in job.report(tmp_path / "x.html").read_text()


def test_what_others_say_of_an_error_shows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError("no access to s3://key:pa55@bucket/x")

    def fails(*_: object) -> None:
        raise error

    job = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10).sink_to(wb.DiscardSink()).run("abandoned")
    with monkeypatch.context() as patched:
        patched.setattr(job._master.storage, "write", fails)
        job.checkpoint()
        until(lambda: any(c.reason for c in job._master.coordinator.history))
    failed = [c for c in job._master.coordinator.history if c.reason]
    assert "could not be written: no access to s3://***@bucket/x" in failed[0].reason
    job._master.call(lambda: job._master.abandon(error))
    with pytest.raises(wb.JobError, match=r"s3://\*\*\*@bucket"):
        job.wait("60s")
    frame = job.recorder.latest()
    assert frame is not None
    assert frame.failure == "no access to s3://***@bucket/x"
    assert "OSError: no access to s3://***@bucket/x" in frame.events[-2].text
    assert "pa55" not in repr(frame) + repr(job.checkpoints())

    heard: list[str | None] = []
    errands = Errands()
    errands.run("look", fails, lambda result, problem: heard.append(problem))
    while not heard:
        errands.settle()
    assert heard == [sentence(error)] == ["OSError: no access to s3://***@bucket/x"]
