"""Dropped late records can be inspected: the last few with their sender, and no more are kept."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import workbench as wb
from workbench.dashboard.shown.view import View
from workbench.dashboard.views.event_time import holders
from workbench.dashboard.views.event_time import late as late_view
from workbench.elements import Records
from workbench.errors import JobError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.late_records import KEPT, LateRecords
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.telemetry.frames import LateFrame
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
COUNT = (("rows", agg.count()),)
MINUTE = 60_000_000
HOSTILE = "<img src=x onerror=alert(1)>"


class Aside(Output):
    """Keeps what goes to the side output."""

    def __init__(self) -> None:
        self.late: list[tuple[str, int, int]] = []

    def emit(self, records: Records) -> None:
        """Results are not what this is about."""

    def emit_side(self, tag: str, records: Records) -> None:
        rows = records.batch.to_pylist()
        self.late += [(r["k"], r["n"], t) for r, t in zip(rows, records.timestamps.tolist(), strict=True)]


def opened(spec: WindowAggregate) -> tuple[Operator, OperatorContext]:
    operator, context = spec.create([SCHEMA]), OperatorContext()
    operator.open(context)
    return operator, context


def kept(seen: LateRecords) -> list[tuple[str, int, int]]:
    return [
        (row["k"], row["n"], time)
        for piece in seen.latest
        for row, time in zip(piece.rows.to_pylist(), piece.times.tolist(), strict=True)
    ]


BATCHES = st.lists(
    st.tuples(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=30), st.integers(-1, 70)),
    max_size=8,
)


@settings(max_examples=60)
@given(window=st.sampled_from([Tumbling(10), Sliding(10, 5)]), lateness=st.sampled_from([0, 7]), batches=BATCHES)
def test_the_last_ones_are_those_that_a_side_output_would_have_got(window, lateness, batches):
    dropping, context = opened(WindowAggregate(("k",), window, COUNT, lateness, None))
    sending, _ = opened(WindowAggregate(("k",), window, COUNT, lateness, "late"))
    out, number, watermarks = Aside(), 0, {}
    reached = None
    for rows, watermark in batches:
        keys, times = zip(*rows, strict=True) if rows else ((), ())
        numbers = list(range(number, number + len(rows)))
        number += len(rows)
        columns = [pa.array(keys, pa.string()), pa.array(numbers, pa.int64())]
        records = Records(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), np.array(times, np.int64))
        watermarks.update(dict.fromkeys(numbers, reached))
        for operator in (dropping, sending):
            operator.process(records, 0, out)
            operator.on_watermark(watermark, out)
        reached = watermark if reached is None else max(reached, watermark)
    seen = context.counters.late
    assert context.counters.numLateRecordsDropped == len(out.late)
    assert kept(seen)[-KEPT:] == out.late[-KEPT:]
    assert len(kept(seen)) < 2 * KEPT
    for piece in seen.latest:
        assert {watermarks[row["n"]] for row in piece.rows.to_pylist()} == {piece.watermark_us}


def test_what_is_kept_does_not_hold_the_batch_it_came_in():
    seen = LateRecords()
    batch = pa.RecordBatch.from_pydict({"n": np.arange(100_000)})
    for _ in range(50):
        seen.note(batch, np.arange(100_000), np.ones(100_000, np.bool_), 7, [])
    assert sum(piece.rows.get_total_buffer_size() for piece in seen.latest) == KEPT * 8
    assert [piece.times.tolist() for piece in seen.latest] == [list(range(99_980, 100_000))]


def minutes(*values: int) -> pa.Array:
    return pa.array([value * MINUTE for value in values], pa.timestamp("us"))


JOINS = {
    "window": {"window": wb.tumbling("1h")},
    "interval": {"between": ("-10min", "10min")},
    "session": {"window": wb.session("10min")},
}


@pytest.mark.parametrize("kind", JOINS)
def test_joins_tell_theirs(kind):
    left = pa.table({"t": minutes(30, 185, 65, 190), "k": ["a", "b", "late", "b"], "left": [1, 2, 3, 4]})
    right = pa.table({"t": minutes(30, 186, 187, 191), "k": ["a", "b", "b", "b"], "right": [1, 2, 3, 4]})
    sides = [
        wb.Stream.from_table(table, event_time="t", out_of_orderness="0s", rate=1.0).with_parallelism(1)
        for table in (left, right)
    ]
    joined = sides[0].join(sides[1], on="k", **JOINS[kind]).uid("meet")
    job = joined.sink_to(wb.DiscardSink()).run(f"late-{kind}", driver="stepping", buffer_size=1, buffer_timeout="0ms")
    assert job.wait() == "FINISHED"
    [row] = job.late_records("meet")
    assert (row["task"], row["key"], row["event_time"]) == ("meet[0]", "late", "1970-01-01 01:05:00")
    assert row["source"] == "table[0]"
    assert '"left": 3' in row["record"]
    assert sum(task["numLateRecordsDropped"] for task in job.metrics()) == 1


@pytest.fixture
def job():
    table = pa.table({"t": minutes(60, 90, 185, 100, 179, 110), "k": ["a", "b", "a", "b", "a", HOSTILE], "v": range(6)})
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="0s", rate=1.0).with_parallelism(1)
    sums = stream.key_by("k").window(wb.tumbling("1h")).aggregate(v=wb.sum("v")).uid("sums")
    job = sums.sink_to(wb.DiscardSink()).run("lateness", driver="stepping", buffer_size=1, buffer_timeout="0ms")
    assert job.wait() == "FINISHED"
    return job


def test_a_job_tells_what_was_late_by_how_much_and_from_where(job):
    rows = job.late_records()
    assert [(row["key"], row["event_time"], row["behind"]) for row in rows] == [
        ("b", "1970-01-01 01:40:00", "85min"),
        ("a", "1970-01-01 02:59:00", "6min"),
        (HOSTILE, "1970-01-01 01:50:00", "75min"),
    ]
    assert {(row["operator"], row["task"], row["source"]) for row in rows} == {("sums", "sums[0]", "table[0]")}
    assert rows[0]["record"] == '{"k": "b", "v": 3}'
    assert job.late_records("sums") == rows
    assert job.late_records("table") == []
    with pytest.raises(JobError, match="unknown operator 'summs'"):
        job.late_records("summs")


def test_frames_share_what_has_not_changed(job):
    first, *_, last = [
        task.late for frame in job.recorder.frames() for task in frame.tasks if task.name == "sums[0]" and task.late
    ]
    assert len(last) == 3
    assert len({id(frames) for frames in (last, job.recorder.latest().tasks[1].late)}) == 1
    assert first[0] == last[0]


def test_the_watermarks_view_lists_them_as_text(job):
    frame = job.recorder.latest()
    html = late_view.html(frame)
    assert "<img" not in html
    assert html.count("<tr>") == 3
    assert "<th>b</th><td>1970-01-01 01:40:00</td>" in html
    assert "<td class='n'>1 h 25 min</td><td>table[0] → sums[0]</td>" in html
    words = holders.html(frame)
    assert "<img" not in words
    assert "late records dropped: sums[0] 3" in words
    assert "of 1970-01-01 01:50:00, 1 h 15 min behind, table[0] → sums[0]</p>" in words
    [listed] = [
        div for div in View(job, job.recorder.frames(), "watermarks").easel.texts.divs.values() if div.text == html
    ]
    assert listed.html_attributes["aria-label"] == "The last late records"


def test_the_newest_twenty_of_all_tasks_are_listed(job):
    frame = job.recorder.latest()
    many = tuple(LateFrame("sums", str(n), n * MINUTE, (n + 5) * MINUTE - 1, None, "{}") for n in range(15))
    tasks = tuple(replace(task, late=many) for task in frame.tasks[:2])
    listed = late_view.latest(replace(frame, tasks=tasks))
    assert [late.key for _, late in listed] == [
        str(n) for n in (14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5)
    ]
    none = replace(frame, tasks=tuple(replace(task, late=()) for task in frame.tasks))
    assert late_view.html(none) == "<p class='none'>No late records.</p>"
    assert late_view.line(none) == ""
