"""The views of a job: one table, from which the dashboard's grid, completion, menus, recordings and served pages come.

A view is one module with a `Part`, and one entry here. A view of your own is added by `add_view`:

    add_view(ViewSpec("rates", "Rates", "Records per second of every vertex", "my_views:RatesPart"))
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from workbench.errors import SettingError, unknown
from workbench.telemetry.frames import Frame

Needs = Literal["frames", "job", "stepping"]


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """A view.

    Attributes:
        name: the argument of ``job.view`` and ``%stream show``.
        title: shown above it, and in menus.
        short: the text of its button, if shorter than the title.
        help: its content, in one sentence.
        part: its `Part` as ``"module:Class"``, imported when it is first shown.
        needs: what it is drawn from: the frames of a job, so that recordings have it, too; a job that answers; or a job
            on the stepping driver.
        pinned: whether the dashboard always shows it, above the row of buttons that select one of the other views.
        knobs: settings that affect it: their sliders are in its card.
        in_dashboard: whether the dashboard of a job shows it; other views are shown alone, and in recordings.
        architecture: the dashboard of a job with this fault-tolerance architecture shows it, too.
        operators: the dashboard of a job with an operator of one of these kinds shows it, too, such as ``"match"`` or
            ``"kafka source"`` or, as a sink, ``"kafka"``.
    """

    name: str
    title: str
    help: str
    part: str
    needs: Needs = "frames"
    pinned: bool = False
    knobs: tuple[str, ...] = ()
    in_dashboard: bool = True
    architecture: str = ""
    short: str = ""
    operators: tuple[str, ...] = ()

    def load(self) -> Any:
        """The class of its part."""
        module, _, name = self.part.partition(":")
        return getattr(import_module(module), name)


CONNECTED = ("kafka", "redis", "nats", "sql", "mqtt", "websocket", "server-sent events")
"""Kinds of sources and sinks that are connected to a server."""
_HERE = "workbench.dashboard.views"
VIEWS: dict[str, ViewSpec] = {}
"""By name, in the order of the dashboard."""


def add_view(view: ViewSpec) -> None:
    """Add a view after the others.

    Raises:
        SettingError: the name is taken.
    """
    if view.name in VIEWS:
        raise SettingError(f"a view {view.name!r} already exists: choose another name")
    VIEWS[view.name] = view


def view_named(name: str) -> ViewSpec:
    """The view of that name.

    Raises:
        SettingError: there is none; the sentence lists them.
    """
    if name not in VIEWS:
        raise SettingError(unknown("view", name, VIEWS))
    return VIEWS[name]


def dashboard_views(live: bool, frame: Frame | None = None) -> list[ViewSpec]:
    """The views in the dashboard of a job that advances by itself, or of one on the stepping driver.

    Args:
        live: it advances by itself.
        frame: tells its architecture of fault tolerance and its operators; None: the views of every job.
    """
    mine = [view for view in VIEWS.values() if view.in_dashboard or _is_about(view, frame)]
    return [view for view in mine if not (live and view.needs == "stepping")]


def recorded_views(frame: Frame | None = None) -> list[ViewSpec]:
    """The views that a recording can show: it contains no records and cannot be queried.

    Args:
        frame: as for `dashboard_views`.
    """
    of_every_job = (view for view in VIEWS.values() if view.needs == "frames")
    return [
        view
        for view in of_every_job
        if not (view.architecture or view.operators) or frame is None or _is_about(view, frame)
    ]


def _is_about(view: ViewSpec, frame: Frame | None) -> bool:
    """Whether a view shows an architecture of fault tolerance, or an operator, that a job has."""
    if frame is None:
        return False
    runs = str(frame.settings.get("fault_tolerance", "")).partition(":")[0]
    kinds = {each.kind if each.inputs else f"{each.kind} source" for each in frame.operators}
    return bool(runs and view.architecture == runs) or not kinds.isdisjoint(view.operators)


for _view in (
    ViewSpec(
        "stepper", "Stepper", "A stepping job, record by record, and buttons to go on, back and aside",
        f"{_HERE}.stepper_part:StepperPart", "stepping", pinned=True,
    ),
    ViewSpec(
        "graph", "Dataflow", "The dataflow graph with rates, load and buffers",
        f"{_HERE}.graph_part:GraphPart", pinned=True, knobs=("parallelism",),
    ),
    ViewSpec(
        "latency", "Latency and throughput", "Latency percentiles and throughput, before and after each tuning",
        f"{_HERE}.latency_part:LatencyPart", knobs=("buffer_timeout", "buffer_size"),
        short="Latency",
    ),
    ViewSpec(
        "watermarks", "Watermarks", "The watermark of every channel, what holds event time back, and late records",
        f"{_HERE}.event_time.watermarks_part:WatermarksPart", knobs=("speed",),
    ),
    ViewSpec(
        "event_time", "Event time", "Records, watermark and windows by event time and processing time, and lateness",
        f"{_HERE}.event_time.event_time_part:EventTimePart", knobs=("speed",),
    ),
    ViewSpec(
        "buffers", "Buffers", "The buffer pools of every task and the queue of every channel",
        f"{_HERE}.buffers:BuffersPart", knobs=("rate",),
    ),
    ViewSpec(
        "checkpoints", "Checkpoints", "The checkpoint in progress, the history, and what each subtask did",
        f"{_HERE}.checkpoints.checkpoints_part:CheckpointsPart",
        knobs=("checkpoint_interval", "checkpoint_mode", "aligned_checkpoint_timeout"),
    ),
    ViewSpec(
        "state", "State", "The keyed state of an operator, queried while it runs",
        f"{_HERE}.state_part:StatePart", "job",
    ),
    ViewSpec(
        "sink", "Results", "The latest committed rows of a TableSink",
        f"{_HERE}.sink_part:SinkPart", "job",
    ),
    ViewSpec(
        "controls", "Controls", "Settings, checkpoints, savepoints and failures of the running job",
        f"{_HERE}.controls:ControlsPart", "job",
    ),
    ViewSpec(
        "events", "Events", "State changes, failures, recoveries, tunings and failed checkpoints",
        f"{_HERE}.events:EventsPart",
    ),
    ViewSpec(
        "subtasks", "Vertices and subtasks", "Every vertex and every subtask with its figures",
        f"{_HERE}.subtasks_part:SubtasksPart", in_dashboard=False,
    ),
    ViewSpec(
        "roots", "Pending roots", "With acks: roots that are not acknowledged, by age, at the sources and the ackers",
        f"{_HERE}.roots:RootsPart", knobs=("message_timeout", "max_spout_pending"),
        in_dashboard=False, architecture="acks",
    ),
    ViewSpec(
        "matches", "Partial matches", "Of patterns: what each key has bound so far, and what it waits for",
        f"{_HERE}.matches.matches_part:MatchesPart", "job", short="Matches", in_dashboard=False, operators=("match",),
    ),
    ViewSpec(
        "sources", "Sources", "Where sources are in every split, their lag and rate, and lost connections of all tasks",
        f"{_HERE}.sources.sources_part:SourcesPart", in_dashboard=False,
        operators=(*(f"{kind}{role}" for kind in CONNECTED for role in (" source", "")), "lookup"),
    ),
    ViewSpec(
        "batches", "Batches", "With micro-batches: the queue, and the time of each batch against the interval",
        f"{_HERE}.batches.batches_part:BatchesPart",
        knobs=("batch_interval", "batch_size", "max_pending"), in_dashboard=False, architecture="micro-batches",
    ),
    ViewSpec(
        "transactions", "Transactions", "With transactions: what each task has written and sent, and duplicates",
        f"{_HERE}.architectures.transactions_part:TransactionsPart", knobs=("coalesce",),
        in_dashboard=False, architecture="transactions",
    ),
    ViewSpec(
        "changelog", "Changelog", "With a changelog: the log against the positions, and what a failure applies twice",
        f"{_HERE}.architectures.changelog_part:ChangelogPart",
        knobs=("changelog_interval", "offset_interval"), in_dashboard=False, architecture="changelog",
    ),
):  # fmt: skip
    add_view(_view)
