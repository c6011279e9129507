"""The stepper's buttons move the job, and the picture shows the new state."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from bokeh.events import ButtonClick
from bokeh.models import Button, Select, TextInput

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.shown.view import View


@pytest.fixture
def job() -> Iterator[Job]:
    numbers = wb.Stream.from_table(pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]})).with_parallelism(1)
    sums = numbers.key_by("k").aggregate(total=wb.sum("n")).uid("sum").sink_to(wb.TableSink("sums"))
    job = sums.run("hand", driver="stepping", buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None)
    yield job
    for one in wb.jobs().values():
        if not one.live and not one.over:
            one.cancel()
            one.wait()


class Hand:
    """Whoever presses the buttons of a stepper."""

    def __init__(self, job: Job) -> None:
        self.view = View(job, job.recorder.frames(), "stepper")

    def press(self, label: str) -> str:
        """Press a button; what is drawn then."""
        [button] = [model for model in self.view.document().select({"type": Button}) if model.label == label]
        button._trigger_event(ButtonClick(button))
        return self.picture

    def fill(self, label: str, value: str) -> None:
        [field] = [model for model in self.view.document().select({"type": TextInput}) if model.placeholder == label]
        field.value = value

    def choose(self, label: str, value: str) -> None:
        """Choose from a list what it offers."""
        [one] = [model for model in self.view.document().select({"type": Select}) if model.title == label]
        offered = one.options.values() if isinstance(one.options, dict) else [one.options]
        assert value in {each[0] if isinstance(each, tuple) else each for part in offered for each in part}
        one.value = value

    def offered(self, label: str) -> object:
        """What there is to choose from."""
        [one] = [model for model in self.view.document().select({"type": Select}) if model.title == label]
        return one.options

    @property
    def picture(self) -> str:
        return self.view.parts["stepper"]._picture.html  # type: ignore[attr-defined]

    @property
    def answer(self) -> str:
        return self.view.parts["stepper"]._answer._piece.html  # type: ignore[attr-defined]


@pytest.fixture
def hand(job: Job) -> Hand:
    hand = Hand(job)
    document = hand.view.document()
    hand.view.document = lambda: document  # type: ignore[method-assign]
    return hand


def test_it_begins_where_the_job_stands(hand: Hand) -> None:
    assert "<b>Step 0</b>" in hand.picture
    assert "Nothing has happened yet." in hand.picture


def test_buttons_go_on_and_back(hand: Hand, job: Job) -> None:
    assert "<b>Step 1</b>" in hand.press("step ▶")
    assert "<b>Step 11</b>" in hand.press("10 ▶▶")
    assert "<b>Step 10</b>" in hand.press("◀ back")
    assert "<b>Step 0</b>" in hand.press("◀◀ 10")
    assert "a: total=1" in hand.press("buffer")
    assert job.operator_state("sum").get("a") == {"total": 1}


def test_a_checkpoint_is_asked_for_and_followed(hand: Hand, job: Job) -> None:
    hand.press("trigger checkpoint")
    assert "class='barrier'" in hand.press("barrier")
    assert "snapshot 1" in hand.press("aligned")
    assert "checkpoint 1 complete" in hand.press("checkpoint")


def test_a_condition_on_the_data_is_waited_for(hand: Hand) -> None:
    hand.fill("total > 5", "total = 4")
    assert hand.offered("Operator whose records are tested") == ["table", "sum"]
    hand.choose("Operator whose records are tested", "sum")
    assert "a: total=4" in hand.press("until")
    hand.fill("total > 5", "totl = 4")
    hand.press("until")
    assert "totl" in hand.answer


def test_words_of_a_step_are_waited_for(hand: Hand) -> None:
    hand.fill("is replayed", "sum[0] took record")
    assert "sum[0] took record" in hand.press("until told")
    hand.fill("is replayed", "")
    hand.press("until told")
    assert "the text that a step should say is empty" in hand.answer


@pytest.mark.parametrize(
    ("architecture", "told"),
    [
        ("acks:granularity=record", "Root 1 is acknowledged"),
        ("transactions", "Durable, not sent yet"),
        ("micro-batches:batch_interval=50ms", "Batch 1 is released"),
        ("changelog:changelog_interval=50ms", "saves a new position"),
        ("at-most-once:flush_interval=50ms", "Flush 1 is complete"),
        ("stop-the-world:interval=50ms", "reads nothing until checkpoint 1"),
    ],
)
def test_the_slider_goes_back_and_on_in_each_architecture(architecture: str, told: str) -> None:
    numbers = wb.Stream.from_table(pa.table({"k": list("abac") * 5, "n": range(20)}), rate=100)
    sums = numbers.key_by("k").aggregate(total=wb.sum("n")).sink_to(wb.TableSink("sums"))
    job = sums.run("slid", driver="stepping", buffer_size=1, buffer_timeout="0ms", fault_tolerance=architecture)
    hand = Hand(job)
    document = hand.view.document()
    hand.view.document = lambda: document  # type: ignore[method-assign]
    hand.fill("is replayed", told)
    picture = hand.press("until told")
    assert told in picture
    taken = job.stepper.scene().scene.step
    slider = hand.view.parts["stepper"].slider
    slider.trigger("value_throttled", taken, 2)
    assert "<b>Step 2</b>" in hand.picture
    slider.trigger("value_throttled", 2, taken)
    assert hand.picture == picture
    job.cancel()
    job.wait()


def test_what_does_not_happen_is_said(hand: Hand) -> None:
    hand.press("window")
    assert "the pipeline has no windows" in hand.answer
    hand.fill("total > 5", "total = 99")
    hand.press("until")  # of the last operator, unless another one was chosen
    assert "this did not happen" in hand.answer


def test_a_fork_is_made_with_a_setting_from_a_list(hand: Hand, job: Job) -> None:
    hand.press("step ▶")
    offered = hand.offered("Setting of the other job")
    assert isinstance(offered, dict)
    assert ("checkpoint_mode=unaligned", "checkpoint_mode=unaligned") in offered["Checkpoint mode"]
    assert "Parallelism" not in offered, "it restarts the tasks"
    assert "Speed" not in offered, "the job has no history"
    hand.choose("Setting of the other job", "buffer_timeout=5ms")
    hand.press("fork here")
    assert "hand-2 starts from here" in hand.answer
    assert wb.job("hand-2").status()["buffer_timeout"] == "5ms"
    assert job.status()["buffer_timeout"] == "0ms"
    hand.choose("Setting of the other job", "")
    hand.press("fork here")
    assert "hand-3 starts from here" in hand.answer
    assert wb.job("hand-3").status()["buffer_timeout"] == "0ms"


def test_the_view_follows_a_cell_that_steps_the_job(hand: Hand, job: Job) -> None:
    job.stepper.step(3)
    frame = job.recorder.latest()
    assert frame is not None
    hand.view.update(frame)
    assert "<b>Step 3</b>" in hand.picture


def test_a_stepping_job_has_the_stepper_at_the_head_of_its_dashboard(job: Job) -> None:
    assert next(iter(View(job, job.recorder.frames()).parts)) == "stepper"
    live = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("runs-live")
    assert live.wait("120s") == "FINISHED"
    assert "stepper" not in View(live, live.recorder.frames()).parts
    assert "This job runs live." in View(live, live.recorder.frames(), "stepper").parts["stepper"]._picture.html  # type: ignore[attr-defined]


def test_a_snapshot_shows_what_it_contains_whatever_the_task_did_since(hand: Hand, job: Job) -> None:
    """A source copies its offset and reads on in one step, and an operator's state goes on: the copies stay."""
    job.stepper.step(4)
    read = int(dict(job.stepper.scene().scene.task("table[0]").state)["offset"])
    hand.press("trigger checkpoint")
    hand.press("barrier")
    source = job.stepper.scene().scene.task("table[0]")
    assert dict(source.copied) == {"offset": str(read)}
    assert int(dict(source.state)["offset"]) > read
    hand.press("aligned")
    names = [task.name for task in job.stepper.scene().scene.tasks if task.snapshot and task.name != "table[0]"]
    before = {name: job.stepper.scene().scene.task(name).copied for name in names}
    assert any(before.values())
    picture = hand.press("checkpoint")
    assert f"<title>snapshot 1 of table[0] contains offset: {read}</title>" in picture
    went_on = False
    while job.stepper.step():
        for name in names:
            task = job.stepper.scene().scene.task(name)
            if task.snapshot == 1:
                assert task.copied == before[name]
                went_on |= any(line not in task.state for line in task.copied)
    assert went_on


def test_keys_press_the_buttons_for_the_next_step_and_the_last(hand: Hand) -> None:
    keys = hand.view.parts["stepper"].keys
    assert {key: button.label for key, button in keys.items()} == {"n": "step ▶", "b": "◀ back"}
    assert "N next, B back" in hand.view.parts["stepper"].hint


def test_the_slider_goes_back_and_on_again_over_the_steps_that_were_taken(hand: Hand) -> None:
    slider = hand.view.parts["stepper"].slider  # type: ignore[attr-defined]
    assert slider.disabled
    hand.press("10 ▶▶")
    assert (slider.end, slider.value, slider.disabled) == (10, 10, False)
    slider.trigger("value_throttled", 10, 3)
    assert "<b>Step 3</b>" in hand.picture
    assert (slider.end, slider.value) == (10, 3)
    slider.trigger("value_throttled", 3, 9)
    assert "<b>Step 9</b>" in hand.picture


def test_records_are_told_apart_while_they_move(job: Job) -> None:
    def marbles() -> set[tuple[str, str, int]]:
        channels = job.stepper.scene().scene.channels
        return {(c.source, c.target, m.number) for c in channels for m in c.marbles if m.kind == "record"}

    seen: set[tuple[str, str, int]] = set()
    gone: set[tuple[str, str, int]] = set()
    while not job.over and job.stepper.step():
        now = marbles()
        assert not gone & now, "a number is given to a second record"
        gone |= seen - now
        seen = now
    assert len(gone) >= 3
