"""The views of the dashboard: variants of the graph, compared tunings, controls that take time, hostile text."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pytest
from bokeh.models import Button, Slider, VSpan, VStrip
from bokeh.plotting import figure
from test_dashboard_live import Comms, Job, Page, display_of, later
from test_dashboard_picture import FRAME, text_of
from waiting import until

import workbench as wb
from workbench.dashboard.charts import wording
from workbench.dashboard.charts.static import style
from workbench.dashboard.contract.background_actions import MOST, BackgroundActions
from workbench.dashboard.contract.steps import KNOBS
from workbench.dashboard.contract.view_table import VIEWS
from workbench.dashboard.page import transport
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.stage import matters
from workbench.dashboard.views import graph, graph_modes, state_part, subtasks
from workbench.dashboard.views.checkpoints import gantt, inflight
from workbench.dashboard.views.controls import busiest
from workbench.dashboard.views.latency_part import changes_html
from workbench.dashboard.views.sink_part import Latest, Series, html, numbers, series
from workbench.dashboard.views.state_part import Held
from workbench.errors import JobError, SettingError
from workbench.jupyter.verbs.running import run_verb
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.telemetry.checkpoint_frames import CheckpointingFrame, RestoreFrame, SubtaskCheckpointFrame
from workbench.telemetry.effects.change_frames import ChangeFrame, Measured
from workbench.telemetry.effects.interruption_log import InterruptionLog
from workbench.telemetry.frames import EventFrame, OperatorFrame, OperatorInput

HOSTILE = (
    "<img src=x onerror=alert(1)>'\"&",
    "</div><svg onload=alert(1)><script>alert(2)</script>",
    "x" * 10_000,
    "\u202eevil\u202c שלום مرحبا",
    "{{7*7}} $$\\alpha$$ @name \x00\x1b[31m\n",
    "",
)

RATES = {"numRecordsIn": 10, "numRecordsOut": 4, "numRecordsInPerSecond": 5.0, "numRecordsOutPerSecond": 2.0}
OPERATORS = (
    OperatorFrame("source", "replay", "", "v1", (), RATES, 0.0, 0.5),
    OperatorFrame("clean", "filter", "x > 1", "v1", (OperatorInput("source", "forward"),), RATES, 0.5, 0.5),
    OperatorFrame("aggregate", "window aggregate", "", "v2", (OperatorInput("clean", "hash"),), RATES, 1.0, 0.5),
)


@pytest.fixture(autouse=True)
def _comms(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)


class Shown:
    """A job, its view, and the page of the view where a test looks at it: to make one takes most of the time."""

    def __init__(self, job, display):
        self.job, self.display, self.view = job, display, display.view

    @cached_property
    def page(self):
        return Page(self.display)


def shown(job, part=None):
    return Shown(job, display_of(job, *job.recorder.frames(), part=part))


# the graph --------------------------------------------------------------------------------------------------------


def test_the_logical_graph_has_a_box_per_operator_and_chained_ones_have_no_buffers():
    look = graph_modes.look(replace(FRAME, operators=OPERATORS), "Logical")
    assert [box.name for box in look.vertices] == ["source", "clean", "aggregate"]
    assert [(e.source, e.target, e.exchange, e.capacity_buffers) for e in look.edges] == [
        ("source", "clean", "forward", 0),
        ("clean", "aggregate", "hash", 32),
    ]
    drawn = graph.edge_columns(look)
    assert drawn["buffers"] == ["", "13/32"]
    assert drawn["usage"] == ["chained: none", "13/32 (41 %)"]


def test_one_vertex_is_taken_apart_and_the_others_stay_whole():
    look = graph_modes.look(FRAME, "Physical", {"v1"})
    assert [box.name for box in look.vertices] == ["source[0]", "source[1]", "aggregate", "delays", "late"]
    assert [(e.source, e.target, e.queued_buffers, e.capacity_buffers) for e in look.edges[:2]] == [
        ("source[0]", "v2", 3, 16),
        ("source[1]", "v2", 10, 16),
    ]
    assert graph_modes.look(FRAME, "Physical") is FRAME


def test_a_click_takes_a_box_apart_and_a_click_on_a_subtask_puts_it_together():
    view = shown(Job(FRAME), "graph")
    part = view.view.parts["graph"]
    modes, tapped = part.inputs

    def names(clicked):
        view.page.change(tapped, "data", {"row": [clicked], "times": [tapped.data["times"][0] + 1]})
        return list(part._boxes.data["name"])

    whole = [vertex.name for vertex in FRAME.vertices]
    assert names("v1") == ["source[0]", "source[1]", *whole[1:]]
    assert names("v2")[:4] == ["source[0]", "source[1]", "aggregate[0]", "aggregate[1]"], "wherever that box stood"
    assert names("source[1]") == [whole[0], "aggregate[0]", "aggregate[1]", *whole[2:]]
    view.page.change(modes, "active", 2)
    assert len(part._boxes.data["name"]) == len(FRAME.tasks)


def test_forty_tasks_are_drawn_without_writing_on_every_channel():
    tasks = tuple(replace(FRAME.tasks[0], name=f"a[{n}]", vertex="v1") for n in range(20))
    tasks += tuple(replace(FRAME.tasks[2], name=f"b[{n}]", vertex="v2") for n in range(20))
    channels = tuple(
        replace(FRAME.channels[0], source=f"a[{m}]", target=f"b[{n}]") for m in range(20) for n in range(20)
    )
    look = graph_modes.look(replace(FRAME, tasks=tasks, channels=channels, edges=FRAME.edges[:1]), "Subtasks")
    drawn = graph.edge_columns(look)
    assert len(drawn["name"]) == 400
    assert set(drawn["rate"]) == {""}
    assert drawn["tip"][0].startswith("hash, ")
    boxes = graph.box_columns(look)
    assert max(boxes["top"]) <= graph.height(look)


def test_boxes_show_a_failure_from_the_end_of_their_tasks_until_the_sources_have_caught_up():
    numbers = wb.Stream.from_table(pa.table({"k": [f"k{n % 7}" for n in range(200)]}), rate=100.0).uid("read")
    counts = numbers.with_parallelism(1).key_by("k").aggregate(n=wb.count()).uid("count").sink_to(wb.DiscardSink())
    job = counts.run(
        "struck", driver="stepping", parallelism=2, buffer_size=4, checkpoint_interval="1s", restart_delay="5s"
    )
    driver, seen = job.stepper.driver, {}
    for look in ("Physical", "Logical", "Subtasks"):
        seen[look] = []
    for until_this in (
        lambda: job.recorder.latest().metrics["runningTime"] > 1_500,
        lambda: job.fail("count[1]") or job.state == "RESTARTING",
        lambda: job.state == "RUNNING",
        lambda: job.over,
    ):
        assert driver.run_until(until_this)
        for look, boxes in seen.items():
            boxes.append(graph.box_columns(graph_modes.look(job.recorder.latest(), look)))
    for look, failed, canceled in (
        ("Physical", "count", "read"),
        ("Logical", "count", "read"),
        ("Subtasks", "count[1]", "count[0]"),
    ):
        before, down, again, after = seen[look]
        assert "restarts" not in "".join(before["shares"] + after["shares"])
        for name, word in ((failed, "failed"), (canceled, "canceled")):
            assert re.fullmatch(rf"{word}; restarts in [45]\.\d s", down["shares"][down["name"].index(name)]), look
        assert down["down_right"] == down["right"]
        assert down["again_right"] == down["left"]
        assert re.fullmatch(r"\d+ to read again", again["shares"][0])
        assert again["again_right"] == [again["right"][0], *again["left"][1:]]
        for calm in (before, after):
            assert calm["down_right"] == calm["again_right"] == calm["left"]


# latency before and after -----------------------------------------------------------------------------------------


def test_the_table_of_tunings_shows_what_was_measured_newest_first():
    before, after = Measured(10.0, 40.0, 50.0, 100.0, markers=120), Measured(2.0, 8.0, 9.0, 250.0, markers=100)
    found = [
        ChangeFrame("speed 1x → 2x", 1_000_000, before, None, "superseded", "speed 1x → 2x: another change came"),
        ChangeFrame("buffer_timeout 1s → 5ms", 20_000_000, before, after, "holds", "buffer_timeout 1s → 5ms: p50 less"),
        ChangeFrame("rate 9 → max", 35_000_000, after, None, "measuring", "rate 9 → max: measuring"),
    ]
    html = changes_html(found, 4)
    rows = [text_of(row) for row in html.split("<tr>")[1:] if "<td" in row]
    assert [row.split(" →")[0].split()[0] for row in rows] == ["rate", "buffer_timeout", "speed"]
    assert "measuring" in rows[0]
    assert "10 ms → 2.0 ms" in rows[1]
    assert "50 ms → 9.0 ms" in rows[1]
    assert "100 → 250" in rows[1]
    few = [replace(found[1], after=replace(after, markers=99))]
    assert "50 ms → – " in text_of(changes_html(few, 4)), "the slowest of a few is no percentile"
    assert "another change came" in rows[2]
    assert "00:00:20 UTC: buffer_timeout 1s → 5ms: p50 less" in html
    assert "rate 9" not in changes_html(found[:2], 4)
    assert "speed" not in changes_html(found, 2)


# checkpoints ------------------------------------------------------------------------------------------------------


def test_a_straggler_is_the_slowest_subtask_compared_with_the_median():
    tasks = tuple(
        SubtaskCheckpointFrame(f"t[{n}]", True, 1.0, 2.0, 3.0, 4.0, took, 10)
        for n, took in enumerate((10.0, 12.0, 50.0))
    )
    checkpoint = replace(FRAME.checkpoints[0], subtasks=tasks)
    assert gantt.straggler(checkpoint) == ("t[2]", 50.0, pytest.approx(50 / 12))
    assert "straggler t[2] 50 ms, 4.2 times the median" in text_of(gantt.words(checkpoint))
    assert gantt.columns(checkpoint)["written"] == [10.0, 10.0, 10.0]
    assert gantt.chosen(replace(FRAME, checkpoints=())) is None


def test_records_before_and_behind_a_barrier_have_different_colours():
    held = replace(FRAME.channels[2], barriers=(), queued_records=300, blocked_us=FRAME.time_us - 120_000)
    waiting = replace(
        FRAME.channels[0], queued_records=300, barriers=(4,), barrier_records=(100,), barrier_buffers=(2,)
    )
    frame = replace(FRAME, channels=(waiting, held))
    page = inflight.html(frame)
    assert "held back for 120 ms" in page
    assert "class='behind' style='width:67%'" in page
    assert "class='before' style='width:33%'" in page
    assert ">behind 2 buffers<" in page
    assert text_of(page).index("held back") < text_of(page).index("behind 2 buffers"), "held channels come first"


def test_where_a_channel_needs_more_room_than_there_is_its_subtasks_are_still_told():
    channel = replace(FRAME.channels[0], source="a name<that is long[10]", target="aggregate[1]")
    cell = re.search(r"<td><div class='channel'.*?</div>", inflight.html(replace(FRAME, channels=(channel,)))).group()
    assert re.findall(r"<i>(.*?)</i>", cell) == ["a name&lt;that is long", "aggregate"], "only these may be cut"
    assert re.findall(r"<span>(.*?)</span>", cell) == ["[10]", " → ", "[1]"]
    assert "title='a name&lt;that is long[10] → aggregate[1]'" in cell
    assert re.search(r"\.channel i \{[^}]*text-overflow: ellipsis", style("inflight"))


# background ----------------------------------------------------------------------------------------------------------


def test_an_errand_is_done_elsewhere_and_told_when_asked():
    background, gate, told = BackgroundActions(), threading.Event(), []
    assert background.run("one", lambda: gate.wait(60), lambda result, problem: told.append((result, problem)))
    assert not background.run("one", lambda: None, lambda result, problem: None), "one of a name at a time"
    for number in range(MOST - 1):
        assert background.run(str(number), lambda: gate.wait(60), lambda result, problem: None)
    assert not background.run("too many", lambda: None, lambda result, problem: None)
    background.settle()
    assert told == []
    gate.set()
    until(lambda: not background.is_running("one"))
    background.settle()
    assert told == [(True, None)]


def test_what_goes_wrong_on_an_errand_is_told_in_a_sentence():
    background, told = BackgroundActions(), []

    def refuse():
        raise JobError("the savepoint 'a' already exists: choose another name")

    background.run("ours", refuse, lambda result, problem: told.append(problem))
    background.run("other", lambda: 1 / 0, lambda result, problem: told.append(problem))
    until(lambda: not background.is_running("ours") and not background.is_running("other"))
    background.settle()
    assert sorted(told) == [
        "ZeroDivisionError: division by zero",
        "the savepoint 'a' already exists: choose another name",
    ]


# controls ---------------------------------------------------------------------------------------------------------


def press(view, label):
    buttons = [b for b in view.view.root.select({"type": Button}) if b.label == label]
    assert len(buttons) == 1, label
    view.page.press(buttons[0])


def settled(view):
    background = view.view.easel.background
    until(lambda: not background._running)
    view.job.ring.append(later(view.job.ring[-1]))
    view.display.show(0.0)
    view.page.receive()
    return view.page.texts()


def test_every_control_asks_the_job_for_what_it_says():
    view = shown(Job(replace(FRAME, settings={**FRAME.settings, "stall": "delays"})), "controls")
    controls, page = view.view.parts["controls"], view.page
    settled(view)
    page.change(controls.knobs.sliders["buffer_size"].exact, "value", "37")
    page.change(controls.knobs.sliders["checkpoint_mode"].slider, "value", 1)
    page.change(controls.timeline.slider, "value_throttled", 1_372_662_000)
    page.change(controls.taskmanager, "value", "tm-0")
    press(view, "Fail TaskManager")
    press(view, "Fail coordinator")
    page.change(controls.operator, "value", "aggregate")
    page.change(controls.rest, "value", "7ms")
    press(view, "Slow down")
    press(view, "Stall")
    page.change(controls.operator, "value", "delays")
    press(view, "Release")
    assert view.job.asked == [
        {"buffer_size": "37"},
        {"checkpoint_mode": "at-least-once"},
        ("seek", {"": "2013-07-01T07:00:00"}),
        ("faults.fail", {"taskmanager": "tm-0"}),
        ("faults.fail", {"coordinator": True}),
        ("faults.slow_down", {"": "aggregate,7ms"}),
        ("faults.stall", {"": "aggregate,True"}),
        ("faults.stall", {"": "delays,False"}),
    ]
    view.job.asked.clear()
    page.change(controls.savepoint_name, "value", "monday")
    press(view, "Savepoint")
    assert "✓ savepoint monday is complete" in settled(view)
    page.change(controls.knobs.sliders["parallelism"].exact, "value", "3")
    assert "✓ parallelism is 3" in settled(view)
    assert view.job.asked == [("savepoint", {"": "monday"}), {"parallelism": "3"}]


def test_what_is_refused_is_said_beside_the_control():
    view = shown(Job(FRAME), "controls")
    view.page.change(view.view.parts["controls"].knobs.sliders["speed"].exact, "value", "max")
    view.page.receive()
    assert "✗ speed is &lt;img" in view.page.texts()


def test_a_savepoint_without_a_name_gets_the_next_free_one():
    view = shown(Job(FRAME), "controls")
    settled(view)
    view.view.parts["controls"].savepoints.options = ["before-fix", "savepoint-1"]
    press(view, "Savepoint")
    assert "✓ savepoint savepoint-2 is complete" in settled(view)


def test_savepoints_are_listed_anew_after_a_restart_for_what_the_coordinator_before_completed_last():
    view = shown(Job(FRAME), "controls")
    listed = view.view.parts["controls"].savepoints
    settled(view)
    assert listed.options == ["before-fix"]
    view.job.savepoints = lambda: ["before-fix", "monday"]
    restarts = int(FRAME.metrics["numRestarts"]) + 1
    view.view.update(later(view.job.ring[-1], 9, metrics={**FRAME.metrics, "numRestarts": restarts}))
    until(lambda: not view.view.easel.background.is_running("savepoints"))
    view.view.easel.background.settle()
    assert listed.options == ["before-fix", "monday"]


def test_after_a_restore_the_same_display_shows_the_job_that_goes_on():
    job, feeder = Job(FRAME), Pump(look_s=0.01)
    again = Job(replace(FRAME, backpressure="I am the job that goes on."))
    job.restore = lambda name: again
    board = Dashboard(job, "controls", feeder)
    board._repr_mimebundle_()
    (display,) = feeder.displays
    display.line._telemetry.init()
    controls = display.view.parts["controls"]
    until(lambda: "before-fix" in controls.savepoints.options)
    with display.line.lock:
        job.ring.append(later(FRAME, state="CANCELED"))
        controls._restore()
    until(lambda: any("I am the job that goes on" in text for text in display.line._telemetry.sent))
    assert feeder.displays == (display,)
    board.close()
    until(lambda: not feeder.is_running)


# views alone ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_each_view_stands_alone_and_follows_the_job(name):
    view = shown(Job(replace(FRAME, operators=OPERATORS)), name)
    assert list(view.view.parts) == [name]
    view.job.ring.append(later(FRAME, operators=OPERATORS, backpressure="Now it is another task."))
    view.display.show(0.0)
    view.page.receive()
    assert "Now it is another task." in view.page.texts()
    cards = {css for model in view.view.root.references() for css in getattr(model, "css_classes", ())}
    assert f"wb-{name}" in cards


def test_the_magic_and_the_method_show_one_view():
    job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("seen")
    job.wait("60s")
    assert repr(run_verb(["show", "seen", "graph"])) == "<Dashboard of job 'seen', graph: FINISHED>"
    assert repr(job.view("state")) == "<Dashboard of job 'seen', state: FINISHED>"
    with pytest.raises(SettingError, match="view 'grahp'"):
        job.view("grahp")
    with pytest.raises(SettingError, match="view 'nothing'"):
        Dashboard(job, "nothing")


# hostile text -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("evil", HOSTILE, ids=["html", "svg", "long", "right-to-left", "control", "empty"])
def test_hostile_names_and_data_are_text_everywhere(evil):
    operators = tuple(replace(o, uid=f"{evil}{n}", kind=evil, description=evil) for n, o in enumerate(OPERATORS))
    frame = replace(
        FRAME, job=evil, failure=evil, backpressure=evil, tables={evil: 1}, operators=operators,
        settings={**FRAME.settings, "slow_down": evil, "stall": evil},
        vertices=tuple(replace(v, name=evil, operators=((evil, evil, evil),)) for v in FRAME.vertices),
        tasks=tuple(replace(task, name=evil, watermarkHolder=evil, splits={evil: None}) for task in FRAME.tasks),
        channels=tuple(replace(c, source=evil, target=evil) for c in FRAME.channels),
        checkpoints=tuple(
            replace(
                c, reason=evil, mode=evil, path=evil,
                subtasks=(SubtaskCheckpointFrame(evil, True, 1.0, 1.0, 1.0, 1.0, 1.0),),
            )
            for c in FRAME.checkpoints
        ),
        events=(EventFrame(FRAME.time_us, "tune", evil),),
        restore=RestoreFrame(1, 1, True, evil), checkpointing=CheckpointingFrame(evil, True, (evil,)),
    )  # fmt: skip
    job = Job(frame)
    job.name = evil
    view = shown(job)
    texts = view.view.easel.texts
    held = Held(1, (({evil: evil}, {evil: evil, "n": 1}), ({evil: None}, None)))
    rows = Latest(2, pa.table({evil: [evil, None], "n": [1, None]}))
    pages = [
        *(texts.source.data[name][0] for name in texts.divs),
        subtasks.vertices_html(frame), subtasks.subtasks_html(frame),
        state_part.html(held, evil, 5), state_part.summary(frame, operators[0].uid, held), html(rows, 5),
    ]  # fmt: skip
    for page in pages:
        lowered = page.lower()
        assert "<img" not in lowered
        assert "<svg" not in lowered
        assert "<script" not in lowered
        assert not {"\x00", "\x1b"} & set(html(rows, 5)), "control characters of data are replaced"
    assert [one.name for one in series(rows, "n")] == [wording.plain(evil, 24)]
    assert "null" in html(rows, 5)
    assert len(html(rows, 5)) < 5_000, "cells are cut"


def test_results_of_windows_are_plotted_by_their_keys():
    ends = pa.array([60, 60, 120], pa.timestamp("s"))
    rows = pa.table({"room": [1, 2, 1], "floor": [0, 0, 0], "window_start": ends, "window_end": ends, "n": [7, 8, 9]})
    latest = Latest(3, rows)
    assert numbers(rows) == ["n"], "a key is no result"
    assert series(latest, "n") == [
        Series("1 · 0", (60_000.0, 120_000.0), (7.0, 9.0)),
        Series("2 · 0", (60_000.0,), (8.0,)),
    ]
    whole = Latest(3, rows.select(["window_start", "window_end", "n"]))
    assert [(one.name, one.y) for one in series(whole, "n")] == [("n", (7.0, 8.0, 9.0))]


def test_whole_numbers_that_come_again_are_a_key():
    rows = pa.table({"k": [0, 1, 0, 1, 0], "total": [3, 4, 7, 9, 12]})
    assert numbers(rows) == ["total"]
    assert [one.name for one in series(Latest(5, rows), "total")] == ["0", "1"]
    assert numbers(rows.slice(0, 3)) == ["k", "total"]


def test_what_matters_now_has_no_empty_card():
    names = ["latency", "watermarks", "buffers", "sink", "events", "roots"]
    read = [replace(task, metrics={"numRecordsIn": 5, "currentOutputWatermark": None}) for task in FRAME.tasks]
    timeless = replace(FRAME, metrics={}, tasks=tuple(replace(task, event_times=()) for task in read))
    assert matters(None, names) == ["latency", "watermarks", "sink"]
    assert matters(timeless, names) == ["latency", "sink", "roots"]
    assert matters(timeless, names[:-1]) == ["latency", "buffers", "sink"]
    marked = replace(read[0], metrics={"numRecordsIn": 5, "currentOutputWatermark": 7})
    assert matters(replace(timeless, tasks=(marked,)), names) == ["latency", "watermarks", "sink"]


def test_null_is_told_apart_from_the_text():
    assert wording.plain(None, 9) == "null"
    page = html(Latest(1, pa.table({"a": pa.array([None], pa.string())})), 3)
    assert "class='muted'" in page
    assert wording.plain("x" * 50, 10) == "x" * 9 + "…"


def test_numbers_of_data_are_written_with_their_digits():
    values = [1_234_567.25, 12_345.678, 1e6, 0.1 + 0.2, -3.0, 1e-7, 2.5e17, float("nan")]
    page = html(Latest(len(values), pa.table({"v": values})), 10)
    assert re.findall(r">([^<]+)</td>", page)[::-1] == [
        "1,234,567.25", "12,345.7", "1,000,000", "0.3", "-3", "1e-07", "2.5e+17", "nan",
    ]  # fmt: skip
    assert "title='0.30000000000000004'" in page
    held = Held(1, (({"k": "a"}, {"count": 1_234_567}),))
    assert "<td class='n'>1,234,567</td>" in state_part.html(held, "count", 5)


def test_the_size_of_state_is_that_of_the_last_complete_checkpoint_though_the_history_has_forgotten_it():
    done = next(c for c in FRAME.checkpoints if c.state == "COMPLETED")
    failed = tuple(replace(done, id=done.id + n, state="FAILED") for n in range(1, 4))
    told = [state_part.sizes(replace(FRAME, operators=OPERATORS, **known), "aggregate") for known in (
        {"checkpoints": (done,)}, {"checkpoints": failed, "earlier": (done,)},
    )]  # fmt: skip
    assert told[0] == told[1] != []


def test_state_that_cannot_be_queried_says_why(monkeypatch):
    def refuse(_job, uid):
        raise JobError(f"the state of {uid!r} is <not> there")

    monkeypatch.setattr(Job, "operator_state", refuse, raising=False)
    view = shown(Job(replace(FRAME, operators=OPERATORS)), "state").view
    until(lambda: not view.easel.background.is_running("state"))
    view.easel.background.settle()
    assert "the state of &#x27;aggregate&#x27; is &lt;not&gt; there" in view.parts["state"]._summary.html


def test_each_slider_stands_in_the_card_of_what_it_changes():
    view = shown(Job(FRAME))
    root = view.view.root
    cards = {name: next(iter(root.select({"css_classes": ["wb-card", f"wb-{name}"]}))) for name in view.view.parts}
    on_spark = {slider.slider.id for slider in view.view.parts["controls"].elsewhere.on_spark.sliders.values()}
    sliders = [slider for slider in root.select({"type": Slider}) if slider.id not in on_spark]
    names = {slider.name for slider in sliders} - {None}
    places = {
        knob: " and ".join(
            name
            for name, card in cards.items()
            for slider in card.select({"type": Slider, "name": knob})
            if slider in sliders
        )
        for knob in names
    }
    assert places == {
        **dict.fromkeys(("buffer_timeout", "buffer_size"), "latency"),
        **dict.fromkeys(("checkpoint_interval", "checkpoint_mode", "aligned_checkpoint_timeout"), "checkpoints"),
        "speed": "watermarks and event_time", "rate": "buffers", "parallelism": "graph", "restart_delay": "controls",
    }  # fmt: skip
    every = {knob.name for knob in KNOBS if knob.name not in ARCHITECTURE_KNOBS}
    assert set(places) == every, "every setting has its slider"


def test_all_charts_over_time_have_a_band_from_a_failure_to_where_the_sources_were():
    at_us = FRAME.time_us - 2_000_000
    log = InterruptionLog()
    log.failed(at_us, "sum[1] failed", "no")
    log.waits(at_us, at_us + 100_000)
    log.deployed(at_us + 120_000, 13, 2_340, {"read[0]": 5_000})
    log.sample(FRAME.time_us, {"read[0]": 5_000})
    view = shown(Job(replace(FRAME, interruptions=log.interruptions)))
    strips = list(view.view.root.select({"type": VStrip}))
    assert {(strip.x0, strip.x1) for strip in strips} == {("start", "back"), ("back", "end")}
    drawn = [
        [one.data_source.data for one in plot.renderers if isinstance(one.glyph, VStrip)]
        for plot in view.view.root.select({"type": figure})
    ]
    bands = [found[0] for found in drawn if found]
    assert len(bands) == 4, "latency, throughput, event-time lag and event time"
    for columns in bands:
        at_ms = at_us / 1000
        assert [list(columns[name]) for name in ("start", "back", "end", "text")] == [
            [at_ms], [at_ms + 120], [at_ms + 2_000], ["sum[1] failed, 2.0 s"]
        ]  # fmt: skip


def test_all_charts_over_time_have_a_mark_where_a_setting_was_changed():
    tuned = EventFrame(FRAME.time_us - 3_000_000, "tune", "speed = 600x")
    view = shown(Job(replace(FRAME, events=(tuned,))))
    marks = [
        one.data_source.data
        for plot in view.view.root.select({"type": figure})
        for one in plot.renderers
        if isinstance(one.glyph, VSpan) and "drop" in one.data_source.data
    ]
    assert len(marks) == 4, "latency, throughput, event-time lag and event time"
    for columns in marks:
        assert [list(columns[name]) for name in ("x", "text")] == [[tuned.time_us / 1000], ["speed = 600x"]]


def test_beside_a_slider_stands_what_its_setting_does_now():
    job = Job(replace(FRAME, effects={"checkpoint_interval": "costs 0.8 % of the time of sum[0]"}))
    knobs = {**shown(job, "checkpoints").view.knobs, **shown(job, "latency").view.knobs}
    effects = {name: knob._effect.html for name, knob in knobs.items() if knob._effect is not None}
    told = {name: (knobs[name]._note.html, re.sub("<[^>]*>", "", effect)) for name, effect in effects.items()}
    assert told["checkpoint_interval"] == ("in force: <b>5s</b>", "costs 0.8 % of the time of sum[0]")
    assert told["buffer_timeout"] == ("in force: <b>50ms</b>", "")
    interval = knobs["checkpoint_interval"]
    interval.answer.refuse("no")
    interval.update("5s", False, "costs 0.8 % of the time of sum[0]")
    assert interval._effect.html == "", "the answer has its place"


def test_a_slider_without_use_takes_no_room():
    job = Job(replace(FRAME, settings={**FRAME.settings, "speed": None}))
    assert not shown(job, "watermarks").view.knobs["speed"].model.visible
    assert shown(job, "latency").view.knobs["buffer_timeout"].model.visible


def test_a_view_that_stands_alone_has_its_sliders_with_it():
    view = shown(Job(FRAME), "latency")
    view.page.change(view.view.knobs["buffer_timeout"].slider, "value", 3)
    assert view.job.asked == [{"buffer_timeout": "5ms"}]


def test_the_operator_that_is_to_be_slowed_down_is_the_busiest_one_that_is_no_sink():
    vertices = [
        replace(
            vertex, operators=((f"op-{vertex.id}", "map", ""),), metrics={**vertex.metrics, "busyTimeMsPerSecond": busy}
        )
        for vertex, busy in zip(FRAME.vertices, (900.0, 300.0, 500.0, 1000.0), strict=False)
    ]
    targets, sources = {edge.target for edge in FRAME.edges}, {edge.source for edge in FRAME.edges}
    inner = {v.id: v.metrics["busyTimeMsPerSecond"] for v in vertices if v.id in targets & sources}
    expected = f"op-{max(inner, key=inner.get)}"
    assert busiest(replace(FRAME, vertices=tuple(vertices))) == expected
    view = shown(Job(replace(FRAME, vertices=tuple(vertices))), "controls")
    assert view.view.parts["controls"].operator.value == expected
    view.page.change(view.view.parts["controls"].operator, "value", f"op-{vertices[0].id}")
    settled(view)
    assert view.view.parts["controls"].operator.value == f"op-{vertices[0].id}", "a choice stays"
    press(view, "Slow down")
    assert view.job.asked == [("faults.slow_down", {"": f"op-{vertices[0].id},50ms"})]
