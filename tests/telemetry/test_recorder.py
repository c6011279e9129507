"""The flight recorder keeps all recent frames, and thins and compresses older ones."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

import workbench as wb
from workbench.telemetry.frames import ChannelFrame, EventFrame, Frame, LateFrame, TaskFrame
from workbench.telemetry.recorder import LEAST, PARTS, PackedFrame, Recorder


def frame(sequence: int) -> Frame:
    """A frame in which everything depends on its number."""
    late = LateFrame("windowed", "7", sequence, sequence + 1, None, '{"n": 1}')
    metrics: dict[str, float | int | bool | None] = {"numRecordsIn": sequence, "isBackPressured": True, "lag": None}
    return Frame(
        job="recorded",
        state="RUNNING",
        sequence=sequence,
        time_us=sequence * 100_000,
        started_us=0,
        settings={"speed": None},
        metrics={"numRestarts": sequence},
        tasks=(TaskFrame("a[0]", "v1", 0, "tm-0/slot-0", "RUNNING", metrics, splits={"0": None}, late=(late,)),),
        channels=tuple(
            ChannelFrame("v1->v2", f"a[{number}]", "b[0]", sequence, number, 8, 1, None) for number in range(64)
        ),
        events=(EventFrame(sequence, "notice", "seen"),),
    )


def kept(count: int) -> list[int]:
    recorder = Recorder(dense=10, sparse=4)
    for sequence in range(count):
        recorder.append(frame(sequence))
        assert (latest := recorder.latest()) is not None
        assert latest.sequence == sequence
    frames = recorder.frames()
    assert frames == tuple(frame(one.sequence) for one in frames)
    return [one.sequence for one in frames]


def test_a_frame_that_is_packed_while_somebody_reads_is_given_once() -> None:
    recorder = Recorder(dense=10)
    for sequence in range(10):
        recorder.append(frame(sequence))
    recorder._pack(frame(0))  # the oldest goes from the latest frames only after it has been packed
    assert [one.sequence for one in recorder.frames()] == list(range(10))


def held_by(make: Callable[[], object]) -> int:
    """Bytes of what is made."""
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        del made
        return held - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_recent_frames_are_all_kept() -> None:
    assert kept(0) == []
    assert kept(10) == list(range(10))


def test_of_older_ones_every_fifth_is_kept_up_to_the_bound() -> None:
    assert kept(18) == [0, 5, *range(8, 18)]
    assert kept(103) == [75, 80, 85, 90, *range(93, 103)]


def test_of_wide_frames_fewer_are_kept_in_proportion() -> None:
    recorder = Recorder(dense=40, sparse=8)
    channels = frame(0).channels[:1] * (2 * PARTS - 1)  # with the one task, two times as many parts
    for sequence in range(200):
        recorder.append(replace(frame(sequence), channels=channels))
    assert [one.sequence for one in recorder.frames()] == [160, 165, 170, 175, *range(180, 200)]
    for sequence in range(200, 220):
        recorder.append(replace(frame(sequence), channels=channels * 100))
    assert len(recorder.frames()) <= LEAST + 1
    for sequence in range(220, 300):
        recorder.append(frame(sequence))
    assert [one.sequence for one in recorder.frames()][-40:] == list(range(260, 300))


def test_frames_of_a_live_job_are_thinned_by_their_age() -> None:
    recorder = Recorder(recent_us=2_000_000)
    for sequence in range(40):  # ten a second
        recorder.append(frame(sequence))
    for sequence in range(40, 60):  # one a second, paused
        recorder.append(replace(frame(sequence), time_us=(sequence - 36) * 1_000_000))
    assert [one.sequence for one in recorder.frames()] == [*range(0, 50, 5), *range(50, 60)]
    assert len(recorder._dense) == LEAST


def test_packed_frames_take_a_fifth_of_the_room_at_most() -> None:
    packed = PackedFrame(frame(300))
    assert packed.frame() == frame(300)
    assert packed.sequence == 300
    numbers = range(300, 350)
    assert (
        held_by(lambda: [PackedFrame(frame(number)) for number in numbers])
        < held_by(lambda: [frame(number) for number in numbers]) / 5
    )


def test_frames_are_given_free_with_the_last_handle_of_a_job_and_wait_for_no_garbage_collector() -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.DiscardSink())
    job = pipeline.run("forgotten")
    assert job.wait("60s") == "FINISHED"
    recorder = weakref.ref(job.recorder)
    collects = gc.isenabled()
    gc.disable()
    try:
        job = pipeline.run("forgotten")  # the list of jobs has the newest one of a name
        assert job.wait("60s") == "FINISHED"
        assert recorder() is None
    finally:
        if collects:
            gc.enable()


def test_it_is_known_whether_frames_are_read() -> None:
    recorder = Recorder()
    recorder.append(frame(0))
    assert not recorder.read
    recorder.latest()
    assert recorder.read
    recorder.read = False
    recorder.frames()
    assert recorder.read


def test_whoever_follows_a_job_reads_what_is_new() -> None:
    recorder = Recorder(dense=10, sparse=4)
    for sequence in range(18):
        recorder.append(frame(sequence))
    assert [one.sequence for one in recorder.frames(after=0)] == [5, *range(8, 18)]
    assert [one.sequence for one in recorder.frames(after=15)] == [16, 17]


def test_the_first_reader_after_a_while_may_get_a_new_frame() -> None:
    recorder = Recorder()
    recorder.append(frame(0))
    refreshed = []

    def refresh() -> None:
        refreshed.append(recorder)
        recorder.append(frame(1))

    recorder.refresh = refresh
    latest = recorder.latest()
    assert latest is not None
    assert latest.sequence == 1
    assert len(recorder.frames()) == 2
    assert len(refreshed) == 1
    recorder.read = False
    recorder.refresh = lambda: bool(refreshed.append(recorder)) or True  # no one else will take a sample
    recorder.latest()
    recorder.latest()
    assert len(refreshed) == 3


def test_frames_share_what_has_not_changed() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1, 2]})).filter("n > 0")
    job = numbers.sink_to(wb.TableSink("out")).run("shared", driver="stepping")
    frames = []
    for _ in range(2):
        job.stepper.next_record()
        frames.append(job.recorder.latest())
    job.cancel()
    first, second = frames
    assert first is not None
    assert second is not None
    assert first.sequence < second.sequence
    assert first.settings is second.settings
    assert first.edges is second.edges
