"""The carrier of a dashboard, and its variant with widgets, with a page that the test simulates."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace

import pytest
from bokeh.document import Document
from bokeh.models import Slider
from test_dashboard_live import Job, later
from test_dashboard_picture import FRAME

from workbench.dashboard.page.carrier import SETTING, choose
from workbench.dashboard.page.widget_carrier import CLOSED, SCRIPTS, VIEW_TYPE, scripts
from workbench.dashboard.shown.playback import Playback
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.show import Dashboard
from workbench.errors import SettingError

SERVER = {"JPY_SESSION_NAME": "flights.ipynb"}


def running(cell):
    """The names of a notebook in which a cell runs that the front end calls so."""
    request = {"header": {"msg_type": "execute_request"}, "metadata": {"cellId": cell}}
    return {"get_ipython": lambda: SimpleNamespace(parent_header=request)}


@pytest.mark.parametrize(
    ("environment", "names", "expected"),
    [
        ({}, {}, "comm"),
        (SERVER, {}, "comm"),
        ({"VSCODE_PID": "1"}, {}, "widget"),
        ({"VSCODE_CWD": "/home"}, {}, "widget"),
        ({"VSCODE_PID": "1", "VSCODE_CWD": "/home", **SERVER}, {}, "comm"),
        (SERVER, {"__vsc_ipynb_file__": "/home/flights.ipynb"}, "widget"),
        (SERVER, running("vscode-notebook-cell:/home/flights.ipynb#W0sZmlsZQ%3D%3D"), "widget"),
        (SERVER, running("vscode-notebook-cell://ssh-remote%2Bfar/home/flights.ipynb#W1"), "widget"),
        (SERVER, running("5d3c1f7e-2a53-4bd1-8f2f-90a1c5a4e0ff"), "comm"),
        (SERVER, {"get_ipython": lambda: None}, "comm"),
        ({}, {"get_ipython": lambda: SimpleNamespace(parent_header={})}, "comm"),
        ({"COLAB_RELEASE_TAG": "release"}, {}, "widget"),
        ({SETTING: "widget", **SERVER}, {}, "widget"),
        ({SETTING: "comm", "VSCODE_PID": "1"}, {}, "comm"),
    ],
)
def test_the_surroundings_tell_what_carries_a_dashboard(environment, names, expected):
    assert choose(None, environment, names) == expected


def test_what_somebody_asks_for_comes_first():
    assert choose("comm", {SETTING: "widget"}, {"__vsc_ipynb_file__": "/home/flights.ipynb"}) == "comm"
    assert choose("widget", {SETTING: "comm", **SERVER}, {}) == "widget"


def test_a_carrier_that_does_not_exist_is_refused_with_a_sentence(monkeypatch):
    with pytest.raises(SettingError, match="unknown carrier 'widgets': did you mean 'widget'"):
        Dashboard(Job(FRAME), carrier="widgets")
    monkeypatch.setenv(SETTING, "pigeon")
    with pytest.raises(SettingError, match="unknown carrier 'pigeon'"):
        Dashboard(Job(FRAME))


class Idle(Pump):
    """A pump that is worked by hand."""

    def __init__(self):
        super().__init__()
        self.fed = []

    def add(self, display):
        if display not in self.fed:
            self.fed.append(display)


class Page:
    """A page that renders a widget, and talks to its kernel side through the two widgets' messages."""

    def __init__(self, carrier, monkeypatch):
        self.carrier, self.heard, self.frames = carrier, [], []
        monkeypatch.setattr(
            carrier._control, "send", lambda content, buffers=None: self.heard.append((content, buffers))
        )
        monkeypatch.setattr(carrier._face, "send", lambda content, buffers=None: self.frames.append(content))

    def ask(self, view, ask, **more):
        data = {"method": "custom", "content": {"view": view, "ask": ask, **more}}
        self.carrier._handle({"content": {"data": data}, "buffers": []})

    def open(self, view):
        """The page's own copy of the view."""
        self.ask(view, "open")
        content, _ = self.heard[-1]
        assert content["view"] == view
        self.ids = content
        return Document.from_json(json.loads(content["document"]))

    def change(self, view, model, attribute, value):
        event = {"kind": "ModelChanged", "model": {"id": model.id}, "attr": attribute, "new": value}
        header = {"msgid": "1", "msgtype": "PATCH-DOC"}
        self.ask(view, "change", data={"header": header, "metadata": {}, "content": {"events": [event]}})

    def receive(self, view, document):
        """Apply the frames of one view; how many there were."""
        texts = [content["data"] for content in self.frames if content["view"] == view][2::3]
        self.frames[:] = [content for content in self.frames if content["view"] != view]
        for text in texts:
            document.apply_json_patch(json.loads(text))
        return len(texts)


def slider(document, name):
    return next(model for model in document.select({"type": Slider}) if model.name == name)


def fill(shown, view, document):
    """Send the cards that the page does not show yet."""
    (display,) = shown.pump.fed
    for now in range(20):
        display.fill(float(now))
    assert display.view.missing == []
    shown.page.receive(view, document)


def beat(document):
    return next(m.data["beat"][0] for m in document.models if set(getattr(m, "data", ())) == {"beat", "live"})


@pytest.fixture
def shown(monkeypatch):
    """A job's dashboard in a widget, the page that renders it, and the displays that are to be fed."""
    job, pump = Job(FRAME), Idle()
    dashboard = Dashboard(job, pump=pump, carrier="widget")
    bundle, metadata = dashboard._repr_mimebundle_()
    page = Page(dashboard._held[0], monkeypatch)
    yield SimpleNamespace(
        job=job, pump=pump, dashboard=dashboard, bundle=bundle, metadata=metadata, page=page, carrier=page.carrier
    )
    dashboard.close()


def test_the_output_holds_the_widget_and_a_text_but_no_page(shown):
    assert set(shown.bundle) == {VIEW_TYPE, "text/plain"}
    assert shown.bundle[VIEW_TYPE]["model_id"] == shown.carrier._face.model_id
    assert shown.bundle["text/plain"].startswith("<Dashboard of job 'delays': RUNNING>\n")
    assert "run the cell again" in shown.bundle["text/plain"], "VS Code shows the text when its window was loaded again"
    assert "job.status()" in shown.bundle["text/plain"]
    assert shown.carrier._face.control == shown.carrier._control.model_id
    assert shown.pump.fed == [], "nobody has rendered it"


def test_bokehjs_comes_from_the_kernel_when_the_page_has_none(shown):
    shown.page.ask("a", "scripts")
    ((content, buffers),) = shown.page.heard
    assert content == {"view": "a", "scripts": 4}
    assert [gzip.decompress(part) for part in buffers] == [path.read_bytes() for path in SCRIPTS]
    assert sum(map(len, scripts())) < 1_000_000


@pytest.mark.slow
def test_a_page_that_asks_again_is_answered_once(shown):
    for ask in ("scripts", "scripts", "open", "open"):
        shown.page.ask("a", ask)
    assert len(shown.page.heard) == 2
    assert len(shown.pump.fed) == 1


@pytest.mark.slow
def test_frames_come_once_the_page_shows_the_view(shown):
    document = shown.page.open("a")
    (display,) = shown.pump.fed
    assert not display.is_due(1e9)
    assert shown.page.receive("a", document) == 0
    shown.page.ask("a", "ready")
    assert display.line.is_open
    shown.job.ring.append(later(FRAME))
    display.show(0.0)
    assert shown.page.receive("a", document) == 1
    assert beat(document) == display.view.pulse.count == 1
    texts = {
        name: cells[0] for m in document.models for name, cells in getattr(m, "data", {}).items() if "piece" in name
    }
    assert texts == {name: cells[0] for name, cells in display.view.easel.texts.source.data.items()}


@pytest.mark.slow
def test_a_slider_on_the_page_tunes_the_job_and_the_page_is_told_that_it_was_heard(shown):
    document = shown.page.open("a")
    shown.page.ask("a", "ready")
    fill(shown, "a", document)
    shown.page.heard.clear()
    shown.page.change("a", slider(document, "buffer_timeout"), "value", 10)
    assert shown.job.asked == [{"buffer_timeout": "1s"}]
    assert shown.page.heard == [({"view": "a", "data": None, "metadata": {"msg_type": "Ready"}}, None)]


@pytest.mark.slow
def test_what_is_no_input_is_not_taken_from_a_page(shown):
    document = shown.page.open("a")
    shown.page.ask("a", "ready")
    root = document.roots[0]
    shown.page.change("a", root, "css_classes", ["evil"])
    assert "evil" not in shown.pump.fed[0].view.root.css_classes


@pytest.mark.slow
def test_each_rendering_is_a_view_of_its_own(shown):
    first, second = shown.page.open("a"), shown.page.open("b")
    assert {model.id for model in first.models}.isdisjoint(model.id for model in second.models)
    shown.page.ask("a", "ready")
    shown.page.ask("b", "ready")
    one, other = shown.pump.fed
    one.show(0.0)
    assert (shown.page.receive("a", first), shown.page.receive("b", second)) == (1, 0)
    other.show(0.0)
    assert (shown.page.receive("a", first), shown.page.receive("b", second)) == (0, 1)


@pytest.mark.slow
def test_a_view_that_is_gone_gets_nothing_more_and_what_it_still_says_is_ignored(shown):
    document = shown.page.open("a")
    shown.page.ask("a", "ready")
    shown.page.ask("a", "close")
    (display,) = shown.pump.fed
    assert not display.line.is_open
    display.show(0.0)
    shown.page.change("a", slider(document, "parallelism"), "value", 1)
    assert (shown.page.frames, shown.job.asked) == ([], [])


def test_a_closed_dashboard_keeps_what_it_shows_and_tells_a_page_that_asks_anew(shown):
    document = shown.page.open("a")
    shown.page.ask("a", "ready")
    shown.dashboard.close()
    assert not shown.pump.fed[0].line.is_open
    shown.page.change("a", slider(document, "parallelism"), "value", 1)
    assert shown.job.asked == []
    shown.page.heard.clear()
    shown.page.ask("b", "open")
    assert [content for content, _ in shown.page.heard] == [{"view": "b", "problem": CLOSED}]


def test_a_view_that_cannot_be_made_says_so_on_the_page(shown, caplog):
    def broken():
        raise ValueError("no frames")

    shown.job.recorder.frames = broken
    shown.page.ask("a", "open")
    assert "could not be made" in caplog.text
    ((content, _),) = shown.page.heard
    assert content == {"view": "a", "problem": "The dashboard could not be created (ValueError: no frames)."}


@pytest.mark.slow
def test_a_message_that_makes_no_sense_harms_nobody(shown, caplog):
    shown.page.ask("a", "dance")
    shown.carrier._handle({"content": {"data": {"method": "custom", "content": {}}}})
    assert "could not be handled" in caplog.text
    document = shown.page.open("b")
    shown.page.ask("b", "ready")
    fill(shown, "b", document)
    shown.page.change("b", slider(document, "buffer_timeout"), "value", 10)
    assert shown.job.asked == [{"buffer_timeout": "1s"}]


def test_a_page_that_is_loaded_again_finds_the_widgets_state(shown):
    """It asks for it as it does for any widget."""
    sent = []
    shown.carrier._control.comm.send = lambda data, buffers=None: sent.append(data)
    shown.carrier._handle({"content": {"data": {"method": "request_state"}}, "buffers": []})
    assert [data["method"] for data in sent] == ["update"]
    assert sent[0]["state"]["_model_name"] == "WidgetModel"


@pytest.mark.slow
def test_a_recording_comes_as_a_widget_too(monkeypatch):
    frames = tuple(later(FRAME, steps) for steps in range(5))
    playback = Playback(SimpleNamespace(name="delays", frames=frames), carrier="widget")
    bundle, _ = playback._repr_mimebundle_()
    assert set(bundle) == {VIEW_TYPE, "text/plain"}
    page = Page(playback._held[0], monkeypatch)
    document = page.open("a")
    page.ask("a", "ready")
    assert page.receive("a", document) == 1, "the greeting"
    moment = next(m for m in document.select({"type": Slider}) if m.title == "Moment of the run")
    assert moment.value == 4
    page.change("a", moment, "value", 1)
    assert page.receive("a", document) == 1
