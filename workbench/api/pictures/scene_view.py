"""One moment of a stepping job, for notebooks and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from workbench.api.pictures.scene_svg import scene_svg
from workbench.drivers.contract.step import Step
from workbench.telemetry.scene import Marble, Scene


class SceneView:
    """The result of a verb of a stepping job: the picture, and whether the awaited event has happened.

    Args:
        scene: the facts.
        reached: the truth value of the result.

    Example:
        >>> print(SceneView(Scene("lesson", "RUNNING", 0, "Nothing has happened yet.", 0)))
        step 0, RUNNING: Nothing has happened yet.
    """

    def __init__(self, scene: Scene, reached: bool = True) -> None:
        self.scene = scene
        self.reached = reached

    def __bool__(self) -> bool:
        return self.reached

    def __repr__(self) -> str:
        scene = self.scene
        lines = [f"step {scene.step}, {scene.state}: {scene.words}"]
        if not self.reached:
            lines.append("The awaited event did not happen.")
        lines += [f"  {what}: {value}" for what, value in scene.facts]
        for task in scene.tasks:
            held = "; ".join(f"{what}: {value}" for what, value in task.state)
            status = "" if task.status == "RUNNING" else f" ({task.status})"
            beside = "".join(f"; {what}{': ' if value else ''}{value}" for what, value in task.beside)
            lines.append(f"  {task.name}{status}{' holds ' + held if held else ''}{beside}")
        for channel in scene.channels:
            if channel.marbles or channel.blocked:
                row = " ".join(map(_told, channel.marbles)) + (f" +{channel.more}" if channel.more else "")
                lines.append(f"  {channel.source} -> {channel.target}{', held back' if channel.blocked else ''}: {row}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        missed = "" if self.reached else " <b>The awaited event did not happen.</b>"
        return f"<div><p>{self.headline()}{missed}</p>{self.svg}</div>"

    def headline(self) -> str:
        """Step, state, checkpoints, what the architecture keeps, and the last step in words, as HTML."""
        scene = self.scene
        facts = [f"<b>Step {scene.step}</b>", escape(scene.state)]
        facts += [
            f"checkpoint {number}: {len(done)} of {len(scene.tasks)} acknowledged" for number, done in scene.in_progress
        ]
        if scene.completed:
            facts.append(f"checkpoint {scene.completed} complete")
        facts += [escape(f"{what}: {value}") for what, value in scene.facts]
        return f"{' · '.join(facts)}<br>{escape(scene.words)}"

    @property
    def svg(self) -> str:
        """The picture."""
        return scene_svg(self.scene)


class Steps(list[Step]):
    """Steps that were taken, with the picture of the moment after them, which notebooks show.

    Example:
        >>> Steps([Step("clock", "passed", 0)], SceneView(Scene("lesson", "RUNNING", 1, "", 0)))
        [Step(actor='clock', outcome='passed', time_us=0, number=0, took=None, sent=())]
    """

    def __init__(self, steps: Iterable[Step], view: SceneView) -> None:
        super().__init__(steps)
        self.view = view

    def _repr_html_(self) -> str:
        return self.view._repr_html_()


class Comparison:
    """Two moments side by side; the result of `compare`.

    Args:
        left, right: the moments of the two jobs.
        differences: rows (what, left, right) of the facts that differ.
    """

    def __init__(self, left: SceneView, right: SceneView, differences: Sequence[tuple[str, str, str]]) -> None:
        self.left, self.right = left, right
        self.differences = tuple(differences)

    def __repr__(self) -> str:
        names = (self.left.scene.job, self.right.scene.job)
        lines = [f"{what}: {one} | {other}" for what, one, other in self.differences]
        return "\n".join([f"{names[0]} | {names[1]}", *(lines or ["no difference"])])

    def _repr_html_(self) -> str:
        halves = "".join(
            f"<div style='flex:1 1 420px;min-width:0'><h4>{escape(view.scene.job)}</h4>{view._repr_html_()}</div>"
            for view in (self.left, self.right)
        )
        rows = "".join(
            f"<tr><td>{escape(what)}</td><td>{escape(one)}</td><td>{escape(other)}</td></tr>"
            for what, one, other in self.differences
        )
        names = (escape(self.left.scene.job), escape(self.right.scene.job))
        table = f"<table><tr><th></th><th>{names[0]}</th><th>{names[1]}</th></tr>{rows}</table>"
        same = "<p>Nothing differs.</p>"
        return f"<div style='display:flex;flex-wrap:wrap;gap:16px'>{halves}</div>{table if rows else same}"


def _told(marble: Marble) -> str:
    if marble.kind != "record":
        return f"|{marble.kind} {marble.text}|"
    key = f"{marble.key}: " if marble.key not in (None, marble.text) else ""
    return f"({key}{marble.text}{f', {marble.about}' if marble.about else ''})"
