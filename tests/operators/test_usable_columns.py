"""Columns of one name, unknown time zones and keys that Arrow cannot compare: refused when the plan is made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.errors import PlanError
from workbench.operators.contract.usable_columns import check_usable

TWICE = pa.schema([("amount", pa.int64()), ("amount", pa.string())])


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], schema=TWICE)
    with pytest.raises(PlanError, match=r"2 columns of the table are named 'amount'.*test_usable_columns\.py, line"):
        wb.Stream.from_table(table)
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("amount,amount\n1,a\n")
    for name in ("a.parquet", "b.csv"):
        with pytest.raises(PlanError, match="2 columns of the files are named 'amount'"):
            wb.Stream.from_files(tmp_path / name)
        with pytest.raises(PlanError, match="2 columns of the schema of the source are named 'amount'"):
            wb.Stream.from_files(tmp_path / name, TWICE)
    with pytest.raises(PlanError, match="2 columns of the schema of map are named 'amount'"):
        wb.Stream.from_table(pa.table({"n": [1]})).map(lambda row: row, schema=TWICE)
    pair = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(PlanError, match="2 columns of the values of the column 'pair' of the table are named 'x'"):
        wb.Stream.from_table(pa.table({"pair": pair}))


@pytest.mark.parametrize("zone", ["Z", "PST", "GMT+2", "UTC+2", "utc", "+2", "America/New York"])
def test_what_is_no_time_zone(zone: str) -> None:
    kind = pa.timestamp("us", zone)
    with pytest.raises(PlanError, match=r"the column 't' of the table is .*is no time zone: cast it to pa\.timestamp"):
        wb.Stream.from_table(pa.table({"t": pa.array([0], kind)}))
    with pytest.raises(PlanError, match="is no time zone"):
        check_usable(pa.schema({"t": pa.list_(pa.struct({"t": pa.dictionary(pa.int8(), kind)}))}), "the table", None)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("+02:00", "1970-01-01 02:00:00+02:00"),
        ("-05:30", "1969-12-31 18:30:00-05:30"),
        ("US/Pacific", "1969-12-31 16:00:00-08:00"),
        ("Etc/GMT+2", "1969-12-31 22:00:00-02:00"),
    ],
)
def test_time_zones_that_are_seldom(zone: str, shown: str) -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("us", zone))})
    found = wb.Stream.from_table(table).map(
        lambda row: {"t": row["t"], "text": str(row["t"])},
        schema={"t": table.schema.field(0).type, "text": pa.string()},
    )
    (row,) = found.collect().to_pylist()
    assert (str(row["t"]), row["text"]) == (shown, shown)


def test_half_floats_are_no_keys() -> None:
    stream = wb.Stream.from_table(pa.table({"weight": pa.array([1.5], pa.float16())}))
    with pytest.raises(PlanError, match="key column 'weight' has type halffloat"):
        stream.group_by("weight").aggregate(n=wb.count())
    assert stream.collect()["weight"].to_pylist() == [1.5]
