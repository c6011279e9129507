"""Where ``%%stream`` shows its dashboard: docked next to the notebook if possible, unless the cell is chosen."""

from __future__ import annotations

import math
import threading

import pytest

import workbench as wb
from workbench.jupyter.showing import docked


@pytest.fixture(autouse=True)
def _as_before():
    yield
    docked.choose_display(["dock"])
    docked.front_closed("page")
    docked._expected_until_s[0] = -math.inf
    docked.dock("delays")


def test_a_job_is_docked_where_a_front_end_docks_and_the_cell_was_not_chosen():
    assert not docked.dock("delays"), "there is nobody who docks"
    docked.front_opened("page")
    assert docked.dock("delays")
    assert docked.is_docked("delays")
    docked.choose_display(["cell"])
    assert not docked.dock("delays")
    assert not docked.is_docked("delays")
    docked.choose_display(["dock"])
    docked.front_closed("page")
    assert not docked.dock("delays")


def test_the_verb_tells_what_is_chosen_and_refuses_other_words():
    assert "display dock" in str(docked.choose_display([]))
    assert "display cell" in str(docked.choose_display(["cell"]))
    with pytest.raises(wb.errors.SettingError, match="takes dock or cell, not 'left'"):
        docked.choose_display(["left"])


def test_a_front_end_may_come_shortly_after_the_cell_that_loads_the_workbench(monkeypatch):
    monkeypatch.setattr(docked, "FRONT_PATIENCE_S", 60.0)
    docked.expect_front()
    opening = threading.Timer(0.05, docked.front_opened, ("page",))
    opening.start()
    assert docked.dock("delays")
    opening.join()


def test_nobody_waits_for_a_front_end_that_does_not_come(monkeypatch):
    monkeypatch.setattr(docked, "FRONT_PATIENCE_S", 0.01)
    docked.expect_front()
    assert not docked.dock("delays")
    docked.choose_display(["cell"])
    monkeypatch.setattr(docked, "FRONT_PATIENCE_S", 600.0)
    docked.expect_front()
    assert not docked.dock("delays")  # at once
