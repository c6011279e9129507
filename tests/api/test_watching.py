"""The display of a watched Spark query, from progress reports as Spark writes them; needs no Java."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from workbench.cli.entry import main
from workbench.spark.watching.event_time import event_time
from workbench.spark.watching.observation import BatchSeen, slow_batch, sources_of, states_of
from workbench.spark.watching.watch import SparkWatch, WatchedQuery


def report(number: int, **durations: int) -> dict[str, Any]:
    return {
        "batchId": number,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": 10,
        "durationMs": {**durations, "triggerExecution": sum(durations.values())},
        "eventTime": {"watermark": "2026-01-01T00:00:10.000Z", "max": "2026-01-01T00:00:30.000Z"},
        "sources": [
            {
                "description": "Files<&>[a]",
                "numInputRows": 10,
                "processedRowsPerSecond": 5.5,
                "endOffset": {"0": 7, "1": 5},
                "latestOffset": {"0": 9, "1": 5},
            }
        ],
        "stateOperators": [
            {"operatorName": "stateStoreSave", "numRowsTotal": 4, "memoryUsedBytes": 2_000_000, "commitTimeMs": 12}
        ],
        "sink": {"description": "Memory", "numOutputRows": -1},
    }


class Query(SimpleNamespace):
    """The part of a ``StreamingQuery`` that is watched."""

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802  Spark's name
        return self.recentProgress[-1] if self.recentProgress else None


def query(reports: list[dict[str, Any]], *, active: bool = True, error: str | None = None) -> Any:
    return Query(
        name="words", id="12345678-9", runId="r", isActive=active, recentProgress=reports, exception=lambda: error
    )


def test_lag_is_what_the_newest_offset_is_ahead() -> None:
    [source] = sources_of(report(0, addBatch=1))
    assert (source.rows, source.per_second, source.lag) == (10, 5.5, 2)


def test_a_source_whose_offsets_are_no_numbers_has_no_lag() -> None:
    [source] = sources_of({"sources": [{"endOffset": "a file", "latestOffset": None}]})
    assert source.lag is None


def test_state_has_rows_memory_and_commit_time() -> None:
    [state] = states_of(report(0, addBatch=1))
    assert (state.name, state.rows, state.memory_bytes, state.commit_ms) == ("stateStoreSave", 4, 2_000_000, 12)


@pytest.mark.parametrize(
    ("phases", "why"),
    [
        ({"walCommit": 800, "addBatch": 100}, "the storage is slow"),
        ({"addBatch": 800, "walCommit": 100}, "processing the rows"),
        ({"latestOffset": 800}, "the source answers slowly"),
    ],
)
def test_the_slowest_batch_names_its_longest_phase(phases: dict[str, int], why: str) -> None:
    batches = [BatchSeen.of(report(number, **each)) for number, each in enumerate([{"addBatch": 10}, phases])]
    assert slow_batch(batches).startswith("batch 1 took longest")
    assert why in slow_batch(batches)


def test_batches_are_seen_once_and_triggers_without_a_batch_not_at_all() -> None:
    reports = [report(0, addBatch=5), report(1, latestOffset=1)]
    watched = WatchedQuery(query(reports))
    watched.look()
    watched.look()
    assert [batch.number for batch in watched.batches] == [0]
    reports[1] = report(1, addBatch=7)
    watched.look()
    assert [batch.number for batch in watched.batches] == [0, 1]


def test_what_comes_from_a_query_is_escaped() -> None:
    watched = WatchedQuery(query([report(0, addBatch=5)]))
    watched.name = "<script>"
    watched.look()
    html = watched.html()
    assert "<script>" not in html
    assert "Files&lt;&amp;&gt;" in html
    assert "rows not counted" in html  # -1 is no number of rows


def test_a_failed_query_tells_the_cause_in_a_sentence() -> None:
    failed = "[STREAM_FAILED] Query terminated\nTraceback\nZeroDivisionError: division by zero\n at org.apache"
    watched = WatchedQuery(query([], active=False, error=failed))
    watched.look()
    assert (watched.state, watched.error) == ("FAILED", "ZeroDivisionError: division by zero")
    assert "division by zero" in watched.html()


def at(number: int, watermark: str, newest: str) -> BatchSeen:
    return BatchSeen(number, "", 5, 90, {}, watermark, newest)


def test_the_watermark_is_drawn_below_the_newest_event_time() -> None:
    batches = [at(n, f"2026-01-01T00:00:{10 * n:02}.000Z", f"2026-01-01T00:00:{10 * n + 20:02}.000Z") for n in range(3)]
    html = event_time(batches)
    newest, watermark = re.findall(r"polyline points='([^']+)'", html)
    assert newest == "77,40.0 91,22.0 105,4.0"  # 20, 30 and 40 seconds of 40 in a height of 72
    assert watermark == "77,76.0 91,58.0 105,40.0"
    assert "The watermark is <b>2026-01-01 00:00:20</b> UTC" in html
    assert "the newest event time is <b>2026-01-01 00:00:40</b> UTC" in html
    ended = event_time([*batches, at(3, "9999-12-31T00:00:00.000Z", "")])
    assert "The source has ended, so the watermark has passed all windows" in ended
    assert re.findall(r"polyline points='([^']+)'", ended) == [newest, watermark]
    assert "polyline" not in event_time([at(0, "soon", "<b>"), at(1, "soon", "<b>")])
    assert "the newest event time is <b>&lt;b&gt;</b>" in event_time([at(0, "soon", "<b>")])
    assert "the query has no watermark" in event_time([at(0, "", "")])


def test_something_else_is_rejected_with_what_can_be_watched() -> None:
    with pytest.raises(wb.errors.SettingError, match="pass a StreamingQuery or a SparkSession"):
        wb.watch(7)


def test_a_recording_holds_the_picture_and_is_read_back(tmp_path: Path) -> None:
    watched = SparkWatch(query([report(0, addBatch=5), report(1, addBatch=9)]))
    watched.stop()
    recorded = watched.recording(tmp_path / "words.recording")
    again: Any = wb.Recording.open(tmp_path / "words.recording")
    assert (again.queries, again.executors) == (recorded.queries, recorded.executors)
    assert [batch.number for batch in again.queries[0].batches] == [0, 1]
    assert again.html() == watched.html() == recorded.html()
    assert main(["serve", str(tmp_path / "words.recording")]) != 0


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text.replace('"batches"', '"batch"'), "batch"),
        (lambda text: text.replace('"duration_ms": 5', '"duration_ms": "5"'), "instead of an int"),
        (lambda text: text.replace('"addBatch"', '"<script>"'), "it has the phase '<script>'"),
        (lambda text: text[:-5], "is not a complete recording of a job on Spark"),
    ],
)
def test_a_recording_that_was_changed_is_rejected(tmp_path: Path, damage: Any, why: str) -> None:
    watched = SparkWatch(query([report(0, addBatch=5)]))
    watched.stop()
    file = watched.recording().save(tmp_path / "words.recording")
    file.write_bytes(gzip.compress(damage(gzip.decompress(file.read_bytes()).decode()).encode()))
    with pytest.raises(wb.errors.SettingError, match=why):
        wb.Recording.open(file)
