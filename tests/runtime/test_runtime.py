"""The runtime's parts: channels and credit, buffer timeout, watermarks, alignment, storage, life cycle."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.durations import MAX_TIME
from workbench.elements import CheckpointBarrier, Element, EndOfStream, LatencyMarker, Records, Watermark
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.input_gate import InputChannel, InputGate, WatermarkValve
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.storage import DirectoryStorage, Manifest
from workbench.runtime.storage.encoding import decode, encode
from workbench.state.key_groups import KeyPartitioner
from workbench.telemetry.sampler import Sampler

SCHEMA = pa.schema([("n", pa.int64())])


def records(*numbers: int) -> Records:
    return Records(pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], schema=SCHEMA))


def numbers(element: Element) -> list[int]:
    assert isinstance(element, Records)
    return element.batch.column(0).to_pylist()


class Now:
    def __init__(self) -> None:
        self.us = 1_000

    def __call__(self) -> int:
        return self.us


def output(
    channels: int, strategy: str = "forward", size: int = 4, timeout: int | None = 100
) -> tuple[EdgeOutput, Now]:
    now = Now()
    ends = [Channel("e", "a[0]", f"b[{i}]", 2, Waker(), Waker()) for i in range(channels)]
    partitioner = KeyPartitioner(("n",), SCHEMA, channels) if strategy == "hash" else None
    return EdgeOutput(ends, strategy, partitioner, None, now, size, timeout), now


def drain(channel: Channel) -> list[Element]:
    return [element for element in iter(channel.poll, None) if element is not None]


# the sending end ---------------------------------------------------------------------------------------------------


def test_a_partial_buffer_is_shipped_when_its_timeout_has_passed_since_its_first_record() -> None:
    edge, now = output(1)
    edge.route(records(1))
    now.us += 60
    edge.route(records(2))
    assert edge.next_due_us() == 1_100
    assert not edge.ship_due(1_099)
    assert drain(edge.channels[0]) == []
    assert edge.ship_due(1_100)
    assert [numbers(e) for e in drain(edge.channels[0])] == [[1, 2]]
    assert edge.next_due_us() is None


def test_timeout_zero_ships_every_record_at_once_and_disabled_only_full_buffers() -> None:
    at_once, _ = output(1, timeout=0)
    at_once.route(records(1))
    assert [numbers(e) for e in drain(at_once.channels[0])] == [[1]]
    never, now = output(1, timeout=None)
    never.route(records(1, 2, 3))
    now.us += 10**12
    assert not never.ship_due(now.us)
    assert drain(never.channels[0]) == []
    never.route(records(4))
    assert [numbers(e) for e in drain(never.channels[0])] == [[1, 2, 3, 4]]


def test_no_buffer_is_larger_than_the_buffer_size() -> None:
    edge, _ = output(1, size=4)
    edge.route(records(*range(11)))
    edge.ship_all()
    assert [numbers(e) for e in drain(edge.channels[0])] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


def test_a_watermark_waits_behind_its_records_and_ahead_of_later_ones() -> None:
    edge, _ = output(1, size=10)
    edge.route(records(1))
    edge.emit_watermark(Watermark(5))
    edge.route(records(2))
    edge.emit_event(EndOfStream())
    shown = [numbers(e) if isinstance(e, Records) else e for e in drain(edge.channels[0])]
    assert shown == [[1], Watermark(5), [2], EndOfStream()]


def shown(edge: EdgeOutput, channel: int = 0) -> list[object]:
    return [numbers(e) if isinstance(e, Records) else e for e in drain(edge.channels[channel])]


def timed(start: int, *times: int) -> Records:
    """Records numbered from `start` with these event times."""
    return Records(records(*range(start, start + len(times))).batch, np.array(times, np.int64))


def test_a_watermark_does_not_end_the_buffer_timeout_early() -> None:
    edge, now = output(1, size=100)
    for place in range(10):
        edge.route(timed(place, 10 * place))
        edge.emit_watermark(Watermark(10 * place - 1))
        now.us += 5
    assert shown(edge) == []  # half of the timeout has passed
    assert edge.ship_due(1_100)
    assert shown(edge) == [list(range(10)), Watermark(89)]


@pytest.mark.parametrize("late_us", [5, -3])
def test_a_record_that_is_late_stays_behind_its_watermark(late_us: int) -> None:
    edge, _ = output(1, size=100)
    edge.route(timed(1, 4))
    edge.emit_watermark(Watermark(5))
    edge.route(timed(2, 6, 7))  # joins the buffer: none is late
    assert shown(edge) == []
    edge.route(timed(4, 8, late_us))
    assert shown(edge) == [[1, 2, 3], Watermark(5)]
    edge.ship_all()
    assert shown(edge) == [[4, 5]]


def test_a_watermark_goes_with_the_full_buffer_that_holds_its_last_record_not_with_the_last_of_a_backlog() -> None:
    edge, _ = output(1, timeout=None, size=4)
    edge.route(timed(0, 1, 2))
    edge.emit_watermark(Watermark(2))
    edge.route(timed(2, 3, 4, 5))  # full buffers go on, and a rest stays
    pieces = shown(edge)
    assert Watermark(2) in pieces
    assert pieces.index(Watermark(2)) == 1
    assert edge.pending[0].rows


def test_every_latency_marker_arrives_behind_the_records_before_it() -> None:
    edge, _ = output(1, size=10)
    edge.route(records(1))
    edge.emit_marker(LatencyMarker(7, "a[0]"), 0)
    edge.route(records(2))
    edge.emit_marker(LatencyMarker(8, "a[0]"), 0)
    edge.ship_due(1_100)
    assert shown(edge) == [[1, 2], LatencyMarker(7, "a[0]"), LatencyMarker(8, "a[0]")]


def test_a_barrier_ships_what_came_before_it() -> None:
    edge, _ = output(2, "broadcast", size=10)
    edge.route(records(1))
    edge.emit_event(CheckpointBarrier(1, 0))
    for channel in edge.channels:
        shown = [numbers(e) if isinstance(e, Records) else e for e in drain(channel)]
        assert shown == [[1], CheckpointBarrier(1, 0)]


def test_latency_markers_wait_with_the_records_so_they_feel_the_buffer_timeout() -> None:
    edge, _ = output(1, size=10)
    edge.route(records(1))
    edge.emit_marker(LatencyMarker(7, "a[0]"), 0)
    assert drain(edge.channels[0]) == []
    edge.ship_due(1_100)
    shown = [numbers(e) if isinstance(e, Records) else e for e in drain(edge.channels[0])]
    assert shown == [[1], LatencyMarker(7, "a[0]")]


@pytest.mark.parametrize(("first", "later", "shipped"), [(6, 8, 0), (0, 4, 0), (6, 4, 4), (2, 16, 10), (2, 28, 20)])
def test_there_is_a_marker_for_records_that_wait_and_one_for_those_that_have_filled_a_buffer(
    first: int, later: int, shipped: int
) -> None:
    """Of what has become due during a rest, a part has been shipped, and the others wait for the next buffer."""
    edge, _ = output(1, size=10)
    edge.route(records(*range(first)))
    edge.markers.begin_rest(0)
    edge.route(records(*range(later)))
    edge.emit_marker(LatencyMarker(1_000, "a[0]", 800, 400), 0)
    edge.ship_due(1_100)
    waits = later - shipped
    newest = LatencyMarker(1_000, "a[0]", 800 * waits // later, 400 * waits // later)
    oldest = LatencyMarker(1_000 - newest.rested_us, "a[0]", 800 - newest.rested_us, 400 - newest.covers_us)
    expected = [*[oldest] * (shipped > 0), *[newest] * (waits > 0)]
    assert [piece for piece in shown(edge) if type(piece) is LatencyMarker] == expected


def test_a_marker_that_begins_a_buffer_has_waited_since_its_records_became_due() -> None:
    edge, now = output(2)
    edge.arrived_us = now.us - 40
    for turn in (0, 1):
        edge.emit_marker(LatencyMarker(now.us, "a[0]", 40), turn)
    assert edge.next_due_us() == now.us + 60
    assert edge.ship_due(now.us + 60)
    assert [len(drain(channel)) for channel in edge.channels] == [1, 1]


def test_of_two_channels_each_gets_markers_of_each_kind_where_kinds_take_turns() -> None:
    edge, _ = output(2)
    for turn in range(100):
        edge.emit_marker(LatencyMarker(turn % 2, "a[0]"), turn)
    edge.flush()
    kinds = [[marker.marked_us for marker in drain(channel)] for channel in edge.channels]
    assert all(30 <= len(each) <= 70 and 0.3 < np.mean(each) < 0.7 for each in kinds)


def test_rebalance_spreads_evenly_and_hash_keeps_a_key_together() -> None:
    edge, _ = output(3, "rebalance", size=2)
    for start in range(0, 60, 6):
        edge.route(records(*range(start, start + 6)))
    edge.ship_all()
    found = [[n for e in drain(channel) for n in numbers(e)] for channel in edge.channels]
    assert [len(part) for part in found] == [20, 20, 20]
    assert sorted(n for part in found for n in part) == list(range(60))
    hashed, _ = output(3, "hash", size=2)
    hashed.route(records(*[5, 6, 7, 8] * 5))
    hashed.ship_all()
    parts = [[n for e in drain(channel) for n in numbers(e)] for channel in hashed.channels]
    assert sorted(n for part in parts for n in part) == sorted([5, 6, 7, 8] * 5)
    assert all(part.count(n) in (0, 5) for part in parts for n in (5, 6, 7, 8))


def test_a_pool_without_room_is_backpressure_until_the_receiver_takes() -> None:
    edge, _ = output(1, size=1)
    pool = OutputPool([edge], floating=1)
    sent = 0
    while pool.has_room:
        edge.route(records(sent))
        sent += 1
    assert sent == edge.channels[0].credit + pool.total == 2 + 3
    assert pool.used == pool.total
    assert edge.channels[0].queued_buffers == 5
    edge.channels[0].poll()
    assert pool.has_room
    assert pool.used == pool.total - 1


# the receiving end -------------------------------------------------------------------------------------------------


def gate(count: int) -> tuple[list[Channel], list[InputChannel]]:
    channels = [Channel("e", f"a[{i}]", "b[0]", 2, Waker(), Waker()) for i in range(count)]
    return channels, [InputChannel(channel, 0) for channel in channels]


def test_the_gate_takes_channels_in_turn_and_leaves_blocked_ones() -> None:
    channels, inputs = gate(3)
    for i, channel in enumerate(channels):
        channel.push(records(i))
        channel.push(records(10 + i))
    inputs[1].blocked = True
    polled = InputGate(inputs)
    taken = []
    while (item := polled.poll()) is not None:
        taken.append(numbers(item[1])[0])
    assert taken == [0, 2, 10, 12]


def test_the_watermark_is_the_minimum_over_active_channels_and_never_falls() -> None:
    _, inputs = gate(3)
    valve = WatermarkValve(inputs)
    inputs[0].watermark_us, inputs[1].watermark_us = 10, 20
    assert valve.advance() is None  # the third has not spoken yet
    assert valve.holder is inputs[2]
    inputs[2].watermark_us = 5
    assert valve.advance() == 5
    inputs[2].idle = True
    assert valve.advance() == 10
    inputs[2].idle = False  # it speaks again, but time does not go back
    assert valve.advance() is None
    assert valve.output_us == 10
    inputs[2].finished = True
    inputs[0].watermark_us = 30
    assert valve.advance() == 20
    assert valve.holder is inputs[1]


def test_with_every_channel_idle_time_goes_to_the_furthest() -> None:
    _, inputs = gate(2)
    valve = WatermarkValve(inputs)
    inputs[0].watermark_us, inputs[1].watermark_us = 10, 20
    assert valve.advance() == 10
    inputs[0].idle = inputs[1].idle = True
    assert valve.advance() == 20
    assert valve.idle


def test_an_ended_channel_moves_time_no_further_than_an_idle_one_lets_it() -> None:
    _, (ending, silent, other) = gate(3)
    valve = WatermarkValve((ending, silent, other))
    assert [valve.reach(ending, 30), valve.reach(silent, 10), valve.reach(other, 20)] == [None, None, 10]
    silent.idle = True
    assert valve.silence(silent) == 20
    assert valve.reach(other, MAX_TIME) == 30
    assert valve.reach(ending, MAX_TIME) is None
    assert (valve.output_us, valve.idle) == (30, True), "the idle one may wake up"
    ending.finished = True
    assert valve.silence(ending) is None
    silent.idle = False
    assert valve.advance() is None
    assert not valve.idle
    assert [valve.reach(silent, 40), valve.reach(silent, MAX_TIME)] == [40, MAX_TIME]


# storage -----------------------------------------------------------------------------------------------------------


def test_state_survives_encoding() -> None:
    table = pa.table({"k": ["a", None], "n": [1, 2]})
    states: dict[str, Any] = {"source": {"offsets": {"0": 3}, "empty": None}, "agg": {"t": table}, "stateless": {}}
    found = decode(encode(states).join(), "x")
    assert found["source"] == {"offsets": {"0": 3}, "empty": None}
    assert found["agg"]["t"].equals(table)
    assert found["stateless"] == {}


def write_checkpoint(storage: DirectoryStorage, number: int) -> Manifest:
    place = f"chk-{number:08d}"
    file = storage.write(place, "a[0]", encode({"a": {"n": number}}))
    manifest = Manifest(number, "job", "periodic", 1, 2, {"a": 1}, (file,), place=place)
    storage.complete(place, manifest)
    return manifest


def test_a_checkpoint_is_complete_only_with_its_manifest(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path / "c")) as storage:
        write_checkpoint(storage, 1)
        storage.write("chk-00000002", "a[0]", encode({"a": {"half": 1}}))
        assert [m.checkpoint_id for m in storage.manifests()] == [1]
        assert storage.highest_id() == 2
        storage.remove_incomplete()
    assert not (tmp_path / "c" / "chk-00000002").exists()


def test_a_directory_serves_one_job_at_a_time(tmp_path: Path) -> None:
    first = DirectoryStorage(tmp_path / "c")
    with pytest.raises(wb.errors.CheckpointError, match="in use by process"):
        DirectoryStorage(tmp_path / "c")
    first.close()
    DirectoryStorage(tmp_path / "c").close()


# jobs --------------------------------------------------------------------------------------------------------------


def ramp(rows: int = 1_000, **options: Any) -> wb.Stream:
    table = pa.table(
        {"n": pa.array(range(rows), pa.int64()), "t": pa.array([i * 1_000 for i in range(rows)], pa.int64())}
    )
    return wb.Stream.from_table(table, event_time="t", **options)


def test_a_slow_sink_keeps_what_is_in_flight_within_the_pools() -> None:
    gate_open = threading.Event()
    seen: list[int] = []

    def slow(batch: pa.RecordBatch) -> None:
        gate_open.wait(60)
        seen.append(batch.num_rows)

    stream = ramp(100_000).rebalance().map_batches(lambda b: b)
    job = stream.rebalance().sink_to(wb.CallbackSink(slow)).run("slow", buffer_size=10, checkpoint_interval=None)

    def is_held_back() -> bool:
        frame = job.recorder.latest()
        told = frame is not None and "is the cause" in frame.backpressure
        return told and bool(frame.tasks[0].metrics["isBackPressured"])

    until(is_held_back)
    frame = job.recorder.latest()
    assert frame is not None
    pool = 2 * 1 + 4  # per channel, and floating
    for edge in frame.edges:
        assert edge.queued_buffers <= 2 + pool + 1, edge
    assert frame.tasks[0].metrics["numRecordsIn"] <= 10 * 3 * (2 + pool + 1)
    gate_open.set()
    assert job.wait("120s") == "FINISHED"
    assert sum(seen) == 100_000


def test_late_records_go_to_the_side_output_or_are_counted() -> None:
    times = [1_000, 5_000_000, 30_000_000, 2_000, 31_000_000, 3_000]
    table = pa.table({"t": pa.array(times, pa.int64()), "n": list(range(6))})

    def source() -> wb.Stream:
        # One record a buffer and ten records a second, so that the watermark passes between the records.
        return wb.Stream.from_table(table, event_time="t", rate=8.0)

    windows = source().window(wb.tumbling("10s")).aggregate(n=wb.count())
    late = windows.side_output("late")
    both = windows.sink_to(wb.TableSink("windows")) + late.sink_to(wb.TableSink("late"))
    job = both.run("late", driver="stepping", buffer_size=1, buffer_timeout="0ms")
    job.wait("120s")
    assert sorted(job.table("late")["n"].to_pylist()) == [3, 5]
    starts = [row["window_start"].timestamp() for row in job.table("windows").to_pylist()]
    assert list(zip(starts, job.table("windows")["n"].to_pylist(), strict=True)) == [(0.0, 2), (30.0, 2)]
    dropping = source().window(wb.tumbling("10s")).aggregate(n=wb.count()).sink_to(wb.TableSink("windows"))
    job = dropping.run("dropping", driver="stepping", buffer_size=1, buffer_timeout="0ms")
    job.wait("120s")
    assert job.status()["late_records"] == 2


def test_a_failing_function_ends_the_job_with_its_message_after_the_restarts() -> None:
    def poison(record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == 700:
            raise ValueError("bad luck")
        return record

    job = ramp().map(poison).sink_to(wb.TableSink("out")).run("poison", restart=wb.restart.fixed_delay(2, "100ms"))
    with pytest.raises(wb.errors.JobError, match=r"failed: .*poison.*bad luck"):
        job.wait("120s")
    assert job.state == "FAILED"
    assert job.status()["restarts"] == 2
    assert job.table("out").num_rows == 0


def test_savepoint_then_restore_goes_back(tmp_path: Path) -> None:
    stream = ramp(2_000, rate=100.0).key_by("n").aggregate(c=wb.count())
    job = stream.sink_to(wb.TableSink("out")).run("saved", checkpoint_dir=tmp_path / "c", checkpoint_interval="50ms")
    until(lambda: job.status()["records_out"] > 0)
    path = job.savepoint("before-fix")
    assert json.loads((Path(path) / "manifest.json").read_text())["kind"] == "savepoint"
    with pytest.raises(wb.errors.JobError, match="already exists"):
        job.savepoint("before-fix")
    for name in ("../up", "-up", "x" * 101):
        with pytest.raises(wb.errors.CheckpointError, match=r"at most 100 letters, digits, .* a letter or digit first"):
            job.savepoint(name)
    again = job.restore("before-fix")
    again.tune(rate="max")
    assert again.wait("120s") == "FINISHED"
    assert sorted(again.table("out")["n"].to_pylist()) == list(range(2_000))


def test_stop_commits_what_was_processed_and_resume_goes_on(tmp_path: Path) -> None:
    def pipeline() -> wb.types.Pipeline:
        return ramp(3_000, rate=100.0).sink_to(wb.TableSink("out")) + ramp(10).sink_to(wb.ParquetSink(tmp_path / "p"))

    first = pipeline().run("stopped", checkpoint_dir=tmp_path / "c", checkpoint_interval=None)
    until(lambda: first.status()["records_out"] > 0)
    first.stop()
    assert first.wait("120s") == "FINISHED"
    part = first.table("out").num_rows
    assert 0 < part < 3_000
    second = pipeline().run("stopped", checkpoint_dir=tmp_path / "c", resume=True)
    second.tune(rate="max")
    assert second.wait("120s") == "FINISHED"
    assert sorted(second.table("out")["n"].to_pylist()) == list(range(3_000))


def test_markers_measure_the_way_and_the_watermark_ends_at_the_end() -> None:
    job = (
        ramp(400, rate=10.0)
        .rebalance()
        .filter("n >= 0")
        .sink_to(wb.TableSink("out"))
        .run("marked", buffer_timeout="30ms")
    )
    until(lambda: any(latency.count >= 3 for frame in job.recorder.frames()[-1:] for latency in frame.latency))
    job.tune(rate="max")
    assert job.wait("120s") == "FINISHED"
    frame = job.recorder.latest()
    assert frame is not None
    [latency] = frame.latency
    assert latency.count >= 3
    assert 0 < latency.p50_ms <= latency.p99_ms
    assert frame.channels[0].currentChannelWatermark == MAX_TIME
    assert frame.channels[0].finished
    assert frame.edges[0].queued_buffers == 0


def test_a_replay_can_be_sought_paused_and_sped_up_while_it_runs(tmp_path: Path) -> None:
    times = pa.array([i * 1_000_000 for i in range(1_000)], pa.timestamp("us"))  # a record a second
    table = pa.table({"n": pa.array(range(1_000), pa.int64()), "e": times, "a": times})
    history = wb.History.from_arrow(
        table, tmp_path / "log", event_time="e", arrival_time="a", channels=2, progress=False
    )
    job = wb.Stream.replay(history, speed="1x").sink_to(wb.TableSink("out")).run("sought", parallelism=2)
    job.pause()
    job.seek("1970-01-01T00:15:00")
    job.resume()
    job.tune(speed="1000x")
    assert job.wait("120s") == "FINISHED"
    found = sorted(job.table("out")["n"].to_pylist())
    before = [n for n in found if n < 900]  # read at the pace of a record a second, until the pause
    assert before == list(range(len(before)))
    assert len(before) < 100
    assert found[len(before) :] == list(range(900, 1_000))
    with pytest.raises(wb.errors.JobError, match="has ended"):
        job.seek("1970-01-01")


class UnclosableSink(wb.DiscardSink):
    def create(self, schema: pa.Schema) -> Any:
        logic = super().create(schema)

        def close() -> None:
            raise OSError("the pipe is broken")

        logic.close = close  # type: ignore[method-assign]
        return logic


def test_what_cannot_be_closed_does_not_keep_the_job_from_ending() -> None:
    job = ramp().sink_to(UnclosableSink()).run("unclosable")
    assert job.wait("120s") == "FINISHED"
    frame = job.recorder.latest()
    assert frame is not None
    assert "table[0] could not be closed: OSError: the pipe is broken" in [event.text for event in frame.events]


def test_a_job_whose_telemetry_or_master_breaks_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "sample", lambda self: 1 / 0)
    job = ramp().sink_to(wb.TableSink("out")).run("unseen")
    assert job.wait("120s") == "FINISHED"
    assert job.table("out").num_rows == 1_000
    monkeypatch.setattr(CheckpointCoordinator, "retain", lambda self, settings: 1 / 0)
    job = ramp().sink_to(wb.TableSink("out")).run("headless")
    with pytest.raises(wb.errors.JobError, match="division by zero"):
        job.wait("120s")
