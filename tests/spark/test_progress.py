"""The progress bar while a history is prepared."""

from __future__ import annotations

import pytest
from rich import progress as rich_progress

from workbench.spark.progress import shown


def test_the_bar_is_drawn_once_more_when_everything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is not drawn again by stopping it."""
    drawn: list[float] = []

    class Watched(rich_progress.Progress):
        def refresh(self) -> None:
            drawn.append(self.tasks[-1].percentage if self.tasks else 0)

        def stop(self) -> None:
            drawn.append(-1)
            super().stop()

    monkeypatch.setattr(rich_progress, "Progress", Watched)
    with shown(True) as report:
        report("index", 0, 2)
        report("index", 1, 2)
        report("index", 2, 2)
    assert drawn[drawn.index(-1) - 1] == 100
