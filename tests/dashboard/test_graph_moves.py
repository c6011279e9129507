"""The animation of the graph matches the frame: the share of records that is drawn, the slowdown, and high rates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_dashboard_picture import FRAME

from workbench.dashboard.views.graph_modes import look
from workbench.dashboard.views.graph_moves import CROSSING_MS, MOVES_NAMES, moves_columns, moves_html, share
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import LatencyFrame

[FIRST, *_] = FRAME.edges
RUNNING = replace(FRAME, state="RUNNING", edges=(FIRST,), settings={"checkpoint_interval": "5s"}, latency=())


def at(rate, **facts):
    return replace(RUNNING, edges=(replace(FIRST, records_per_second=rate),), **facts)


@pytest.mark.parametrize(
    ("rate", "each"), [(0.0, 1), (4.0, 1), (4.1, 2), (20.0, 5), (21.0, 10), (3e3, 1000), (3e6, 10**6)]
)
def test_one_drawn_record_stands_for_as_many_as_are_too_fast(rate, each):
    assert share(rate) == each
    assert rate / share(rate) <= 4.0


def test_the_sentence_tells_the_share_and_the_slowdown():
    slow = at(3.0, latency=(LatencyFrame(FIRST.target, 5, 14.0, 20.0, 30.0, 40.0),))
    assert moves_html(slow).startswith(
        f"<p>Every record is drawn, about {CROSSING_MS // 14} times slower than it moves"
    )
    assert "One of 100 records is drawn ·" in moves_html(at(390.0)), "how long it takes is not known yet"
    fast = at(250_000.0)
    assert "Lines flow: of 250k records per second the eye could follow one of 100,000" in moves_html(fast)
    assert moves_columns(fast, fast)["flows"] == [True]
    assert moves_html(at(3.0, state="RESTARTING")) == ""
    assert moves_columns(at(3.0, state="RESTARTING"), RUNNING)["rate"] == [0.0]


def test_barriers_move_where_they_can_be_told_apart():
    taken = (CheckpointFrame(7, "COMPLETED", "periodic", 1, 3, 3, 12.4, 2_048),)
    assert moves_columns(at(3.0, checkpoints=taken), at(3.0))["barrier"] == [7]
    often = at(
        3.0, checkpoints=taken, settings={"checkpoint_interval": "200ms"}, metrics={"numberOfCompletedCheckpoints": 7}
    )
    assert moves_columns(often, often)["barrier"] == [0]
    assert "barriers are not drawn at a checkpoint interval below 1s" in moves_html(often)
    by_hand = at(3.0, checkpoints=taken, settings={"checkpoint_interval": "disabled"})
    assert moves_columns(by_hand, by_hand)["barrier"] == [7]


def test_every_frame_is_a_change_of_one_cell_and_other_looks_move_too():
    one, next_one = moves_columns(RUNNING, RUNNING), moves_columns(replace(RUNNING, sequence=99), RUNNING)
    assert [name for name in MOVES_NAMES if one[name] != next_one[name]] == ["frame"]
    apart = look(FRAME, "Subtasks")
    assert moves_columns(FRAME, apart)["id"] == [edge.id for edge in apart.edges]
