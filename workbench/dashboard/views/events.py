"""The job's log: what changed, failed, recovered or was tuned, newest first."""

from __future__ import annotations

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, scrolled
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.frames import Frame

SHOWN = 12
SHOWN_ALONE = 100

SIGNS = {
    "state": ("accent", "●"),
    "failure": ("bad", "✗"),
    "recovery": ("good", "↺"),
    "tune": ("violet", "⚙"),
    "checkpoint": ("bad", "✗"),  # those that failed; the others are too many to be told
    "notice": ("muted", "i"),
}


def html(frame: Frame, most: int = SHOWN) -> str:
    """The last events as a list, newest first."""
    if not frame.events:
        return none("No events.")
    lines = []
    for event in reversed(frame.events[-most:]):
        colour, sign = SIGNS[event.kind]
        text = wording.html_text(event.text)
        lines.append(
            f"<li title='{text}'><time>{wording.clock(event.time_us)}</time>"
            f"<b style='color:var(--wb-{colour})'>{sign} {event.kind}</b><span>{text}</span></li>"
        )
    return f"<ul>{''.join(lines)}</ul>"


class EventsPart(Part):
    """The list of the last events."""

    hint = "newest first, UTC"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._most = SHOWN_ALONE if easel.alone else SHOWN
        self._piece = easel.texts.piece("Events of the job", "events", role="log")
        self.models = [scrolled(self._piece.div, 600 if easel.alone else 220)]

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame, self._most))
