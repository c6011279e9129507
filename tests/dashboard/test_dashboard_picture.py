"""The picture is true: every number that the dashboard draws is compared with the frame that it was drawn from."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from workbench.dashboard.charts import checkpoint_ticks, time_chart, wording
from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.marks import tunings
from workbench.dashboard.charts.sources import ceiling, ceiling_s
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.shown import header
from workbench.dashboard.views import buffers, events, graph, latency
from workbench.dashboard.views.checkpoints import checkpoints, checkpoints_history
from workbench.dashboard.views.event_time import holders, watermarks
from workbench.durations import MAX_TIME
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame
from workbench.telemetry.effects.interruption_log import InterruptionLog
from workbench.telemetry.frames import (
    ChannelFrame,
    EdgeFrame,
    EventFrame,
    Frame,
    LatencyFrame,
    ReplayFrame,
    TaskFrame,
    VertexFrame,
)
from workbench.telemetry.reached import event_time_lag, furthest, vertex_lags

SIX = 1_372_658_400_000_000  # 2013-07-01 06:00:00
HOUR = 3_600_000_000
HOSTILE = "<img src=x onerror=alert(1)>'\"&"


def load(read, wrote, idle, busy, pressed):
    return {
        "numRecordsInPerSecond": read,
        "numRecordsOutPerSecond": wrote,
        "idleTimeMsPerSecond": idle,
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": pressed,
    }


def channel(edge, source, target, received, sent, watermark, **more):
    return ChannelFrame(edge, source, target, received, sent, 8, (received + sent) * 100, watermark, **more)


FRAME = Frame(
    job="delays",
    state="RUNNING",
    sequence=7,
    time_us=1_700_000_000_000_000,
    started_us=1_699_999_900_000_000,
    settings={"buffer_timeout": "50ms", "checkpoint_interval": "5s", "speed": "600x", "buffer_size": 4096},
    metrics={
        "numRestarts": 2,
        "runningTime": 75_000,
        "numRecordsInPerSecond": 12_345.0,
        "numRecordsOutPerSecond": 41.0,
        "numberOfCompletedCheckpoints": 2,
        "numberOfFailedCheckpoints": 1,
    },
    vertices=(
        VertexFrame("v1", "source", (("source", "replay", ""), ("clean", "filter", "")), 2,
                    load(12_345.0, 12_000.0, 150.0, 350.0, 500.0), 0.0, 0.5),
        VertexFrame("v2", "aggregate", (("aggregate", "window aggregate", "tumbling 1h"),), 2,
                    load(12_000.0, 41.0, 100.0, 880.0, 20.0), 0.5, 0.5),
        VertexFrame("v3", "delays", (("delays", "table sink", ""),), 1, load(41.0, 0.0, 1000.0, 0.0, 0.0), 1.0, 0.4),
        VertexFrame("v4", "late", (("late", "table sink", ""),), 1, load(3.0, 0.0, 999.0, 1.0, 0.0), 1.0, 0.6),
    ),
    edges=(
        EdgeFrame("v1->v2", "v1", "v2", "hash", 13, 32, 13 / 32, 12_000.0),
        EdgeFrame("v2->v3", "v2", "v3", "rebalance", 0, 16, 0.0, 41.0),
        EdgeFrame("v2->v4", "v2", "v4", "rebalance", 0, 16, 0.0, 3.0),
    ),
    tasks=(
        TaskFrame("source[0]", "v1", 0, "tm-0/slot-0", "RUNNING", {"currentOutputWatermark": SIX + HOUR},
                  "split 0", {"0": SIX + HOUR, "2": None}),
        TaskFrame("source[1]", "v1", 1, "tm-0/slot-1", "RUNNING", {"currentOutputWatermark": SIX},
                  "split 1", {"1": SIX}),
        TaskFrame("aggregate[0]", "v2", 0, "tm-0/slot-0", "RUNNING",
                  {"currentInputWatermark": SIX, "numLateRecordsDropped": 4}, "source[1]"),
        TaskFrame("aggregate[1]", "v2", 1, "tm-0/slot-1", "RUNNING",
                  {"currentInputWatermark": SIX + HOUR, "numLateRecordsDropped": 3}, "source[0]"),
        TaskFrame("delays[0]", "v3", 0, "tm-0/slot-0", "RUNNING", {"currentInputWatermark": None}),
        TaskFrame("late[0]", "v4", 0, "tm-0/slot-0", "RUNNING", {"currentInputWatermark": SIX - HOUR}, "aggregate[0]"),
    ),
    channels=(
        channel("v1->v2", "source[0]", "aggregate[0]", 2, 1, SIX + HOUR),
        channel("v1->v2", "source[1]", "aggregate[0]", 8, 2, SIX),
        channel("v1->v2", "source[0]", "aggregate[1]", 0, 0, SIX + HOUR, blocked=True, barriers=(4,)),
        channel("v1->v2", "source[1]", "aggregate[1]", 0, 0, SIX, idle=True),
        channel("v2->v3", "aggregate[0]", "delays[0]", 0, 0, None),
        channel("v2->v4", "aggregate[0]", "late[0]", 0, 0, SIX - HOUR),
    ),
    checkpoints=(
        CheckpointFrame(1, "COMPLETED", "periodic", 1_699_999_990_000_000, 6, 6, 120.0, 34_000,
                        subtasks=(SubtaskCheckpointFrame("source[0]", True, alignment_ms=0.0, end_to_end_ms=100.0),
                                  SubtaskCheckpointFrame("aggregate[0]", True, alignment_ms=17.0,
                                                         end_to_end_ms=118.0))),
        CheckpointFrame(2, "FAILED", "manual", 1_699_999_995_000_000, 3, 6, 80.0, 0, reason="No space left on device"),
        CheckpointFrame(3, "COMPLETED", "savepoint", 1_699_999_998_000_000, 6, 6, 1_500.0, 1_200_000,
                        subtasks=(SubtaskCheckpointFrame("source[0]", True, end_to_end_ms=1_480.0),)),
        CheckpointFrame(4, "IN_PROGRESS", "periodic", 1_699_999_999_900_000, 2, 6, 100.0, 0, subtasks=tuple(
            SubtaskCheckpointFrame(name, name.startswith("source"))
            for name in ("source[0]", "source[1]", "aggregate[0]", "aggregate[1]", "delays[0]", "late[0]"))),
    ),
    latency=(
        LatencyFrame("v2", 50, 1.0, 2.0, 3.0, 4.0),
        LatencyFrame("v3", 50, 10.0, 20.0, 30.0, 40.0),
        LatencyFrame("v4", 9, 11.0, 19.0, 29.0, 41.0),
    ),
    replay=ReplayFrame(600.0, SIX, SIX - HOUR, SIX + 3 * HOUR, 84_194, 336_776),
    events=(
        EventFrame(1_699_999_900_000_000, "state", "RUNNING"),
        EventFrame(1_699_999_960_000_000, "tune", "buffer_timeout = 50ms"),
        EventFrame(1_699_999_970_000_000, "tune", "speed = 600x"),
    ),
    tables={"delays": 1_234},
    backpressure="aggregate is the cause (88 % busy): source is back-pressured, waiting for it.",
)  # fmt: skip


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


# the graph --------------------------------------------------------------------------------------------------------


def test_the_bar_of_a_box_is_divided_as_its_time_is():
    drawn = graph.box_columns(FRAME)
    assert drawn["name"] == ["source", "aggregate", "delays", "late"]
    for index, (idle, busy, pressed) in enumerate([(0.15, 0.35, 0.5), (0.1, 0.88, 0.02), (1, 0, 0), (0.999, 0.001, 0)]):
        start, end = drawn["idle_0"][index], drawn["right_x"][index]
        whole = end - start
        assert (drawn["idle_1"][index] - start) / whole == pytest.approx(idle)
        assert (drawn["busy_1"][index] - drawn["idle_1"][index]) / whole == pytest.approx(busy)
        assert (drawn["pressed_1"][index] - drawn["busy_1"][index]) / whole == pytest.approx(pressed)
        assert drawn["left"][index] < start < end < drawn["right"][index]


def test_a_box_says_in_numbers_what_its_bar_shows():
    drawn = graph.box_columns(FRAME)
    assert drawn["shares"][0] == "idle 15, busy 35, back-pr. 50 %"
    assert drawn["rates"] == ["12.3k → 12k rec/s", "12k → 41 rec/s", "41 → 0 rec/s", "3 → 0 rec/s"]
    assert drawn["parallelism"] == ["×2", "×2", "×1", "×1"]
    assert (drawn["first"][0], drawn["second"][0]) == ("source → clean", "")
    assert (drawn["first"][1], drawn["second"][1]) == ("window aggregate", "tumbling 1h")


def test_boxes_of_one_column_do_not_overlap_though_the_layout_has_them_close():
    drawn = graph.box_columns(FRAME)
    assert drawn["x"][2] == drawn["x"][3]
    assert drawn["bottom"][2] > drawn["top"][3]
    assert min(drawn["bottom"]) >= 0
    assert max(drawn["top"]) <= graph.height(FRAME)


@pytest.mark.parametrize("many", [1, 2, 3, 5, 9])
def test_all_boxes_of_a_full_column_fit_into_the_drawing(many):
    vertices = tuple(VertexFrame(f"v{n}", f"n{n}", (), 1, {}, 0.0, 0.5) for n in range(many))
    frame = replace(FRAME, vertices=vertices, edges=())
    drawn = graph.box_columns(frame)
    edges = sorted(zip(drawn["bottom"], drawn["top"], strict=True))
    assert edges[0][0] >= 0
    assert edges[-1][1] <= graph.height(frame)
    assert all(below[1] <= above[0] for below, above in pairwise(edges))


def test_an_edge_runs_from_box_to_box_and_tells_exchange_rate_and_buffers():
    boxes, drawn = graph.box_columns(FRAME), graph.edge_columns(FRAME)
    assert drawn["x0"][0] == pytest.approx(boxes["right"][0])
    assert boxes["left"][1] - drawn["x1"][0] == pytest.approx(0.006)
    assert drawn["exchange"] == ["hash", "", ""]  # steep ways between two columns have no room for a long word
    assert drawn["tip"][1] == "rebalance, 41 rec/s"
    assert drawn["rate"] == ["12k/s", "41/s", "3/s"]
    assert drawn["buffers"] == ["13/32", "0/16", "0/16"]
    gauge = drawn["gauge_right"][0] - drawn["gauge_left"][0]
    assert (drawn["gauge_fill"][0] - drawn["gauge_left"][0]) / gauge == pytest.approx(13 / 32)
    assert drawn["width"] == [6.0, 1.5, 1.5]


def drawn_graph(columns, edges):
    """A frame with boxes in columns, each a list of their heights from 0 to 1, and edges between their names."""
    last = max(1, len(columns) - 1)
    boxes = [(f"{x}{place}", x / last, y) for x, column in enumerate(columns) for place, y in enumerate(column)]
    vertices = tuple(replace(FRAME.vertices[0], id=name, name=name, x=x, y=y) for name, x, y in boxes)
    return replace(
        FRAME,
        vertices=vertices,
        edges=tuple(replace(FRAME.edges[0], id=f"{a}{b}", source=a, target=b) for a, b in edges),
    )


def test_what_is_written_on_edges_overlaps_nothing_and_no_box():
    rows = [0.0, 0.5, 1.0]
    for columns, edges in (
        ([rows, [0.5]], [("00", "10"), ("01", "10"), ("02", "10")]),
        ([[0.5], [0.5], [0.5]], [("00", "10"), ("10", "20"), ("00", "20")]),  # the last one runs behind a box
    ):
        frame = drawn_graph(columns, edges)
        centres, half = graph.places(frame), graph.half_width(frame)
        found = graph.labels(frame, frame.edges, centres)
        assert any(amount for _, _, amount in found)
        boxes = []
        for x, y, amount in found:
            if amount:
                wide, above, below = graph.LABELS[2 - amount]
                boxes.append(
                    (x - wide / 2 / graph.width(frame), x + wide / 2 / graph.width(frame), y - below, y + above)
                )
            for x0, y0 in centres.values():
                assert not (amount and abs(x - x0) < half and abs(y - y0) < 30), "it stands on a box"
        for place, first in enumerate(boxes):
            for second in boxes[:place]:
                apart = first[1] <= second[0] or second[1] <= first[0] or first[3] <= second[2] or second[3] <= first[2]
                assert apart, (first, second)


def test_nothing_is_written_where_another_edge_crosses_it():
    rows = [0.0, 0.5, 1.0]
    everyone = [(f"0{a}", f"1{b}") for a in range(3) for b in range(3)]
    frame = drawn_graph([rows, rows], everyone)
    assert [amount for _, _, amount in graph.labels(frame, frame.edges, graph.places(frame))] == [0] * 9
    frame = drawn_graph([rows, rows], [("00", "10"), ("01", "11"), ("02", "12")])
    assert [amount for _, _, amount in graph.labels(frame, frame.edges, graph.places(frame))] == [2] * 3


def test_many_boxes_in_a_column_are_low_enough_to_be_seen_at_once():
    frame = drawn_graph([[place / 7 for place in range(8)]], [])
    assert graph.height(frame) <= 480
    drawn = graph.box_columns(frame)
    assert set(drawn["first"]) == {""}
    assert set(drawn["parallelism"]) == {"12.3k/s"}
    for names in (("top", "title_y"), ("title_y", "bar_top"), ("bar_bottom", "shares_y"), ("shares_y", "bottom")):
        for above, below in zip(*(drawn[name] for name in names), strict=True):
            assert above > below


def test_a_gauge_never_leaves_its_track_when_a_step_overshoots():
    over = replace(FRAME, edges=(replace(FRAME.edges[0], usage=1.09),))
    drawn = graph.edge_columns(over)
    assert drawn["gauge_fill"][0] == pytest.approx(drawn["gauge_right"][0])
    assert drawn["usage"] == ["13/32 (109 %)"]


def test_a_pool_is_never_used_more_than_whole_and_what_waits_for_it_is_told():
    metrics = {"outPoolUsage": 1.0, "usedMemorySegments": 8, "totalMemorySegments": 8, "outputQueueLength": 9}
    full = replace(FRAME, tasks=(replace(FRAME.tasks[0], metrics=metrics),))
    assert "100 % <span class='muted'>8/8 and 1 waiting</span>" in buffers.pools_html(full)


def test_the_hover_lists_operators_and_metrics():
    lines = graph.details(FRAME.vertices[1]).splitlines()
    assert lines[0] == "aggregate (window aggregate) tumbling 1h"
    assert "numRecordsInPerSecond: 12,000" in lines
    assert "busyTimeMsPerSecond: 880" in lines


# buffers ----------------------------------------------------------------------------------------------------------


def test_every_channel_has_a_row_with_both_of_its_sides():
    rows = buffers.rows(FRAME)
    assert [row["label"] for row in rows if row["heading"]] == [
        "source → aggregate",
        "aggregate → delays",
        "aggregate → late",
    ]
    assert rows[0]["note"] == "13/32 · 41 %"
    assert [row["note"] for row in rows[1:5]] == [
        "1 + 2/8 · 300 rec",
        "2 + 8/8 · 1k rec",
        "0 + 0/8 · aligning",
        "0 + 0/8 · idle",
    ]
    assert [row["held"] for row in rows[1:5]] == [False, False, True, False]


def test_bars_are_as_long_as_their_queues():
    drawn = buffers.columns(FRAME)
    left, right = buffers._RECEIVER
    assert drawn["receive_right"][1] == pytest.approx(left + (right - left) * 2 / 8)
    assert drawn["receive_right"][2] == pytest.approx(right) == pytest.approx(drawn["granted_right"][2])
    sender = buffers._SENDER[1] - buffers._SENDER[0]
    assert drawn["send_right"][2] - drawn["send_left"][2] == pytest.approx(sender * 2 / 8)
    assert drawn["held_right"][2] == left


def test_a_wide_edge_shows_its_fullest_channels_and_counts_the_others():
    wide = tuple(channel("v1->v2", f"source[{n}]", "aggregate[0]", n % 9, 0, SIX) for n in range(60))
    rows = buffers.rows(replace(FRAME, channels=wide))
    shown = [row for row in rows if not row["heading"]]
    assert [row["received"] for row in shown[:-1]] == [8] * 6
    assert shown[-1]["label"] == "and 54 emptier channels"


# watermarks -------------------------------------------------------------------------------------------------------


def test_every_channel_has_its_watermark_its_lag_and_its_holder():
    table = {task.task: task for task in watermarks.table(FRAME)}
    held = table["aggregate[0]"]
    assert (held.watermark_us, held.lag_us, held.sentence) == (SIX, HOUR, "waits for source[1]")
    assert [(m.name, m.lag_us, m.holds) for m in held.inputs] == [("source[0]", 0, False), ("source[1]", HOUR, True)]
    assert held.is_held
    other = table["aggregate[1]"]
    assert [(m.name, m.holds, m.note) for m in other.inputs] == [("source[0]", True, ""), ("source[1]", False, "idle")]
    assert not other.is_held
    assert table["delays[0]"].sentence == "no watermark"


def test_the_splits_of_a_source_are_its_inputs():
    source = watermarks.table(FRAME)[0]
    assert [(m.name, m.watermark_us, m.holds, m.note) for m in source.inputs] == [
        ("split 0", SIX + HOUR, True, ""),
        ("split 2", None, False, "idle"),
    ]


def test_the_lag_of_a_vertex_is_that_of_its_slowest_task():
    assert vertex_lags(FRAME) == {"v1": HOUR, "v2": HOUR, "v4": 2 * HOUR}
    assert event_time_lag(FRAME) == 2 * HOUR


def test_the_final_watermark_is_neither_the_furthest_nor_behind():
    over = replace(
        FRAME, channels=(replace(FRAME.channels[0], currentChannelWatermark=MAX_TIME),), tasks=FRAME.tasks[2:3]
    )
    assert furthest(over) == SIX
    assert watermarks.table(over)[0].inputs[0].lag_us == 0


def test_channels_that_are_at_their_end_are_no_skew():
    first = next(channel for channel in FRAME.channels if channel.target == "aggregate[0]")
    ahead = replace(first, currentChannelWatermark=SIX + HOUR, idle=False)
    behind = replace(first, currentChannelWatermark=SIX, idle=False)
    over = replace(first, currentChannelWatermark=MAX_TIME, idle=False)
    skews = [
        holders.skews_us(replace(FRAME, channels=c)).get("aggregate[0]")
        for c in ((behind, ahead, over), (behind, over))
    ]
    assert skews == [HOUR, None]


def test_all_inputs_idle_is_said_in_words():
    idle = tuple(replace(c, idle=True) for c in FRAME.channels[:2])
    task = replace(FRAME.tasks[2], watermarkHolder=None)
    assert watermarks.table(replace(FRAME, channels=idle, tasks=(task,)))[0].sentence == "all inputs idle"


def test_the_table_reads_as_a_person_would_say_it():
    text = text_of(watermarks.html(FRAME))
    assert "aggregate[0] 2013-07-01 06:00:00 1 h waits for source[1]" in text
    assert "source[1] 2013-07-01 06:00:00 1 h ◀ holds" in text
    assert "source[1] 2013-07-01 06:00:00 1 h idle" in text
    assert text_of(watermarks.html(replace(FRAME, tasks=(), channels=()))).strip() == "No watermark."


# checkpoints ------------------------------------------------------------------------------------------------------


def test_the_checkpoint_in_progress_names_the_tasks_that_are_missing():
    text = text_of(checkpoints.progress_html(FRAME))
    assert "#4 2/6 acknowledged 2 completed · 1 failed" in text
    assert "waiting for aggregate[0], aggregate[1], delays[0], late[0]" in text
    assert "width:33%" in checkpoints.progress_html(FRAME)


def test_a_failed_checkpoint_shows_its_reason():
    text = text_of(checkpoints.progress_html(replace(FRAME, checkpoints=FRAME.checkpoints[:2])))
    assert "✗ #2 failed" in text
    assert "No space left on device" in text


def test_the_chart_has_every_checkpoint_that_is_over():
    drawn = checkpoints.chart_columns(FRAME)
    assert drawn["id"] == [1, 2, 3]
    assert drawn["done_ms"] == [118.0, 0.0, 1480.0]
    assert drawn["failed_ms"] == [0.0, 80.0, 0.0]
    assert drawn["size"] == [34_000, 0, 1_200_000]


def test_without_checkpoints_it_says_why():
    never = replace(FRAME, checkpoints=(), settings={"checkpoint_interval": "disabled"})
    assert "No checkpoint yet: checkpoints are disabled." in text_of(checkpoints.progress_html(never))


# over time, head and log ------------------------------------------------------------------------------------------


def test_latency_is_that_of_the_slowest_sink_only():
    assert latency.percentiles(FRAME) == {"p50": 11.0, "p90": 20.0, "p95": 30.0, "p99": 41.0}
    assert set(latency.percentiles(replace(FRAME, latency=FRAME.latency[:1])).values()) == {None}


def test_throughput_is_read_and_received():
    assert latency.throughput(FRAME) == {"records in": 12_345.0, "records out": 41.0}


def test_tunings_are_marked_where_they_happened_and_the_latest_is_named():
    assert tunings(FRAME.events) == {
        "x": [1_699_999_960_000.0, 1_699_999_970_000.0],
        "text": ["buffer_timeout = 50ms", "speed = 600x"],
        "drop": [15, 1],
    }


def test_tunings_at_the_same_time_are_written_below_each_other_and_on_the_side_that_has_room():
    window = time_chart.TimeWindow()
    window.range.update(start=0, end=30_000)
    chart = time_chart.TimeChart(
        Paint(), Texts(), window, {"p50": ("good", "solid")}, ticks="shortNumber", label="", unit="", pixels=128
    )
    chart.append(29_000_000, {"p50": 1.0})
    tuned = [EventFrame(us, "tune", f"at {us}") for us in (1_000_000, 2_000_000, 3_000_000, 28_000_000)]
    chart.annotate(replace(FRAME, events=tuple(tuned)))
    marks = next(one.data_source.data for one in chart.figure.renderers if "drop" in one.data_source.data)
    assert marks["text"] == ["", "at 2000000", "at 3000000", "at 28000000"]
    assert marks["align"] == ["left", "left", "left", "right"]
    assert len(set(marks["drop"][1:])) == 3


def test_the_head_has_the_numbers_of_the_frame():
    assert header.figures(FRAME) == (
        ("records in", "12.3k", "/s"),
        ("latency p50", "11 ms", ""),
        ("latency p99", "41 ms", ""),
        ("event-time lag", "2 h", ""),
        ("running", "1 min 15 s", ""),
        ("restarts", "2", ""),
        ("late records", "7", ""),
        ("rows in delays", "1,234", ""),
    )
    text = text_of(header.html(FRAME, "delays"))
    assert "● RUNNING" in text
    assert FRAME.backpressure in text
    assert "history 2013-07-01 06:00:00 25.0 % of 336,776 records at 600x" in text


@pytest.mark.parametrize("state", sorted(header.BADGES))
def test_every_state_has_a_badge(state):
    assert state in text_of(header.html(replace(FRAME, state=state), "delays"))


def test_a_failure_that_ended_the_job_is_an_alert_and_an_earlier_one_is_told():
    failed = replace(FRAME, state="FAILED", failure="aggregate[1]: boom")
    assert "role='alert'>✗ aggregate[1]: boom" in header.html(failed, "delays")
    for seconds, told in ((59, True), (60, False)):
        event = EventFrame(FRAME.time_us - seconds * 1_000_000, "failure", "aggregate[1]: boom")
        recovered = replace(FRAME, failure="aggregate[1]: boom", events=(event,))
        assert ("last failure: aggregate[1]: boom" in text_of(header.html(recovered, "delays"))) == told


def test_the_headline_says_what_a_job_does_in_words():
    assert header.headline(FRAME) == (
        "Reads 12.3k records/s. Half reach a sink within 11 ms, 99 % within 41 ms. "
        "Event time there is 2 h behind the sources."
    )
    assert header.headline(replace(FRAME, paused=True)).startswith("Paused: the sources read nothing")
    assert header.headline(replace(FRAME, state="FINISHED")) == ""
    assert FRAME.replay is not None
    read = replace(FRAME.replay, records_read=FRAME.replay.records_total)
    held = replace(FRAME, replay=read, settings={**FRAME.settings, "at_end": "hold"})
    assert "Reads 12.3k records/s" in header.headline(held)
    held = replace(held, metrics={**FRAME.metrics, "numRecordsInPerSecond": 0.0})
    assert header.headline(held).startswith("All of its history has been read, and at_end = hold keeps it open")


def interrupted() -> InterruptionLog:
    log = InterruptionLog()
    at_us = FRAME.time_us - 2_000_000
    log.failed(at_us, "sum[1] failed", "sum[1] was failed on purpose")
    log.waits(at_us + 4_000, at_us + 104_000)
    log.restores(at_us + 104_000)
    log.deployed(at_us + 120_000, 13, 2_340, {"read[0]": 5_000})
    return log


def test_a_recovery_is_told_in_the_head_while_it_lasts_and_afterwards():
    log = interrupted()
    log.sample(FRAME.time_us - 1_000_000, {"read[0]": 4_000})
    lasts = header.html(replace(FRAME, interruptions=log.interruptions), "delays")
    assert "<p class='warn' role='status'>sum[1] was failed on purpose; canceled in 4 ms, restart after" in lasts
    assert "restored checkpoint 13 in 16 ms; 2,340 records are read again, 1,000 left" in text_of(lasts)
    log.sample(FRAME.time_us, {"read[0]": 5_000})
    over = replace(FRAME, interruptions=log.interruptions, findings=("sum[1] receives 83 % of the records of sum.",))
    assert "2,340 records read again, caught up after 2.0 s" in text_of(header.html(over, "delays"))
    for told in (header.html(over, "delays"), header.slim_html(over, "delays")):
        assert FRAME.backpressure in text_of(told)
        assert "sum[1] receives 83 % of the records of sum." in text_of(told)


def test_each_checkpoint_has_a_tick_on_the_chart_of_latency():
    one = next(checkpoint for checkpoint in FRAME.checkpoints if checkpoint.state == "COMPLETED")
    kinds = (one, replace(one, id=8, state="FAILED", reason="timed out"), replace(one, id=9, kind="savepoint"))
    found = checkpoint_ticks.columns(kinds)
    at_ms = one.triggered_us / 1000
    for place, name in enumerate(("done", "failed", "saved")):
        assert found[name][place] == at_ms
        assert sum(value == at_ms for value in found[name]) == 1
    assert found["what"][1] == "#8 failed: timed out"


def test_the_log_shows_the_last_twelve_newest_first():
    many = tuple(EventFrame(FRAME.time_us + n * 1_000_000, "notice", f"event {n}") for n in range(15))
    found = re.findall(r"<span>(event \d+)</span>", events.html(replace(FRAME, events=many)))
    assert found == [f"event {n}" for n in range(14, 2, -1)]


def test_a_checkpoint_that_failed_is_no_good_news_in_the_log():
    failed = EventFrame(FRAME.time_us, "checkpoint", "checkpoint 4 failed: timed out")
    assert "var(--wb-bad)'>✗ checkpoint</b>" in events.html(replace(FRAME, events=(failed,)))


def test_hostile_text_is_shown_as_text_everywhere():
    frame = replace(
        FRAME,
        job=HOSTILE,
        failure=HOSTILE,
        backpressure=HOSTILE,
        tables={HOSTILE: 1},
        settings={"checkpoint_interval": HOSTILE},
        tasks=tuple(
            replace(task, name=HOSTILE, watermarkHolder=HOSTILE, splits={HOSTILE: SIX}) for task in FRAME.tasks
        ),
        channels=tuple(replace(c, source=HOSTILE, target=HOSTILE) for c in FRAME.channels),
        checkpoints=(
            replace(FRAME.checkpoints[1], reason=HOSTILE),
            replace(FRAME.checkpoints[3], subtasks=(SubtaskCheckpointFrame(HOSTILE, False),)),
        ),
        events=(EventFrame(0, "notice", HOSTILE),),
    )
    pages = [
        header.html(frame, HOSTILE),
        header.waiting_html(HOSTILE),
        watermarks.html(frame),
        checkpoints.progress_html(frame),
        checkpoints.progress_html(replace(frame, checkpoints=frame.checkpoints[:1])),
        checkpoints.progress_html(replace(frame, checkpoints=())),
        checkpoints_history.html(frame, 2, inside=True),
        events.html(frame),
    ]
    for page in pages:
        assert "<img" not in page
        assert "'\"" not in page
    assert all("&lt;img" in page for page in (pages[0], pages[2], pages[3], pages[4], pages[7]))


# words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (7.46, "7.5"), (950, "950"), (999.7, "1k"), (12_345, "12.3k"), (336_776, "337k"),
     (999_800, "1M"), (1.24e6, "1.2M"), (3.2e9, "3.2G")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert wording.short(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.44, "0.4 ms"), (120.2, "120 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (1500, "1.5 s"),
     (123_000, "2 min 3 s")],
)  # fmt: skip
def test_milliseconds_change_their_unit(value, text):
    assert wording.milliseconds(value) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [(None, "–"), (0, "0 s"), (45_000_000, "45 s"), (2 * HOUR + 600_000_000, "2 h 10 min"), (76 * HOUR, "3 d 4 h"),
     (24 * HOUR, "1 d"), (250_000, "250 ms")],
)  # fmt: skip
def test_spans_have_two_units_at_most(us, text):
    assert wording.span(us) == text


def test_instants_are_utc_and_the_last_has_a_name():
    assert wording.instant(SIX) == "2013-07-01 06:00:00"
    assert (wording.instant(None), wording.instant(MAX_TIME)) == ("–", "end")
    assert wording.clock(SIX) == "06:00:00"


@pytest.mark.parametrize("value", [0.0, 0.3, 0.96, 1.0, 4.9, 37.0, 199.0, 12_345.0, math.inf])
def test_axes_end_above_their_greatest_value_at_a_round_number(value):
    end = ceiling(value)
    assert end >= value or math.isinf(value)
    assert end / 10 ** math.floor(math.log10(end)) in (1, 2, 5)


@pytest.mark.parametrize(
    ("value", "end"), [(0, 1), (50, 60), (3000, 3600), (9 * 3600, 12 * 3600), (40 * 86_400, 50 * 86_400)]
)
def test_axes_of_time_end_at_round_times(value, end):
    assert ceiling_s(value) == end


@pytest.mark.parametrize(("age_s", "shown_s"), [(0, 30), (29, 30), (30, 60), (59, 60), (60, 120), (7_200, 120)])
def test_charts_of_a_young_job_show_less_time(age_s, shown_s):
    window = time_chart.TimeWindow()
    window.update(replace(FRAME, started_us=FRAME.time_us - age_s * 1_000_000))
    assert window.range.end == FRAME.time_us / 1000 + time_chart.STEP_MS
    assert window.range.end - window.range.start == shown_s * 1000
