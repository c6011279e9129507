"""Which operators need an order that a replay does not keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench.plan.arrival_order import unordered

Build = Callable[[wb.Stream], wb.Stream]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    times = pa.array(range(10), pa.timestamp("us", "UTC"))
    table = pa.table({"n": range(10), "key": ["a", "b"] * 5, "at": times})
    for name, keys in (("plain", []), ("keyed", ["key"]), ("finer", ["key", "n"])):
        wb.History.from_arrow(
            table, tmp_path / name, event_time="at", arrival_time="at", partition_by=keys, progress=False
        )
    return tmp_path


def needs(path: Path, name: str, build: Build, parallelism: int, **sink: str) -> int:
    stream = build(wb.Stream.replay(path / name))
    return len(unordered(stream.sink_to(wb.TableSink("rows", **sink)).logical_graph(), parallelism))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.key_by("key").latest_by(),
        lambda stream: stream.key_by("key").earliest_by(),
        lambda stream: stream.filter("n > 1").key_by("key").window(wb.tumbling("1s")).aggregate(
            all=wb.collect_list("n")
        ),
        lambda stream: stream.key_by("key").window(wb.windows.count_tumbling(2)).aggregate(n=wb.sum("n")),
        lambda stream: stream.key_by("key").reduce(lambda one, other: other),
    ],
)  # fmt: skip
def test_these_depend_on_the_order_of_arrival(path: Path, build: Build) -> None:
    assert [needs(path, "plain", build, parallelism) for parallelism in (1, 2)] == [0, 1]
    assert needs(path, "keyed", build, 2) == 0
    assert needs(path, "finer", build, 2) == 1  # records of one key are in several channels


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.filter("n > 1"),
        lambda stream: stream.key_by("key").latest_by("n"),
        lambda stream: stream.key_by("key").window(wb.tumbling("1s")).aggregate(n=wb.sum("n")),
    ],
)
def test_these_do_not(path: Path, build: Build) -> None:
    assert needs(path, "plain", build, 2) == 0


def test_a_sink_that_replaces_rows_depends_on_it(path: Path) -> None:
    assert [needs(path, name, lambda stream: stream, 2, upsert_key="key") for name in ("plain", "keyed")] == [1, 0]


def test_an_exchange_by_no_key_loses_the_order(path: Path) -> None:
    def spread(stream: wb.Stream) -> wb.Stream:
        return stream.rebalance().filter("n > 1").key_by("key").latest_by()

    assert [needs(path, "keyed", spread, parallelism) for parallelism in (1, 2)] == [0, 1]
