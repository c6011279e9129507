"""The picture is true: a job is frozen in the stepping driver, and what is drawn is compared with the runtime itself.

What is expected is read here from tasks, queues and the coordinator, without telemetry.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.dashboard.shown import header
from workbench.dashboard.views import buffers, graph, graph_modes, subtasks
from workbench.dashboard.views.checkpoints import checkpoints, gantt, inflight
from workbench.dashboard.views.event_time import holders, watermarks
from workbench.dashboard.views.sink_part import Latest, series
from workbench.dashboard.views.state_part import Held, figures, top
from workbench.dashboard.views.state_part import html as state_html
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import CheckpointBarrier, Records
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.telemetry.diagnosis import held_by

ROWS = 900
MOMENTS = (60, 140, 260, 333, 420, 555, 700)


def frozen_job(name, airports=("JFK", "LGA", "EWR", "ATL"), **settings):
    """Some airports, two subtasks each, buffers of two records, and an operator that is slow."""
    table = pa.table(
        {
            "airport": [airports[row * 7 % len(airports)] for row in range(ROWS)],
            "t": pa.array([row * 1_000_000 for row in range(ROWS)], pa.timestamp("us")),
            "delay": [float(row % 61) for row in range(ROWS)],
        }
    )
    flights = wb.Stream.from_table(table, event_time="t", out_of_orderness="20s").filter("delay >= 0")
    counted = flights.key_by("airport").window(wb.tumbling("1min")).aggregate(n=wb.count(), worst=wb.max("delay"))
    options = {"checkpoint_interval": "30ms", "buffer_timeout": "0ms", "buffer_size": 2, "parallelism": 2, **settings}
    job = counted.rebalance().sink_to(wb.TableSink("delays")).run(name, driver="stepping", **options)
    job.faults.slow_down("aggregate", "5ms")
    return job


def frozen(job, steps):
    for _ in range(steps):
        job.stepper.driver.step()
    return job.recorder.latest()


def tasks_of(job):
    return {task.name: task for task in job.stepper.driver.execution.tasks}


def queued(channel):
    """Records and buffers in a queue, counted one by one."""
    held = [element for element in channel.elements if isinstance(element, Records)]
    return sum(len(element) for element in held), len(held)


def moments(name, **settings):
    job, at = frozen_job(name, **settings), 0
    for moment in MOMENTS:
        frame = frozen(job, moment - at)
        at = moment
        assert job.state == "RUNNING"
        yield job, frame
    job.cancel()


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)).strip()


def channel_rows(frame):
    """The rows of the buffers' view by channel: under the heading ``source → aggregate``, ``[0] → [1]``."""
    rows, ends = {}, ("", "")
    for row in buffers.rows(frame):
        if row["heading"]:
            ends = row["label"].split(" → ")
        else:
            rows[" → ".join(map("".join, zip(ends, row["label"].split(" → "), strict=True)))] = row
    return rows


def test_buffers_are_those_of_the_queues_and_pools():
    most = beyond_pools = 0
    for job, frame in moments("buffers", airports=[f"A{number}" for number in range(60)]):
        rows = channel_rows(frame)
        for channel in job.stepper.driver.execution.channels:
            records, held = queued(channel)
            row = rows[f"{channel.source} → {channel.target}"]
            assert (row["received"], row["sent"]) == (min(held, channel.credit), max(0, held - channel.credit))
            assert row["capacity"] == channel.credit
            if "rec" in row["note"]:
                assert row["note"].endswith(f"{records} rec")
            most = max(most, held)
        for row in re.findall(r"<tr><th title.*?</tr>", buffers.pools_html(frame)):
            name = re.search(r"<th[^>]*>(.*?)</th>", row).group(1)
            task = tasks_of(job)[name]
            if task.outputs:
                used, total = task.pool.used, task.pool.total
                beyond = f" and {used - total} waiting" if used > total else ""
                told = f"{100 * min(used / total, 1):.0f} % {min(used, total)}/{total}{beyond} "
                assert told in text_of(row)
                beyond_pools += used > total
            else:
                assert "/" not in text_of(row), "a sink has no output pool"
            if isinstance(task, OperatorTask):
                received = sum(min(queued(item.channel)[1], item.channel.credit) for item in task.gate.channels)
                granted = sum(item.channel.credit for item in task.gate.channels)
                assert text_of(row).startswith(f"{name} {100 * received / granted:.0f} %")
    assert most > 2, "the slow operator must have filled some queue"
    assert beyond_pools, "a step must have produced more than its pool has"


def test_the_graph_counts_what_its_operators_counted():
    for job, frame in moments("graph"):
        tasks = tasks_of(job)
        physical = dict(zip(graph.box_columns(frame)["name"], frame.vertices, strict=True))
        for name, vertex in physical.items():
            own = [task for task in tasks.values() if task.vertex == vertex.id]
            lines = graph.details(vertex).splitlines()
            assert f"numRecordsIn: {sum(task.root.counters.numRecordsIn for task in own):,}" in lines, name
            shares = graph.shares(vertex)
            assert sum(shares) == pytest.approx(1.0)
        logical = {vertex.name: vertex for vertex in graph_modes.look(frame, "Logical").vertices}
        links = [link for task in tasks.values() for link in task.links]
        assert set(logical) == {link.uid for link in links}
        for uid, box in logical.items():
            told = sum(link.counters.numRecordsIn for link in links if link.uid == uid)
            assert f"numRecordsIn: {told:,}" in graph.details(box).splitlines()
        split = graph_modes.look(frame, "Subtasks")
        assert {box.name for box in split.vertices} == set(tasks)
        drawn = dict(zip(graph.edge_columns(split)["name"], graph.edge_columns(split)["usage"], strict=True))
        for channel in job.stepper.driver.execution.channels:
            held = queued(channel)[1]
            assert drawn[f"{channel.source} → {channel.target}"].startswith(f"{held}/{channel.credit} ({held * 50} %)")
        edges = dict(zip(graph.edge_columns(frame)["name"], graph.edge_columns(frame)["buffers"], strict=True))
        for edge in ("table → aggregate", "aggregate → delays"):
            ends = edge.split(" → ")
            of_edge = [
                channel
                for channel in job.stepper.driver.execution.channels
                if channel.source.startswith(f"{ends[0]}[") and channel.target.startswith(f"{ends[1]}[")
            ]
            assert edges[edge].startswith(f"{sum(queued(channel)[1] for channel in of_edge)}/")


def test_rates_are_differences_of_counts_over_the_last_second():
    job = frozen_job("rates", checkpoint_interval=None)
    job.faults.slow_down("aggregate", "25ms")
    seen = []
    for _ in range(900):
        job.stepper.driver.step()
        execution = job.stepper.driver.execution
        now = job.stepper.driver.clock.now_us()
        counts = {task.name: task.root.counters.numRecordsIn for task in execution.tasks}
        received = {f"{c.source} → {c.target}": c.records_received for c in execution.channels}
        seen.append((now, counts, received))
    frame = job.recorder.latest()
    past = next(moment for moment in seen if now - moment[0] <= 1_000_000)
    seconds = (now - past[0]) / 1e6
    assert 0.9 < seconds <= 1.0
    assert past[0] > seen[0][0]
    for task in frame.tasks:
        expected = (counts[task.name] - past[1][task.name]) / seconds
        assert task.metrics["numRecordsInPerSecond"] == pytest.approx(expected)
    split = graph_modes.look(frame, "Subtasks")
    for edge in split.edges:
        name = f"{edge.source} → {edge.target}"
        assert edge.records_per_second == pytest.approx((received[name] - past[2][name]) / seconds)
    assert header.figures(frame)[0][0] == "records in"
    job.cancel()


def test_bytes_and_buffers_are_those_that_went_through_the_channels(monkeypatch):
    sent, received = Counter(), Counter()

    def weight(element):
        columns = element.batch.columns  # made anew, so that no bitmap of nulls comes along where there are none
        values = sum(pa.array(column.to_pylist(), column.type).nbytes for column in columns)
        return values + element.timestamps.nbytes

    def push(channel, element, real=Channel.push):
        if isinstance(element, Records):
            sent[channel.source, "bytes"] += weight(element)
            sent[channel.source, "buffers"] += 1
        real(channel, element)

    def poll(channel, real=Channel.poll):
        element = real(channel)
        if isinstance(element, Records):
            received[channel.target, "bytes"] += weight(element)
            received[channel.target, "buffers"] += 1
        return element

    monkeypatch.setattr(Channel, "push", push)
    monkeypatch.setattr(Channel, "poll", poll)
    for job, frame in moments("bytes"):
        told = {task.name: task.metrics for task in frame.tasks}
        assert set(told) == set(tasks_of(job))
        for name, metrics in told.items():
            assert (metrics["numBytesOut"], metrics["numBuffersOut"]) == (sent[name, "bytes"], sent[name, "buffers"])
            assert metrics["numBytesIn"] == received[name, "bytes"]
            assert metrics["numBuffersIn"] == received[name, "buffers"]
        rows = re.findall(r"<tr><th scope='row'>.*?</tr>", subtasks.vertices_html(frame))
        assert len(rows) == len(frame.vertices)
        for vertex, row in zip(frame.vertices, rows, strict=True):
            own = [task.name for task in frame.tasks if task.vertex == vertex.id]
            exact = [int(number.replace(",", "")) for number in re.findall(r"title='([\d,]+)'", row)]
            assert exact[0] == sum(received[name, "bytes"] for name in own)
            assert exact[2] == sum(sent[name, "bytes"] for name in own)
            assert vertex.metrics["numBuffersIn"] == sum(received[name, "buffers"] for name in own)
    assert min(sent["table[0]", "bytes"], received["delays[1]", "bytes"]) > 100


def test_the_worst_subtask_and_the_skew_are_those_of_the_tasks():
    spread = 0
    for job, frame in moments("skewed"):
        for vertex in frame.vertices:
            own = [task for task in frame.tasks if task.vertex == vertex.id]
            for title, name in (("Backpressured", "backPressuredTimeMsPerSecond"), ("Busy", "busyTimeMsPerSecond")):
                worst = max(task.metrics[name] for task in own)
                assert f"{title} (max): {worst / 10:.0f} %" in graph.details(vertex).splitlines()
            one, other = (task.metrics["numRecordsInPerSecond"] for task in own)
            if one + other:
                expected = 100 * abs(one - other) / (one + other)  # two are equally far from their mean
                assert vertex.metrics["dataSkew"] == pytest.approx(expected)
                spread += expected > 0
        started = {task.name: task.started_us for task in tasks_of(job).values()}
        assert {task.name: task.started_us for task in frame.tasks} == started
    assert spread > 0


def test_watermarks_are_those_of_the_channels_and_the_chain_ends_at_a_split():
    told = 0
    for job, frame in moments("watermarks"):
        table = {entry.task: entry for entry in watermarks.table(frame)}
        for task in job.stepper.driver.execution.tasks:
            if not isinstance(task, OperatorTask):
                continue
            own = [None if item.watermark_us == NO_TIME else item.watermark_us for item in task.gate.channels]
            assert [mark.watermark_us for mark in table[task.name].inputs] == own
            assert [mark.name for mark in table[task.name].inputs] == [i.channel.source for i in task.gate.channels]
            if None not in own:
                assert table[task.name].watermark_us == min(own)
                going_on = [mark for mark in own if mark < MAX_TIME]
                if len(going_on) > 1:
                    assert holders.skews_us(frame)[task.name] == max(going_on) - min(going_on)
                told += 1
        chain = held_by(frame)
        if chain:
            first = tasks_of(job)[chain[0]]
            assert first.valve.output_us == min(
                task.valve.output_us for task in tasks_of(job).values() if task.name.startswith("delays[")
            )
            if len(chain) > 3:
                assert chain[-1].startswith("split ")
        late = sum(link.counters.numLateRecordsDropped for task in tasks_of(job).values() for link in task.links)
        assert sum(holders.late_records(frame).values()) == late
    assert told > 5


@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once"])
def test_the_cut_is_where_the_barriers_are(mode):
    job = frozen_job(f"cut-{mode}")
    job.tune(checkpoint_mode=mode)
    seen = Counter()
    for _ in range(500):
        job.stepper.driver.step()
        if job.state != "RUNNING":
            break
        frame = job.recorder.latest()
        checkpoint = inflight.in_progress(frame)
        cuts = {(cut.source, cut.target): cut for cut in inflight.cuts(frame)}
        if checkpoint is None:
            assert cuts == {}
            continue
        record = next(r for r in job._run.master.coordinator.history if r.checkpoint_id == checkpoint.id)
        items = [
            item for task in tasks_of(job).values() if isinstance(task, OperatorTask) for item in task.gate.channels
        ]
        for item in items:
            channel, cut = item.channel, cuts[item.channel.source, item.channel.target]
            ids = [e.checkpoint_id if isinstance(e, CheckpointBarrier) else None for e in channel.elements]
            total = queued(channel)[0]
            if checkpoint.id in ids:
                ahead = list(channel.elements)[: ids.index(checkpoint.id)]
                before = sum(len(e) for e in ahead if isinstance(e, Records))
                assert (cut.on_channel, cut.before, cut.behind) == (True, before, total - before)
                seen["barrier"] += 1
                seen["behind"] += total > before
            elif item.blocked:
                assert (cut.before, cut.behind) == (0, total)
                assert cut.held_us == job.stepper.driver.clock.now_us() - item.blocked_us
                seen["held"] += 1
            elif channel.target in record.acknowledgements:
                assert (cut.before, cut.behind) == (0, total)
                seen["taken"] += 1
            else:
                assert (cut.before, cut.behind, cut.on_channel) == (total, 0, False)
                seen["not yet"] += 1
        text = text_of(inflight.html(frame))
        assert f"#{checkpoint.id}" in text
    assert seen["barrier"] > 10
    assert seen["behind"] > 0
    assert (seen["held"] > 0) == (mode == "exactly-once"), seen
    job.cancel()


def test_checkpoints_are_told_as_the_coordinator_has_them():
    job = frozen_job("checkpoints")
    checked = 0
    for _ in range(30):
        frame = frozen(job, 20)
        if job.state != "RUNNING":
            break
        records = {record.checkpoint_id: record for record in job._run.master.coordinator.history}
        done = [record for record in records.values() if record.state == "COMPLETED"]
        drawn = checkpoints.chart_columns(frame)
        assert drawn["id"] == [record.checkpoint_id for record in done][-24:]
        acknowledged_us = [max(ack.written_us for ack in record.acknowledgements.values()) for record in done]
        took = [(end - record.triggered_us) / 1000 for end, record in zip(acknowledged_us, done, strict=True)]
        assert drawn["done_ms"] == took[-24:]
        assert drawn["size"] == [sum(a.file.written for a in r.acknowledgements.values()) for r in done][-24:]
        shown = gantt.chosen(frame)
        if shown is None:
            continue
        acks = records[shown.id].acknowledgements
        bars = gantt.columns(shown)
        for place, task in enumerate(records[shown.id].tasks):
            ack = acks.get(task)
            if ack is None:
                assert bars["written"][place] == 0.0
                continue
            ends = [ack.start_delay_us, ack.start_delay_us + ack.alignment_us]
            ends.append(ends[-1] + ack.sync_us)
            ends.append(ends[-1] + (0 if ack.written_us is None else ack.written_us - ack.taken_us))
            names = ("delay", "aligned", "synced", "written")
            assert [bars[name][place] for name in names] == pytest.approx([end / 1000 for end in ends])
            checked += 1
    assert checked > 20
    job.cancel()


def test_state_and_results_are_what_operator_and_table_hold():
    job = frozen_job("state")
    for _ in range(4):
        frame = frozen(job, 150)
        view = job.operator_state("aggregate")
        held = Held(view.size(), tuple(view.items(10)))
        assert held.size == len({key["airport"] for key, _ in held.items}) == len(view.keys(10))
        assert {key["airport"]: value for key, value in held.items} == {
            key["airport"]: view.get(**key) for key, _ in held.items
        }
        numbers = [figures(value)["n"] for _, value in top(held, "n")]
        assert numbers == sorted(numbers, reverse=True)
        assert all(key["airport"] in state_html(held, "n", 10) for key, _ in held.items)
        table = job.table("delays")
        assert frame.tables["delays"] == table.num_rows
        drawn = {one.name: one for one in series(Latest(table.num_rows, table), "worst")}
        for name, one in drawn.items():
            rows = [row for row in table.to_pylist() if row["airport"] == name]
            assert list(one.y) == [row["worst"] for row in rows]
            ends = [row["window_end"].replace(tzinfo=None) - datetime(1970, 1, 1) for row in rows]
            assert list(one.x) == [end.total_seconds() * 1000 for end in ends]
    assert table.num_rows > 0
    job.cancel()


def test_a_job_that_has_ended_reads_nothing_any_more():
    numbers = wb.Stream.from_table(pa.table({"n": list(range(2_000))}), rate=50).sink_to(wb.TableSink("numbers"))
    job = numbers.run("ended")
    until(lambda: job.status()["records_in_per_second"] > 0)
    job.tune(rate="max")
    assert job.wait("60s") == "FINISHED"
    assert (job.status()["records_in_per_second"], job.status()["records_out_per_second"]) == (0, 0)
