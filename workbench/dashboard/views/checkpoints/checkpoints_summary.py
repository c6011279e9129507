"""What the complete checkpoints of the history have in common, as Flink's tab *Summary* has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import KEY_CHECKPOINTS, none, table
from workbench.telemetry.frames import Frame

HEADS = (
    "End to End Duration", "Checkpointed Data Size", "Full Checkpoint Data Size",
    "Processed (persisted) in-flight data",
)  # fmt: skip
PERCENTILES = (50, 90, 95, 99)
ROWS = ("Minimum", "Average", "Maximum", *(f"{percentile}% percentile" for percentile in PERCENTILES))


def summary(numbers: Sequence[float]) -> list[float | None]:
    """Minimum, average, maximum and `PERCENTILES` (between two numbers, in proportion); None of nothing.

    Example:
        >>> [round(number, 3) for number in summary([4.0, 1.0, 3.0])]
        [1.0, 2.667, 4.0, 3.0, 3.8, 3.9, 3.98]
    """
    if not numbers:
        return [None] * len(ROWS)
    return [min(numbers), sum(numbers) / len(numbers), max(numbers), *np.percentile(numbers, PERCENTILES).tolist()]


def html(frame: Frame) -> str:
    """The summary as a table."""
    done = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state == "COMPLETED"]
    if not done:
        is_any = any(checkpoint.state == "COMPLETED" for checkpoint in frame.earlier)
        told = (
            "The history contains no completed checkpoint, though an earlier one completed."
            if is_any
            else "No checkpoint has completed."
        )
        return none(told)
    durations = [checkpoint.end_to_end_ms for checkpoint in done if checkpoint.end_to_end_ms is not None]
    processed = [checkpoint.processed_bytes for checkpoint in done if checkpoint.processed_bytes is not None]
    columns = (
        map(wording.milliseconds, summary(durations)),
        map(wording.size, summary([checkpoint.size_bytes for checkpoint in done])),
        map(wording.size, summary([checkpoint.full_size_bytes for checkpoint in done])),
        map(wording.size, summary(processed)),
        map(wording.size, summary([checkpoint.persisted_bytes for checkpoint in done])),
    )
    rows = (
        f"<tr><th scope='row'>{title}</th><td class='n'>{duration}</td><td class='n'>{size}</td>"
        f"<td class='n'>{full}</td><td class='n'>{taken_in} ({kept})</td></tr>"
        for title, duration, size, full, taken_in, kept in zip(ROWS, *columns, strict=True)
    )
    many = f"{len(done)} complete checkpoint{'s' if len(done) > 1 else ''}"
    return (
        table((f"<span class='key'>{KEY_CHECKPOINTS}</span>", *HEADS), rows, HEADS)
        + f"<p class='muted'>over the {many} in the history, including savepoints</p>"
    )
