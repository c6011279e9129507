"""User functions that raise errors which are hard to display: the job continues if it may; otherwise the error names
the function and the record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb

GOOD = [0, 1, 2, 4, 5]
POISON = 3
OUT = {"n": pa.int64()}
BOUND = 3_000
"""Characters of a message with its record, function and line."""


class NoTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class NumberError(Exception):
    def __str__(self) -> Any:
        return 3

    __repr__ = __str__


class HugeError(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000

    __repr__ = __str__


class StrangeError(Exception):
    def __str__(self) -> str:
        return "\x00\x1b[2J\ud800 s3://key:pa55@bucket"

    __repr__ = __str__


class QuitsError(BaseException):
    pass


def circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


HOSTILE: dict[str, tuple[Callable[[], BaseException], str]] = {
    "no text": (NoTextError, "NoTextError: its __str__ raised ValueError"),
    "no string": (NumberError, "NumberError: its __str__ raised TypeError"),
    "huge": (HugeError, "HugeError: xxxx"),
    "strange": (StrangeError, r"StrangeError: \x00\x1b[2J\ud800 s3://***@bucket"),
    "empty": (MemoryError, "MemoryError (no message)"),
    "group": (lambda: ExceptionGroup("all", [KeyError("k")]), "all (1 sub-exception), the first: KeyError: 'k'"),
    "circle": (circle, "ValueError: first"),
    "exit": (lambda: SystemExit(3), "SystemExit(3) was raised, which ends programs and not jobs"),
    "base": (QuitsError, "QuitsError() was raised, which ends programs and not jobs"),
}
Error = Callable[[], BaseException]


def numbers() -> wb.Stream:
    return wb.Stream.from_table(pa.table({"n": range(6)}))


def mapped(error: Error, **policy: Any) -> wb.Stream:
    def convert(record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == POISON:
            raise error()
        return record

    return numbers().map(convert, OUT, **policy)


def mapped_columns(error: Error, **policy: Any) -> wb.Stream:
    def convert(n: int) -> int:
        if n == POISON:
            raise error()
        return n

    return numbers().map(convert, OUT, columns="n", **policy)


def filtered(error: Error, **policy: Any) -> wb.Stream:
    def convert(n: int) -> bool:
        if n == POISON:
            raise error()
        return True

    return numbers().filter(convert, columns="n", **policy)


def flattened(error: Error, **policy: Any) -> wb.Stream:
    def convert(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield record
        if record["n"] == POISON:
            raise error()

    return numbers().flat_map(convert, OUT, **policy)


def in_batches(error: Error, **policy: Any) -> wb.Stream:
    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        if POISON in batch.column("n").to_pylist():
            raise error()
        return batch

    return numbers().map_batches(convert, OUT, **policy)


def reduced(error: Error, **policy: Any) -> wb.Stream:
    def convert(held: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == POISON:
            raise error()
        return record

    table = pa.table({"n": range(6), "k": ["a"] * 6})
    return wb.Stream.from_table(table).key_by("k").reduce(convert, **policy)


def processed(error: Error, **policy: Any) -> wb.Stream:
    def convert(record: dict[str, Any], state: Any) -> dict[str, Any]:
        if record["n"] == POISON:
            raise error()
        return record

    return numbers().key_by("n").process(convert, OUT, **policy)


@pytest.mark.parametrize("build", [mapped, mapped_columns, filtered, flattened, in_batches, reduced, processed])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_record_becomes_a_dead_letter_and_the_others_go_on(build: Callable[..., wb.Stream], kind: str) -> None:
    error, told = HOSTILE[kind]
    stream = build(error, on_error="dead_letter")
    pipeline = stream.sink_to(wb.TableSink("good")) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("goes-on", restart=wb.restart.no_restart())
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("good")["n"].to_pylist()) == GOOD
    [letter] = job.table("bad").to_pylist()
    assert told in letter["error"]
    assert "convert" in letter["error"]
    assert f"'n': {POISON}" in letter["error"] + letter["record"].replace('"', "'")
    assert len(letter["error"]) < BOUND
    assert letter["error"].isprintable()


@pytest.mark.parametrize("build", [mapped, mapped_columns, filtered, flattened, in_batches, reduced, processed])
@pytest.mark.parametrize("kind", HOSTILE)
def test_without_dead_letters_the_job_fails_with_function_record_and_line(
    build: Callable[..., wb.Stream], kind: str
) -> None:
    error, told = HOSTILE[kind]
    check_failure(build(error).sink_to(wb.DiscardSink()), told, "convert", "'n': ", "test_hostile_functions.py, line ")


def check_failure(pipeline: wb.types.Pipeline, *parts: str) -> None:
    """It fails with one bounded sentence with these parts, and everything that is told of it holds them too. Below the
    sentence are at most the lines of the user's code."""
    job = pipeline.run("fails", restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError) as failed:
        job.wait("60s")
    frame = job.recorder.latest()
    assert frame is not None
    failures = [event.text for event in frame.events if event.kind == "failure"]
    assert failures
    told = [str(failed.value), str(job.status()["failure"]), frame.failure, *failures]
    for text in told:
        assert isinstance(text, str)
        assert [part for part in parts if part not in text] == []
        sentence, *trace = text.split("\n")
        assert [part for part in parts if part not in sentence] == []
        assert len(sentence) < BOUND
        assert all(line.isprintable() for line in (sentence, *trace))
        assert len("\n".join(trace).encode()) <= 4_000
        assert "pa55" not in text


class Hook:
    """Has a class of the user's raise in one of its methods."""

    def __init__(self, error: Error) -> None:
        self.raises = error

    def __call__(self, *_: Any) -> Any:
        raise self.raises()


def sinks(error: Error) -> wb.types.Pipeline:
    def convert(batch: pa.RecordBatch) -> None:
        raise error()

    return numbers().sink_to(wb.CallbackSink(convert))


def generates(error: Error) -> wb.types.Pipeline:
    def convert(offset: int, count: int) -> pa.RecordBatch:
        raise error()

    return wb.Stream.from_generator(convert, pa.schema({"n": pa.int64()}), limit=6).sink_to(wb.DiscardSink())


def partitions(error: Error) -> wb.types.Pipeline:
    def convert(batch: pa.RecordBatch) -> Any:
        raise error()

    return numbers().partition_by(convert).map(lambda record: record, OUT).sink_to(wb.DiscardSink())


def looks_up(error: Error) -> wb.types.Pipeline:
    def convert(n: int) -> Any:
        raise error()

    return numbers().lookup_async(convert, key="n", schema={"m": pa.int64()}).sink_to(wb.DiscardSink())


def fires(error: Error) -> wb.types.Pipeline:
    class convert(wb.functions.ProcessFunction):  # noqa: N801  found in the messages by this name, as the functions are
        def process(self, record: Any, state: Any, ctx: Any) -> None:
            ctx.register_event_timer(0)

        def on_timer(self, time: int, state: Any, ctx: Any) -> None:
            raise error()

    return timed().key_by("n").process(convert(), OUT).sink_to(wb.DiscardSink())


def timed(**options: Any) -> wb.Stream:
    table = pa.table({"n": range(6), "t": pa.array(range(6), pa.timestamp("s"))})
    return wb.Stream.from_table(table, event_time="t", **options)


def applies(error: Error) -> wb.types.Pipeline:
    def convert(key: Any, window: Any, rows: pa.Table) -> Iterator[Any]:
        yield {"m": 1}
        raise error()

    return timed().key_by("n").window(wb.tumbling("1s")).apply(convert, {"m": pa.int64()}).sink_to(wb.DiscardSink())


def triggers(error: Error) -> wb.types.Pipeline:
    class convert(wb.triggers.Trigger):  # noqa: N801
        def on_record(self, time: int, window: Any, ctx: Any) -> Any:
            raise error()

    windows = timed().key_by("n").window(wb.tumbling("1s"), trigger=convert())
    return windows.aggregate(c=wb.count()).sink_to(wb.DiscardSink())


def assigns(error: Error) -> wb.types.Pipeline:
    class convert(wb.windows.WindowAssigner):  # noqa: N801
        def windows(self, time_us: int) -> Iterator[tuple[int, int]]:
            yield 0, 1
            raise error()

    return timed().key_by("n").window(convert()).aggregate(c=wb.count()).sink_to(wb.DiscardSink())


def evicts(error: Error) -> wb.types.Pipeline:
    class convert(wb.windows.Evictor):  # noqa: N801
        def keep(self, records: Any, times: Any) -> Any:
            raise error()

    windows = timed().key_by("n").window(wb.tumbling("1s"), evictor=convert())
    return windows.aggregate(c=wb.count()).sink_to(wb.DiscardSink())


def watermarks(error: Error) -> wb.types.Pipeline:
    class convert(wb.watermarks.WatermarkGenerator):  # noqa: N801
        def on_batch(self, batch: Any, times: Any) -> Any:
            raise error()

    return timed(watermarks=convert).sink_to(wb.DiscardSink())


USERS = [
    sinks,
    generates,
    partitions,
    looks_up,
    fires,
    applies,
    triggers,
    assigns,
    evicts,
    watermarks,
]


@pytest.mark.parametrize("kind", ["no text", "huge", "strange", "empty", "circle"])
@pytest.mark.parametrize("build", USERS)
def test_whatever_a_user_gives_is_named_when_it_fails(build: Callable[[Error], wb.types.Pipeline], kind: str) -> None:
    error, told = HOSTILE[kind]
    check_failure(build(error), told, "convert")


@pytest.mark.parametrize("build", USERS)
def test_what_would_end_the_program_fails_the_job(build: Callable[[Error], wb.types.Pipeline]) -> None:
    check_failure(build(lambda: SystemExit(3)), "SystemExit", "convert")


def test_a_stepped_job_fails_likewise_and_the_program_goes_on() -> None:
    def leave(batch: pa.RecordBatch) -> None:
        raise SystemExit(3)

    def leave_task(self: Any, *_: Any) -> None:
        raise SystemExit(3)

    for hostile in (leave, Hook(NoTextError)):
        job = (
            numbers()
            .sink_to(wb.CallbackSink(hostile))
            .run("stepped", driver="stepping", restart=wb.restart.no_restart())
        )
        with contextlib.suppress(wb.errors.JobError):
            for _ in range(200):
                job.stepper.step()
        assert job.state == "FAILED"


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_function_that_cannot_be_opened_is_named(kind: str) -> None:
    error, told = HOSTILE[kind]

    class Opens(wb.functions.ProcessFunction):
        def open(self) -> None:
            raise error()

    with pytest.raises(wb.errors.WorkbenchError) as failed:
        numbers().key_by("n").process(Opens(), OUT).sink_to(wb.DiscardSink()).run(
            "opens", restart=wb.restart.no_restart()
        )
    assert told in str(failed.value)
    assert "process function 'Opens' " in str(failed.value)
    assert "in open()" in str(failed.value)


class Evil:
    """A value that fits no column and cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError

    __index__ = __float__ = __iter__ = __len__ = __eq__ = __hash__ = __str__ = __repr__  # type: ignore[assignment]


@pytest.mark.parametrize("given", [Evil(), {"n": Evil()}, [Evil()], [{"n": Evil()}], {"n": 1, "m": Evil()}])
@pytest.mark.parametrize("operator", ["map", "flat_map"])
def test_what_a_function_gives_may_be_hostile_as_well(given: Any, operator: str) -> None:
    def convert(record: dict[str, Any]) -> Any:
        good: Any = record if operator == "map" else [record]
        return given if record["n"] == POISON else good

    stream = getattr(numbers(), operator)(convert, OUT, on_error="dead_letter")
    pipeline = stream.sink_to(wb.TableSink("good")) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("goes-on", restart=wb.restart.no_restart())
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("good")["n"].to_pylist()) == GOOD
    [letter] = job.table("bad").to_pylist()
    assert "convert" in letter["error"]
    assert letter["record"] == '{"n": 3}'


def test_a_record_that_python_has_no_form_for_becomes_a_dead_letter() -> None:
    times = pa.array([0, 2**62, 1], pa.int64()).cast(pa.timestamp("us"))
    table = pa.table({"n": [1, 2, 3], "t": times, "text": ["a", "b" * 1_000_000, "c"]})

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        if np.any(batch.column("n").to_numpy() == 2):
            raise ValueError("two")
        return batch.select(["n"])

    stream = wb.Stream.from_table(table).map_batches(convert, OUT, on_error="dead_letter")
    pipeline = stream.sink_to(wb.TableSink("good")) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("goes-on", restart=wb.restart.no_restart())
    assert job.wait("60s") == "FINISHED"
    assert job.table("good")["n"].to_pylist() == [1, 3]
    [letter] = job.table("bad").to_pylist()
    assert '"t": "148108-07-06 14:00:27.387904"' in letter["record"]
    assert "raised ValueError: two on a batch of 1 records, the first of which is [{'n': 2" in letter["error"]
    assert len(letter["error"]) < BOUND
