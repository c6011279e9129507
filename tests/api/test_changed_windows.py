"""Windows of a changed program: windows with the same bounds take over their state, all others refuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.durable.checksum import checksum

ROWS = 2_000
CLICKS = pa.table({"user": [f"u{i % 7}" for i in range(ROWS)], "n": range(ROWS), "t": range(ROWS)})
RATE = 200
"""All clicks take ten seconds, so that a job is not over before its savepoint."""
SAVED_AT = 100


def clicks() -> wb.Stream:
    return wb.Stream.from_table(CLICKS, event_time="t", rate=RATE).uid("clicks")


def windowed(window: wb.windows.WindowAssigner, **settings: Any) -> wb.Stream:
    stream = clicks().key_by("user").window(window, **settings)
    return stream.aggregate(n=wb.count()).uid("windows").select("user", "window_start", "window_end", "n")


def applied(window: wb.windows.WindowAssigner) -> wb.Stream:
    stream = clicks().key_by("user").window(window)
    return stream.apply(lambda key, window, records: {"n": len(records)}, {"n": pa.int64()}).uid("windows")


def joined(window: wb.windows.WindowAssigner) -> wb.Stream:
    other = wb.Stream.from_table(CLICKS, event_time="t", rate=RATE).uid("others").select("user", other="n")
    return clicks().join(other, on="user", window=window).uid("windows")


def saved_half_way(stream: wb.Stream, root: Path) -> str:
    """A savepoint of a job over `stream`, taken between its first record and its last."""
    job = stream.sink_to(wb.TableSink("out")).run("half", checkpoint_dir=root / "half")
    until(lambda: sum(int(row["numRecordsIn"] or 0) for row in job.metrics()) >= SAVED_AT)
    folder = job.savepoint("half")
    job.cancel()
    job.wait("60s")
    return folder


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (
            windowed(wb.tumbling("1ms")),
            windowed(wb.tumbling("2ms")),
            "belongs to a WindowAggregate of tumbling 1ms windows, but this pipeline has a WindowAggregate of tumbling "
            "2ms windows with that uid, which cannot restore it",
        ),
        (
            windowed(wb.tumbling("1ms")),
            windowed(wb.tumbling("1ms", offset="500us")),
            "pipeline has a WindowAggregate of tumbling 1ms from 500us windows with that uid",
        ),
        (windowed(wb.sliding("2ms", "1ms")), windowed(wb.sliding("4ms", "1ms")), "of sliding 4ms every 1ms windows"),
        (windowed(wb.sliding("2ms", "1ms")), windowed(wb.tumbling("2ms")), "of sliding 2ms every 1ms windows, but"),
        (windowed(wb.windows.count_tumbling(9)), windowed(wb.windows.count_tumbling(4)), "of count 4 windows"),
        (windowed(wb.session("1ms")), windowed(wb.session("1ms"), time="processing"), "session processing-time"),
        (applied(wb.tumbling("1ms")), applied(wb.tumbling("2ms")), "a WindowApply of tumbling 2ms windows"),
        (joined(wb.tumbling("1ms")), joined(wb.tumbling("2ms")), "a WindowJoin of tumbling 2ms windows"),
    ],
    ids=["size", "offset", "sliding", "kind", "count", "time", "apply", "join"],
)
def test_windows_that_are_cut_otherwise_do_not_take_over_half_a_window(
    before: wb.Stream, after: wb.Stream, named: str, tmp_path: Path
) -> None:
    folder, pipeline = saved_half_way(before, tmp_path), after.sink_to(wb.TableSink("out"))
    with pytest.raises(wb.errors.CheckpointError) as caught:
        pipeline.run("after", restore=folder, checkpoint_dir=tmp_path / "c")
    assert named in str(caught.value)
    assert "give that operator another uid, or drop the state with allow_non_restored_state=True" in str(caught.value)


def total_after(stream: wb.Stream, folder: str, root: Path) -> int:
    """The records in all windows of a job that begins with a savepoint."""
    job = stream.sink_to(wb.TableSink("out")).run("after", restore=folder, checkpoint_dir=root)
    job.tune(rate="max")
    assert job.wait("60s") == "FINISHED"
    return sum(job.table()["n"].to_pylist())


def medians(column: str) -> wb.Stream:
    return clicks().key_by("user").window(wb.tumbling("1ms")).aggregate(middle=wb.median(column)).uid("windows")


@pytest.mark.parametrize(
    ("before", "after", "lacks"),
    [
        (windowed(wb.tumbling("1ms")), windowed(wb.tumbling("1ms"), trigger=wb.triggers.on_count(3)), "timed"),
        (windowed(wb.tumbling("1ms"), trigger=wb.triggers.on_count(3)), windowed(wb.tumbling("1ms")), "window_start"),
        (windowed(wb.tumbling("1ms")), medians("n"), "timed"),
        (medians("n"), medians("t"), '"t"'),
    ],
)
def test_another_trigger_or_aggregate_is_not_taken_for_another_operator(
    before: wb.Stream, after: wb.Stream, lacks: str, tmp_path: Path
) -> None:
    folder = saved_half_way(before, tmp_path)
    with pytest.raises(wb.errors.CheckpointError) as refused:
        after.sink_to(wb.TableSink("out")).run("after", checkpoint_dir=tmp_path / "after", restore=folder)
    sentence = str(refused.value)
    assert sentence.startswith(f"the state of operator 'windows' lacks '{lacks}' (it has ")
    assert sentence.endswith(
        "so windows with another trigger or evictor, or other aggregates, wrote it: restore the earlier ones, or give "
        "this operator another uid to start it afresh"
    )


def test_windows_take_over_state_with_another_lateness_or_gap(tmp_path: Path) -> None:
    folder = saved_half_way(windowed(wb.tumbling("1ms")), tmp_path)
    assert total_after(windowed(wb.tumbling("1ms"), allowed_lateness="1s"), folder, tmp_path / "a") == ROWS
    sessions = saved_half_way(windowed(wb.session("1ms")), tmp_path / "sessions")
    assert total_after(windowed(wb.session("2ms")), sessions, tmp_path / "b") == ROWS


def test_a_savepoint_of_an_earlier_version_says_no_windows(tmp_path: Path) -> None:
    folder = saved_half_way(windowed(wb.tumbling("1ms")), tmp_path)
    manifest = Path(folder) / "manifest.json"
    content = json.loads(manifest.read_bytes())
    assert content.pop("checksum")
    assert content["kinds"]["windows"] == "WindowAggregate of tumbling 1ms windows"
    content["kinds"]["windows"] = "WindowAggregate"
    body = json.dumps(content, sort_keys=True).encode().removeprefix(b"{")
    manifest.write_bytes(f'{{"checksum": "{checksum(body)}", '.encode() + body)
    assert total_after(windowed(wb.tumbling("1ms")), folder, tmp_path / "a") == ROWS
