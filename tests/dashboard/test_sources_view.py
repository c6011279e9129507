"""The view of sources: positions in splits, lag and rate, and lost connections with the next attempt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from bokeh.models import Div
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.retries import Retries
from workbench.dashboard.contract.view_table import dashboard_views
from workbench.dashboard.views.sources.sources_part import html
from workbench.elements import Records
from workbench.telemetry.diagnosis import cut_off
from workbench.telemetry.frames import OutageFrame, SplitFrame

SCHEMA = pa.schema({"n": pa.int64()})


@dataclass(frozen=True)
class Lost(Source):
    """Gives three rows of each split, and then has no connection."""

    schema: Any = SCHEMA
    kind = "kafka"

    def create(self) -> SourceReader:
        return LostReader(self)


class LostReader(SourceReader):
    shares_event_time = False

    def __init__(self, source: Lost) -> None:
        self._source = source
        self._count = 0
        self._retries = Retries(8)

    def open(self, context: Any) -> None:
        self._clock = context.clock

    def splits(self) -> tuple[str, ...]:
        return ("orders/0", "<b>orders/1</b>")

    def poll(self, max_records: int) -> Any:
        if self._count < 6:
            self._count += 1
            batch = pa.record_batch([[self._count]], schema=self._source.schema)
            return Fetched(Records(batch, None), self.splits()[self._count % 2])
        now_us = self._clock.now_us()
        if now_us >= self._retries.retry_us and self._retries.failed(now_us, "<i>refused</i>") is None:
            self._retries = Retries(8)
        return WaitUntil(max(self._retries.retry_us, now_us + 1_000))

    @property
    def outage(self) -> Any:
        return self._retries.outage

    def progress(self) -> dict[str, SplitProgress]:
        first, second = self.splits()
        return {first: SplitProgress("1526919030474-55", 1234, self._clock.now_us()), second: SplitProgress("7")}

    def snapshot(self) -> Any:
        return {}

    def restore(self, snapshots: Any) -> None: ...

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def job() -> Any:
    job = wb.Stream.from_source(Lost()).sink_to(wb.DiscardSink()).run("lost")
    until(lambda: job.recorder.latest() is not None and any(task.outage for task in job.recorder.latest().tasks))
    yield job
    job.cancel()


def test_it_shows_places_and_lost_connections(job: Any) -> None:
    frame = job.recorder.latest()
    [task] = [task for task in frame.tasks if task.progress]
    assert [each.records for each in task.progress.values()] == [3, 3]
    assert task.outage.error == "<i>refused</i>"
    shown = html(frame, {(task.name, "orders/0", task.attempt): 1500.0})
    assert "<td class='n'>1526919030474-55</td><td class='n'>1,234</td><td class='n'>1.5k</td>" in shown
    assert "&lt;b&gt;orders/1&lt;/b&gt;" in shown
    assert "<td class='n'>not known</td><td class='n'>–</td>" in shown


def test_a_row_tells_of_its_connection_and_how_old_its_lag_is(job: Any) -> None:
    frame = job.recorder.latest()
    [task] = [task for task in frame.tasks if task.progress]
    split = SplitFrame("7", 1234, lag_ms=1_500)

    def shown(outage: OutageFrame | None, split: SplitFrame = split) -> str:
        return html(replace(frame, tasks=(replace(task, progress={"orders/0": split}, outage=outage),)), {})

    assert "<td>orders/0</td><td>connected</td><td class='n'>7</td><td class='n'>1,234</td>" in shown(None)
    assert "<td class='n'>1,234 (40.0 s ago)</td>" in shown(None, replace(split, lag_ms=40_000))  # a job that is paused
    lost = shown(OutageFrame("<i>refused</i>.", 2, 8, 800, 1_500))
    assert "<td>✗ lost, tries again in 800 ms</td><td class='n'>7</td><td class='n'>1,234 (1.5 s ago)</td>" in lost
    assert "for 1.5 s: &lt;i&gt;refused&lt;/i&gt;. It tries again in 800 ms, attempt 3 of 9; after the last" in lost
    assert "What comes meanwhile waits at the server, and is read from the position on.</p>" in lost
    named = shown(OutageFrame("refused", 2, 8, 800, 1_500, server="db:6379"))
    assert "has had no connection to db:6379 for 1.5 s: refused. It tries again in 800 ms" in named
    behind = shown(OutageFrame("refused", 2, None, 800, 1_500, server="db:6379", ends_ms=8_500))  # of a sink
    assert "<td>connected</td>" in behind
    assert "attempt 3; after 8.5 s the task fails" in behind
    chained = shown(OutageFrame("refused", 2, None, 800, 1_500, server="db:6379", ends_ms=8_500, operator="<i>out</i>"))
    assert f"&lt;i&gt;out&lt;/i&gt; in {task.name} has had no connection to db:6379" in chained
    feed = shown(OutageFrame("refused", 2, None, 0, 1_500, keeps=False))
    assert "It tries again now, attempt 3. What comes meanwhile is lost, unless the server sends it again.</p>" in feed


def test_a_row_has_what_the_server_keeps_if_any_server_does(job: Any) -> None:
    frame = job.recorder.latest()
    [task] = [task for task in frame.tasks if task.progress]
    assert "the server keeps" not in html(frame, {})
    kept = SplitFrame("0/1A", kept_bytes=33_554_432, kept_state="extended", kept_safe=5_000_000)
    splits = {"orders": kept, "b": SplitFrame("7"), "c": replace(kept, lag_ms=40_000, kept_state="lost")}
    shown = html(replace(frame, tasks=(replace(task, progress=splits, outage=None),)), {})
    assert shown.count("the server keeps") == 1
    assert "<td class='n'>33.6 MB (extended, lost after 5.0 MB more)</td></tr>" in shown
    assert "<td class='n'>–</td></tr>" in shown
    assert "<td class='n'>33.6 MB (lost, 40.0 s ago)</td></tr>" in shown


def test_the_headline_tells_of_a_connection_that_stays_lost(job: Any) -> None:
    [task] = [task for task in job.recorder.latest().tasks if task.progress]
    lost = replace(task, outage=OutageFrame("refused.", 2, 8, 800, 15_100))
    assert cut_off([lost]) == (
        f"{task.name} has had no connection for 15 s (refused); the view sources shows when the next attempt is due."
    )
    assert cut_off([lost, lost]).startswith(f"{task.name} and 1 other task have had no connection for 15 s")
    assert cut_off([replace(task, outage=OutageFrame("refused.", 1, 8, 100, 100))]) == ""
    assert cut_off([replace(task, outage=None)]) == ""


def test_it_is_in_the_dashboards_of_jobs_with_such_sources(job: Any) -> None:
    assert "sources" in [view.name for view in dashboard_views(True, job.recorder.latest())]
    assert "sources" not in [view.name for view in dashboard_views(True)]
    alone = job.view("sources").view()
    texts = "".join(div.text for div in alone.root.select({"type": Div}))
    assert "orders/0" in texts
    other = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("other")
    other.wait("60s")
    assert "No source has told its place, and no connection is lost." in html(other.recorder.latest(), {})


def test_a_recording_shows_the_rates(job: Any) -> None:
    from workbench.dashboard.shown.playback import PlaybackView

    recorded = PlaybackView(job.recording())
    texts = "".join(div.text for div in recorded.root.select({"type": Div}))
    assert "orders/0" in texts
