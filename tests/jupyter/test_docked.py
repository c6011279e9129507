"""Where ``%%stream`` shows its dashboard: beside the notebook if a front end docks, unless the cell is chosen."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.jupyter import docked


@pytest.fixture(autouse=True)
def _as_before():
    yield
    docked.choose_display(["dock"])
    docked.front_closed("page")
    docked.dock("delays")


def test_a_job_is_docked_where_a_front_end_docks_and_the_cell_was_not_chosen():
    assert not docked.dock("delays"), "there is nobody who docks"
    docked.front_opened("page", {"version": 1, "docks": True})
    assert docked.dock("delays")
    assert docked.is_docked("delays")
    docked.choose_display(["cell"])
    assert not docked.dock("delays")
    assert not docked.is_docked("delays")
    docked.choose_display(["dock"])
    docked.front_closed("page")
    assert not docked.dock("delays")


@pytest.mark.parametrize("told", [None, {}, {"version": 1}, {"docks": "yes"}])
def test_a_front_end_that_does_not_say_that_it_docks_does_not(told):
    docked.front_opened("page", told)
    assert not docked.dock("delays")


def test_the_verb_tells_what_is_chosen_and_refuses_other_words():
    assert "display dock" in str(docked.choose_display([]))
    assert "display cell" in str(docked.choose_display(["cell"]))
    with pytest.raises(wb.errors.SettingError, match="takes dock or cell, not 'left'"):
        docked.choose_display(["left"])
