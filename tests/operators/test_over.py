"""Aggregates of the records before each record."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from rescaled import rescaled

import workbench as wb
from workbench.elements import Records
from workbench.errors import PlanError, SettingError
from workbench.operators.contract.base import OperatorContext
from workbench.operators.windows.over import Over

SECOND = 1_000_000


def prices(rate: float | None = None, count: int = 6) -> wb.Stream:
    """Prices of two items, a second apart, two of them at the same time and some out of order."""
    moments = [0, 2, 1, 3, 3, 5, *range(6, count)][:count]
    table = pa.table(
        {
            "item": ["ab"[at % 2] for at in range(count)],
            "price": pa.array([7, None, 5, 9, 1, 3, *range(6, count)][:count], pa.int64()),
            "t": pa.array([at * SECOND for at in moments], pa.timestamp("us")),
        }
    )
    return wb.Stream.from_table(table, event_time="t", out_of_orderness="2s", rate=rate)


def rows(stream: wb.Stream, *columns: str) -> list[tuple[object, ...]]:
    job = stream.select("t", *columns).sink_to(wb.TableSink("rows")).run("over", parallelism=2, buffer_size=2)
    assert job.wait("60s") == "FINISHED"
    found = job.table("rows").to_pylist()
    return sorted(((row.pop("t").second, *row.values()) for row in found), key=str)


def test_a_number_of_rows_of_each_key() -> None:
    over = prices().over(["item"], "rows", 1, {"n": wb.count(), "total": wb.sum("price"), "most": wb.max("price")})
    assert rows(over, "item", "n", "total", "most") == [
        (0, "a", 1, 7, 7),
        (1, "a", 2, 12, 7),
        (2, "b", 1, None, None),
        (3, "a", 2, 6, 5),
        (3, "b", 2, 9, 9),
        (5, "b", 2, 12, 9),
    ]


def test_a_duration_takes_rows_of_the_same_time() -> None:
    over = prices().over([], "range", "1s", {"n": wb.count("price"), "least": wb.min("price"), "first": wb.min("t")})
    assert [(at, n, least) for at, n, least, _ in rows(over, "n", "least", "first")] == [
        (0, 1, 7),
        (1, 2, 5),
        (2, 1, 5),
        (3, 2, 1),
        (3, 2, 1),
        (5, 1, 3),
    ]


def test_all_before() -> None:
    over = prices().over([], "rows", None, {"mean": wb.mean("price")})
    assert [round(float(str(value)), 3) for _, value in rows(over, "mean")][-1] == 5.0


def test_a_record_at_the_watermark_is_late_and_in_no_frame() -> None:
    schema = pa.schema({"n": pa.int64()})
    operator = Over((), (("total", wb.sum("n")),), "rows", None).create([schema])
    operator.open(OperatorContext())
    out: list[Records] = []
    collected = SimpleNamespace(emit=out.append)
    times = {5: 50, 7: 70}, {60: 60, 61: 61}
    for watermark_us, part in zip((60, 80), times, strict=True):
        batch = pa.record_batch([list(part)], schema=schema)
        operator.process(Records(batch, np.array(list(part.values()), np.int64)), 0, collected)  # type: ignore[arg-type]
        operator.on_watermark(watermark_us, collected)  # type: ignore[arg-type]
    assert [row["total"] for sent in out for row in sent.batch.to_pylist()] == [5, 5 + 61, 5 + 61 + 7]
    assert operator._context.counters.numLateRecordsDropped == 1  # type: ignore[attr-defined]


def test_it_continues_at_another_parallelism() -> None:
    over = prices(rate=20, count=200).over(["item"], "rows", 2, {"total": wb.sum("price")})
    job = rescaled(over.sink_to(wb.TableSink("rows")), "rescaled")
    found = {row["price"]: row["total"] for row in job.table("rows").to_pylist()}
    assert len(job.table("rows")) == 200
    assert all(found[at] == 3 * at - 6 for at in range(20, 200))


def test_wrong_arguments() -> None:
    with pytest.raises(SettingError, match="did you mean 'rows'"):
        prices().over([], "row", 1, {"n": wb.count()})  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="preceding is -1"):
        prices().over([], "rows", -1, {"n": wb.count()})
    with pytest.raises(PlanError, match="the input has a column 'price' already"):
        prices().over([], "rows", 1, {"price": wb.count()})
