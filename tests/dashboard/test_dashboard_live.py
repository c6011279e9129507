"""The dashboard while a job runs: messages to the page, controls, and the pump, compared with a copy of the page."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pyarrow as pa
import pytest
from bokeh.document import Document
from bokeh.models import Axis, Button, ColumnDataSource, Div, PrintfTickFormatter, Slider
from comm.base_comm import BaseComm, CommManager
from test_dashboard_picture import FRAME, HOSTILE
from waiting import until

from workbench.dashboard.charts.time_chart import spaced
from workbench.dashboard.contract import steps
from workbench.dashboard.contract.steps import nearest, same_value
from workbench.dashboard.page import pace, transport
from workbench.dashboard.page.page import Pulse
from workbench.dashboard.shown import display
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import View
from workbench.dashboard.views.buffers import columns
from workbench.dashboard.views.controls import PAUSE, RESUME
from workbench.dashboard.views.graph import box_columns
from workbench.errors import JobError, SettingError
from workbench.runtime.settings.table import TABLE
from workbench.telemetry.frames import EventFrame

BUFFER_TIMEOUT, CHECKPOINT_INTERVAL, SPEED = (
    TABLE[name] for name in ("buffer_timeout", "checkpoint_interval", "speed")
)


class Comm:
    """A comm whose other end is this test."""

    def __init__(self, on_msg=None, on_open=None):
        self.id = f"comm-{id(self)}"
        self.sent, self.on_msg, self._comm = [], on_msg, None
        self.on_open = on_open

    def init(self):
        self._comm = self

    def send(self, data=None, metadata=None, buffers=()):
        assert not buffers, "binary buffers cost two messages each"
        self.sent.append(data)

    def close(self):
        self._comm = None


class Comms:
    """Stands in for Panel's comm manager."""

    _comms: dict[str, object] = {}  # noqa: RUF012 - as Panel has it

    @staticmethod
    def get_server_comm():
        return Comm()

    @staticmethod
    def get_client_comm(on_msg, on_open):
        return Comm(on_msg, on_open)


class Page:
    """The browser's side of a display: a document that is changed by what the kernel sends."""

    def __init__(self, display):
        self.line = display.line
        self.document = Document.from_json(json.loads(self.line.document()["document"]))
        self.line._control.on_open({})

    def receive(self):
        """Apply all patches; how many there were, and their bytes."""
        sent = self.line._telemetry.sent
        messages = [json.loads(text) for text in sent[2::3]]
        total = sum(len(text) for text in sent)
        sent.clear()
        for message in messages:
            self._apply(message)
        return len(messages), total

    def _apply(self, message):
        """The document searches for its models at the end of a message, and not after each of its changes."""
        models, moved = self.document.models, []
        models.invalidate = lambda: moved.append(True)
        self.document.apply_json_patch(message)
        del models.invalidate
        if moved:
            models.invalidate()

    def change(self, *changes):
        """Send changes in one message: a model, an attribute and its value, again and again."""
        triples = zip(changes[::3], changes[1::3], changes[2::3], strict=True)
        self._send(*({"kind": "ModelChanged", "model": {"id": m.id}, "attr": a, "new": v} for m, a, v in triples))

    def press(self, button):
        value = {"type": "map", "entries": [["model", {"id": button.id}]]}
        event = {"type": "event", "name": "button_click", "values": value}
        self._send({"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event})

    def _send(self, *events):
        header = {"msgid": "1", "msgtype": "PATCH-DOC"}
        self.line._control.on_msg({"header": header, "metadata": {}, "content": {"events": events}, "_buffers": {}})

    def texts(self):
        columns = [column for m in self.document.models for column in (getattr(m, "data", None) or {}).items()]
        return "\n".join(str(cells[0]) for name, cells in columns if name.startswith("piece "))


def display_of(job, *history, part=None):
    view = View(job, history, part)
    return display.Display(job, view, transport.Line(view.document(), view.script, view.inputs))


class Part:
    """A part of a job: what is asked of it is asked of the job, under its name."""

    def __init__(self, job, name):
        self._job, self._name = job, name

    def __getattr__(self, verb):
        return getattr(self._job, f"{self._name}.{verb}")


class Job:
    """A job that remembers what it was asked."""

    live = True

    def __init__(self, *frames):
        self.name, self.asked, self.ring = "delays", [], list(frames)
        self.recorder = SimpleNamespace(
            latest=lambda: self.ring[-1] if self.ring else None,
            frames=lambda after=-1: tuple(frame for frame in self.ring if frame.sequence > after),
        )

    @property
    def state(self):
        return self.ring[-1].state

    def tune(self, **settings):
        if settings.get("speed") == "max":
            raise SettingError(f"speed is {HOSTILE}: no")
        self.asked.append(settings)

    def savepoints(self):
        return ["before-fix"]

    def table(self, name):
        return pa.table({"origin": ["JFK", "LGA"], "flights": [3, 4]})

    @property
    def faults(self):
        return Part(self, "faults")

    def __getattr__(self, verb):
        if verb.startswith("_"):
            raise AttributeError(verb)
        return lambda *words, **more: self.asked.append(
            (verb, {"": ",".join(map(str, words)), **more} if words else more)
        )


def later(frame, steps_=1, **changes):
    return replace(frame, sequence=frame.sequence + steps_, time_us=frame.time_us + 400_000 * steps_, **changes)


@pytest.fixture(autouse=True)
def _comms(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)


def opened(part=None):
    """A display of a job, or of a part of it, and its page."""
    job = Job(FRAME)
    display_ = display_of(job, FRAME, part=part)
    return SimpleNamespace(job=job, display=display_, page=Page(display_), view=display_.view)


@pytest.fixture(scope="module")
def whole():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transport, "Comms", Comms)
        return opened()  # takes seconds


@pytest.fixture
def shown(whole):
    """The whole dashboard, which again shows what a new one does; tests may only show frames on it."""
    whole.job.ring[:] = [later(FRAME, whole.job.ring[-1].sequence)]
    whole.display.show(time.monotonic())
    whole.page.receive()
    return whole


@pytest.fixture
def fresh():
    return opened()


@pytest.fixture
def controls():
    return opened("controls")


def show(shown, **changes):
    shown.job.ring.append(later(shown.job.ring[-1], **changes))
    shown.display.show(time.monotonic())


def find(shown, kind, **attributes):
    found = [
        m for m in shown.view.root.select({"type": kind}) if all(getattr(m, k) == v for k, v in attributes.items())
    ]
    assert len(found) == 1, found
    return found[0]


def control(shown, label):
    return find(shown, Button, label=label)


def slider(shown, title):
    """The first one of that title: the speed has one with each view of event time."""
    named = {"role": "group", "aria-label": title}
    return next(one for one in shown.view.root.select({"type": Slider}) if one.html_attributes == named)


# the wire ---------------------------------------------------------------------------------------------------------


def test_the_page_holds_what_the_kernel_drew(shown):
    faster = tuple(
        replace(v, metrics={**v.metrics, "numRecordsInPerSecond": 77.0, "busyTimeMsPerSecond": 600.0})
        for v in FRAME.vertices
    )
    show(shown, vertices=faster, backpressure="Now it is another task.")
    assert shown.page.receive()[0] == 1
    assert "Now it is another task." in shown.page.texts()
    drawn = next(m.data for m in shown.page.document.models if "pressed_1" in (getattr(m, "data", None) or {}))
    for name, cells in box_columns(shown.job.ring[-1]).items():
        assert list(drawn[name]) == pytest.approx(cells) if isinstance(cells[0], float) else list(drawn[name]) == cells


def test_every_model_of_the_page_equals_the_kernels_after_many_frames(shown):
    for step in range(1, 40):
        edges = tuple(replace(e, queued_buffers=step, usage=step / 40) for e in FRAME.edges)
        show(shown, edges=edges, events=(*FRAME.events, EventFrame(FRAME.time_us, "notice", f"step {step}")))
    shown.page.receive()
    for model in shown.view.root.references():
        copy = shown.page.document.get_model_by_id(model.id)
        if getattr(model, "data", None) is not None:
            assert {k: list(map(str, v)) for k, v in copy.data.items()} == {
                k: list(map(str, v)) for k, v in model.data.items()
            }


def test_an_unchanged_frame_sends_a_pulse_and_nothing_else(shown):
    shown.display.show(time.monotonic())
    shown.page.receive()
    shown.display.show(time.monotonic())
    count, size = shown.page.receive()
    assert count == 1
    assert size < 1_000


def test_models_of_two_kernels_differ_on_one_page():
    """Bokeh counts from 1,000 in each process: in JupyterLab a patch of one kernel would change the other's view."""
    assert not any(re.fullmatch(r"p\d+", each.id) for each in (Pulse().source, Pulse().echo))


def test_a_frame_is_a_small_message(shown):
    show(shown)
    shown.page.receive()
    show(shown, metrics={**FRAME.metrics, "numRecordsInPerSecond": 99.0})
    _, size = shown.page.receive()
    assert size < 4_000


def test_no_div_changes_its_text_since_that_would_lay_out_the_page_anew(shown):
    before = {div.id: div.text for div in shown.view.root.select({"type": Div})}
    show(shown, backpressure="Something else.", failure="boom")
    assert {div.id: div.text for div in shown.view.root.select({"type": Div})} == before


@pytest.mark.slow
def test_the_page_may_change_inputs_only(fresh):
    fresh.page.change(fresh.view.root, "width", 640)
    assert fresh.view.root.width is None


def test_nothing_is_sent_before_the_page_has_opened_its_line():
    job = Job(FRAME)
    unseen = display_of(job, part="graph")
    unseen.line.render()
    unseen.show(time.monotonic())
    assert unseen.line._telemetry.sent == []
    assert not unseen.is_due(time.monotonic())


def test_the_bundle_loads_bokehjs_from_the_server_that_the_page_came_from(shown):
    html = shown.display.line.render()[0]["text/html"]
    assert "panel-preview/static/js/" in html
    assert len(html) < 640_000  # the models of nine views; BokehJS itself has millions


def control_comm(monkeypatch, sent, on_msg):
    manager = SimpleNamespace(register_target=lambda name, handler: None)
    shell = SimpleNamespace(kernel=SimpleNamespace(comm_manager=manager))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(transport.ControlComm, "send", lambda self, metadata: sent.append(metadata))
    return transport.ControlComm(on_msg=on_msg)


def test_a_message_is_handled_without_taking_the_cells_output_away(monkeypatch):
    """A cell prints on the main thread while the page's answer is handled on another."""
    handled, sent = [], []
    comm = control_comm(monkeypatch, sent, lambda message: handled.append((message, sys.stdout is outside)))
    outside = sys.stdout
    wire = SimpleNamespace(on_msg=lambda handler: None, handle_msg=None)
    comm._handle_open(wire, {})
    wire.handle_msg({"content": {"data": {"comm_id": "c", "n": 1}}, "buffers": []})
    assert handled == [({"n": 1, "_buffers": {}}, True)]
    assert sent == [{"msg_type": "Ready", "comm_id": "c"}]


def test_a_message_that_cannot_be_handled_is_answered_all_the_same(monkeypatch, caplog):
    sent = []
    comm = control_comm(monkeypatch, sent, lambda message: 1 / 0)
    comm._handle_msg({"content": {"data": {"comm_id": "c"}}, "buffers": []})
    assert sent == [{"msg_type": "Ready", "comm_id": "c"}]
    assert "could not be handled" in caplog.text


def drawn(page, column):
    return next(list(m.data[column]) for m in page.document.models if column in (getattr(m, "data", None) or {}))


@pytest.mark.slow
def test_a_part_that_is_not_on_the_screen_is_sent_nothing_and_catches_up_when_it_is_seen(fresh):
    page = fresh.page
    page.change(fresh.view.pulse.seen, "data", {"part": ["graph"]})
    page.receive()
    before = drawn(page, "receive_right")
    channels = tuple(replace(c, inputQueueLength=c.inputQueueLength + 1) for c in FRAME.channels)
    slower = tuple(replace(v, metrics={**v.metrics, "busyTimeMsPerSecond": 123.0}) for v in FRAME.vertices)
    show(fresh, channels=channels, vertices=slower)
    page.receive()
    assert drawn(page, "receive_right") == before
    assert all("busy 12" in text for text in drawn(page, "shares"))
    page.change(fresh.view.pulse.seen, "data", {"part": ["graph", "buffers"]})
    page.receive()
    assert drawn(page, "receive_right") == pytest.approx(columns(fresh.job.ring[-1])["receive_right"])
    assert drawn(page, "receive_right") != before


def test_tables_change_no_faster_than_one_can_read_but_at_once_when_a_setting_does(shown):
    show(shown)
    shown.page.receive()
    soon = replace(shown.job.ring[-1], sequence=99, time_us=shown.job.ring[-1].time_us + 100_000)
    busier = tuple(replace(t, metrics={**t.metrics, "backPressuredTimeMsPerSecond": 770.0}) for t in soon.tasks)
    shown.job.ring.append(replace(soon, tasks=busier))
    shown.display.show(time.monotonic())
    shown.page.receive()
    assert "HIGH 77 %" not in shown.page.texts()
    shown.job.ring.append(
        replace(soon, tasks=busier, sequence=100, settings={**soon.settings, "buffer_timeout": "7ms"})
    )
    shown.display.show(time.monotonic())
    shown.page.receive()
    assert "HIGH 77 %" in shown.page.texts()


# controls ---------------------------------------------------------------------------------------------------------


def test_a_page_that_was_loaded_again_gets_all_that_has_changed_since_it_was_rendered(fresh):
    """The notebook shows it what it has stored: the view as it was rendered."""
    stored = fresh.display.line._document.to_json()
    timeout = next(m for m in fresh.page.document.models if isinstance(m, Slider) and m.name == "buffer_timeout")
    fresh.page.change(timeout, "value", 10)
    for step in range(1, 4):
        show(fresh, events=(*FRAME.events, EventFrame(FRAME.time_us, "notice", f"step {step}")))
    axis = next(m for m in fresh.view.root.select({"type": Axis}))
    fresh.display.line.push(lambda: axis.update(formatter=PrintfTickFormatter(format="%d")))  # a model of its own
    fresh.display.line.push(lambda: axis.formatter.update(format="%x"))
    fresh.page.line._telemetry.sent.clear()

    fresh.page.document = Document.from_json(stored)
    fresh.display.line._control.on_open({})
    assert fresh.page.receive()[0] == 1
    theirs = {model.id: model for model in fresh.page.document.models}
    for ours in fresh.display.line._document.models:
        if isinstance(ours, ColumnDataSource):
            assert {k: list(map(str, v)) for k, v in theirs[ours.id].data.items()} == {
                k: list(map(str, v)) for k, v in ours.data.items()
            }
    assert "step 3" in fresh.page.texts()
    assert theirs[timeout.id].value == 10
    assert theirs[axis.id].formatter.format == "%x"
    fresh.display.line.push(lambda: axis.formatter.update(format="%o"))
    assert fresh.page.receive()[0] == 1
    assert theirs[axis.id].formatter.format == "%o"


def test_a_page_that_opens_its_comm_again_keeps_it(monkeypatch):
    published, handled = [], []

    class Wire(BaseComm):
        def publish_msg(self, msg_type, **_):
            published.append((msg_type, self.comm_id))

    monkeypatch.setattr("comm.create_comm", Wire)
    manager = CommManager()
    monkeypatch.setattr("comm.get_comm_manager", lambda: manager)
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=SimpleNamespace(comm_manager=manager)))
    control = transport.ControlComm(on_msg=handled.append)
    monkeypatch.setattr(control, "send", lambda metadata: None)
    for _ in range(3):
        manager.comm_open(None, "", {"content": {"comm_id": "c", "target_name": control.id}})
        gc.collect()
    manager.comm_msg(None, "", {"content": {"comm_id": "c", "data": {"n": 1}}, "buffers": []})
    assert (published, handled) == ([], [{"n": 1, "_buffers": {}}])
    control.close()
    assert published == [("comm_close", "c")]


def test_moving_a_slider_tunes_the_job_at_once(controls):
    controls.page.change(slider(controls, "Buffer timeout"), "value", 3)
    controls.page.change(slider(controls, "Checkpoint interval"), "value", 10)
    assert controls.job.asked == [{"buffer_timeout": "5ms"}, {"checkpoint_interval": "disabled"}]


def test_a_slider_waits_for_what_was_asked_and_then_follows_what_is_in_force(controls, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(steps, "monotonic", lambda: now[0])
    moved = slider(controls, "Buffer timeout")
    controls.page.change(moved, "value", 3)
    show(controls)
    assert moved.value == 3, "the old value in force must not fight the hand"
    show(controls, settings={**FRAME.settings, "buffer_timeout": "5ms"})
    assert moved.value == 3
    show(controls, settings={**FRAME.settings, "buffer_timeout": "90ms"})
    assert moved.value == BUFFER_TIMEOUT.steps.index("100ms"), "someone else tuned it"
    controls.page.receive()
    assert "in force: <b>90ms</b>" in controls.page.texts()
    controls.page.change(moved, "value", 0)
    now[0] += 3.5
    show(controls)
    assert moved.value == BUFFER_TIMEOUT.steps.index("100ms"), "what was asked never came"
    assert controls.job.asked == [{"buffer_timeout": "5ms"}, {"buffer_timeout": "0ms"}], "following must not tune"


@pytest.mark.parametrize("seen_first", [True, False])
def test_what_comes_to_be_seen_in_the_same_moment_does_not_put_the_slider_back(controls, seen_first):
    moved, seen = slider(controls, "Buffer timeout"), controls.view.pulse.seen
    show(controls)
    assert moved.value == BUFFER_TIMEOUT.steps.index("50ms")
    controls.view._shown.pop("controls")  # as if it had missed the last frame
    hand, sight = (moved, "value", 3), (seen, "data", {"part": ["controls"]})
    controls.page.change(*(sight + hand if seen_first else hand + sight))
    assert moved.value == 3
    assert controls.job.asked == [{"buffer_timeout": "5ms"}]


def test_what_comes_to_be_seen_in_the_same_moment_does_not_put_the_timeline_back(controls):
    replay = replace(FRAME.replay, position_us=FRAME.replay.start_us)
    show(controls, replay=replay)
    place = slider(controls, "Place in the history")
    controls.view._shown.pop("controls")
    controls.page.change(controls.view.pulse.seen, "data", {"part": ["controls"]}, place, "value", place.end)
    assert place.value == place.end


def test_a_refusal_is_a_sentence_and_the_slider_goes_back(controls):
    moved = slider(controls, "Replay speed")
    controls.page.change(moved, "value", len(SPEED.steps) - 1)
    controls.page.receive()
    assert "✗ speed is &lt;img" in controls.page.texts()
    assert "<img" not in controls.page.texts()
    show(controls)
    assert moved.value == SPEED.steps.index("600x")
    assert controls.job.asked == []


@pytest.mark.slow
def test_buttons_ask_the_job(controls):
    for label in (PAUSE, "Checkpoint now", "Fail task", "■ Stop job"):
        controls.page.press(control(controls, label))
    assert controls.job.asked == [
        ("pause", {}),
        ("checkpoint", {}),
        ("faults.fail", {"task": "late[0]"}),
        ("stop", {"wait": False}),
    ]


@pytest.mark.slow
def test_the_chosen_task_is_failed(controls):
    controls.page.change(controls.view.parts["controls"].task, "value", "aggregate[1]")
    controls.page.press(control(controls, "Fail task"))
    assert controls.job.asked == [("faults.fail", {"task": "aggregate[1]"})]


def test_a_paused_job_offers_to_resume(controls):
    show(controls, paused=True)
    controls.page.press(control(controls, RESUME))
    show(controls, paused=False)
    assert control(controls, PAUSE)
    assert controls.job.asked == [("resume", {})]


def test_nothing_can_be_asked_of_a_job_that_is_over(controls):
    show(controls, state="FINISHED")
    assert all(control(controls, label).disabled for label in (PAUSE, "Checkpoint now", "Fail task", "■ Stop job"))
    assert slider(controls, "Buffer timeout").disabled


def test_speed_does_not_apply_without_a_replay(controls):
    show(controls, settings={**FRAME.settings, "speed": None})
    assert slider(controls, "Replay speed").disabled


@pytest.mark.parametrize(
    ("knob", "value", "step"),
    [(BUFFER_TIMEOUT, "14500us", "20ms"),
     (BUFFER_TIMEOUT, "37ms", "50ms"), (BUFFER_TIMEOUT, "0ms", "0ms"), (BUFFER_TIMEOUT, "disabled", "disabled"),
     (BUFFER_TIMEOUT, "1h", "1s"), (CHECKPOINT_INTERVAL, "1min", "60s"), (SPEED, "max", "max"), (SPEED, "700x", "600x"),
     (SPEED, "nonsense", "60x")],
)  # fmt: skip
def test_a_value_that_is_no_step_shows_at_the_nearest(knob, value, step):
    assert knob.steps[nearest(knob, value)] == step


def test_values_are_the_same_however_they_are_written():
    assert same_value(BUFFER_TIMEOUT, "1000ms", "1s")
    assert not same_value(BUFFER_TIMEOUT, "1s", "disabled")
    assert not same_value(BUFFER_TIMEOUT, "1s", "nonsense")


# the pump ---------------------------------------------------------------------------------------------------------


def test_a_long_history_is_thinned_out_before_it_is_drawn():
    history = [later(FRAME, step) for step in range(3000)]
    shown_ = spaced(history)
    assert shown_[-1] is history[-1]
    gaps = {after.time_us - before.time_us for before, after in pairwise(shown_)}
    assert min(gaps) >= 400_000
    assert shown_[-1].time_us - shown_[0].time_us <= 120_000_000
    assert len(shown_) == 301


def test_two_displays_of_one_job_both_live_and_one_thread_feeds_them():
    job, feeder = Job(FRAME), Pump(look_s=0.01)
    board = Dashboard(job, pump=feeder)
    bundles = [board._repr_mimebundle_() for _ in range(2)]
    assert bundles[0][0]["text/html"] != bundles[1][0]["text/html"]
    first, second = feeder.displays
    for one in (first, second):
        one.line._telemetry.init()
    job.ring.append(later(FRAME, backpressure="seen by both"))
    for one in (first, second):
        until(lambda one=one: any("seen by both" in text for text in one.line._telemetry.sent))
    assert sum(thread.name == "dashboard pump" for thread in threading.enumerate()) == 1
    board.close()
    until(lambda: not feeder.is_running)


def test_a_process_that_ends_ends_the_pump_and_only_then_what_large_messages_need():
    program = """
import sys
from types import SimpleNamespace as Some
import zmq
from workbench.dashboard.shown.pump import Pump

class Ending(Pump):
    def end(self):
        was_running, flush, flushed = self.is_running, sys.stdout.flush, []
        sys.stdout.flush = lambda: flushed.append(self.is_running)  # a kernel's waits until everything is sent
        super().end()
        sys.stdout.flush = flush
        print(was_running, self.is_running, flushed, gc._stay_down)

nothing = lambda *given: None
pace = Some(is_lost=nothing)
pump = Ending()
pump.add(Some(is_closed=False, pace=pace, is_due=nothing, fill=nothing))
from zmq.utils.garbage import gc  # as with the first large message
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False", "[False]", "False"]


def test_the_pump_shows_the_last_frame_and_ends():
    job, feeder = Job(later(FRAME, state="FINISHED")), Pump(look_s=0.01)
    Dashboard(job, "graph", feeder)._repr_mimebundle_()
    (shown_,) = feeder.displays
    shown_.line._telemetry.init()
    until(lambda: not feeder.is_running)
    assert any('"live",[0]' in text.replace(" ", "") for text in shown_.line._telemetry.sent)
    assert feeder.displays == ()


def test_a_display_shown_after_the_end_starts_the_pump_again():
    job, feeder = Job(later(FRAME, state="FINISHED")), Pump(look_s=0.01)
    for _ in range(2):
        Dashboard(job, "graph", feeder)._repr_mimebundle_()
        feeder.displays[0].line._telemetry.init()
        until(lambda: not feeder.is_running)


@pytest.mark.slow
def test_a_broken_display_is_dropped_and_the_other_lives(caplog):
    job, feeder = Job(FRAME), Pump(look_s=0.01)
    board = Dashboard(job, pump=feeder)
    board._repr_mimebundle_()
    board._repr_mimebundle_()
    broken, whole = feeder.displays
    broken.view.update = lambda frame: 1 / 0
    for one in (broken, whole):
        one.line._telemetry.init()
    until(lambda: feeder.displays == (whole,))
    assert "failed and is closed" in caplog.text
    board.close()
    until(lambda: not feeder.is_running)


def test_a_silent_page_is_slowed_and_then_forgotten_and_an_answer_revives_it():
    paced = pace.Pace(now=0.0)
    paced.sent(beat=1, now=0.0)
    quiet = pace.SILENT_S + 1
    paced.sent(beat=2, now=quiet)
    assert not paced.is_due(quiet + 1)
    assert paced.is_due(quiet + pace.SLOW_S)
    assert not paced.is_lost(pace.LOST_S - 1)
    assert paced.is_lost(pace.LOST_S + 1)
    paced.answered(beat=2, now=quiet, painting_s=0.02)
    assert paced.is_due(quiet + 1)


def test_a_cell_that_was_run_again_offers_to_replace_its_job(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)
    job, fresh, feeder = Job(FRAME), Job(later(FRAME, backpressure="a fresh start")), Pump(look_s=0.01)
    board = Dashboard(job, pump=feeder)
    assert "is still running" not in str(board.view().document().to_json())
    answers = iter([JobError("it does not end"), fresh])

    def begin():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    board.begin = begin
    board._connect()
    (shown_,) = feeder.displays
    page = Page(shown_)
    bar = shown_.view._again
    page.press(bar.stop)
    assert job.asked == [("stop", {"wait": False})]
    page.press(bar.replace)
    until(lambda: page.receive() and "it does not end" in page.texts())
    assert bar.model.visible
    page.press(bar.replace)
    until(lambda: page.receive() and "a fresh start" in page.texts())
    assert not bar.model.visible
    assert shown_.job is fresh
    board.close()
    until(lambda: not feeder.is_running)


@pytest.mark.parametrize("sign", ["its comm is opened again", "somebody acts on it"])
def test_a_page_that_was_given_up_is_fed_again_when_it_is_heard_of(monkeypatch, sign):
    """As in a notebook that was closed, and opened an hour later."""
    monkeypatch.setattr(transport, "Comms", Comms)
    job, feeder, hours = Job(FRAME), Pump(look_s=0.01), [0.0]
    monkeypatch.setattr("workbench.dashboard.shown.pump.monotonic", lambda: time.monotonic() + hours[0])
    monkeypatch.setattr("workbench.dashboard.shown.show.monotonic", lambda: time.monotonic() + hours[0])
    board = Dashboard(job, pump=feeder)
    board._connect()
    (shown_,) = feeder.displays
    page = Page(shown_)
    until(lambda: shown_.pace._sent is not None)
    hours[0] = 3600.0
    until(lambda: not feeder.is_running)
    job.ring.append(later(FRAME, backpressure="seen after an hour"))
    if sign == "somebody acts on it":
        page.change(shown_.view.pulse.seen, "data", {"part": ["graph"]})
    else:
        page.line._control.on_open({})
    until(lambda: any("seen after an hour" in text for text in shown_.line._telemetry.sent))
    board.close()
    until(lambda: not feeder.is_running)


def test_a_page_gets_its_next_frame_as_long_as_it_paints_and_answers(controls, monkeypatch):
    now = [float(int(time.monotonic()) + 1)]
    monkeypatch.setattr(display, "monotonic", lambda: now[0])
    assert controls.display.is_due(now[0]), "the first frame waits for nothing"
    for _ in range(pace.AHEAD):
        now[0] += pace.INTERVAL_S + 1e-6  # sums of floats are rounded
        assert controls.display.is_due(now[0]), "an answer takes its time"
        controls.display.show(now[0])
    assert not controls.display.is_due(now[0] + 0.5), "it has answered nothing"
    assert controls.display.is_due(now[0] + pace.PATIENCE_S), "its answer may be stuck behind a busy cell"
    answer = {"beat": [controls.view.pulse.count - 1], "painting_ms": [195.0]}
    controls.page.change(controls.view.pulse.echo, "data", answer)
    assert not controls.display.is_due(now[0] + 0.2), "painting must leave the page some of its time"
    assert controls.display.is_due(now[0] + 0.31)


def test_a_page_that_paints_at_once_gets_a_frame_in_every_interval():
    paced = pace.Pace(now=0.0)
    paced.sent(beat=1, now=10.0)
    paced.answered(beat=1, now=10.01, painting_s=0.01)
    assert not paced.is_due(10.0 + 0.9 * pace.INTERVAL_S)
    assert paced.is_due(10.0 + pace.INTERVAL_S)


def test_the_frames_on_their_way_are_counted_from_the_first_that_was_sent():
    paced = pace.Pace(now=0.0)
    for number in range(pace.AHEAD):
        assert paced.is_due(float(number))
        paced.sent(beat=41 + number, now=float(number))
    assert not paced.is_due(number + 0.9 * pace.PATIENCE_S)
    paced.answered(beat=41, now=float(number), painting_s=0.01)
    assert paced.is_due(number + 1.1 * pace.INTERVAL_S)


def test_a_thread_rests_in_proportion_to_the_processor_time_that_it_took(monkeypatch):
    clock = SimpleNamespace(wall=50.0, own=7.0)
    monkeypatch.setattr(pace, "monotonic", lambda: clock.wall)
    monkeypatch.setattr(pace, "thread_time", lambda: clock.own)
    share = pace.Share()
    assert share.rest_s() == 0.0
    with share.taken():
        clock.wall, clock.own = 50.3, 7.02  # it had to wait for others most of the time
    assert share.rest_s() == 0.0
    with share.taken():
        clock.wall, clock.own = 50.4, 7.07
    assert share.rest_s() == pytest.approx(0.05 / pace.BUSY_SHARE - 0.1)


def test_the_view_waits_in_words_for_the_first_frame():
    job = Job()
    early = display_of(job)
    page = Page(early)
    assert "has not reported yet" in page.texts()
    job.ring.append(FRAME)
    early.show(time.monotonic())
    page.receive()
    assert "● RUNNING" in page.texts()


def test_what_is_shown_now_can_be_saved_as_a_page_of_its_own(tmp_path):
    path = Dashboard(Job(FRAME)).save(tmp_path / "page.html")
    page = path.read_text(encoding="utf-8")
    assert "aggregate is the cause (88 % busy)" in page
    assert re.search(r"<(script|link)[^>]+(src|href)=", page) is None, "it would need a network"


@pytest.mark.slow
def test_a_line_that_greets_lets_the_page_hear_that_the_way_is_open():
    view = View(Job(FRAME), (FRAME,))
    beat = view.pulse.count
    silent = Page(SimpleNamespace(line=transport.Line(view.document(), view.script, view.inputs)))
    assert silent.receive()[0] == 0
    view = View(Job(FRAME), (FRAME,))
    line = transport.Line(view.document(), view.script, view.inputs, greet=lambda: view.pulse.beat(over=True))
    page = Page(SimpleNamespace(line=line))
    assert page.receive()[0] == 1
    tables = [data for model in page.document.models if (data := getattr(model, "data", None)) is not None]
    assert [data["beat"] for data in tables if list(data) == ["beat", "live"]] == [[beat + 1]]
