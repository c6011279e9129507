"""The widget that gives a lecture: a page asks for a step, the kernel runs it and answers with what it shows."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

import traitlets
from anywidget import AnyWidget

from workbench.dashboard.charts.static import script, style
from workbench.dashboard.charts.theme import VARIABLES
from workbench.dashboard.course.steps import steps_of
from workbench.dashboard.course.teaching import Slide, Teaching
from workbench.dashboard.page.widget_carrier import VIEW_TYPE
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import plan_of, source_of
from workbench.raised import described

_log = logging.getLogger(__name__)

_PAGE = f"{script('blackboard')}\nexport default {{render: renderWith({json.dumps(VARIABLES + style('blackboard'))})}}"
"""The page's side: a module as anywidget takes it."""


class Stage(AnyWidget):  # type: ignore[misc]
    """The widget that a page renders.

    Attributes:
        lesson: the text of the cell: the number and the title of the lesson.
        steps: of the lecture: the section and the title of each.
        first: the step to begin with.
        fresh: whether no page has shown it yet: the first one begins at once.
    """

    _esm = _PAGE
    lesson = traitlets.Unicode().tag(sync=True)
    steps = traitlets.List().tag(sync=True)
    first = traitlets.Int().tag(sync=True)
    fresh = traitlets.Bool(True).tag(sync=True)


class Blackboard:
    """A lecture on one lesson, for display in a cell.

    Args:
        number: of the lesson, with two digits.
        section: the section to begin with; 0: the title.
    """

    def __init__(self, number: str, section: int) -> None:
        plan = plan_of(number)
        steps = steps_of(cells_of(source_of(number)))
        first = next((at for at, step in enumerate(steps) if step.section >= section), 0)
        self._name = f"Lesson {int(number)}: {plan.title}"
        self._teaching = Teaching(number, steps)
        self._stage: Any = None
        self._told = {
            "lesson": self._name, "first": first, "steps": [[step.section, step.title, step.kind] for step in steps],
        }  # fmt: skip

    def __repr__(self) -> str:
        steps = self._teaching.steps
        return f"A lecture on {self._name}: {len(steps)} steps in {max(step.section for step in steps)} sections."

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        if self._stage is None:
            self._stage = Stage(**self._told)
            self._stage.on_msg(self._heard)
        spec = {"version_major": 2, "version_minor": 0, "model_id": self._stage.model_id}
        return {VIEW_TYPE: spec, "text/plain": repr(self)}

    def _heard(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Answer a page that asks for a step, asks to run it again, or sends the answer of the audience."""
        try:
            number = min(max(int(content["step"]), 0), len(self._teaching.steps) - 1)
            self._stage.send({"step": number, **asdict(self._slide(number, content))})
        except Exception as error:  # noqa: BLE001 - the page must hear that nothing comes
            _log.exception("a step of a lecture could not be shown")
            self._stage.send({"step": -1, **asdict(Slide(described(error)))})

    def _slide(self, number: int, content: Any) -> Slide:
        if content["ask"] == "again":
            return self._teaching.again(number)
        if content["ask"] == "answer":
            return self._teaching.answered(number, str(content["letter"]))
        return self._teaching.show(number)
