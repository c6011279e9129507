"""A user's own view is one module and one call, and appears everywhere where views are listed."""

import pyarrow as pa
import pytest
from added_view import RATES, RatesPart
from bokeh.models import Div, RadioButtonGroup

import workbench as wb
from workbench.dashboard.contract.view_table import VIEWS, ViewSpec, add_view
from workbench.dashboard.shown.playback import PlaybackView
from workbench.dashboard.shown.show import Dashboard
from workbench.jupyter.completion import candidates
from workbench.jupyter.told import hello_of
from workbench.wire.messages import View


@pytest.fixture
def added():
    add_view(RATES)
    yield
    del VIEWS["rates"]


@pytest.fixture(scope="module")
def job():
    numbers = wb.Stream.from_table(pa.table({"n": range(10)})).sink_to(wb.DiscardSink())
    job = numbers.run("added", driver="stepping")
    job.wait("60s")
    return job


def texts(view):
    return "".join(div.text for div in view.root.select({"type": Div}))


def test_it_is_shown_alone_and_in_the_dashboard_behind_a_button_of_its_title(added, job):
    alone = job.view("rates").view()
    assert [type(part) for part in alone.parts.values()] == [RatesPart]
    assert "<td>10</td>" in texts(alone)
    whole = Dashboard(job).view()
    assert list(whole.parts)[-1] == "rates"
    [card] = whole.root.select({"css_classes": ["wb-card", "wb-rates"]})
    [buttons] = whole.root.select({"type": RadioButtonGroup, "name": "views"})
    assert buttons.labels[-2:] == ["Rates", "All"]
    assert not card.visible, "it is on the screen before somebody has pressed its button"
    assert "<span>Rates</span>" in card.children[0].text


def test_a_recording_shows_it(added, job):
    recorded = PlaybackView(job.recording())
    assert "<td>10</td>" in texts(recorded)
    assert list(recorded.parts)[-1] == "rates"


def test_completion_and_the_front_end_offer_it(added, job):
    assert "rates" in candidates(["show", "added"], {})
    assert hello_of({}).views[-1] == View("rates", "Rates", "Records of every vertex")


def test_without_it_the_name_is_unknown_and_a_name_is_taken_once(job):
    with pytest.raises(wb.errors.SettingError, match="unknown view 'rates'"):
        job.view("rates")
    with pytest.raises(wb.errors.SettingError, match="a view 'graph' already exists"):
        add_view(ViewSpec("graph", "Graph", "", "nowhere:Nothing"))
