"""What is told of failures: the user's lines in every kind of function, and what jobs log."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.contract.base import Sink, Source, SourceReader
from workbench.operators.contract.base import Operator

N = {"n": pa.int64()}


def bad(*_: Any, **__: Any) -> Any:
    raise LookupError("what the user wrote")


def numbers() -> wb.Stream:
    return wb.Stream.from_table(pa.table({"n": [1, 2], "t": pa.array([0, 1], pa.timestamp("s"))}), event_time="t")


def generator(record: Any) -> Iterator[Any]:
    yield {"n": 1}
    bad()


async def coroutine(n: int) -> Any:
    bad()


class Timer(wb.functions.ProcessFunction):
    def process(self, record: Any, state: Any, ctx: Any) -> None:
        ctx.register_event_timer(0)

    def on_timer(self, time: int, state: Any, ctx: Any) -> None:
        bad()


class OwnReader(SourceReader):
    shares_event_time = True

    def splits(self) -> tuple[str, ...]:
        return ("all",)

    def poll(self, max_records: int) -> Any:
        return bad()

    def snapshot(self) -> Any:
        return {}


@dataclass(frozen=True)
class OwnSource(Source):
    schema = pa.schema(N)

    def create(self) -> SourceReader:
        return OwnReader()


class OwnWriter(Operator):
    def process(self, records: Any, port: int, out: Any) -> None:
        bad()


@dataclass(frozen=True)
class OwnSink(Sink):
    name: str = "own"

    def create(self, inputs: Any) -> Operator:
        return OwnWriter()


KINDS: dict[str, Callable[[], wb.Stream]] = {
    "map": lambda: numbers().map(lambda record: bad(), N),
    "flat_map": lambda: numbers().flat_map(generator, N),
    "map_batches": lambda: numbers().map_batches(bad, N),
    "reduce": lambda: numbers().select("n").with_columns(k=wb.lit(1)).key_by("k").reduce(bad),
    "timer": lambda: numbers().key_by("n").process(Timer(), N),
    "lookup": lambda: numbers().lookup_async(bad, key="n", schema={"m": pa.int64()}),
    "coroutine": lambda: numbers().lookup_async(coroutine, key="n", schema={"m": pa.int64()}),
    "generator": lambda: wb.Stream.from_generator(bad, pa.schema(N), limit=9),
    "source": lambda: wb.Stream.from_source(OwnSource()),
    "partitioner": lambda: numbers().partition_by(bad).map(lambda record: record, {"n": pa.int64()}),
    "windows": lambda: numbers().key_by("n").window(wb.tumbling("1s")).apply(lambda *_: bad(), {"m": pa.int64()}),
}


def failed(pipeline: wb.types.Pipeline, name: str = "told") -> tuple[wb.types.Job, wb.errors.JobError]:
    job = pipeline.run(name, restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError) as caught:
        job.wait("60s")
    return job, caught.value


def check(pipeline: wb.types.Pipeline) -> None:
    job, error = failed(pipeline)
    assert isinstance(error.__cause__, LookupError)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert frames[-1].name == "bad"
    assert [frame for frame in frames if "/workbench/" in frame.filename.replace("/tests/", "/")] == []
    assert all(frame.f_locals == {} for frame, _ in traceback.walk_tb(error.__cause__.__traceback__))
    for told in (str(error), str(job.status()["failure"]), job.recording().frames[-1].failure or ""):
        assert told.endswith('in bad\n    raise LookupError("what the user wrote")')


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_names_the_users_lines_and_is_raised_from_the_original(kind: str) -> None:
    check(KINDS[kind]().sink_to(wb.DiscardSink()))


@pytest.mark.parametrize("sink", [wb.CallbackSink(bad), OwnSink()], ids=["callback", "own"])
def test_the_failure_of_a_sink_does_too(sink: Any) -> None:
    check(numbers().sink_to(sink))


def test_a_dead_letter_has_the_users_lines() -> None:
    letters = numbers().map(lambda record: bad(), N, on_error="dead_letter").dead_letters().collect()
    assert letters.num_rows == 2
    text = letters["traceback"][0].as_py()
    assert text.endswith('in bad\n    raise LookupError("what the user wrote")')


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    ours = [record for record in caplog.records if record.name.startswith("workbench.")]
    return [record.getMessage() for record in ours if record.levelno == level]


def test_a_job_logs_its_start_savepoint_and_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "workbench")
    endless = wb.Stream.from_generator(
        lambda first, n: pa.record_batch({"n": pa.array(range(first, first + n))}), N, rate=100
    )
    job = endless.sink_to(wb.DiscardSink()).run("logged", checkpoint_dir=tmp_path)
    folder = job.savepoint("kept")
    job.stop()
    assert messages(caplog, logging.INFO) == [
        "job 'logged': runs", f"job 'logged': savepoint 'kept' is complete: {folder}", "job 'logged': ended (FINISHED)",
    ]  # fmt: skip
    assert messages(caplog, logging.WARNING) == []
    assert logging.getLogger().handlers == [
        handler for handler in logging.getLogger().handlers if "pytest" in type(handler).__module__
    ]


def test_restarts_and_dead_letters_are_counted_and_a_failure_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    def lost(record: Any) -> Any:
        raise OSError("postgresql://ann:pa55word@db.example is gone")

    letters = numbers().map(lambda record: bad(), N, on_error="dead_letter").sink_to(wb.DiscardSink())
    letters.run("letters").wait("60s")
    assert messages(caplog, logging.WARNING) == ["job 'letters': 2 records became dead letters"]
    caplog.clear()
    pipeline = numbers().map(lost, N).sink_to(wb.DiscardSink())
    job = pipeline.run("lost", restart=wb.restart.fixed_delay(4, "1ms"))
    with pytest.raises(wb.errors.JobError):
        job.wait("60s")
    first, *others = messages(caplog, logging.WARNING)
    assert first.startswith("job 'lost': restarts after a failure: table[0] failed: map function")
    assert first.endswith('is gone")')
    assert sum(int(each.split()[2].replace("restarts", "1")) for each in others) == 3
    (error,) = messages(caplog, logging.ERROR)
    assert error.startswith("job 'lost': failed: table[0] failed: map function")
    assert "in test_restarts_and_dead_letters_are_counted_and_a_failure_is_an_error.<locals>.lost" in error
    assert "pa55word" not in caplog.text


def test_a_handler_that_fails_does_not_end_the_job() -> None:
    class Hostile(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("a handler of the user's")

    log = logging.getLogger("workbench")
    handler = Hostile(logging.WARNING)
    log.addHandler(handler)
    try:
        letters = numbers().map(lambda record: bad(), N, on_error="dead_letter").sink_to(wb.DiscardSink())
        assert letters.run("hostile").wait("60s") == "FINISHED"
    finally:
        log.removeHandler(handler)
