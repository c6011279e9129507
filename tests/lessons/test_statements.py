"""What the lessons say is so: their own cells run, and what they measure is compared with the data and the runtime."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lesson_cells import LessonCells

import workbench as wb
from workbench.lessons.course import plan_of
from workbench.lessons.exercises.question import Choice


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # lessons keep their progress in it


def held(view: Any, task: str) -> str:
    """The state of a task in a picture, as text."""
    return " ".join(f"{what} {value}" for what, value in view.scene.task(task).state)


def right_answer(number: str, name: str, measured: Any) -> str:
    """The letter of the answer that holds for a measurement; exactly one does."""
    [question] = [each for each in plan_of(number).questions if each.name == name]
    assert isinstance(question, Choice)
    [letter] = [a for a, option in zip(question.letters, question.options, strict=True) if option.holds(measured)]
    return letter


# lesson 3 ------------------------------------------------------------------------------------------------------------


def test_the_sum_grows_in_the_picture_before_its_window_fires() -> None:
    cells = LessonCells("03")
    first = cells.run("def at(", "sums = keyed")
    grown = cells.run("next_record()")
    emitted = cells["job"].metrics()[1]["numRecordsOut"]
    assert (held(first, "window[0]"), held(grown, "window[0]")) == tuple(
        f"a [00:00:00–00:00:04) total={total} committed 0" for total in (1 + 2 + 3, 1 + 2 + 3 + 4)
    )
    fired = cells.run("until_window_fires()")
    assert (emitted, cells["job"].metrics()[1]["numRecordsOut"]) == (0, 1)
    assert "00:00:00–00:00:04" not in held(fired, "window[0]")


def test_sessions_end_where_no_system_doubts_it() -> None:
    cells = LessonCells("03")
    cells.run("def at(", 'lesson.measured("sessions"')
    times = [at.timestamp() for at in cells["clicks"]["t"].to_pylist()]
    apart = [later - earlier for earlier, later in pairwise(times)]
    [question] = [each for each in plan_of("03").questions if each.name == "sessions"]
    assert [int(second) for second in re.findall(r"\d+", question.text)] == [*times, 5], "as the question says"
    assert 5 not in apart, "a gap of exactly 5 s"
    assert len(cells["found"]) == 1 + sum(gap > 5 for gap in apart)
    assert cells.run("touching = ") == 1, "as in Flink"


@pytest.mark.slow
def test_the_state_of_a_median_grows_with_each_record_and_that_of_a_sum_does_not() -> None:
    cells = LessonCells("03")
    cells.run("def at(", "def kept(")
    sizes, records = cells["sizes"], cells["records"]
    assert len(set(sizes["sum"])) == 1
    grown = [(b - a) / (n - m) for (m, n), (a, b) in zip(pairwise(records), pairwise(sizes["median"]), strict=True)]
    assert min(grown) >= 8, "bytes for each value"
    said = repr(cells.run('lesson.measured("median"'))
    assert "All values in the window" in said


# lesson 4 ------------------------------------------------------------------------------------------------------------


def test_an_offline_phone_sends_everything_when_it_is_online_again() -> None:
    cells = LessonCells("04")
    cells.run("def seconds(")
    players, played, seen = cells["players"], cells["played"], cells["seen"]
    assert all(happened <= arrived for happened, arrived in zip(played, seen, strict=True))
    assert seen == sorted(seen)
    for player, offline in {"alice": (30, 90), "bob": (0, 0)}.items():
        for who, happened, arrived in zip(players, played, seen, strict=True):
            if who == player:
                assert arrived == (offline[1] if offline[0] <= happened < offline[1] else happened)
    first = [
        arrived
        for who, happened, arrived in zip(players, played, seen, strict=True)
        if who == "alice" and happened < 60
    ]
    assert (len(first), first.count(90)) == (5, 2), "as the question says"


@pytest.mark.slow
def test_late_taps_count_at_full_speed_and_not_at_the_pace_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    cells = LessonCells("04")
    cells.run("def seconds(", "def minutes(")
    alice = [happened for who, happened in zip(cells["players"], cells["played"], strict=True) if who == "alice"]
    truth = [n for _, n in sorted(Counter(happened // 60 for happened in alice).items())]
    assert cells["by_arrival"].taps.tolist() == [3, 5, 1]
    capsys.readouterr()
    cells.run('for wait in ("0s", "60s")')
    found = {
        (wait, speed): (eval(taps), int(late))
        for wait, speed, taps, late in re.findall(
            r"wait +(\d+)s, (.+?): +(\[.+?\]), late: (\d+)", capsys.readouterr().out
        )
    }
    assert found == {
        ("0", "a tap a second"): ([3, 3, 1], 2),
        ("0", "full speed"): (truth, 0),
        ("60", "a tap a second"): (truth, 0),
        ("60", "full speed"): (truth, 0),
    }


@pytest.mark.slow
def test_a_slow_source_counts_as_idle_unless_it_may_pause_for_longer() -> None:
    cells = LessonCells("04")
    cells.run("def seconds(", "def source(", "merging = ")
    reader = cells["job"].stepper.scene().scene
    assert sum(channel.target == cells["merging"]["task"] for channel in reader.channels) == 2, "it reads two channels"
    held = cells.run("def results(", 'results(idle_after="200s")')
    assert held[0] > 0 == held[1]


# lesson 5 ------------------------------------------------------------------------------------------------------------


def test_a_dictionary_works_until_a_failure_and_an_attribute_does_not_work() -> None:
    cells = LessonCells("05")
    right = cells.run("class Steps(")

    def moved(before: Callable[[Any, str], tuple[dict[str, int], str]]) -> Any:
        class Kept(wb.functions.ProcessFunction):
            def __init__(self) -> None:
                self.places: dict[str, int] = {}

            def process(self, record: Any, state: Any, ctx: Any) -> Any:
                places, key = before(self, record["who"])
                last, places[key] = places.get(key), record["place"]
                return None if last is None else {"who": record["who"], "moved": abs(record["place"] - last)}

        schema = {"who": pa.string(), "moved": pa.int64()}
        walked = wb.Stream.from_table(cells["walks"]).key_by("who").process(Kept(), schema)
        return walked.collect().to_pandas().to_dict("records")

    assert moved(lambda it, who: (it.places, who)) == right.to_dict("records")
    assert moved(lambda it, who: (vars(it), "place")) != right.to_dict("records")


@pytest.mark.slow
def test_a_job_goes_on_while_it_is_asked_all_the_time() -> None:
    cells = LessonCells("05")
    cells.run("def spoken(")
    said = repr(cells.run("end = time.monotonic()"))
    cells["live"].cancel()
    assert len(cells["answers"]) >= 3
    assert cells["answers"] == sorted(cells["answers"])
    assert cells["answers"][-1] > cells["answers"][0]
    assert "b: It continues" in said


# lesson 6 ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_acknowledgements_count_twice_only_what_was_saved_before() -> None:
    cells = LessonCells("06")
    cells.run("truth = ", "def after_a_failure(")
    acks = wb.acks(granularity="record")
    assert cells["truth"] == dict(Counter(cells["accounts"]))
    saved, unsaved, none = (
        cells["surplus"](cells["after_a_failure"](**how))
        for how in (
            {"fault_tolerance": acks},
            {"fault_tolerance": acks, "saved": False},
            {"fault_tolerance": "at-most-once"},
        )
    )
    assert min(saved.values()) > 0, "each account"
    assert set(unsaved.values()) == {0}
    assert max(none.values()) < 0, "lost with the task"


def test_records_and_acknowledgements_travel_step_by_step() -> None:
    cells = LessonCells("06")
    first = cells.run("truth = ", 'until_told("is acknowledged")')
    assert "Root 1 is acknowledged." in first.headline()
    told = [cells.run("job.stepper.step().view").headline() for _ in range(8)]
    for words in ("sent record", "sent the ids of root", "is acknowledged"):
        assert any(words in each for each in told), words


# lesson 7 ------------------------------------------------------------------------------------------------------------


def test_the_picture_marks_the_blocked_channel_with_the_word_of_the_text() -> None:
    cells = LessonCells("07")
    cells.run("def sums(", 'job = sums("alignment"', "job.checkpoint()\njob.stepper.next_barrier()")
    view = cells["job"].stepper.next_barrier()
    assert sum(channel.blocked for channel in view.scene.channels) == 1
    assert re.findall(r"class='held-text[^>]*>([^<]+)<", view.svg) == ["‖ held"]


def test_an_unaligned_snapshot_is_a_consistent_cut_with_the_records_that_are_drawn() -> None:
    cells = LessonCells("07")
    view = cells.run("def sums(", 'job = sums("unaligned"')
    copies = cells.run("dict(task.copied)")
    sent = [n for task in ("numbers[0]", "numbers[1]") for n in range(1, int(copies[task]["offset"]) + 1)]
    for task, parity in (("sum[0]", "even"), ("sum[1]", "odd")):
        truth = sum(n for n in sent if (n % 2 == 0) == (parity == "even"))
        state = int(copies[task][parity].removeprefix("total="))
        overtaken = [int(n) for n in copies[task][f"overtaken {parity}"].split(", ")]
        assert state < truth == state + sum(overtaken)
        assert f"overtaken {parity}: {copies[task][f'overtaken {parity}']}" in view.svg
        drawn = [m for c in view.scene.channels if c.target == task for m in c.marbles if m.about == "overtaken"]
        assert sorted(int(marble.text) for marble in drawn) == sorted(overtaken), "the barrier is ahead of them now"


@pytest.mark.slow
def test_a_shorter_interval_shows_the_same_rows_earlier() -> None:
    cells = LessonCells("07")
    cells.run("def sums(", 'sums("interval"')
    assert cells["results"][0] == cells["results"][1] == cells["results"][2]
    assert cells["first_seen_ms"] == sorted(set(cells["first_seen_ms"]))
    assert [right_answer("07", "interval", same) for same in (True, False)] == ["a", "b"]


# lesson 8 ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_windows_that_do_not_fit_a_batch_are_refused_or_rounded_up() -> None:
    cells = LessonCells("08")
    cells.run("def running(", "def last_five_seconds(")
    with pytest.raises(wb.errors.PlanError, match="no multiple of the batch_interval"):
        cells["last_five_seconds"](fault_tolerance=wb.micro_batches("10s"))
    assert cells["stretched"] == [10, 10, 10]


@pytest.mark.slow
def test_architectures_are_measured_with_the_same_settings_against_the_truth_of_the_data() -> None:
    cells = LessonCells("08")
    cells.run("def job_of(")
    given: list[dict[str, Any]] = []
    job_of = cells["job_of"]

    def noted(architecture: Any, name: str, **settings: Any) -> Any:
        given.append(settings)
        return job_of(architecture, name, **settings)

    cells.names["job_of"] = noted
    cells.run("ways = {")
    assert cells["truth"] == dict(Counter(cells["accounts"]))
    assert len(given) == len(cells["ways"])
    assert all(settings == given[0] for settings in given)
    rows = {row["architecture"]: row for row in cells["measured"].to_dict("records")}
    for row in rows.values():
        assert row["largest error"] == max(abs(row[account]) for account in cells["truth"])
    exact = {name for name, row in rows.items() if row["largest error"] == 0}
    assert exact == {"snapshots", "transactions", "micro-batches"}
    assert right_answer("08", "weakest", len(exact)) == "b"
    assert rows["acknowledgements"]["steps"] > rows["snapshots"]["steps"]


def test_sources_wait_under_stop_the_world_only() -> None:
    cells = LessonCells("08")
    cells.run("def running(", "def job_of(")
    said = repr(cells.run("def read_meanwhile("))
    assert cells["read_meanwhile"]("snapshots") > 0
    assert "Measured: 0. That is b" in said
