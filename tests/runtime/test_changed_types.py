"""A savepoint is restored by a program whose columns have other types: the refusal names the column as the user wrote
it, with both types, and does not speak of damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb

T = pa.array(range(0, 100_000, 1_000), pa.timestamp("us", "UTC"))
ORDERS = pa.table({"shop": [str(n % 3) for n in range(100)], "cents": range(100), "t": T})


def orders(types: dict[str, pa.DataType], name: str = "orders") -> wb.Stream:
    """Slow ones, so that windows are open when the savepoint is taken; a column of another type holds nothing."""
    columns = {
        column: pa.nulls(100, types[column]) if column in types else ORDERS[column] for column in ORDERS.schema.names
    }
    return wb.Stream.from_table(pa.table(columns), event_time="t", rate=50).uid(name)


def joined(stream: wb.Stream) -> wb.Stream:
    other = orders({}, "others").select("shop", other="cents")
    return stream.join(other, on="shop", between=("-1ms", "1ms"))


JOBS: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "aggregate": lambda stream: stream.key_by("shop").aggregate(total=wb.sum("cents")),
    "window": lambda stream: stream.key_by("shop").window(wb.tumbling("1h")).aggregate(total=wb.mean("cents")),
    "distinct": lambda stream: stream.key_by("cents").window(wb.tumbling("1h")).aggregate(n=wb.count_distinct("shop")),
    "keys": lambda stream: stream.key_by("cents").aggregate(n=wb.count("shop")),
    "reduce": lambda stream: stream.key_by("cents").reduce(lambda held, new: new),
    "join": joined,
}
DOUBLE, DATE, TEXT = {"cents": pa.float64()}, {"shop": pa.timestamp("us")}, {"cents": pa.string()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    def folder(name: str) -> str:
        pipeline = JOBS[name](orders({})).uid("op").sink_to(wb.DiscardSink())
        job = pipeline.run("typed", checkpoint_dir=tmp_path_factory.mktemp(name), parallelism=1)
        until(lambda: any(row["numRecordsIn"] for row in job.metrics() if "orders" not in row["task"]))
        place = job.savepoint("s")
        job.cancel()
        job.wait("60s")
        return place

    return folder


@pytest.mark.parametrize(
    ("name", "types", "said"),
    [
        ("aggregate", DOUBLE, 'sum("cents") was int64 in it and is double in this program'),
        ("window", DOUBLE, 'sum("cents") was int64'),
        ("distinct", DATE, '"shop" was string'),
        ("keys", TEXT, '"cents" was int64 in it and is string in this program'),
        ("reduce", DATE, '"shop" was string in it and is timestamp[us] in this program'),
        ("join", {"cents": pa.timestamp("us")}, '"cents" was int64'),
    ],
)
def test_a_column_of_another_type_is_named_with_both_types(
    saved: Callable[[str], str], tmp_path: Path, name: str, types: dict[str, pa.DataType], said: str
) -> None:
    folder = saved(name)
    program = JOBS[name](orders(types)).uid("op").sink_to(wb.DiscardSink())
    with pytest.raises(wb.errors.CheckpointError) as refused:
        program.run("other", restore=folder, checkpoint_dir=tmp_path, parallelism=1)
    assert said in refused.value.message
    assert "the former type" in refused.value.message
    assert not isinstance(refused.value, wb.errors.CorruptCheckpointError)


def test_aggregates_and_keys_that_have_changed_are_called_as_they_were_written(
    saved: Callable[[str], str], tmp_path: Path
) -> None:
    folder = saved("aggregate")
    changed = {
        'has no column max("cents"):': lambda s: s.key_by("shop").aggregate(m=wb.max("cents")),
        'has no column "cents"': lambda s: s.key_by("cents").aggregate(total=wb.sum("cents")),
    }
    for said, program in changed.items():
        with pytest.raises(wb.errors.CheckpointError) as refused:
            program(orders({})).uid("op").sink_to(wb.DiscardSink()).run("x", restore=folder, checkpoint_dir=tmp_path)
        assert said in refused.value.message
