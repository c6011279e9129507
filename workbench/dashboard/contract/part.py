"""A part of the dashboard: one subject, such as buffers, with its models and how a frame updates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import TimeWindow
from workbench.dashboard.contract.background_actions import BackgroundActions
from workbench.dashboard.contract.job_port import Watched
from workbench.telemetry.frames import Frame


@dataclass(slots=True)
class Easel:
    """What the parts of one view share.

    Attributes:
        job: the job that is shown and controlled; replaced after a savepoint is restored.
        paint, texts, window: the view's colours, HTML and the time range of its charts.
        background: runs slow actions, such as a savepoint.
        alone: whether the view shows one part, which then has room for more.
        follow: makes the view show another job from now on.
        hears: whether the kernel receives the user's choices; not in a report or a saved page.
    """

    job: Watched
    paint: Paint = field(default_factory=Paint)
    texts: Texts = field(default_factory=Texts)
    window: TimeWindow = field(default_factory=TimeWindow)
    background: BackgroundActions = field(default_factory=BackgroundActions)
    alone: bool = False
    follow: Callable[[Watched], None] = lambda job: None
    hears: bool = True

    def runs_live(self) -> bool:
        """Whether the job advances by itself, so that querying it does not advance it."""
        return self.job.live


class Part:
    """One part; its methods are called with the view's lock held.

    Attributes:
        hint: small print beside its title; our own HTML.
        models: what it shows, from top to bottom.
        inputs: those of them that a person may change.
        rest_us: the shortest time between two frames of a running job that it shows. Nobody reads numbers that change
            more often, and writing and laying them out costs the kernel and the browser most.
        asides: those of them that lecture mode leaves out, because they are too small to read from the last row.
        keys: letters that press a button of it.
        follows_unseen: it shows frames even where it is not on the screen, as controls do.
    """

    hint = ""
    models: Sequence[Any] = ()
    inputs: tuple[Any, ...] = ()
    asides: Sequence[Any] = ()
    keys: Mapping[str, Any] = {}
    rest_us = 350_000
    follows_unseen = False

    def __init__(self, easel: Easel) -> None:
        self.easel = easel

    def remember(self, frame: Frame) -> None:
        """Add a point to the charts over time; called for older frames too."""

    def update(self, frame: Frame) -> None:
        """Show the newest frame."""
        raise NotImplementedError  # abstract
