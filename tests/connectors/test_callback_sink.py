"""CallbackSink, DiscardSink and PrintSink: sinks without stored data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sink_job import SCHEMA, NoOutput, rows

import workbench as wb
from workbench.connectors.live.callback_sink import CallbackSink, DiscardSink
from workbench.connectors.live.print_sink import PrintSink
from workbench.elements import Int64s, Records
from workbench.errors import RecordError, SettingError
from workbench.operators.contract.base import OperatorContext


def test_the_function_gets_every_batch() -> None:
    seen: list[pa.RecordBatch] = []
    sink = CallbackSink(seen.append, name="collect")
    logic = sink.create(SCHEMA)
    logic.process(rows([1, 2]), 0, NoOutput())
    logic.process(rows([3]), 0, NoOutput())
    assert [batch.column("value").to_pylist() for batch in seen] == [[1, 2], [3]]
    assert (sink.name, sink.guarantee, sink.describe()) == ("collect", "at-least-once", "append")


def test_the_function_gets_event_times_where_it_asks_for_them() -> None:
    seen: list[tuple[list[int], list[int] | None]] = []

    def keep(batch: pa.RecordBatch, times: Int64s | None) -> None:
        seen.append((batch.column("value").to_pylist(), None if times is None else times.tolist()))

    logic = CallbackSink(keep, event_times=True).create(SCHEMA)
    logic.process(Records(rows([1, 2]).batch, np.array([10, 20])), 0, NoOutput())
    logic.process(Records(rows([3]).batch), 0, NoOutput())
    assert seen == [([1, 2], [10, 20]), ([3], None)]


def test_a_failing_function_is_named_with_its_cause() -> None:
    def divide(batch: pa.RecordBatch) -> None:
        raise ZeroDivisionError("division by zero")

    with pytest.raises(
        RecordError, match=r"'divide' of the sink 'callback' failed on a batch of 2 rows: ZeroDivisionError"
    ) as caught:
        CallbackSink(divide).create(SCHEMA).process(rows([1, 2]), 0, NoOutput())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_discard() -> None:
    sink = DiscardSink()
    logic = sink.create(SCHEMA)
    logic.process(rows([1]), 0, NoOutput())
    assert logic.snapshot(1) == {}
    assert sink.guarantee == "exactly-once"


def printed(sink_limit: int | None, batches: list[list[int]], subtask: int = 0) -> str:
    texts: list[str] = []
    logic = PrintSink(limit=sink_limit, write=texts.append).create(SCHEMA)
    logic.open(OperatorContext(subtask=subtask))
    for batch in batches:
        logic.process(rows(batch), 0, NoOutput())
    return "".join(texts)


def test_rows_carry_the_number_of_their_subtask() -> None:
    assert printed(None, [[1, 8]], subtask=1) == "2> key=1, value=1\n2> key=1, value=8\n"


@pytest.mark.parametrize("batches", [[[1, 2, 3]], [[1], [2], [3], [4]], [[1, 2], [3], [4, 5]]])
def test_the_limit_is_kept_and_said_once(batches: list[list[int]]) -> None:
    assert printed(2, batches) == (
        "1> key=1, value=1\n1> key=2, value=2\n1> ... further rows are not printed (limit=2)\n"
    )


def test_exactly_the_limit_hides_nothing() -> None:
    assert printed(2, [[1, 2]]) == "1> key=1, value=1\n1> key=2, value=2\n"


def test_standard_output_is_that_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    logic = PrintSink().create(SCHEMA)
    logic.open(OperatorContext())
    logic.process(rows([5]), 0, NoOutput())
    assert capsys.readouterr().out == "1> key=5, value=5\n"


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(SettingError, match="limit is -1"):
        PrintSink(limit=-1)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(SettingError, match="CallbackSink got 'print'"):
        CallbackSink("print")  # type: ignore[arg-type]


def test_after_a_failure_rows_come_again_and_none_is_missing() -> None:
    seen: list[int] = []

    def take(batch: pa.RecordBatch) -> None:
        before = len(seen)
        seen.extend(batch["n"].to_pylist())
        if before < 50 <= len(seen):
            raise ConnectionError("gone")

    numbers = wb.Stream.from_table(pa.table({"n": range(100)})).with_parallelism(1)
    job = numbers.sink_to(wb.CallbackSink(take)).run(
        "again", buffer_size=10, checkpoint_interval="disabled", restart=wb.restart.fixed_delay(1, "1ms")
    )
    assert job.wait("60s") == "FINISHED"
    first = seen.index(0, 1)
    assert first >= 50
    assert (seen[:first], seen[first:]) == (list(range(first)), list(range(100)))
