"""The progress bar while Spark starts and a history is prepared."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich import progress as rich_progress
from rich.console import Console

from workbench.datasets import flights_history, weather_history
from workbench.spark import session
from workbench.spark.progress import shown


@pytest.mark.parametrize("terminal", [False, True])
def test_the_bar_is_drawn_once_more_when_everything_is_done(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is not drawn again by stopping it, and keeps its bar, like a file; a terminal does not."""
    drawn: list[float] = []
    transient: list[bool] = []

    class Watched(rich_progress.Progress):
        def refresh(self) -> None:
            drawn.append(self.tasks[-1].percentage if self.tasks else 0)

        def stop(self) -> None:
            drawn.append(-1)
            transient.append(self.live.transient)
            super().stop()

    monkeypatch.setattr(rich_progress, "Progress", Watched)
    monkeypatch.setattr(Console, "is_terminal", terminal)
    with shown(True) as report:
        report("index", 0, 2)
        report("index", 1, 2)
        report("index", 2, 2)
    assert drawn[drawn.index(-1) - 1] == 100
    assert transient == [terminal]


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
