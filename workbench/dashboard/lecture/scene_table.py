"""The scenes of a lecture: one table, from which the arrow keys, completion and ``job.lecture`` come.

A scene is one entry: some views, the controls that belong to them, and a caption. `add_scene` adds one of your own:

    add_scene(SceneSpec("rates", "Rates", ("rates",), "my_captions:rates"))
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module

from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import SettingError, unknown
from workbench.telemetry.frames import Frame

Caption = Callable[[Frame], str]
"""What a scene shows now, in one to three sentences; HTML, with all that comes from data or users escaped."""


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """A scene.

    Attributes:
        name: what ``job.lecture`` and ``%stream lecture`` take.
        title: what stands above it.
        views: names of the views that it shows, from top to bottom.
        caption: its `Caption` as ``"module:function"``, imported when it is first shown.
        controls: what a person moves while it is shown: names of settings whose sliders its views have, and groups of
            the view *controls*: run, save, fail or slow.
    """

    name: str
    title: str
    views: tuple[str, ...]
    caption: str
    controls: tuple[str, ...] = ()

    def load(self) -> Caption:
        """The function that writes its caption."""
        module, _, name = self.caption.partition(":")
        found: Caption = getattr(import_module(module), name)
        return found


SCENES: dict[str, SceneSpec] = {}
"""By name, in the order of the arrow keys."""


def add_scene(scene: SceneSpec) -> None:
    """Add a scene behind the others.

    Raises:
        SettingError: the name is taken, or there is no such view.
    """
    if scene.name in SCENES:
        raise SettingError(f"there is a scene {scene.name!r} already: choose another name")
    for view in scene.views:
        if view not in VIEWS:
            raise SettingError(unknown("view", view, VIEWS))
    SCENES[scene.name] = scene


def scene_named(name: str) -> SceneSpec:
    """The scene of that name.

    Raises:
        SettingError: there is none; the sentence lists them.
    """
    if name not in SCENES:
        raise SettingError(unknown("scene", name, SCENES))
    return SCENES[name]


def scenes_of(views: Collection[str]) -> list[SceneSpec]:
    """The scenes that can be shown where these views are: those with all of their views, else those with any."""
    if set(views) == set(SIDE_BY_SIDE.views):
        return [SIDE_BY_SIDE]
    whole = [scene for scene in SCENES.values() if set(scene.views) <= set(views)]
    return whole or [scene for scene in SCENES.values() if not set(scene.views).isdisjoint(views)]


_HERE = "workbench.dashboard.lecture.captions"

SIDE_BY_SIDE = SceneSpec(
    "lanes", "Side by side", ("lanes",), f"{_HERE}:lanes",
    ("buffer_timeout", "buffer_size", "checkpoint_interval", "checkpoint_mode", "parallelism"),
)  # fmt: skip
"""The scene of jobs side by side, which no single job has; its view leaves out the sliders that do not matter."""

for _scene in (
    SceneSpec("stepper", "Step by step", ("stepper",), f"{_HERE}:stepper"),
    SceneSpec("dataflow", "Dataflow", ("graph",), f"{_HERE}:dataflow", ("parallelism",)),
    SceneSpec("latency", "Buffer timeout and latency", ("latency",), f"{_HERE}:latency", ("buffer_timeout",)),
    SceneSpec("event_time", "Event time", ("event_time",), f"{_HERE}:event_time", ("speed",)),
    SceneSpec("backpressure", "Backpressure", ("graph", "buffers"), f"{_HERE}:backpressure", ("rate", "slow")),
    SceneSpec("checkpoints", "Checkpoints", ("checkpoints",), f"{_HERE}:checkpoints", ("checkpoint_interval", "run")),
    SceneSpec("failure", "Failure and recovery", ("graph", "events"), f"{_HERE}:failure", ("fail",)),
    SceneSpec("state", "State", ("state",), f"{_HERE}:state"),
    SceneSpec("results", "Results", ("sink",), f"{_HERE}:results"),
):
    add_scene(_scene)
