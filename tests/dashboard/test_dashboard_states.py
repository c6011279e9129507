"""The text of each view in each state of a job, and on a page without a kernel: nothing outdated is shown."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from html import escape
from itertools import chain, pairwise, product

import pyarrow as pa
import pytest
from bokeh.models import Button, ColumnDataSource, Select, Slider, TextInput
from test_dashboard_live import Job
from test_dashboard_picture import FRAME, SIX, text_of

import workbench as wb
from workbench.api.pictures.marbles import width_of
from workbench.api.pictures.scene_svg import scene_svg
from workbench.dashboard.charts import wording
from workbench.dashboard.lecture import captions
from workbench.dashboard.measured.chaos import ChaosRun, chaos_page
from workbench.dashboard.measured.stalls import StallRun, stalls_page
from workbench.dashboard.measured.sweep import sweep_page
from workbench.dashboard.shown import header
from workbench.dashboard.shown.playback import moment_slider
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import View
from workbench.dashboard.views import latency_part
from workbench.dashboard.views.checkpoints import checkpoints
from workbench.dashboard.views.event_time import holders, late, watermarks
from workbench.dashboard.views.sink_part import Latest, html
from workbench.durations import MAX_TIME
from workbench.operators.contract.event_times import BOUNDS
from workbench.telemetry.diagnosis import NONE, explain, held_by
from workbench.telemetry.effects.change_frames import ChangeFrame
from workbench.telemetry.effects.interruption_log import InterruptionLog
from workbench.telemetry.event_time.frames import EventTimesFrame
from workbench.telemetry.frames import EdgeFrame, Frame, LateFrame, VertexFrame
from workbench.telemetry.scene import ChannelScene, Marble, Scene, TaskScene

PER_SECOND = ("numRecordsInPerSecond", "numRecordsOutPerSecond", "numBytesInPerSecond", "busyTimeMsPerSecond")
GROUND = "@media (prefers-color-scheme: dark) { body { background: #14171b;"


def rates(frame: Frame) -> list[float]:
    """All that a frame tells per second."""
    told = [item.metrics[name] for item in (*frame.tasks, *frame.vertices) for name in PER_SECOND]
    told += [item.metrics[name] for item in frame.operators for name in PER_SECOND[:2]]
    told += [item.records_per_second for item in (*frame.channels, *frame.edges)]
    return [float(rate or 0) for rate in (*told, *(frame.metrics[name] for name in PER_SECOND[:2]))]


@pytest.mark.parametrize("end", ["FINISHED", "FAILED"])
def test_no_part_of_a_job_that_has_ended_still_has_a_rate(end: str) -> None:
    def last(record: dict[str, int]) -> dict[str, int]:
        if end == "FAILED" and record["n"] == 199:
            raise ValueError("boom")
        return record

    numbers = wb.Stream.from_table(pa.table({"n": list(range(200))}), rate=400).map(last).key_by("n")
    job = numbers.aggregate(n_times=wb.count()).sink_to(wb.TableSink("n")).run(f"rates-{end}", restart="none")
    with suppress(wb.errors.JobError):  # that it has failed
        job.wait("60s")
    frame = job.recorder.latest()
    assert frame is not None
    assert frame.state == end
    assert not any(rates(frame))
    assert [task.metrics["idleTimeMsPerSecond"] for task in frame.tasks] == [1000.0] * len(frame.tasks)
    assert frame.backpressure == f"The job {'has' if end == 'FAILED' else 'is'} {end.lower()}."


def test_a_view_alone_tells_why_the_job_has_failed() -> None:
    failed = replace(FRAME, state="FAILED", failure="aggregate[1]: <b>boom</b>")
    assert "role='alert'>✗ aggregate[1]: &lt;b&gt;boom&lt;/b&gt;</p>" in header.slim_html(failed, "delays")
    assert "boom" not in header.slim_html(replace(failed, state="RUNNING"), "delays")


def test_a_head_tells_all_to_whom_moves_the_focus_there_in_a_place_that_is_always_there() -> None:
    calm = replace(FRAME, backpressure=NONE)
    assert re.search(
        f"<span class='calm'>{NONE}</span>.*<div class='brief'><span class='silence'.*</span><p class='past'>",
        header.slim_html(calm, ""),
    )
    happened = replace(changed(10_000_000), findings=("sum[1] does 83 % of the work.",))
    assert "calm" not in header.slim_html(happened, "")
    change = "then: rate 1 → 2: latency p50 &lt;b&gt;"
    found = "sum[1] does 83 % of the work."
    for told, order in (
        (header.slim_html, (change, FRAME.backpressure, found)),
        (header.html, (FRAME.backpressure, found, change)),
    ):
        [whole] = re.findall(
            "<div class='(?:brief|happens)' tabindex='0' title='(.*?)'>", told(happened, ""), re.DOTALL
        )
        assert re.sub(r"[\d:]+ UTC", "then", whole) == "\n".join(order)


def changed(ago_us: int, sentence: str = "rate 1 → 2: latency p50 <b>") -> Frame:
    change = ChangeFrame("rate 1 → 2", FRAME.time_us - ago_us, None, None, "holds", sentence)
    return replace(FRAME, changes=(change,))


def test_the_last_change_stands_out_for_a_minute() -> None:
    for told in (header.html, header.slim_html):
        assert re.search(
            r"<p class='news'>[\d:]+ UTC: rate 1 → 2: latency p50 &lt;b&gt;</p>", told(changed(59_000_000), "")
        )
        assert "<p class='past'>" in told(changed(61_000_000), "")
        assert "rate 1" not in told(FRAME, "")


def test_what_happened_last_is_told_first() -> None:
    log = InterruptionLog()
    log.failed(FRAME.time_us - 20_000_000, "sum[1] failed", "no")
    log.waits(FRAME.time_us - 20_000_000, FRAME.time_us - 19_900_000)
    log.deployed(FRAME.time_us - 19_900_000, 13, 0, {})
    for ago_us in (10_000_000, 30_000_000):
        told = header.html(replace(changed(ago_us), interruptions=log.interruptions), "delays")
        assert (told.index("rate 1 → 2") < told.index("sum[1] failed")) is (ago_us == 10_000_000)
        assert told.count("class='news'") == 2


def test_a_lecture_tells_what_has_happened_whichever_scene_is_shown() -> None:
    found = "sum[1] does 83 % of the work of <sum>."
    told = header.news_html(replace(changed(10_000_000), findings=(found,)))
    assert re.search(r"^<p class='news'>[\d:]+ UTC: rate 1 → 2: .*</p><p class='news finding'>sum\[1\]", told)
    assert "of &lt;sum&gt;" in told
    assert header.news_html(FRAME) == header.HINT
    assert header.news_html(replace(FRAME, state="FINISHED")) == ""


def late_frame(dropped: int, came: int, state: str = "RUNNING") -> Frame:
    shortfalls = [0] * len(BOUNDS)
    shortfalls[BOUNDS.index(1_800_000_000)] = dropped
    seen = (
        EventTimesFrame("read", came, examined=came, bound_us=10_000_000),
        EventTimesFrame("sum", came, dropped=dropped, shortfalls=(*shortfalls, 0)),
    )
    first, *others = FRAME.tasks
    others = [replace(task, event_times=()) for task in others]
    return replace(FRAME, state=state, tasks=(replace(first, event_times=seen), *others))  # type: ignore[arg-type]


def test_records_that_come_too_late_are_told_with_the_bound_that_would_have_kept_them() -> None:
    assert header.lost(late_frame(1_218, 4_880)) == (
        "1,218 of 4,880 records came too late for their windows and were dropped. An out-of-orderness bound of "
        "30 min 10 s instead of 10 s would have kept all of them."
    )
    assert "<p class='news finding'>1,218 of" in header.html(late_frame(1_218, 4_880), "delays")
    frame = late_frame(91, 362)
    again = replace(frame, tasks=tuple(replace(task, attempt=1) for task in frame.tasks))
    assert header.lost(again).startswith("Since the tasks restarted, 91 of 362 records came too late")
    assert header.lost(late_frame(4, 4_880)) == ""  # the head's number says it
    assert header.lost(late_frame(0, 0)) == ""
    assert header.lost(late_frame(1_218, 4_880, "FAILED")) == ""


def test_a_long_chain_is_shortened_beside_other_cards() -> None:
    names = [f"t{n}[0]" for n in range(9)]
    tasks = [
        replace(
            FRAME.tasks[0], name=name, watermarkHolder=holder, metrics={"currentInputWatermark": 1}, state="RUNNING"
        )
        for name, holder in zip(names, [*names[1:], "split 0"], strict=True)
    ]
    pairs = zip(names[1:], names, strict=False)
    channels = tuple(replace(FRAME.channels[0], source=source, target=target) for source, target in pairs)
    long = replace(FRAME, tasks=tuple(tasks), channels=channels)
    assert text_of(holders.html(long, 6)).count("◀") == 6
    assert "t1[0] ◀ 4 more ◀ t6[0] ◀ t7[0] ◀ t8[0] ◀ split 0" in text_of(holders.html(long, 6))
    assert text_of(holders.html(long)).count("◀") == 9


def test_nothing_is_awaited_of_a_job_that_is_over() -> None:
    bare = replace(FRAME, checkpoints=())
    assert text_of(checkpoints.progress_html(bare)).strip() == "No checkpoint yet: every 5s."
    assert text_of(checkpoints.progress_html(replace(bare, state="FAILED"))).strip() == "No checkpoint was taken."
    assert "Change a setting" in latency_part.changes_html([], 4)
    assert "Change a setting" not in latency_part.changes_html([], 4, over=True)


def test_no_view_and_no_scene_awaits_anything_of_a_job_that_is_over() -> None:
    """The job has ended before it read a record, so each view is as empty as it can be."""
    untimed = {"currentInputWatermark": None, "currentOutputWatermark": None, "currentChannelWatermark": None}
    bare = replace(
        FRAME, state="FINISHED", checkpoints=(), earlier=(), events=(), tables={}, latency=(), changes=(),
        tasks=tuple(replace(one, metrics={**one.metrics, **untimed}, event_times=()) for one in FRAME.tasks),
        channels=tuple(replace(one, currentChannelWatermark=None) for one in FRAME.channels),
    )  # fmt: skip
    told = [captions.__dict__[scene](bare) for scene in ("latency", "event_time", "checkpoints", "failure", "state")]
    for view in (View(Job(bare), (bare,)), View(Job(bare), (bare,), "sources")):
        pieces = [one.data for one in view.root.references() if isinstance(one, ColumnDataSource)]
        told += [text_of(str(value[0])) for data in pieces for name, value in data.items() if name.startswith("piece")]
    assert any("No checkpoint was taken." in text for text in told)
    waiting = [text for text in told if re.search(r"\b(yet|as soon as|Change a setting|One follows|If one)\b", text)]
    assert waiting == []


def test_behind_the_end_of_event_time_is_no_length_of_time() -> None:
    record = LateFrame("aggregate", "JFK", SIX, MAX_TIME, "source[0]", "{}")
    tasks = tuple(
        replace(task, late=(record,) if task.name == "aggregate[0]" else (), splits={})
        for task in FRAME.tasks
    )  # fmt: skip
    ended = replace(
        FRAME,
        tasks=tuple(
            replace(task, metrics={**task.metrics, "currentInputWatermark": MAX_TIME, "currentOutputWatermark": None})
            for task in tasks
        ),
        channels=tuple(replace(channel, currentChannelWatermark=MAX_TIME) for channel in FRAME.channels),
    )
    assert "the last: JFK of 2013-07-01 06:00:00, after the end, source[0] → aggregate[0]" in text_of(late.line(ended))
    assert record.behind_us is None
    assert held_by(ended) == ()
    assert {marks.sentence for marks in watermarks.table(ended)} == {"all inputs ended"}
    assert LateFrame("aggregate", "JFK", SIX, SIX + 4, None, "{}").behind_us == 5


def test_the_slider_over_a_run_and_the_head_tell_the_same_time() -> None:
    rows = wb.Stream.from_table(pa.table({"n": range(40)}), rate=20.0).with_parallelism(1)
    counts = rows.key_by("n").aggregate(c=wb.count()).sink_to(wb.TableSink("c"))
    job = counts.run("told", driver="stepping", restart="fixed-delay:attempts=3,delay=5s")
    job.stepper.step(60)
    job.fail("aggregate[0]")
    assert job.wait() == "FINISHED"
    frames = job.recorder.frames()
    words = moment_slider(frames, "Moment").format.args["words"]
    assert len(words) == len(frames) > 20
    for word, frame in zip(words, frames, strict=True):
        told = next(value for label, value, _ in header.figures(frame) if label == "running")
        assert float(word.partition(" s, ")[0]) * 1e3 == pytest.approx(frame.metrics["runningTime"], abs=51), told


def test_what_would_ask_a_kernel_looks_dead_on_a_page_that_has_none() -> None:
    kinds = (Button, Select, Slider, TextInput)
    for hears in (True, False):
        view = View(Job(FRAME), [FRAME], hears=hears)
        asking = [one for kind in kinds for one in view.root.select({"type": kind})]
        assert len(asking) > 30
        assert (all if not hears else any)(one.disabled for one in asking)
        assert any(one.disabled for one in asking if isinstance(one, Button)) is not hears
        texts = "".join(view.easel.texts.source.data[name][0] for name in view.easel.texts.divs)
        assert ("click a box" in texts) is hears
        assert ("data-choose" in texts) is hears


@pytest.mark.slow
def test_a_page_of_its_own_has_the_ground_of_its_theme(tmp_path) -> None:
    job = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.TableSink("n")).run("ground")
    assert job.wait("60s") == "FINISHED"
    saved = Dashboard(job).save(tmp_path / "saved.html").read_text(encoding="utf-8")
    assert saved.count(GROUND) == 1
    assert job.report(tmp_path / "run.html").read_text(encoding="utf-8").count(GROUND) == 1


def test_pictures_in_light_colours_bring_their_ground_into_a_dark_notebook() -> None:
    stalled = StallRun("a", 10, 1.0, 2.0, 3.0, [0.0], [2.0])
    chaos = ChaosRun("a", "b", [], [1.0], [2.0], [3.0], [0])
    for page in (sweep_page([], 1000), chaos_page([chaos]), stalls_page([stalled], 1000)):
        assert "<style>body { background: #fff; }</style>" in page


def test_a_job_that_waits_to_start_again_tells_when_that_is() -> None:
    def boom(record: dict[str, int]) -> dict[str, int]:
        raise ValueError("boom")

    stream = wb.Stream.from_table(pa.table({"n": [1]})).map(boom).sink_to(wb.TableSink("n"))
    job = stream.run("again", driver="stepping", restart=wb.restart.fixed_delay(2, "30s"))
    while job.state != "RESTARTING":
        job.stepper.step()
    frame = job.recorder.latest()
    assert frame is not None
    due = frame.metrics["restartDue"]
    assert frame.backpressure == f"The job is restarting: its next attempt begins at {wording.clock(int(due))} UTC."
    job.cancel()
    job.wait("60s")


def test_the_sentence_of_backpressure_names_no_more_than_one_can_read() -> None:
    pressed = {"backPressuredTimeMsPerSecond": 900.0, "busyTimeMsPerSecond": 100.0}
    vertices = [VertexFrame(f"v{n}", f"o{n}", (), 1, pressed, 0.0, 0.5) for n in range(12)]
    vertices.append(VertexFrame("v12", "slow", (), 1, {"busyTimeMsPerSecond": 990.0}, 1.0, 0.5))
    edges = [EdgeFrame(f"e{n}", f"v{n}", f"v{n + 1}", "forward", 0, 1, 0.0, 0.0) for n in range(12)]
    assert explain(vertices, edges) == (
        "slow is the cause (99 % busy): o0, o1, o2, 9 others are back-pressured, waiting for it."
    )


def test_results_are_written_as_people_write_them() -> None:
    values = {
        "day": date(2027, 6, 30), "at": time(6, 5), "took": timedelta(milliseconds=2_999), "price": Decimal("1.50"),
        "nested": {"a": "<x>", "b": [1.5, None]}, "flag": None,
    }  # fmt: skip
    page = html(Latest(1, pa.Table.from_pylist([values])), 5)
    for told in ("2027-06-30", "06:05:00", "2.999 s", "1.50", '{"a": "<x>", "b": [1.5, null]}', "null"):
        assert escape(told) in page, told
    assert "datetime" not in page
    assert "Decimal" not in page


def test_times_below_marbles_do_not_run_into_each_other() -> None:
    marbles = tuple(Marble("record", "7", "k", SIX + n * 1_000_000, {"n": n}) for n in range(20))
    tasks = tuple(TaskScene(name, (name,), x, 0.5, 0, 1) for name, x in (("a[0]", 0.0), ("b[0]", 1.0)))
    svg = scene_svg(Scene("job", "RUNNING", 1, "", 0, tasks, (ChannelScene("a[0]", "b[0]", marbles),)))
    places = sorted(float(x) for x in re.findall(r"transform='translate\(([\d.]+) [\d.]+\)'", svg))
    assert re.findall(r">(\d\d:\d\d:\d\d)<", svg)
    assert min(b - a for a, b in pairwise(places)) >= (6 * 0.56 + 2 * 0.28) * 14  # six digits and two colons


def test_words_fit_into_their_marbles_and_watermarks_stand_above_the_times_of_records() -> None:
    marbles = (Marble("record", "#flinks", "#flinks", SIX, {}, 1), Marble("watermark", "06:00:00", None, SIX - 1))
    tasks = tuple(TaskScene(name, (name,), x, 0.5, 0, 1) for name, x in (("a[0]", 0.0), ("b[0]", 1.0)))
    svg = scene_svg(Scene("job", "RUNNING", 1, "", 0, tasks, (ChannelScene("a[0]", "b[0]", marbles),)))
    assert ">#flin…<" in svg
    width = float(re.findall(r"<rect x='-[\d.]+' y='-15' width='([\d.]+)'", svg)[0])
    assert width >= 6 * 14 * 0.6  # letters of 14 pixels
    assert re.findall(r"y='(-?\d+)'>W ([\d:.]+)<", svg) == [("-19", "59:59.999")]


def test_a_scene_of_three_columns_fits_a_projector_with_letters_of_14_pixels():
    tasks = tuple(TaskScene(name, (name,), x, 0.5, 0, 1) for name, x in (("a[0]", 0.0), ("b[0]", 0.5), ("c[0]", 1.0)))
    held = TaskScene("d[0]", ("d",), 1.0, 0.9, 0, 1, (("alice", "[00:01:00–00:02:00) taps=2"),))
    svg = scene_svg(Scene("job", "RUNNING", 1, "", 0, (*tasks, held), (ChannelScene("a[0]", "b[0]", ()),)))
    width = int(re.findall(r"viewBox='0 0 (\d+) ", svg)[0])
    sizes = {float(size) for size in re.findall(r"font-size:([\d.]+)px", svg)}
    assert min(sizes) * min(1, 988 / width) >= 14  # 1024 pixels, less the margins of the stage
    assert re.findall(r">(alice:|\[00:01:00–00:02:00\)|taps=2)<title>", svg) == [
        "alice:",
        "[00:01:00–00:02:00)",
        "taps=2",
    ]


AREA = re.compile(r"translate\(([\d.]+) ([\d.]+)\)'[^>]*>.*?</g>", re.DOTALL)


def test_marbles_and_what_is_written_below_them_do_not_overlap():
    """Channels that cross, with long keys and event times of microseconds: what has no space is counted."""
    names = ("a[0]", "a[1]", "b[0]", "b[1]")
    tasks = tuple(TaskScene(name, (name,), float(name[0] == "b"), 0.5, int(name[2]), 2) for name in names)
    marbles = tuple(Marble("record", str(n), f"a long key {n}", 1_000_001 * n, {}, n) for n in range(9))
    channels = tuple(ChannelScene(a, b, marbles, more=3) for a in names[:2] for b in names[2:])
    svg = scene_svg(Scene("job", "RUNNING", 1, "", 0, tasks, channels))
    areas = []
    for found in AREA.finditer(svg):
        x, y = float(found[1]), float(found[2])
        below = re.findall(r"class='halo under'[^>]*y='(\d+)'>([^<]*)<", found[0])
        half, lowest = max(width_of(text) / 2 for _, text in below), max(float(at) for at, _ in below)
        areas.append([(x - 15, y - 15, x + 15, y + 15), (x - half, y + 15, x + half, y + lowest)])
    assert len(areas) >= len(channels)
    for place, parts in enumerate(areas):
        for (left, top, right, bottom), other in product(parts, chain(*areas[:place])):
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    counted = [int(number) for number in re.findall(r">\+(\d+)</text>", svg)]
    assert sum(counted) + len(areas) == len(channels) * 12, "none is lost"
