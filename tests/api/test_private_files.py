"""Who can read what a job writes: the owner alone, except for the output of sinks, and nobody finds a secret in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Sink, Source
from workbench.spark.jobs.savepoints import copy_directory

SECRET = "s3cr3t-of-ours"
COLUMNS = {"n": pa.int64()}
ROWS = pa.table({"k": [n % 3 for n in range(1_000)], "n": range(1_000)})
CLOSED = "127.0.0.1:1"


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Everything that is not told otherwise can be read and written by all."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> set[tuple[str, int]]:
    """The modes of a folder and of all that is in it, with their kind."""
    return {
        ("folder" if path.is_dir() else "file", path.stat().st_mode & 0o777) for path in (folder, *folder.rglob("*"))
    }


PRIVATE = {("folder", 0o700), ("file", 0o600)}


def test_a_jobs_files_are_its_owners_and_the_output_of_sinks_is_not(no_umask: None, tmp_path: Path) -> None:
    counts = wb.Stream.from_table(ROWS).key_by("k").aggregate(n=wb.count())
    pipeline = (
        counts.sink_to(wb.TableSink("counts"))
        + counts.sink_to(wb.ParquetSink(tmp_path / "shown" / "parquet"))
        + counts.sink_to(wb.FileSink(tmp_path / "shown" / "csv", format="csv"))
    )
    job: Any = pipeline.run("private", checkpoint_dir=tmp_path / "above" / "checkpoints", checkpoint_interval="50ms")
    assert job.wait("60s") == "FINISHED"
    job.recording(tmp_path / "run.recording")
    job.report(tmp_path / "run.html")
    assert modes(tmp_path / "above" / "checkpoints") == PRIVATE
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("run.*")} == {
        "run.recording": 0o600,
        "run.html": 0o600,
    }
    assert modes(tmp_path / "shown") == {("folder", 0o777), ("file", 0o666)}
    assert (tmp_path / "above").stat().st_mode & 0o777 == 0o777  # which may be for other things, too


def test_a_savepoint_is_its_owners(no_umask: None, tmp_path: Path) -> None:
    source = wb.Stream.from_table(ROWS, rate=100)
    job: Any = source.sink_to(wb.TableSink("rows")).run("kept", checkpoint_dir=tmp_path / "c")
    job.savepoint("monday")
    job.cancel()
    assert modes(tmp_path / "c") == PRIVATE
    assert list((tmp_path / "c").rglob("*monday*"))


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    folder.chmod(0o755)
    job = wb.Stream.from_table(ROWS).sink_to(wb.TableSink("rows")).run("there", checkpoint_dir=folder)
    job.wait("60s")
    assert folder.stat().st_mode & 0o777 == 0o755
    assert set().union(*(modes(each) for each in folder.iterdir())) == PRIVATE


def test_a_savepoint_on_spark_has_no_plan_and_no_modes_of_others(tmp_path: Path) -> None:
    """Earlier versions wrote the plan, with its secrets, into the directory."""
    root = tmp_path / "c"
    (root / "spark" / "state").mkdir(parents=True)
    (root / "spark" / "state" / "1.changelog").write_text("state")
    (root / "plan-0123456789abcdef.bin").write_text(SECRET)
    copy_directory(root, root / "savepoints" / "monday")
    copied = root / "savepoints" / "monday"
    assert [path.name for path in copied.rglob("*") if path.is_file()] == ["1.changelog"]
    assert modes(root / "savepoints") == PRIVATE


# secrets -------------------------------------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[], Source]] = {
    "kafka": lambda: wb.KafkaSource(
        CLOSED, "t", COLUMNS, options={
            "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ann",
            "sasl.password": SECRET, "ssl.key.password": SECRET,
        }
    ),
    "redis": lambda: wb.RedisSource(f"redis://ann:{SECRET}@{CLOSED}", "s", COLUMNS),
    "nats with a password": lambda: wb.NatsSource(f"nats://ann:{SECRET}@{CLOSED}", "s", COLUMNS),
    "nats with a token": lambda: wb.NatsSource(f"nats://{SECRET}@{CLOSED}", "s", COLUMNS),
    "mqtt": lambda: wb.MqttSource(f"mqtt://ann:{SECRET}@{CLOSED}", topic="t", columns=COLUMNS),
    "events": lambda: wb.ServerEventSource(
        f"http://ann:{SECRET}@{CLOSED}/a?api_key={SECRET}", COLUMNS, headers={"Authorization": f"Bearer {SECRET}"}
    ),
    "web socket": lambda: wb.WebSocketSource(
        f"ws://{CLOSED}/?token={SECRET}", COLUMNS, headers={"X-API-Key": SECRET},
        subscribe=[f'{{"op": "login", "password": "{SECRET}"}}'],
    ),
    "postgresql": lambda: wb.SqlSource(
        f"postgresql://ann:{SECRET}@{CLOSED}/db?sslpassword={SECRET}", "t", {"id": pa.int64()}
    ),
}  # fmt: skip
SINKS: dict[str, Callable[[], Sink]] = {
    "kafka": lambda: wb.KafkaSink(CLOSED, "t", options={"sasl.password": SECRET, "ssl.key.password": SECRET}),
    "redis": lambda: wb.RedisSink(f"redis://ann:{SECRET}@{CLOSED}", "s"),
    "nats": lambda: wb.NatsSink(f"nats://{SECRET}@{CLOSED}", "s", "s.a"),
    "postgresql": lambda: wb.SqlSink(f"postgresql://ann:{SECRET}@{CLOSED}/db?sslpassword={SECRET}", "t"),
}


def check_no_secret(folder: Path, *texts: str) -> None:
    """No file below a folder and no text has the secret; there are files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert [text for text in texts if SECRET in text] == []


def test_no_source_leaves_its_secret_anywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All of them look for servers that are not there, and one has rows, some of which are dead letters."""
    rows = wb.Stream.from_table(ROWS, rate=500)
    halves = rows.map(lambda row: {"n": 10 // (row["n"] % 2)}, COLUMNS, on_error="dead_letter")
    whole = halves.sink_to(wb.TableSink("rows")) + halves.dead_letters().sink_to(wb.TableSink("dead"))
    for name, made in SOURCES.items():
        whole = whole + wb.Stream.from_source(made()).uid(name).sink_to(wb.DiscardSink())
    job: Any = whole.run("secret", checkpoint_dir=tmp_path / "c", checkpoint_interval="50ms")
    until(lambda: len(job.checkpoints()) > 1 and len(job.table("rows")) > 10)
    told = [repr(job), repr(job.status()), repr(whole.explain())]
    job.savepoint("monday")
    job.recording(tmp_path / "run.recording")
    job.report(tmp_path / "run.html")
    recorded = wb.Recording.open(tmp_path / "run.recording")
    told.extend((repr(recorded.frames), repr(recorded.events())))
    job.cancel()
    check_no_secret(tmp_path, *told, caplog.text)


@pytest.mark.parametrize("name", SINKS)
def test_no_sink_leaves_its_secret_anywhere(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(SINKS[name]())
    told = [repr(pipeline.explain())]

    def run() -> None:
        job: Any = pipeline.run(f"to {name}".replace(" ", "-"), checkpoint_dir=tmp_path / "c")
        until(lambda: job.over or bool(job.status()))
        told.append(repr(job.status()))
        job.recording(tmp_path / "run.recording")
        job.cancel()

    try:
        run()
    except wb.errors.WorkbenchError as error:
        told.append(str(error))
    check_no_secret(tmp_path, *told, caplog.text)
