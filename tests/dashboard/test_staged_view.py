"""A dashboard in a cell: the graph comes with the output, the other cards when the page is open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bokeh.models import Column, ColumnDataSource
from test_dashboard_live import Comms, Job, Page
from test_dashboard_picture import FRAME
from waiting import until

from workbench.dashboard.lecture.scene_table import SCENES
from workbench.dashboard.page import transport
from workbench.dashboard.shown import display as shown_display
from workbench.dashboard.shown.display import BETWEEN_S, REST_S
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import COMING
from workbench.telemetry.recorder import Recorder


class Still(Pump):
    """A pump that does nothing by itself."""

    def add(self, display):
        self._displays = [display]


@pytest.fixture(autouse=True)
def _comms(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)


@pytest.fixture
def board():
    made = Dashboard(Job(FRAME), pump=Still())
    yield made
    made.close()


def opened(board):
    """The display of a page that has opened its line, and the page."""
    board._connect()
    (display,) = board._pump.displays
    return display, Page(display)


def cards(root):
    """What the card of each part holds, by its classes."""
    boxes = (model for model in root.references() if isinstance(model, Column) and "wb-card" in model.css_classes)
    return {" ".join(box.css_classes): [type(child).__name__ for child in box.children] for box in boxes}


def pieces(root):
    """The HTML of each piece, by its name."""
    models = (model for tag in root.tags for model in tag.references())
    sources = {model.id: model.data for model in models if isinstance(model, ColumnDataSource)}
    return {name: cells[0] for data in sources.values() for name, cells in data.items() if name.startswith("piece ")}


def root_of(page, display):
    page.receive()
    return next(root for root in page.document.roots if root.id == display.view.root.id)


def test_the_output_holds_the_graph_and_an_open_page_gets_the_other_cards_one_by_one(board):
    """A page that is loaded again begins with what the output holds, and hears of the rest at once."""
    whole = board.view()
    display, page = opened(board)
    again = Page(display)
    view = display.view
    assert list(view.parts) == ["graph"]
    assert len(view.root.references()) < len(whole.root.references()) / 3
    coming = {name for name in cards(view.root) if COMING in name}
    assert coming == {f"wb-card wb-{name} {COMING}" for name in whole.parts if name != "graph"}
    display.fill(0.0)
    assert list(view.parts) == ["graph"], "the page has yet to show what it got"
    for step in range(len(whole.parts) - 1):
        display.fill(REST_S + step * BETWEEN_S)
        assert len(view.parts) == step + 2
    assert list(view.parts) == list(whole.parts)
    root = root_of(page, display)
    assert cards(root) == cards(view.root) == cards(whole.root)
    assert len(view.inputs) == len(whole.inputs)
    assert pieces(root) == pieces(view.root)
    assert pieces(root).keys() == whole.easel.texts.divs.keys()
    again.line._control.on_open({})
    assert cards(root_of(again, display)) == cards(whole.root)
    page.change(view.knobs["checkpoint_interval"].slider, "value", 3)
    assert [list(asked) for asked in board._job.asked] == [["checkpoint_interval"]]


def test_a_card_that_comes_into_sight_is_made_at_once_and_no_other(board):
    display, page = opened(board)
    page.change(display.view.pulse.seen, "data", {"part": ["events", "graph", "latency"]})
    display.fill(0.0)
    assert list(display.view.parts) == ["graph", "latency", "events"]
    named = cards(root_of(page, display))
    assert "wb-card wb-latency" in named
    assert f"wb-card wb-buffers {COMING}" in named


def test_the_recorder_is_told_when_a_page_is_opened_and_when_its_cards_are_made():
    """What that takes from the job is then blamed on no change of a setting."""
    job = Job(FRAME)
    job.recorder = Recorder()
    job.recorder.append(FRAME)
    view = Dashboard(job, pump=Still()).view(staged=True)
    assert job.recorder.openings == 1
    job.recorder.frames()
    assert job.recorder.openings == 1
    view.make(view.missing[:1])
    assert job.recorder.openings == 2


def test_a_scene_of_lecture_mode_gets_its_views_and_controls_at_once(board):
    display, page = opened(board)
    assert list(display.view._lecture._scenes) == [name for name in SCENES if name != "stepper"]
    page.change(display.view._lecture.chosen, "data", {"scene": ["failure"]})
    display.fill(0.0)
    assert set(display.view.parts) == {"graph", "events", "controls"}
    assert [tag.args["keys"] for tag in display.view.root.tags[1:]] == [
        [[key, model] for name in ("controls", "events") for key, model in display.view.parts[name].keys.items()]
    ]


@pytest.mark.parametrize("more", [{"scene": "state"}, {"part": "buffers"}])
def test_what_a_page_shows_from_the_beginning_is_not_made_later(more):
    board = Dashboard(Job(FRAME), pump=Still(), **more)
    display, _ = opened(board)
    assert display.view.missing == []
    board.close()


def test_the_pump_makes_the_cards_of_a_job_that_is_over_before_it_lets_the_display_go(board, monkeypatch):
    for name in ("REST_S", "BETWEEN_S"):
        monkeypatch.setattr(shown_display, name, 0.0)
    board._pump = Pump(look_s=0.01)
    board._job.ring[:] = [replace(FRAME, state="FINISHED")]
    display, page = opened(board)
    display.show(0.0)
    assert display.is_done
    assert not display.is_finished
    until(lambda: not display.view.missing)
    assert display.is_finished
    assert page.line.is_open


def test_a_closed_display_is_not_fed_again_by_what_it_began_before():
    board = Dashboard(Job(FRAME), pump=Pump(look_s=0.01))
    board._connect()
    (display,) = board._pump.displays
    board.close()
    until(lambda: not board._pump.is_running)
    display.view.easel.background.begun()
    assert not board._pump.is_running
