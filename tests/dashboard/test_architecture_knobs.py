"""The sliders of an architecture's arguments: shown when it runs, and tuned like other settings."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bokeh.events import ButtonClick
from bokeh.models import Slider
from stepped_counts import start_counts

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.shown.view import View
from workbench.errors import SettingError
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS, knobs_in_force
from workbench.runtime.settings.settings import Settings

GIVEN = {
    "acks": ("acks:message_timeout=5s,max_spout_pending=10", {"message_timeout": "5s", "max_spout_pending": "10"}),
    "micro-batches": (
        "micro-batches:batch_interval=200ms",
        {"batch_interval": "200ms", "batch_size": "1000000", "max_pending": "1"},
    ),
    "transactions": ("transactions:coalesce=100", {"coalesce": "100"}),
    "changelog": (
        "changelog:changelog_interval=500ms,offset_interval=5s",
        {"changelog_interval": "500ms", "offset_interval": "5s"},
    ),
    "at-most-once": ("at-most-once:flush_interval=1s", {"flush_interval": "1s"}),
    "stop-the-world": ("stop-the-world:interval=2s", {"interval": "2s"}),
}


@pytest.fixture
def start() -> Any:
    """Starts a count by key under an architecture."""
    numbers = count()

    def start(architecture: str, **settings: Any) -> Job:
        job = start_counts(f"knobs-{next(numbers)}", architecture, **settings)
        job.stepper.step(5)
        return job

    return start


def view_of(job: Job, part: str) -> View:
    view = View(job, job.recorder.frames(), part)
    view.update(job.recorder.latest())
    return view


def shown_in(view: View) -> dict[str, str]:
    """The values in force beside the sliders that are visible."""
    sliders = view.parts["controls"].knobs.sliders if "controls" in view.parts else view.knobs
    return {name: one._note.html for name, one in sliders.items() if one.model.visible and name in ARCHITECTURE_KNOBS}


def test_every_architecture_is_given() -> None:
    assert GIVEN.keys() == ARCHITECTURES.keys()
    live = {knob for name, make in ARCHITECTURES.items() for knob in make().live}
    assert live == ARCHITECTURE_KNOBS.keys()


@pytest.mark.parametrize("name", GIVEN)
def test_the_controls_show_the_arguments_of_the_architecture_that_runs(start: Any, name: str) -> None:
    text, knobs = GIVEN[name]
    view = view_of(start(text), "controls")
    assert shown_in(view) == {knob: f"in force: <b>{value}</b>" for knob, value in knobs.items()}
    others = view.parts["controls"].knobs.sliders
    assert not others["checkpoint_mode"].model.visible  # it has no effect under an architecture
    assert others["checkpoint_interval"].model.visible == (name in ("acks", "transactions"))
    assert others["buffer_timeout"].model.visible


VIEW_OF = {"acks": "roots", "micro-batches": "batches", "transactions": "transactions", "changelog": "changelog"}


@pytest.mark.parametrize("name", GIVEN)
def test_the_dashboard_shows_the_view_of_the_architecture_with_its_sliders(start: Any, name: str) -> None:
    text, knobs = GIVEN[name]
    job = start(text)
    view = View(job, job.recorder.frames())
    card = VIEW_OF.get(name, "controls")
    assert view.parts.keys() & set(VIEW_OF.values()) == {card} - {"controls"}
    on_spark = {each.slider.id for each in view.parts["controls"].elsewhere.on_spark.sliders.values()}  # type: ignore[attr-defined]
    sliders = [
        slider for slider in view.root.select({"type": Slider}) if slider.name in knobs and slider.id not in on_spark
    ]
    assert sorted(slider.name for slider in sliders) == sorted(knobs)  # each once
    [model] = view.root.select({"css_classes": ["wb-card", f"wb-{card}"]})
    assert {slider.name for slider in model.select({"type": Slider})} >= knobs.keys()


def test_snapshots_have_none(start: Any) -> None:
    view = view_of(start("snapshots"), "controls")
    assert shown_in(view) == {}
    assert view.parts["controls"].knobs.sliders["checkpoint_mode"].model.visible
    assert not view.parts["controls"].knobs.sliders.keys() & ARCHITECTURE_KNOBS.keys()


def test_a_slider_tunes_the_job(start: Any) -> None:
    job = start("changelog:changelog_interval=500ms,offset_interval=5s")
    sliders = view_of(job, "changelog").knobs
    slider = sliders["offset_interval"].slider
    slider.value = ARCHITECTURE_KNOBS["offset_interval"].choices.index("10s")
    job.stepper.step(2)
    assert job.status()["fault_tolerance"] == "changelog:changelog_interval=500ms,offset_interval=10s"
    sliders["changelog_interval"].exact.value = "20ms"
    job.stepper.step(2)
    assert job.status()["fault_tolerance"] == "changelog:changelog_interval=20ms,offset_interval=10s"
    assert job.recorder.latest().knobs["changelog_interval"] == "20ms"


def test_a_tuned_log_interval_is_in_force_at_once(start: Any) -> None:
    job = start("changelog:changelog_interval=10s,offset_interval=10s")
    clock, coordinator = job.stepper.driver.clock, job.stepper.driver.master.coordinator
    before = clock.now_us()
    job.tune(changelog_interval="20ms")
    job.stepper.driver.run_until(lambda: coordinator.completed == 2)
    assert clock.now_us() - before < 100_000
    job.tune(offset_interval="20ms")
    saved = {task.name: task.snapshots.saved_at for task in job.stepper.driver.execution.sources}
    job.stepper.driver.run_until(lambda: coordinator.completed == 4)
    assert job.stepper.driver.execution.task("table[0]").snapshots.saved_at > saved["table[0]"]


def test_intervals_of_a_changelog_are_checked_against_each_other(start: Any) -> None:
    job = start("changelog:changelog_interval=1s,offset_interval=5s")
    with pytest.raises(SettingError, match="offset_interval is 500ms, shorter than changelog_interval"):
        job.tune(offset_interval="500ms")


def test_flushes_and_stops_are_tuned(start: Any) -> None:
    for text, knob in (
        ("at-most-once:flush_interval=10s", "flush_interval"),
        ("stop-the-world:interval=10s", "interval"),
    ):
        job = start(text)
        job.tune(**{knob: "20ms"})
        assert knobs_in_force(job.stepper.driver.master.settings)[knob] == "20ms"
        before = job.stepper.driver.clock.now_us()
        job.stepper.until_checkpoint()
        assert job.stepper.driver.clock.now_us() - before < 100_000


def test_a_knob_of_another_architecture_says_which_has_it(start: Any) -> None:
    job = start("acks")
    with pytest.raises(
        SettingError, match="batch_interval is an argument of fault_tolerance 'micro-batches', and this"
    ):
        job.tune(batch_interval="1s")
    with pytest.raises(SettingError, match="interval is an argument of fault_tolerance 'stop-the-world'"):
        start("snapshots").tune(interval="1s")


def test_a_fork_has_other_arguments(start: Any) -> None:
    job = start("acks:message_timeout=5s")
    fork = job.stepper.fork(3, message_timeout="1s")
    assert fork.status()["fault_tolerance"] == "acks:message_timeout=1s"
    assert job.status()["fault_tolerance"] == "acks:message_timeout=5s"
    fork.cancel()
    fork.wait()


def test_without_a_value_of_its_own_the_checkpoint_interval_is_in_force() -> None:
    settings = Settings().with_values({"fault_tolerance": "changelog", "checkpoint_interval": "3s"})
    assert knobs_in_force(settings)["changelog_interval"] == "3s"
    assert "checkpoint_interval" not in knobs_in_force(settings)
    assert knobs_in_force(Settings().with_value("fault_tolerance", "acks:max_spout_pending=none")) == {
        "message_timeout": "30s", "max_spout_pending": "none", "checkpoint_mode": None,
        "aligned_checkpoint_timeout": None,
    }  # fmt: skip


def test_what_was_tuned_holds_after_a_restore(start: Any, tmp_path: Path) -> None:
    job = start("acks:message_timeout=5s", checkpoint_dir=tmp_path)
    job.tune(message_timeout="7s")
    job.savepoint("half")
    again = job.restore("half")
    assert again.status()["fault_tolerance"] == "acks:message_timeout=7s"
    again.cancel()
    again.wait()


def test_the_controls_run_the_pipeline_again_under_another_architecture() -> None:
    stream = wb.Stream.from_table(pa.table({"k": list("abac") * 500}), rate=100)
    job = stream.key_by("k").aggregate(n=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k")).run("chosen")
    while job.recorder.latest() is None:
        time.sleep(0.01)
    view = view_of(job, "controls")
    controls: Any = view.parts["controls"]
    followed: list[Job] = []
    view.easel.follow = followed.append
    assert list(controls.architecture.options) == ["snapshots", *ARCHITECTURES]
    controls.architecture.value = "changelog"
    controls.run_again._trigger_event(ButtonClick(controls.run_again))
    deadline = time.monotonic() + 60
    while not followed and time.monotonic() < deadline:
        time.sleep(0.02)
    assert job.over
    assert followed[0].status()["fault_tolerance"] == "changelog:offset_interval=1min"
    followed[0].cancel()
