"""E8: the interval of micro-batches changes the answers to "the last five seconds", that of snapshots does not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from workbench.cli.entry import main
from workbench.dashboard.measured.intervals import IntervalRun, intervals_figures
from workbench.lab.bench.works import batch_intervals

SECOND_US = 1_000_000
answers = cache(batch_intervals.answers)
"""The same run has the same answers: virtual time."""
RIGHT = {second * SECOND_US: 30 if second % 10 else 10 for second in range(0, 60, 5)}


@pytest.mark.parametrize("interval", ["10s", *(pytest.param(each, marks=pytest.mark.slow) for each in ("1s", "5s"))])
def test_the_interval_of_snapshots_changes_nothing(interval: str) -> None:
    assert answers("snapshots", interval) == RIGHT


@pytest.mark.slow
def test_a_batch_of_five_seconds_answers_as_snapshots_do() -> None:
    assert answers("micro-batches:batch_interval=5s,windows=stretch", None) == RIGHT
    assert answers("micro-batches:batch_interval=5s", None) == RIGHT


def test_a_batch_of_ten_seconds_makes_other_answers() -> None:
    found = answers("micro-batches:batch_interval=10s,windows=stretch", None)
    assert found == dict.fromkeys(range(0, 60 * SECOND_US, 10 * SECOND_US), 40)


@pytest.mark.slow
def test_the_command_prints_the_table_and_judges_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "e8.html"
    at_once = batch_intervals.answers
    monkeypatch.setattr(batch_intervals, "answers", answers)
    monkeypatch.setattr(batch_intervals, "ON_SPARK", ())
    assert main(["bench", "intervals", "--json", "--html", str(page)]) == 0
    assert "micro-batches every 10s: 6 answers, 12 wrong" in page.read_text()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["wrong"] for line in lines] == [0, 0, 0, 0, 0, 12]
    assert [line["peak"] for line in lines] == [30, 30, 30, 30, 30, 40]
    assert all(line["checked"] for line in lines)
    monkeypatch.setattr(batch_intervals, "answers", at_once)
    monkeypatch.setattr(batch_intervals, "WINDOW", "10s")  # answers to another question, under each architecture
    monkeypatch.setattr(batch_intervals, "RUNS", batch_intervals.RUNS[:1])
    assert main(["bench", "intervals", "--html", str(page)]) == 1
    assert "12 wrong, peak 40 (unexpected)" in capsys.readouterr().out


def test_the_picture_has_the_answers_beside_the_true_ones() -> None:
    true = IntervalRun("true", True, [0.0, 5.0], [5.0, 10.0], [10, 30])
    right, wrong = intervals_figures([true, IntervalRun("batches", False, [0.0], [10.0], [40])], true)
    bars, dots = ([plot.renderers[at] for plot in (right, wrong)] for at in range(2))
    assert [list(each.data_source.data["count"]) for each in bars] == [[10, 30], [40]]
    assert [list(each.data_source.data["end"]) for each in bars] == [[5.0, 10.0], [10.0]]
    assert [list(each.data_source.data["at"]) for each in dots] == [[2.5, 7.5]] * 2
    assert [plot.title.text for plot in (right, wrong)] == ["true", "batches"]
    assert bars[0].glyph.fill_color != bars[1].glyph.fill_color
    assert right.y_range.end == wrong.y_range.end > 40
