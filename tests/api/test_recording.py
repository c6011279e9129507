"""Recordings: reading one gives the same frames that were shown during the run, and a report is self-contained."""

from __future__ import annotations

import gzip
import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.kept.recording import Recording
from workbench.dashboard.shown.playback import PlaybackView
from workbench.dashboard.shown.report import chosen
from workbench.dashboard.shown.serve import serve_recording
from workbench.errors import SettingError
from workbench.telemetry.whole_file import replaced


@pytest.fixture(scope="module")
def recording() -> Recording:
    """A run with a checkpoint, a tuning, a failure and windows; stepped, so that it is the same each time."""
    table = pa.table({"k": ["a", "b"] * 20, "t": [n * 1_000_000 for n in range(40)]})
    stream = wb.Stream.from_table(table, event_time="t", rate=10.0).with_parallelism(1).key_by("k")
    pipeline = stream.window(wb.tumbling("10s")).aggregate(n=wb.count()).sink_to(wb.TableSink("counts"))
    job = pipeline.run("recorded", driver="stepping", parallelism=2, buffer_size=1, checkpoint_interval="1s")
    job.stepper.step(60)
    job.tune(buffer_timeout="5ms")
    job.fail("aggregate[1]")
    assert job.wait() == "FINISHED"
    return job.recording()


def test_what_is_read_is_what_was_written(recording: Recording, tmp_path: Path) -> None:
    path = recording.save(tmp_path / "run.recording")
    again = wb.Recording.open(path)
    assert again.name == "recorded"
    assert again.frames == recording.frames
    assert {frame.state for frame in again.frames} >= {"RUNNING", "RESTARTING", "FINISHED"}
    assert any(frame.channels and frame.checkpoints for frame in again.frames)


def test_a_recording_is_json_lines(recording: Recording, tmp_path: Path) -> None:
    path = recording.save(tmp_path / "run.recording")
    head, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert json.loads(head) == {
        "format": "workbench recording", "version": 1, "job": "recorded", "frames": len(recording.frames)
    }  # fmt: skip
    assert [json.loads(line)["sequence"] for line in lines] == [frame.sequence for frame in recording.frames]


@pytest.mark.slow
@pytest.mark.parametrize("there", [True, False])
def test_what_is_not_written_to_its_end_leaves_what_was_there(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    writes: tuple[Callable[[Path], Path], ...] = (recording.save, recording.report)
    places = [tmp_path / "run.recording", tmp_path / "run.html"]
    for place in places if there else ():
        place.write_text("kept")

    def stopped(self: Path, *_: object, **__: object) -> None:
        self.touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", stopped_after(json.dumps, 3))
        patch.setattr(Path, "write_text", stopped)
        for write, place in zip(writes, places, strict=True):
            with pytest.raises(KeyboardInterrupt):
                write(place)
    assert sorted(tmp_path.iterdir()) == (sorted(places) if there else [])
    assert all(place.read_text() == "kept" for place in places if there)
    for write, place in zip(writes, places, strict=True):
        write(place)
    assert sorted(tmp_path.iterdir()) == sorted(places)


def stopped_after(function: Callable[..., str], calls: int) -> Callable[..., str]:
    left = [calls]

    def called(*args: Any, **kwargs: Any) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    return called


def test_a_file_is_written_where_a_link_leads_and_an_error_names_it(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "run.recording")
    recording.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert wb.Recording.open(tmp_path / "folder" / "run.recording").frames == recording.frames
    for wrong in (tmp_path / "nowhere" / "run.recording", tmp_path / "folder"):
        with pytest.raises(SettingError, match=f"cannot write '{wrong}'"):
            recording.save(wrong)


def test_what_is_no_recording_is_refused_with_its_name(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingError, match="there is no recording"):
        wb.Recording.open(tmp_path / "nowhere")
    path = tmp_path / "run.recording"
    path.write_text("no gzip")
    with pytest.raises(SettingError, match="is not a recording"):
        wb.Recording.open(path)
    path.write_bytes(gzip.compress(b'{"format": "something else"}'))
    with pytest.raises(SettingError, match="is not a recording of version 1"):
        wb.Recording.open(path)
    whole = recording.save(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SettingError, match="is not a recording, or is damaged"):
        wb.Recording.open(path)
    lines = gzip.decompress(whole).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(SettingError, match=f"has {len(lines) - 2} frames instead of {len(lines) - 1}"):
        wb.Recording.open(path)
    for text in ("[" * 100_000, '{"format": "workbench recording", "version": 1}'):
        path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises(SettingError, match="is not a recording, or is damaged"):
            wb.Recording.open(path)
    monkeypatch.setattr("workbench.telemetry.recording._LINE_MAX", 1_000)
    path.write_bytes(gzip.compress(b"[" + b"1," * 1_000 + b"1]"))
    with pytest.raises(SettingError, match="a line has more than 1,000 characters"):
        wb.Recording.open(path)
    monkeypatch.undo()
    path.write_bytes(gzip.compress(re.sub(rb'"vertices":.*', b'"vertices":"x"}', gzip.decompress(whole))))
    with pytest.raises(SettingError, match="is not a recording, or is damaged"):
        wb.Recording.open(path)
    with pytest.raises(SettingError, match="nothing has been recorded of the job 'none' yet"):
        wb.Recording("none", [])


def changed(recording: Recording, path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The recording's file with something else in its last frame."""
    head, *lines = gzip.decompress(recording.save(path).read_bytes()).decode().splitlines()
    last = json.loads(lines[-1])
    change(last)
    path.write_bytes(gzip.compress("\n".join([head, *lines[:-1], json.dumps(last)]).encode()))
    return path


def test_fields_that_a_later_version_has_are_left_out(recording: Recording, tmp_path: Path) -> None:
    def add(frame: dict[str, Any]) -> None:
        for part in (frame, frame["tasks"][0], frame["checkpoints"][-1]["subtasks"][0]):
            part["of_later"] = {"nobody": ["knows"]}

    assert wb.Recording.open(changed(recording, tmp_path / "later", add)).frames == recording.frames


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": "RUNING"}, "it.state is 'RUNING' instead of one of 'CREATED', 'INITIALIZING', "),
        ({"sequence": "5"}, "it.sequence is '5' instead of an int"),
        ({"paused": 1}, "it.paused is 1 instead of a bool"),
        ({"tables": {"out": 1.5}}, "it.tables is 1.5 instead of an int"),
        ({"checkpoints": [{"id": 1}]}, r"it.checkpoints\[0\] has no state"),
    ],
)
def test_a_recording_that_says_what_cannot_be_is_refused(
    recording: Recording, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    path = changed(recording, tmp_path / "wrong", lambda frame: frame.update(change))
    with pytest.raises(SettingError, match=f"is not a recording, or is damaged .{told}"):
        wb.Recording.open(path)


def test_a_whole_number_may_stand_for_a_float(recording: Recording, tmp_path: Path) -> None:
    def cut(frame: dict[str, Any]) -> None:
        frame["vertices"][0]["x"] = 0
        frame["checkpoints"][-1]["duration_ms"] = 7

    last = wb.Recording.open(changed(recording, tmp_path / "whole", cut)).frames[-1]
    assert (last.vertices[0].x, last.checkpoints[-1].duration_ms) == (0, 7)


def test_the_slider_shows_the_moment_as_it_was(recording: Recording) -> None:
    view = PlaybackView(recording)
    assert list(view.parts) == [
        "graph",
        "latency",
        "watermarks",
        "event_time",
        "buffers",
        "checkpoints",
        "events",
        "subtasks",
    ]
    restarting = next(place for place, frame in enumerate(recording.frames) if frame.state == "RESTARTING")
    head = view._header
    for place in (len(recording.frames) - 1, restarting, 3):
        view.slider.value = place
        state = re.search(r"badge [a-z]+'>. ([A-Z]+)<", head._piece.html)
        assert state is not None
        assert state[1] == recording.frames[place].state


def test_the_moments_of_a_report_are_spread_over_the_run() -> None:
    frames: tuple[int, ...] = tuple(range(101))
    assert chosen(frames, 5) == (0, 25, 50, 75, 100)  # type: ignore[arg-type, comparison-overlap]
    assert chosen(frames[:3], 5) == (0, 1, 2)  # type: ignore[arg-type, comparison-overlap]


def test_a_report_needs_no_network_and_names_everything(recording: Recording, tmp_path: Path) -> None:
    page = recording.report(tmp_path / "run.html").read_text(encoding="utf-8")
    assert page.index("padding: 0 12px") > page.index("padding: 0;"), "Bokeh's own style comes last and wins"
    assert not re.search(r"<(script[^>]*src|link[^>]*href)=", page)
    text = page[page.rindex("<h2>Settings</h2>") :]
    for fact in ("buffer_timeout", "5ms", "aggregate[1] was failed on purpose", "COMPLETED", "numRestarts"):
        assert fact in text
    assert "<h1>Job recorded</h1>" in page


def test_hostile_names_are_text_in_a_report(recording: Recording, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>"
    lines = gzip.decompress(recording.save(tmp_path / "run.recording").read_bytes()).decode().splitlines()
    frames = [line.replace("aggregate", bad.replace('"', "")) for line in lines]
    (tmp_path / "bad.recording").write_bytes(gzip.compress("\n".join(frames).encode()))
    page = wb.Recording.open(tmp_path / "bad.recording").report(tmp_path / "bad.html").read_text(encoding="utf-8")
    tables = page[page.rindex("<h2>Settings</h2>") :]
    assert bad not in tables
    assert "&lt;img" in tables


def test_a_recording_is_served_to_who_has_the_token(recording: Recording) -> None:
    pages = serve_recording(recording)
    try:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the token is given for a cookie
        with browser.open(pages.url, timeout=120) as answer:
            assert b"<title>recorded: recording</title>" in answer.read()
    finally:
        pages.stop()


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingError, match=re.escape(str(tmp_path / "a.recording"))),
        replaced(tmp_path / "a.recording"),
    ):
        raise OSError(28, "No space left on device")
