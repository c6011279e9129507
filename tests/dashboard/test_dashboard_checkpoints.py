"""The tabs of the checkpoints view: Flink's figures under Flink's names, compared with the coordinator and the disk."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from test_dashboard_live import Comms, Job, Page, display_of
from test_dashboard_picture import FRAME, text_of
from test_dashboard_truth import frozen, frozen_job, tasks_of

import workbench as wb
from workbench.dashboard.page import transport
from workbench.dashboard.views.checkpoints import checkpoints_configuration as configuration
from workbench.dashboard.views.checkpoints import checkpoints_history as history
from workbench.dashboard.views.checkpoints import checkpoints_overview as overview
from workbench.dashboard.views.checkpoints import checkpoints_summary as summary
from workbench.elements import CheckpointBarrier, Records
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.telemetry.checkpoint_frames import (
    CheckpointFrame,
    CheckpointingFrame,
    RestoreFrame,
    SubtaskCheckpointFrame,
)
from workbench.telemetry.recording import read_frames

NOON = 1_700_049_600_000_000  # 2023-11-15 12:00:00 UTC


def subtask(name: str, took: float, size: int, full: int, processed: int, persisted: int, unaligned: bool = False):
    return SubtaskCheckpointFrame(
        name, True, 1.0, 2.0, 3.0, 4.0, took, size, unaligned,
        full_size_bytes=full, processed_bytes=processed, persisted_bytes=persisted,
    )  # fmt: skip


def checkpoint(number: int, state: str = "COMPLETED", kind: str = "periodic", **more):
    subtasks = more.pop("subtasks", (subtask("a[0]", 40.0 + number, 1_000, 3_000, 10, 0),))
    return CheckpointFrame(
        number, state, kind, NOON + number * 1_000_000, len(subtasks), len(subtasks), 50.0 + number,
        sum(task.size_bytes for task in subtasks), sum(task.full_size_bytes or 0 for task in subtasks),
        subtasks=subtasks, **more,
    )  # fmt: skip


TWO = checkpoint(
    7, path="/data/chk-7", subtasks=(
        subtask("a[0]", 125.0, 1_000, 5_000, 0, 0), subtask("agg[0]", 250.0, 2_000, 2_000, 100, 7, unaligned=True),
        subtask("agg[1]", 750.0, 4_000, 4_000, 300, 9, unaligned=True),
    )
)  # fmt: skip
SEEN = replace(
    FRAME,
    metrics={
        "numberOfInProgressCheckpoints": 1, "numberOfCompletedCheckpoints": 60, "numberOfFailedCheckpoints": 2,
        "numberOfRestores": 4,
    },
    earlier=(checkpoint(3, kind="savepoint", path="/data/savepoints/monday"), checkpoint(5, "FAILED", reason="full")),
    checkpoints=(checkpoint(6, path="/data/chk-6"), TWO, replace(TWO, id=8, state="IN_PROGRESS", acknowledged=2)),
    restore=RestoreFrame(2, NOON + 500_000, True, "/data/savepoints/start"),
)  # fmt: skip


def rows_of(html: str) -> list[str]:
    return [text_of(row).strip() for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)]


# by hand ----------------------------------------------------------------------------------------------------------


def test_the_overview_has_the_counts_and_the_latest_of_each_kind_however_long_ago():
    groups = [text_of(group).strip() for group in overview.html(SEEN).split("</section>")]
    assert groups == [
        "Checkpoint Counts Triggered 63 In Progress 1 Completed 60 Failed 2 Restored 4",
        "Latest Completed Checkpoint ID 7 Completion Time 2023-11-15 12:00:07 End to End Duration 750 ms "
        "Checkpointed Data Size 7 kB Full Checkpoint Data Size 11 kB Checkpoint Type Checkpoint, periodic, unaligned "
        "Path /data/chk-7",
        "Latest Failed Checkpoint ID 5 Failure Time 2023-11-15 12:00:05 Cause full",
        "Latest Savepoint ID 3 Completion Time 2023-11-15 12:00:03 End to End Duration 43 ms Checkpointed Data Size "
        "1 kB Full Checkpoint Data Size 3 kB Checkpoint Type Savepoint, aligned Path /data/savepoints/monday",
        "Latest Restore ID 2 Restore Time 2023-11-15 12:00:00 Type Savepoint Path /data/savepoints/start",
        "",
    ]  # fmt: skip


def spaced_out(html: str) -> str:
    return re.sub(r"(</t[dh]>|</dt>)", r"\1 ", html)


def test_the_history_tells_of_every_checkpoint_what_flink_tells():
    rows = rows_of(spaced_out(history.html(SEEN, None)))
    assert rows == [
        " ".join(history.HEADS),
        "8 … In Progress 2/3 (67 %) 12:00:07.000 12:00:07.750 750 ms 7 kB 11 kB 400 B (16 B)",
        "7 ✓ Completed 3/3 12:00:07.000 12:00:07.750 750 ms 7 kB 11 kB 400 B (16 B)",
        "6 ✓ Completed 1/1 12:00:06.000 12:00:06.046 46 ms 1 kB 3 kB 10 B (0 B)",
    ]
    waiting = replace(TWO, state="IN_PROGRESS", acknowledged=0, subtasks=(SubtaskCheckpointFrame("a[0]", False),))
    told = rows_of(spaced_out(history.html(replace(SEEN, checkpoints=(waiting,)), None)))[1]
    assert told == "7 … In Progress 0/3 (0 %) 12:00:07.000 – – 7 kB 11 kB – (0 B)"
    failed = history.html(replace(SEEN, checkpoints=(checkpoint(9, "FAILED", "manual", reason="<b>disk</b>"),)), None)
    assert "title='&lt;b&gt;disk&lt;/b&gt;'" in failed
    assert "✗ Failed [Manual]" in text_of(failed)


def test_the_subtasks_stand_by_operator_with_least_mean_and_most():
    rows = rows_of(spaced_out(history.details_html(TWO)))
    assert rows == [
        " ".join(history.SUBTASK_HEADS),
        "a 1/1 12:00:07.125 125 ms 1 kB 5 kB 0 B (0 B) 0/1",
        "0 ✓ 12:00:07.125 125 ms 1 kB 5 kB 3.0 ms 4.0 ms 0 B (0 B) 2.0 ms 1.0 ms no",
        "agg 2/2 12:00:07.750 750 ms 6 kB 6 kB 400 B (16 B) 2/2",
        "Minimum 250 ms 2 kB 2 kB 3.0 ms 4.0 ms 100 B (7 B) 2.0 ms 1.0 ms",
        "Average 500 ms 3 kB 3 kB 3.0 ms 4.0 ms 200 B (8 B) 2.0 ms 1.0 ms",
        "Maximum 750 ms 4 kB 4 kB 3.0 ms 4.0 ms 300 B (9 B) 2.0 ms 1.0 ms",
        "0 ✓ 12:00:07.250 250 ms 2 kB 2 kB 3.0 ms 4.0 ms 100 B (7 B) 2.0 ms 1.0 ms yes",
        "1 ✓ 12:00:07.750 750 ms 4 kB 4 kB 3.0 ms 4.0 ms 300 B (9 B) 2.0 ms 1.0 ms yes",
    ]
    facts = text_of(history.details_html(TWO))
    assert "#7 Path /data/chk-7 · Discarded no · Checkpoint Type Checkpoint, periodic, unaligned" in facts
    assert "Full Checkpoint no" in facts, "it wrote 7 kB, and a restore reads 11"


def test_what_has_not_acknowledged_has_no_figures():
    late = replace(TWO, state="IN_PROGRESS", subtasks=(TWO.subtasks[1], SubtaskCheckpointFrame("agg[1]", False, 1.0)))
    rows = rows_of(spaced_out(history.details_html(late)))
    assert rows[1].startswith("agg 1/2 (50 %) 12:00:07.250 250 ms 2 kB")
    assert rows[4].startswith("Maximum 250 ms 2 kB")
    assert rows[6] == "1 – – – – – – – – (–) – – no"


def test_the_summary_has_what_complete_checkpoints_have_in_common():
    taken = [checkpoint(n, subtasks=(subtask("a[0]", float(n), n * 100, n * 100, n, 2 * n),)) for n in range(1, 22)]
    frame = replace(SEEN, checkpoints=(*taken, checkpoint(99, "FAILED"), replace(TWO, id=98, state="IN_PROGRESS")))
    rows = rows_of(spaced_out(summary.html(frame)))
    assert rows[1:] == [  # of 1 to 21: a percentile of p is 1 + 20 p
        "Minimum 1.0 ms 100 B 100 B 1 B (2 B)",
        "Average 11 ms 1.1 kB 1.1 kB 11 B (22 B)",
        "Maximum 21 ms 2.1 kB 2.1 kB 21 B (42 B)",
        "50% percentile 11 ms 1.1 kB 1.1 kB 11 B (22 B)",
        "90% percentile 19 ms 1.9 kB 1.9 kB 19 B (38 B)",
        "95% percentile 20 ms 2 kB 2 kB 20 B (40 B)",
        "99% percentile 21 ms 2.1 kB 2.1 kB 20.8 B (41.6 B)",
    ]
    assert "over the 21 complete checkpoints" in text_of(summary.html(frame))
    assert "No checkpoint has completed." in text_of(summary.html(replace(SEEN, checkpoints=(), earlier=())))
    forgotten = replace(SEEN, checkpoints=(checkpoint(99, "FAILED"),), earlier=(taken[0],))
    assert "The history contains no completed checkpoint, though an earlier one completed." in text_of(
        summary.html(forgotten)
    )


def test_the_configuration_says_how_each_mode_is_called_by_flink():
    def told(**settings):
        frame = replace(SEEN, settings=settings, checkpointing=CheckpointingFrame("/data", True, ("session",)))
        return dict(configuration.options(frame))

    plain = told(checkpoint_mode="exactly-once", aligned_checkpoint_timeout="disabled", checkpoint_interval="disabled")
    assert (plain["Checkpointing Mode"], plain["Unaligned Checkpoints"]) == ("Exactly Once", "Disabled")
    assert plain["Interval"] == "Periodic checkpoints disabled"
    assert plain["State Backend"] == "on disk (RocksDB) for session; else in memory"
    switching = told(checkpoint_mode="exactly-once", aligned_checkpoint_timeout="2s", tolerable_failed_checkpoints=None)
    assert switching["Unaligned Checkpoints"] == "Enabled after 2s of alignment"
    assert switching["Tolerable Failed Checkpoints"] == "any number"
    assert told(checkpoint_mode="at-least-once")["Checkpointing Mode"] == "At Least Once"
    assert told(checkpoint_mode="unaligned")["Unaligned Checkpoints"] == "Enabled"
    assert told(checkpoint_mode="stop-the-world")["Checkpointing Mode"] == "Exactly Once (stop-the-world)"


# against the running job ------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_files_and_old_checkpoints_are_discarded(tmp_path):
    job = frozen_job("sizes", checkpoint_dir=str(tmp_path), retained_checkpoints=2)
    frozen(job, 150)
    job.savepoint("kept")
    for _ in range(40):
        frame = frozen(job, 10)
        job.checkpoint()
    done = [one for one in frame.checkpoints if one.state == "COMPLETED"]
    kept = [one for one in done if not one.discarded]
    folders = {path.name for path in tmp_path.glob("chk-*") if (path / "manifest.json").exists()}
    assert {Path(one.path).name for one in kept if one.kind != "savepoint"} <= folders
    assert len(done) > 5
    assert [one.kind for one in kept].count("savepoint") == 1
    for one in kept:
        files = {file.stem: file.stat().st_size for file in Path(one.path).glob("*.arrow")}
        assert one.size_bytes == one.full_size_bytes == sum(files.values()), "small tables are written whole"
        assert [task.size_bytes for task in one.subtasks] == [task.full_size_bytes for task in one.subtasks]
        assert sorted(task.size_bytes for task in one.subtasks) == sorted(files.values())
    assert not any(Path(one.path).exists() for one in done if one.discarded)
    newest = max(one.id for one in done if one.kind != "savepoint")
    page = text_of(spaced_out(overview.html(frame)))
    assert f"Latest Completed Checkpoint ID {newest} " in page
    assert f"Path {tmp_path}/savepoints/kept" in page
    job.cancel()


def test_restores_are_counted_and_named(tmp_path):
    job = frozen_job("restored", checkpoint_dir=str(tmp_path))
    frame = frozen(job, 200)
    assert (frame.metrics["numberOfRestores"], frame.restore) == (0, None)
    for times in (1, 2):
        job.fail("aggregate[1]")
        assert job.stepper.driver.run_until(
            lambda times=times: job.status()["restarts"] == times and job.state == "RUNNING"
        )
        frame = frozen(job, 20)
        restore = frame.restore
        assert frame.metrics["numberOfRestores"] == times
        assert restore.time_us <= frame.time_us
        assert (restore.savepoint, restore.path) == (False, f"{tmp_path}/chk-{restore.id:08d}")
    job.savepoint("here")
    again = job.restore("here")
    frame = frozen(again, 1)
    restore = frame.restore
    assert (restore.savepoint, restore.path) == (True, f"{tmp_path}/savepoints/here")
    assert frame.metrics["numberOfRestores"] == 1
    assert "Type Savepoint" in text_of(spaced_out(overview.html(frame)))
    again.cancel()


def test_a_savepoint_is_the_latest_even_when_the_history_has_forgotten_it():
    numbers = wb.Stream.from_table(pa.table({"n": range(5_000)})).with_parallelism(1)
    job = numbers.sink_to(wb.TableSink("numbers")).run("forgotten", driver="stepping", buffer_size=1)
    job.stepper.step(3)
    job.savepoint("old")
    for _ in range(60):
        job.checkpoint()
        assert job.stepper.driver.next_checkpoint()
    frame = frozen(job, 1)
    assert len(frame.checkpoints) == 50
    assert [(one.id, one.kind) for one in frame.earlier] == [(1, "savepoint")]
    assert "Latest Savepoint ID 1 " in text_of(spaced_out(overview.html(frame)))
    job.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once", "unaligned"])
def test_processed_bytes_are_those_of_the_buffers_that_came_between_the_barriers(mode):
    """What every step takes from the queues is looked up in the queues, as is which barriers have come."""
    table = pa.table({"t": pa.array(range(0, 900_000_000, 1_000_000), pa.timestamp("us")), "n": range(900)})
    quick, slow = (wb.Stream.from_table(table, event_time="t").with_parallelism(1) for _ in range(2))
    both = quick.union(slow).rebalance().key_by("n").aggregate(n_max=wb.max("n")).sink_to(wb.DiscardSink())
    options = {"checkpoint_interval": None, "buffer_timeout": "0ms", "buffer_size": 2, "parallelism": 2}
    job = both.run(f"processed-{mode}", driver="stepping", checkpoint_mode=mode, **options)
    gates = {task.name: task.gate.channels for task in tasks_of(job).values() if isinstance(task, OperatorTask)}
    arrived: dict[tuple[int, str], set[str]] = {}
    taken: Counter[tuple[int, str]] = Counter()
    chance, checked, moved = Random(mode), 0, 0
    for turn in range(1_200):
        before = {item: list(item.channel.elements) for items in gates.values() for item in items}
        counts = {item: item.channel.buffers_received for item in before}
        if not job.recorder.latest().metrics["numberOfInProgressCheckpoints"]:
            job.checkpoint()
        if turn % 40 == 0:  # now this task is slow and now that, so barriers come one long after the other
            pace = {name: chance.choice((0.05, 0.3, 1.0)) for name in tasks_of(job)}
        if chance.random() < 0.9:
            job.stepper.driver.step_task(chance.choices(tuple(pace), tuple(pace.values()))[0])
        else:
            job.stepper.driver.step()
        frame = job.recorder.latest()
        if job.state != "RUNNING":
            break
        for name, items in gates.items():
            taken_now = 0
            for item in items:
                buffers = [element for element in before[item] if isinstance(element, Records)]
                new = buffers[: item.channel.buffers_received - counts[item]]
                taken_now += sum(one.batch.nbytes + one.timestamps.nbytes for one in new)
            for (number, task), sources in arrived.items():
                if task == name and len(sources) < len(items):
                    taken[number, name] += taken_now
            for item in items:
                left = {id(element) for element in item.channel.elements}
                for element in before[item]:
                    if isinstance(element, CheckpointBarrier) and id(element) not in left:
                        arrived.setdefault((element.checkpoint_id, name), set()).add(item.channel.source)
        done = [one for one in frame.checkpoints if one.state == "COMPLETED"]
        for one in done:
            for task in one.subtasks:
                assert task.processed_bytes == taken[one.id, task.task], (mode, one.id, task.task)
                checked += 1
                moved += task.processed_bytes > 0
    assert checked > 100
    assert moved > 5, (checked, moved)
    job.cancel()


def test_the_configuration_is_what_is_in_force_now(tmp_path):
    job = frozen_job("configured", checkpoint_dir=str(tmp_path), checkpoint_interval="5s")
    first = dict(configuration.options(frozen(job, 5)))
    assert first == {
        "Checkpointing Mode": "Exactly Once", "Checkpoint Storage": str(tmp_path), "State Backend": "in memory",
        "Interval": "5s", "Timeout": "10min", "Minimum Pause Between Checkpoints": "0ms",
        "Maximum Concurrent Checkpoints": "1", "Unaligned Checkpoints": "Disabled",
        "Aligned Checkpoint Timeout": "disabled",
        "Persist Checkpoints Externally": "Enabled (retain on cancellation, the newest 3)",
        "Tolerable Failed Checkpoints": "any number", "Incremental Checkpoints": "Enabled (large tables of state)",
    }  # fmt: skip
    job.tune(
        checkpoint_interval="2s", checkpoint_mode="unaligned", checkpoint_timeout="1min", min_pause="500ms",
        tolerable_failed_checkpoints=3, retained_checkpoints=1,
    )  # fmt: skip
    now = dict(configuration.options(frozen(job, 5)))
    assert {name for name in now if now[name] != first[name]} == {
        "Checkpointing Mode", "Interval", "Timeout", "Minimum Pause Between Checkpoints", "Unaligned Checkpoints",
        "Persist Checkpoints Externally", "Tolerable Failed Checkpoints",
    }  # fmt: skip
    assert (now["Checkpointing Mode"], now["Unaligned Checkpoints"]) == ("Exactly Once (unaligned)", "Enabled")
    assert (now["Interval"], now["Timeout"], now["Tolerable Failed Checkpoints"]) == ("2s", "1min", "3")
    job.cancel()
    in_memory = frozen_job("unsaved")
    told = dict(configuration.options(frozen(in_memory, 1)))
    assert (told["Checkpoint Storage"], told["Incremental Checkpoints"]) == ("memory of this process", "Disabled")
    assert told["Persist Checkpoints Externally"] == "Disabled (the newest 3 kept)"
    in_memory.cancel()


# what was recorded before -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_recording_without_these_figures_opens_and_invents_none(tmp_path):
    job = frozen_job("older")
    frozen(job, 200)
    job.recording(tmp_path / "run.recording")
    lines = gzip.decompress((tmp_path / "run.recording").read_bytes()).decode().splitlines()
    frames = [json.loads(line) for line in lines[1:]]
    for frame in frames:
        for name in ("earlier", "restore", "checkpointing"):
            del frame[name]
        del frame["metrics"]["numberOfRestores"]
        for one in frame["checkpoints"]:
            del one["discarded"]
            for task in one["subtasks"]:
                del task["full_size_bytes"], task["processed_bytes"]
    older = tmp_path / "older.recording"
    older.write_bytes(gzip.compress("\n".join([lines[0], *map(json.dumps, frames)]).encode()))
    frame = read_frames(older)[1][-1]
    assert "Restored –" in text_of(spaced_out(overview.html(frame)))
    assert dict(configuration.options(frame))["Checkpoint Storage"] == "–"
    assert "– (0 B)" in text_of(history.html(frame, None))
    assert "– (0 B)" in text_of(summary.html(frame))
    wb.Recording.open(older).report(tmp_path / "older.html")
    job.cancel()


# the part ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch, request):
    monkeypatch.setattr(transport, "Comms", Comms)
    display = display_of(Job(SEEN), SEEN, part=request.param)
    return display, Page(display)


@pytest.mark.slow
@pytest.mark.parametrize("shown", ["checkpoints", None], indirect=True)
def test_a_row_that_is_chosen_is_shown_until_it_is_chosen_again(shown):
    display, page = shown
    part = display.view.parts["checkpoints"]
    source = part.inputs[0]

    def told():
        page.receive()
        return page.texts()

    assert "<b>#7</b> by subtask" not in told()
    assert "<b>#8</b> by subtask" in page.texts()
    page.change(source, "data", {"row": ["6"], "times": [1]})
    assert "<b>#6</b> by subtask" in told()
    assert "<tr data-choose='6' class='chosen'>" in page.texts()
    assert "aria-pressed='true'>6</button>" in page.texts()
    assert page.texts().count("/data/chk-6") == 1, "its path is among what is told of it"
    page.change(source, "data", {"row": ["6"], "times": [2]})
    assert "<b>#8</b> by subtask" in told()
    assert "class='chosen'" not in page.texts()


def test_in_a_report_no_row_offers_to_be_chosen_and_every_subtask_is_told(tmp_path):
    table = pa.table({"k": ["a", "b"] * 20, "n": range(40)})
    sums = wb.Stream.from_table(table).key_by("k").aggregate(total=wb.sum("n")).sink_to(wb.TableSink("sums"))
    job = sums.run("told", driver="stepping", parallelism=2, buffer_size=1)
    job.stepper.step(20)
    job.checkpoint()
    assert job.wait() == "FINISHED"
    html = job.report(tmp_path / "run.html").read_text()
    assert "<button type='button'" not in html
    told = [row for row in re.findall(r"<tr>.*?</tr>", html) if ">aggregate[1]</td>" in row]
    assert [text_of(row).split()[:2] for row in told][-2:] == [["1", "aggregate[1]"], ["2", "aggregate[1]"]]
