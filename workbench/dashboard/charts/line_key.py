"""The key of a chart's lines, in HTML: a legend on the canvas is repainted with each frame, which is expensive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import Texts


class LineKey:
    """The names of a chart's lines, each after a piece of its line.

    Args:
        label: of the chart, for assistive technology.
        lines: colour and dash of each line, by its own name.

    Attributes:
        div: the model to put above the chart.
    """

    def __init__(self, texts: Texts, label: str, lines: Mapping[str, tuple[str, str]]) -> None:
        self._lines = lines
        self._piece = texts.piece(f"Lines of: {label}", "line_key", role="note")
        self.div: Any = self._piece.div
        self._labels: Mapping[str, str] = {}
        self._marks = ""
        self.show({name: name for name in lines})

    def show(self, labels: Mapping[str, str]) -> None:
        """Name the lines that are in use."""
        self._labels = labels
        self._write()

    def explain(self, marks: str) -> None:
        """Name marks that are no lines, after these (HTML that is ours)."""
        if marks != self._marks:
            self._marks = marks
            self._write()

    def _write(self) -> None:
        labels = self._labels
        self._piece.write(
            "<p>"
            + "".join(
                f"<span><i style='border-top:2px {dash} var(--wb-{colour})'></i>"
                f"{wording.html_text(wording.plain(labels[name], 60))}</span>"
                for name, (colour, dash) in self._lines.items()
                if name in labels
            )
            + f"{self._marks}</p>"
        )
