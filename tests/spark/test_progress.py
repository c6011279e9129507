"""The progress bar while Spark starts and a history is prepared."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich import progress as rich_progress

from workbench.datasets import flights_history, weather_history
from workbench.spark import session
from workbench.spark.progress import shown


def test_no_bar_remains_when_everything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is in the sentence that follows; in a notebook, bars would stand above all that the cell shows."""
    made: list[rich_progress.Progress] = []

    class Watched(rich_progress.Progress):
        def stop(self) -> None:
            made.append(self)
            super().stop()

    monkeypatch.setattr(rich_progress, "Progress", Watched)
    with shown(True) as report:
        report("index", 0, 2)
        report("index", 2, 2)
    assert [bar.live.transient for bar in made] == [True]


@pytest.mark.parametrize("history", [flights_history, weather_history])
def test_the_start_of_spark_is_shown(history: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class StartedError(Exception):
        pass

    def start(*_arguments: object) -> None:
        raise StartedError

    told: list[str] = []
    monkeypatch.setattr(session, "_present", lambda: None)
    monkeypatch.setattr(session, "_started", start)
    with pytest.raises(StartedError):
        history(tmp_path / "history.log", progress=lambda stage, done, total: told.append(stage))  # type: ignore[operator]
    assert told == ["starting Spark, local[*]"]
