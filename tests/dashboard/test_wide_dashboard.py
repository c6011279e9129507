"""The dashboard of a job with hundreds of subtasks: no view grows with their number or its square."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_dashboard_live import Comms, Job, display_of
from test_dashboard_picture import FRAME, HOUR, SIX, channel
from test_subtasks_view import cells

from workbench.dashboard.page import transport
from workbench.dashboard.views import graph_modes, subtasks
from workbench.dashboard.views.checkpoints import checkpoints_history, gantt, inflight
from workbench.dashboard.views.event_time import holders, watermarks
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame
from workbench.telemetry.frames import TaskFrame

WIDE = 300


class Counted(tuple):
    """Channels that count how often somebody goes through all of them."""

    def __iter__(self):
        Counted.times += 1
        return super().__iter__()


def tasks(name, vertex):
    for n in range(WIDE):
        metrics = {**FRAME.tasks[0].metrics, "currentInputWatermark": SIX - n * HOUR, "numRecordsIn": n}
        yield TaskFrame(f"{name}[{n}]", vertex, n, f"tm-{n // 2}/slot-{n % 2}", "RUNNING", metrics)


@pytest.fixture(scope="module")
def wide():
    """All of 300 subtasks send to all of 300."""
    channels = (
        channel("v1->v2", f"source[{i}]", f"aggregate[{j}]", 1, 1, SIX + (i + j) % 7 * HOUR)
        for j in range(WIDE)
        for i in range(WIDE)
    )
    sub = tuple(
        SubtaskCheckpointFrame(f"aggregate[{n}]", True, sync_ms=1.0, end_to_end_ms=float(n)) for n in range(WIDE)
    )
    checkpoint = CheckpointFrame(9, "COMPLETED", "periodic", SIX, WIDE, WIDE, 300.0, 1_000, subtasks=sub)
    vertices = tuple(replace(v, parallelism=WIDE if v.id in ("v1", "v2") else 1) for v in FRAME.vertices)
    own = (*tasks("source", "v1"), *tasks("aggregate", "v2"))
    return replace(FRAME, vertices=vertices, tasks=own, channels=Counted(channels), checkpoints=(checkpoint,))


@pytest.mark.parametrize(
    ("view", "bytes_max"),
    [
        (watermarks.html, 60_000),
        (holders.html, 2_000),
        (subtasks.subtasks_html, 130_000),
        (subtasks.vertices_html, 6_000),
        (inflight.html, 30_000),
        (lambda frame: checkpoints_history.details_html(frame.checkpoints[0]), 60_000),
    ],
    ids=["watermarks", "holders", "subtasks", "vertices", "inflight", "checkpoint"],
)
def test_a_view_of_hundreds_of_subtasks_is_short(wide, view, bytes_max):
    Counted.times = 0
    assert 0 < len(view(wide).encode()) < bytes_max
    assert Counted.times <= 12, "times that 90,000 channels were looked at"


def test_the_tables_say_what_they_leave_out_and_show_what_matters(wide):
    text = watermarks.html(wide)
    assert "and 540 more tasks, none further behind" in text
    assert "<th title='aggregate[299]'>" in text
    assert "<th title='aggregate[3]'>" not in text
    text = subtasks.subtasks_html(wide)
    assert "and 500 more: choose a vertex or another order" in text
    assert len(cells(text)) == 100
    text = subtasks.subtasks_html(wide, "aggregate", "by Records Received")
    assert [row["SubTask"] for row in cells(text)] == [f"aggregate[{n}]" for n in range(299, 199, -1)]
    assert "and 200 more" in checkpoints_history.details_html(wide.checkpoints[0])


def test_bars_are_those_of_the_subtasks_that_took_longest(wide):
    assert gantt.columns(wide.checkpoints[0])["task"] == [f"aggregate[{n}]" for n in range(240, 300)]
    few = replace(wide.checkpoints[0], subtasks=wide.checkpoints[0].subtasks[:60])
    assert len(gantt.columns(few)["task"]) == 60


def test_a_vertex_that_cannot_be_drawn_by_its_subtasks_stays_one_box(wide):
    for look in (graph_modes.look(wide, "Subtasks"), graph_modes.look(wide, "Physical", {"v1", "v2"})):
        assert [box.id for box in look.vertices] == [vertex.id for vertex in wide.vertices]
        assert look.edges == wide.edges
    few = replace(wide, tasks=tuple(task for task in wide.tasks if task.subtask < graph_modes.BOXES_MOST))
    assert len(graph_modes.look(few, "Subtasks").vertices) == 2 * graph_modes.BOXES_MOST + len(wide.vertices) - 2


def test_the_whole_dashboard_takes_a_frame_of_hundreds_of_subtasks(wide, monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)
    display = display_of(Job(wide), wide)
    assert display.view is not None
