"""Live jobs of one pipeline side by side: all start or none does, and the differences are described in words."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from bokeh.models import Slider, VSpan
from waiting import until

import workbench as wb
from workbench.api.pictures.side_by_side import checkpointing, differences, verdict
from workbench.dashboard.charts.theme import COLOURS
from workbench.dashboard.lanes.lanes import Lanes
from workbench.dashboard.shown.lanes_dashboard import lanes_view
from workbench.errors import JobError, SettingError
from workbench.jupyter.verbs.running import run_verb
from workbench.telemetry.effects.interruption_log import InterruptionLog
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
    assert both.verdict.startswith("No comparison yet") or "(buffer_timeout 0ms)" in both.verdict
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
    marked = {lane: list(source.data["text"]) for lane, source in chart._marks._sources.items()}
    assert marked == {"a": [], "b": ["b: buffer_timeout = 5ms"]}
    drawn = [one.glyph for one in chart.figure.renderers if isinstance(one.glyph, VSpan)]
    lines = view.parts["lanes"]._lines.values()
    assert [(one.line_color, one.line_dash) for one in drawn] == [(COLOURS[colour][0], dash) for colour, dash in lines]
    bands = chart._bands._source.data
    assert len(bands["start"]) == 1
    assert bands["text"][0].startswith("a: aggregate[0] failed")
    heads = {lane: head.html for lane, head in view.parts["lanes"]._heads.items()}
    assert "buffer_timeout 0ms → 5ms" in heads["b"]
    assert "aggregate[0] was failed on purpose" in heads["a"]
    assert "was failed" not in heads["b"]


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


@pytest.fixture
def measured(both):
    """Makes a frame of a job that has been running for a minute, with these figures and settings."""
    until(lambda: both["a"].recorder.latest() is not None)
    frame = both["a"].recorder.latest()
    end = frame.vertices[-1].id

    def made(p50, buffers, rate=1000.0, **facts):
        vertices = tuple(
            replace(vertex, metrics={**vertex.metrics, "numBuffersOutPerSecond": buffers * (vertex.id != end)})
            for vertex in frame.vertices
        )
        latency = (LatencyFrame(end, 50, p50, p50, p50, 90.0),)
        settings = {**frame.settings, **facts.pop("settings", {})}
        return replace(
            frame, vertices=vertices, latency=latency, metrics={**frame.metrics, "numRecordsInPerSecond": rate},
            checkpoints=(), state="RUNNING", started_us=frame.time_us - 60_000_000, settings=settings, **facts,
        )  # fmt: skip

    return made


def test_the_verdict_tells_which_setting_is_better_and_what_it_costs(measured):
    slow = measured(48.0, 20.0, settings={"buffer_timeout": "100ms"})
    fast = measured(4.0, 180.0, settings={"buffer_timeout": "5ms"})
    assert verdict({"a": slow, "b": fast}) == (
        "Lowest latency: b (buffer_timeout 5ms) has p50 4.0 ms, 180 buffers/s; "
        "a (buffer_timeout 100ms) has p50 48 ms, 20 buffers/s. "
        "The price of b, compared with a: 9x buffers. The throughput is the same."
    )
    wide = measured(30.0, 60.0, 3_000.0, settings={"buffer_timeout": "100ms", "parallelism": 4})
    assert verdict({"a": slow, "b": replace(slow), "c": wide}) == (
        "Highest throughput: c (parallelism 4) has 3,000 records/s, 60 buffers/s; a has 1,000 records/s, 20 buffers/s; "
        "b has 1,000 records/s, 20 buffers/s. The price of c, compared with b: 3x buffers."
    )
    slower = measured(48.0, 20.0, 500.0, settings={"buffer_timeout": "100ms", "rate": "250"})
    alike = "No lane is notably better: latency, throughput and buffers are alike."
    assert verdict({"a": slow, "b": slower}) == alike, "it is given less to do"


def test_there_is_no_verdict_where_figures_say_nothing_about_the_settings(measured):
    frame = measured(48.0, 20.0)
    other = measured(4.0, 20.0)
    assert verdict({"a": frame}) == ""
    young = replace(other, started_us=other.time_us - 1_000_000)
    assert verdict({"a": frame, "b": young}) == "No comparison yet: the jobs have just started."
    log = InterruptionLog()
    log.failed(0, "sum[0] failed", "")
    again = replace(other, interruptions=log.interruptions)
    assert verdict({"a": frame, "b": again}) == "No comparison now: b is catching up."
    still = {"a": replace(frame, paused=True), "b": replace(other, state="RESTARTING")}
    assert verdict(still) == "No comparison now: a is paused, b is RESTARTING."


def test_lanes_with_different_checkpoints_tell_what_these_cost_and_save(measured):
    often = measured(4.0, 20.0, settings={"checkpoint_interval": "1s"}, effects={"checkpoint_interval": "costs 2 %"})
    assert checkpointing({"a": often, "b": often}) == []
    rare = measured(4.0, 20.0, settings={"checkpoint_interval": "1min"})
    none = measured(4.0, 20.0, settings={"checkpoint_interval": "disabled"})
    assert checkpointing({"a": often, "b": rare, "c": none}) == [
        "a: taking a checkpoint costs 2 %; a failure repeats at most 1s of records",
        "b: a failure repeats at most 1min of records",
    ]


def test_the_sentences_tell_what_is_notable_in_the_figures(measured):
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
