"""Live jobs of one pipeline side by side: all start or none does, and the differences are described in words."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from bokeh.models import Slider
from waiting import until

import workbench as wb
from workbench.api.pictures.side_by_side import differences
from workbench.dashboard.lanes.lanes import Lanes
from workbench.dashboard.shown.lanes_dashboard import lanes_view
from workbench.errors import JobError, SettingError
from workbench.jupyter.verbs.running import run_verb
from workbench.telemetry.frames import LatencyFrame


def numbers(rate=500.0):
    stream = wb.Stream.from_table(pa.table({"n": range(100_000)}), rate=rate)
    return stream.key_by("n").aggregate(count=wb.count()).sink_to(wb.DiscardSink())


@pytest.fixture
def both():
    both = wb.compare(numbers(), a={"buffer_timeout": "100ms"}, b={"buffer_timeout": "0ms"}, name="beside")
    yield both
    both.cancel()
    assert both.wait("60s") == {"a": "CANCELED", "b": "CANCELED"}


def test_each_lane_is_a_job_with_its_own_options_on_the_same_axes(both):
    assert [both[lane].name for lane in both] == ["beside-a", "beside-b"]
    assert [both[lane].status()["buffer_timeout"] for lane in both] == ["100ms", "0ms"]
    until(lambda: any("p50" in told for told in both.differences))
    [told] = both.differences
    assert told.startswith("b: ")
    assert "buffers" in told
    assert "a: job beside-a, RUNNING, buffer_timeout 100ms" in repr(both)
    lanes = Lanes(both.jobs)
    view = lanes_view(lanes)
    part = view.parts["lanes"]
    assert [chart.figure.html_attributes["aria-label"] for chart in part._charts.values()] == [
        "Latency, p50", "Latency, p99", "Records in per second", "Buffers per second",
    ]  # fmt: skip
    assert "b: " in part._words.html
    times = list(part._charts["p50"]._points.data["t"])
    assert times == sorted(times)
    assert set(part._charts["p50"]._points.data) == {"t", "a", "b"}


def test_the_controls_of_a_lane_tune_its_job_alone(both):
    until(lambda: all(job.recorder.latest() for job in both.jobs.values()))
    view = lanes_view(Lanes(both.jobs))
    assert sum(slider.name == "buffer_timeout" for slider in view.root.select({"type": Slider})) == 2
    slider = view.parts["lanes"]._knobs["b"].sliders["buffer_timeout"].slider
    slider.value = slider.end
    assert both["b"].status()["buffer_timeout"] == "disabled"
    assert both["a"].status()["buffer_timeout"] == "100ms"


def test_what_happens_in_a_lane_is_told_and_marked_under_its_name(both):
    until(lambda: all(job.recorder.latest() for job in both.jobs.values()))
    both["b"].tune(buffer_timeout="5ms")
    both["a"].fail("aggregate[0]")
    lanes = Lanes(both.jobs)
    until(lambda: lanes.latest().changes and lanes.latest().interruptions)
    view = lanes_view(lanes)
    frame = lanes.latest()
    assert [one.what for one in frame.changes] == ["b: buffer_timeout 0ms → 5ms"]
    assert [one.what for one in frame.interruptions] == ["a: aggregate[0] failed"]
    assert "b: buffer_timeout 0ms → 5ms" in view._header._piece.html
    chart = view.parts["lanes"]._charts["p99"]
    assert "b: buffer_timeout = 5ms" in list(chart._marks.data["text"])
    assert len(chart._bands._source.data["start"]) == 1


def test_the_display_goes_on_while_any_lane_does(both):
    lanes = Lanes(both.jobs)
    until(lambda: lanes.latest() is not None and lanes.latest().state == "RUNNING")
    before = lanes.latest().sequence
    both["a"].cancel()
    assert lanes.state == "RUNNING"
    until(lambda: lanes.latest().sequence > before)
    assert any("CANCELED" in told for told in differences({"b": lanes.newest()["b"], "a": lanes.newest()["a"]}))


def test_jobs_that_there_are_are_compared_too(both):
    shown = run_verb(["compare", "beside-a", "beside-b"])
    assert list(shown) == ["beside-a", "beside-b"]
    stepping = numbers().run("still", driver="stepping")
    with pytest.raises(JobError, match="stands still beside a live one"):
        wb.compare(both["a"], stepping)
    stepping.cancel()


def test_where_one_lane_cannot_be_started_none_is():
    with pytest.raises(SettingError, match="buffer_timeout"):
        wb.compare(numbers(), a={}, b={"buffer_timeout": "soon"}, name="halves")
    assert wb.job("halves-a").over
    with pytest.raises(SettingError, match="compare got 1 lanes"):
        wb.compare(numbers(), a={})
    with pytest.raises(SettingError, match="the lane 'b' is '5ms'"):
        wb.compare(numbers(), a={}, b="5ms")
    with pytest.raises(JobError, match="needs a pipeline with lanes"):
        wb.compare()
    with pytest.raises(JobError, match="unknown lane 'c'"):
        wb.compare(wb.job("halves-a"), wb.job("halves-a"))["c"]


def test_the_sentences_tell_what_is_notable_in_the_figures(both):
    until(lambda: both["a"].recorder.latest() is not None)
    frame = both["a"].recorder.latest()
    end = frame.vertices[-1].id

    def measured(p50, buffers, rate=1000.0):
        vertices = tuple(
            replace(vertex, metrics={**vertex.metrics, "numBuffersOutPerSecond": buffers * (vertex.id != end)})
            for vertex in frame.vertices
        )
        latency = (LatencyFrame(end, 50, p50, p50, p50, 90.0),)
        metrics = {**frame.metrics, "numRecordsInPerSecond": rate}
        return replace(frame, vertices=vertices, latency=latency, metrics=metrics, checkpoints=(), state="RUNNING")

    frames = {
        "a": measured(48.0, 20.0),
        "b": measured(4.0, 180.0),
        "c": measured(50.0, 19.0),
        "d": measured(48.0, 20.0, 10.0),
    }
    assert differences(frames) == [
        "b: p50 4.0 ms instead of 48 ms; 9x buffers",
        "c: no notable difference from a",
        "d: 100x fewer records",
    ]
