"""Lecture mode: scenes are in one table, captions describe the frame, and the page receives data for one scene only."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from bokeh.models import Row
from test_dashboard_picture import FRAME

import workbench as wb
from workbench.dashboard.contract.view_table import VIEWS, dashboard_views
from workbench.dashboard.lanes.lanes import LANES
from workbench.dashboard.lecture import captions
from workbench.dashboard.lecture.lecture_mode import REST_US, LectureMode
from workbench.dashboard.lecture.scene_table import SCENES, SceneSpec, add_scene, scenes_of
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import View
from workbench.runtime.settings.table import OF_TUNE
from workbench.telemetry.checkpoint_frames import CheckpointFrame, RestoreFrame
from workbench.telemetry.frames import LatencyFrame

LAST = FRAME.vertices[-1].id


@pytest.fixture(scope="module")
def job():
    numbers = wb.Stream.from_table(pa.table({"n": range(10)})).sink_to(wb.TableSink("numbers"))
    job = numbers.run("taught")
    job.wait("60s")
    return job


def shown(scene, **facts):
    return SCENES[scene].load()(replace(FRAME, **facts))


def test_every_scene_shows_views_and_controls_that_there_are(job):
    view = View(job, job.recorder.frames())
    groups = {name for row in view.root.select({"type": Row}) for name in row.css_classes if name.startswith("wb-do-")}
    assert groups == {"wb-do-run", "wb-do-save", "wb-do-fail", "wb-do-slow", "wb-do-again", "wb-do-spark"}
    for scene in SCENES.values():
        knobs = {knob for name in scene.views for knob in VIEWS[name].knobs}
        assert {name for name in scene.controls if f"wb-do-{name}" not in groups} <= knobs & set(OF_TUNE), scene.name
        assert len(scene.load()(FRAME)) > 40
        assert not scene.load()(FRAME).replace("<b>", "").replace("</b>", "").count("<")


def test_the_arrow_keys_go_through_the_scenes_that_the_page_has_views_for():
    live = [view.name for view in dashboard_views(live=True)]
    assert [scene.name for scene in scenes_of(live)] == [name for name in SCENES if name != "stepper"]
    assert [scene.name for scene in scenes_of(["latency"])] == ["latency"]
    assert [scene.name for scene in scenes_of(["buffers"])] == ["backpressure"], "a part of a scene is better than none"
    assert scenes_of(["controls"]) == []
    assert [scene.name for scene in scenes_of([LANES.name])] == ["lanes"]
    assert len(scenes_of([LANES.name])[0].load()(FRAME)) > 40


def test_a_scene_of_your_own_is_one_entry(job):
    add_scene(SceneSpec("rates", "Rates", ("subtasks",), f"{__name__}:rates"))
    try:
        assert [scene.name for scene in scenes_of(["subtasks"])] == ["rates"]
        assert "lecture from rates" in repr(job.lecture("rates"))
        with pytest.raises(wb.errors.SettingError, match="there is a scene 'rates' already"):
            add_scene(SCENES["rates"])
    finally:
        del SCENES["rates"]
    with pytest.raises(wb.errors.SettingError, match="unknown scene 'rates'"):
        job.lecture("rates")
    with pytest.raises(wb.errors.SettingError, match="unknown view 'nothing'"):
        add_scene(SceneSpec("odd", "Odd", ("nothing",), f"{__name__}:rates"))


def rates(frame):
    return frame.job


def test_captions_tell_the_figures_of_the_frame():
    seen = LatencyFrame(LAST, 9, 12.0, 20.0, 30.0, 48.6)
    facts = {"latency": (seen,), "settings": {"buffer_timeout": "50ms"}, "metrics": {"numRecordsInPerSecond": 1200.0}}
    told = shown("latency", **facts)
    assert "within <b>12 ms</b>, 99 of 100 within <b>49 ms</b>, at <b>1.2k</b> records" in told
    assert "at most <b>50ms</b>" in told
    assert "full" in shown("latency", settings={"buffer_timeout": "disabled"})
    assert "immediately" in shown("latency", settings={"buffer_timeout": "0ms"})
    done = CheckpointFrame(7, "COMPLETED", "periodic", 1, 3, 3, 12.4, 2_048)
    assert "<b>7</b> took <b>12 ms</b> and wrote 2.0 kB" in shown(
        "checkpoints", checkpoints=(done,), settings={"checkpoint_interval": "2s"}
    ).replace("2 kB", "2.0 kB")
    going = replace(done, id=8, state="IN_PROGRESS", acknowledged=1)
    assert "<b>8</b> is in progress: 1 of <b>3</b> tasks" in shown("checkpoints", checkpoints=(done, going))
    assert "go back to checkpoint <b>7</b>" in shown("failure", checkpoints=(done,), metrics={"numRestarts": 0})
    assert "go back to checkpoint <b>7</b>" in shown("failure", checkpoints=(done,), state="RESTARTING")
    again = shown("failure", checkpoints=(done,), metrics={"numRestarts": 2}, restore=RestoreFrame(7, 5, False, ""))
    assert "After <b>2</b> failures the tasks run again, from checkpoint <b>7</b> on" in again
    assert again.endswith("and nothing is committed twice.")
    assert "<b>1,440</b> in counts" in shown("results", tables={"counts": 1440})


def test_a_checkpoint_that_is_no_cut_promises_nothing_of_one():
    done = CheckpointFrame(7, "COMPLETED", "periodic", 1, 3, 3, 12.4, 2_048, mode="at-least-once")
    told = shown("checkpoints", checkpoints=(done,))
    assert "of <b>3</b> tasks. With at-least-once, nothing waits for a barrier" in told
    assert "cut" not in told
    again = shown("failure", checkpoints=(done,), metrics={"numRestarts": 2}, restore=RestoreFrame(7, 5, False, ""))
    assert again.endswith("and some records are counted twice after a failure.")


def test_captions_escape_what_comes_from_data_and_users():
    told = shown("results", tables={"<img src=x>": 1}) + shown("failure", state="FAILED", failure="<script>")
    told += shown("dataflow", backpressure="<b onclick=x>")
    assert "<img" not in told
    assert "<script" not in told
    assert "onclick=x>" not in told.replace("onclick=x&gt;", "")


def test_captions_are_written_for_all_scenes_and_not_more_often_than_they_are_read():
    stage = LectureMode("taught", ("graph", "sink"))
    stage.update(FRAME)
    assert stage.captions.data == {"scene": [], "caption": []}, "nobody lectures"
    stage.chosen.data = {"scene": ["results"]}
    assert told(stage) == {"dataflow": captions.dataflow(FRAME), "results": captions.results(FRAME)}
    soon = replace(FRAME, time_us=FRAME.time_us + REST_US // 2, tables={"counts": 5})
    stage.update(soon)
    stage.chosen.data = {"scene": ["dataflow"]}
    assert told(stage)["results"] == captions.results(FRAME)
    stage.update(replace(soon, state="FAILED"), "<p>failed</p>")
    assert stage.said.data == {"state": ["✗ FAILED"], "news": ["<p>failed</p>"]}
    assert told(stage)["results"] == captions.results(soon)
    later = replace(soon, state="FAILED", time_us=soon.time_us + REST_US, tables={"counts": 6})
    stage.update(later)
    assert told(stage)["results"] == captions.results(later)
    stage.chosen.data = {"scene": [""]}
    assert stage.captions.data == {"scene": [], "caption": []}, "the next lecture must not begin with old figures"
    stage.chosen.data = {"scene": ["dataflow"]}
    assert told(stage)["dataflow"] == captions.dataflow(later)


def told(stage):
    """The captions by scene."""
    return dict(zip(*stage.captions.data.values(), strict=True))


def test_a_job_opens_its_lecture_and_a_page_that_nobody_acts_on_has_none(job):
    assert job.lecture("state").view()._lecture.chosen.data == {"scene": ["state"]}
    assert Dashboard(job, scene="stepper").view()._lecture.chosen.data == {"scene": [""]}, "it has no stepper"
    assert View(job, job.recorder.frames(), hears=False)._lecture.arguments(acts=False)["scenes"] == []
