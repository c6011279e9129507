"""The rows that RisingWave's tests expect for Nexmark's queries, from the same events.

`nexmark_rows.json` has the events and the rows of github.com/risingwavelabs/risingwave, e2e_test/nexmark and
e2e_test/streaming/nexmark (Apache License 2.0). Where those tests ask for fewer columns than the public text, or for
other constants, so does this one.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rescaled import rescaled

import workbench as wb
from workbench.lab.bench.nexmark.queries import Q

_GOLDEN = json.loads(Path(__file__).with_name("nexmark_rows.json").read_text(encoding="utf-8"))
_TIMES = ("dateTime", "expires")
_EXTRA = ("extra", "bid_extra", "hm", "minute")
"""Columns that those tests leave out."""

QUERIES = {
    **{name: Q[name] for name in ("q1", "q4", "q5", "q6", "q7", "q8", "q9", "q14", "q15", "q16", "q17", "q19", "q20")},
    **{name: Q[name] for name in ("q0", "q21", "q22")},
    "q2": "SELECT auction, price FROM bid WHERE auction IN (1007, 1020, 2001, 2019, 2087)",
    "q3": Q["q3"].replace("'OR'", "'or'").replace("'ID'", "'id'").replace("'CA'", "'ca'"),
    "q10": f"SELECT * FROM ({Q['q10'].rstrip(';')}) AS r (auction, bidder, price, `dateTime`, extra, dt, hm)",
    "q18": Q["q18"].replace("`dateTime` DESC", "`dateTime` DESC, extra"),
}
KEPT = {"q18": ("extra",), "q19": ("extra",), "q20": ("extra", "extra_right")}
STATEFUL = ("q3", "q4", "q5", "q6", "q7", "q8", "q9", "q16", "q18", "q19", "q20")


def planned(name: str, rate: float | None = None) -> wb.Stream:
    streams = {}
    for table, given in _GOLDEN["tables"].items():
        columns = dict(zip(given["columns"], zip(*given["rows"], strict=True), strict=True))
        arrays = {
            column: pa.array([dt.datetime.fromisoformat(value) for value in values], pa.timestamp("us"))
            if column in _TIMES
            else pa.array(values)
            for column, values in columns.items()
        }
        source = pa.table(arrays)
        streams[table] = wb.Stream.from_table(source, event_time="dateTime", out_of_orderness="4s", rate=rate)
    text = QUERIES[name].replace("A.`dateTime`, expires, seller", "A.`dateTime` AS opened, expires, seller")
    return wb.sql(text.replace("category, A.extra\n", "category, A.extra AS extra_right\n"), **streams)


def normal(values: list[Any]) -> str:
    """A row as those tests write it, with numbers in one form."""
    words = " ".join("NULL" if value is None else str(value) for value in values).replace("+00:00", "").split()
    return " ".join(_number(word) if re.fullmatch(r"-?\d+\.\d+", word) else _short(word) for word in words)


def _number(word: str) -> str:
    return f"{float(word):.3f}".rstrip("0").rstrip(".")


def _short(word: str) -> str:
    """Times without zeros at the end of their fraction."""
    return word.rstrip("0").rstrip(".") if re.fullmatch(r"\d\d:\d\d:\d\d\.\d+", word) else word


def of_job(name: str, job: wb.types.Job) -> Counter[str]:
    assert job.wait("60s") == "FINISHED"
    left_out = [column for column in _EXTRA if column not in KEPT.get(name, ())]
    rows = job.table("rows").to_pylist()
    return Counter(normal([value for column, value in row.items() if column not in left_out]) for row in rows)


def expected(name: str) -> Counter[str]:
    rows = _GOLDEN["rows"][name]
    if name == "q10":  # its last column is an hour of a clock with twelve of them
        rows = [row.rpartition(" ")[0] for row in rows]
    if name == "q16":  # and so is the third one
        rows = [re.sub(r" 12:07 ", " ", row) for row in rows]
    return Counter(normal(row.split()) for row in rows)


@pytest.mark.parametrize("name", sorted(QUERIES, key=lambda name: int(name[1:])))
def test_a_query_gives_the_rows_of_risingwave(name: str) -> None:
    rows = expected(name)
    assert rows
    for parallelism in (1, 2, 3):
        job = planned(name).sink_to(wb.TableSink("rows")).run(name, parallelism=parallelism)
        assert of_job(name, job) == rows


@pytest.mark.parametrize("name", STATEFUL)
def test_a_query_continues_at_another_parallelism(name: str) -> None:
    job = rescaled(planned(name, rate=10).sink_to(wb.TableSink("rows")), name)
    assert of_job(name, job) == expected(name)
