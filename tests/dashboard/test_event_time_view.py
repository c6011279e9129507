"""The view of event time shows the events in the runtime: sampled records, watermark, windows and lateness."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import accumulate

import pyarrow as pa
import pytest
from unwatched import wait

import workbench as wb
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.contract.part import Easel
from workbench.dashboard.contract.view_table import view_named
from workbench.dashboard.views.event_time.lateness import saving, totals
from workbench.dashboard.views.event_time.plane import Plane
from workbench.dashboard.views.event_time.seen import Seen
from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.contract.event_times import BOUNDS
from workbench.telemetry.frames import EventFrame

ROWS, S = 160, 1_000_000
RANDOM = random.Random(3)
TIMES = [row * S - (RANDOM.randrange(40 * S) if RANDOM.random() < 0.2 else 0) for row in range(ROWS)]
WINDOWS = [
    pytest.param(wb.tumbling("20s"), id="tumbling"),
    pytest.param(wb.windows.sliding("20s", "5s"), id="sliding", marks=pytest.mark.slow),
]
BEHIND = [most - time for most, time in zip(accumulate(TIMES, max), TIMES, strict=True)]


def job_of(window, bound="5s", *, rate=20, event_time="t", lateness="0s", aside=False, **settings):
    """Sums by key over records of which a fifth comes late, one record at a time of a virtual clock."""
    keys = [("a", "b")[row % 2] for row in range(ROWS)]
    table = pa.table({"k": keys, "t": pa.array(TIMES, pa.timestamp("us"))})
    more = {} if event_time is None else {"out_of_orderness": bound}
    stream = wb.Stream.from_table(table, event_time=event_time, rate=rate, **more)
    if window is not None:
        stream = stream.key_by("k").window(window, allowed_lateness=lateness).aggregate(n=wb.count())
    options = {"driver": "stepping", "buffer_timeout": "0ms", "buffer_size": 1, **settings}
    pipeline = stream.sink_to(wb.TableSink("out"))
    if aside:
        pipeline += stream.side_output("late").sink_to(wb.TableSink("late"))
    return pipeline.run("event-time", **options)


def followed(job):
    """The frames of every moment, added up as the view does, and the watermarks that the tasks had then."""
    seen, marks, frame = Seen(), [], None
    while job.state != "FINISHED":
        job.stepper.driver.step()
        frame = job.recorder.latest()
        if frame.sequence <= seen.sequence:
            continue
        seen.add(frame)
        told = [
            task.valve.output_us
            for task in (job.stepper.driver.execution.tasks if job.stepper.driver.execution else ())
            if hasattr(task, "valve") and any(link.uid == "aggregate" for link in task.links)
        ]
        if told and NO_TIME < min(told) < MAX_TIME:
            marks.append((frame.time_us, min(told)))
    return seen, marks, frame


def finished(job):
    """The last frame of the run."""
    assert wait(job) == "FINISHED"
    return job.recorder.latest()


def text(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


@pytest.mark.parametrize("window", [wb.tumbling("20s"), wb.windows.sliding("20s", "5s")], ids=["tumbling", "sliding"])
def test_points_curve_and_boxes_are_those_of_the_run(window):
    job = job_of(window)
    seen, marks, frame = followed(job)
    read = Counter((point.event_time_us, point.behind_us) for point in seen.points if point.fate == "in time")
    assert read == Counter(zip(TIMES, BEHIND, strict=True))  # so few records are all sampled
    assert set(seen.watermark) <= set(marks)
    assert len(seen.watermark) > 100
    assert {mark for _, mark in marks} == {mark for _, mark in seen.watermark}
    counts = totals(frame)
    assert counts.read == counts.examined == ROWS
    assert counts.bounds == (5 * S,)
    assert counts.disorder[0] == BEHIND.count(0)
    for index, bound in enumerate(BOUNDS, 1):
        assert sum(counts.disorder[: index + 1]) == sum(behind <= bound for behind in BEHIND)
    late = sum(task.metrics["numLateRecordsDropped"] for task in frame.tasks)
    assert counts.dropped == sum(counts.shortfalls) == late > 5
    rows = job.table("out").to_pylist()
    wanted = Counter((row["window_start"], row["window_end"]) for row in rows)
    for box in seen.boxes.values():
        bounds = tuple(pa.scalar(us, pa.timestamp("us")).as_py() for us in (box.start_us, box.end_us))
        bounds = tuple(time.replace(tzinfo=rows[0]["window_start"].tzinfo) for time in bounds)
        assert [fired.results for fired in box.fired] == [wanted[bounds]]
        values = {f"k={row['k']} n={row['n']}" for row in rows if (row["window_start"], row["window_end"]) == bounds}
        assert box.fired[0].values in values
        assert box.groups == wanted[bounds]
        before = [mark for time, mark in marks if time < box.fired[0].time_us]
        assert max(before, default=NO_TIME) < box.end_us - 1  # it fired as soon as event time had passed it
    assert len(seen.boxes) >= 8


@pytest.mark.parametrize("window", WINDOWS)
def test_the_bound_in_the_caption_keeps_as_many_as_it_says(window):
    counts = totals(finished(job_of(window)))
    for more in (3 * S, saving(counts.shortfalls)[0]):
        kept = sum(counts.shortfalls[: BOUNDS.index(more) + 1])
        again = totals(finished(job_of(window, f"{5 * S + more}us")))
        assert again.late == counts.late - kept
    session = totals(finished(job_of(wb.windows.session("3s"))))
    more, kept = saving(session.shortfalls)
    assert totals(finished(job_of(wb.windows.session("3s"), f"{5 * S + more}us"))).late <= session.late - kept


@pytest.mark.parametrize("window", WINDOWS)
def test_late_records_are_marked_with_what_became_of_them(window):
    aside = followed(job_of(window, aside=True))
    plain = totals(followed(job_of(window))[2])
    counts = totals(aside[2])
    assert (counts.aside, counts.dropped) == (plain.dropped, 0)
    assert sum(point.fate == "side output" for point in aside[0].points) == counts.aside
    seen, _, frame = followed(job_of(window, lateness="10s"))
    counts = totals(frame)
    assert 0 < counts.dropped < plain.dropped
    assert counts.updated >= plain.dropped - counts.dropped
    assert sum(point.fate == "updated" for point in seen.points) == counts.updated
    assert any(len(box.fired) > 1 for box in seen.boxes.values())


def test_the_view_says_what_it_shows():
    job = job_of(wb.tumbling("20s"))
    job.stepper.driver.run_until(lambda: job.state == "FINISHED")
    part = view_named("event_time").load()(Easel(job))
    frame = job.recorder.latest()
    part.update(frame)
    told = text(part._words.html)
    assert "sampled points stand for" in told
    counts = totals(frame)
    assert f"{counts.late} of {counts.at_windows} records" in told
    assert "bound 5 s" in text(part._disorder.html)


def test_a_job_without_event_time_is_told_how_to_have_one():
    job = job_of(None, event_time=None)
    job.stepper.driver.run_until(lambda: job.state == "FINISHED")
    part = view_named("event_time").load()(Easel(job))
    part.update(job.recorder.latest())
    assert "This job has no event time: name the event-time column" in part._words.html


def test_several_subtasks_and_a_recovery_are_added_up():
    job = job_of(wb.tumbling("20s"), parallelism=2, checkpoint_interval="1s")
    for _ in range(400):
        job.stepper.driver.step()
    job.faults.fail("aggregate[0]")
    driver = job.stepper.driver
    driver.run_until(lambda: job.state == "RESTARTING")
    driver.run_until(lambda: job.state == "RUNNING")
    counters = [link.counters for task in driver.execution.tasks for link in task.links]
    seen, _, frame = followed(job)
    assert job.recorder.latest().metrics["numRestarts"] == 1
    counts = totals(frame)
    assert counts.dropped == sum(each.numLateRecordsDropped for each in counters) > 0
    undisturbed = job_of(wb.tumbling("20s"), parallelism=2, checkpoint_interval="1s")
    _, _, other = followed(undisturbed)
    told, expected = (sum(task.metrics["numLateRecordsDropped"] for task in each.tasks) for each in (frame, other))
    assert told == expected > counts.dropped  # of all attempts, each record once
    assert 0 < counts.examined == sum(counts.disorder) <= counts.read < ROWS  # of the attempt that goes on
    assert seen.boxes
    plane, [failure] = Plane(Paint(), 300), frame.interruptions
    tuned = [EventFrame(at_us, "tune", "speed = 600x") for at_us in (0, frame.time_us - 1)]
    plane.show(seen, frame.time_us)
    plane.annotate(replace(frame, events=tuple(tuned)))
    assert list(plane.interrupted.data["start"]) == [failure.start_us / 1000]
    assert list(plane.tuned.data["y"]) == [(frame.time_us - 1) / 1000], "what was before the plane begins is not drawn"
    assert set(seen.points)
