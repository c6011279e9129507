"""What holds for the check of every exercise: the last attempt counts, nothing hangs, and the wrong moment is found."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import answers_01
import answers_03
import answers_04
import answers_05
import answers_06
import pytest

import workbench as wb
from workbench.lessons import lesson as lessons
from workbench.lessons.exercises import time_limit as limits
from workbench.lessons.exercises.memory import Memory
from workbench.lessons.exercises.time_limit import TooLongError, time_limit


def test_the_last_attempt_counts_and_a_script_can_grade() -> None:
    lesson = wb.lesson("06", progress=False)
    good, bad = answers_06.ByNumber, answers_06.WRONG["ledger"]["counts all"][0]
    assert [lesson.check("ledger", answer).passed for answer in (bad, good)] == [False, True]
    assert "done: exercise 'ledger'" in repr(lesson.progress())
    assert lesson.check("ledger").passed is False
    assert "done: exercise 'ledger'" in repr(lesson.progress()), "no answer is no attempt"
    assert lesson.check("ledger", bad).passed is False
    assert "open: exercise 'ledger'" in repr(lesson.progress())


def opened(number: str, exercise: str, answer: Any) -> tuple[Any, Any, str]:
    lesson = wb.lesson(number, progress=False)
    said = repr(lesson.check(exercise, answer))
    assert "just before it goes wrong" in said
    return lesson, lesson.counterexample, said


def rows(job: Any, operator: str) -> list[dict[str, Any]]:
    """What an operator emits in the next step."""
    found: list[dict[str, Any]] = []
    with job.stepper.driver.listening([operator], lambda _, records: found.extend(records.batch.to_pylist())):
        job.stepper.step()
    return found


def test_a_counterexample_opens_just_before_the_first_wrong_row() -> None:
    _, job, _ = opened("04", "scores", answers_04.scored(time="seen", wait="0s"))
    assert not job.over
    assert any(row["window_start"].minute == 2 for row in rows(job, "aggregate")), (
        "nobody played in this minute so much"
    )
    assert job.stepper.back(3).scene.tasks
    job.wait()
    assert len(job.table())


def test_a_counterexample_of_a_lost_row_opens_as_its_last_record_comes() -> None:
    _, job, said = opened("04", "scores", answers_04.scored(wait="85s"))
    assert "your program gives them 85 s" in said
    assert [(row["player"], row["points"]) for row in rows(job, "aggregate")] in ([("alice", 3)], [])
    job.cancel()


def test_a_counterexample_of_lost_memory_opens_after_the_failure() -> None:
    lesson, job, said = opened("05", "alarms", answers_05.in_a_global)
    assert "the global variable `everywhere`" in said
    assert job.status()["restarts"]
    assert lesson.check("alarms", answers_05.RIGHT["alarms"]["a value"]).passed
    assert job.over
    assert answers_05.everywhere == {}, "what a check has changed is as before"


def test_what_a_note_outside_of_state_holds_does_not_matter() -> None:
    answers_05.noted[:] = ["mine"]
    assert wb.lesson("05", progress=False).check("alarms", answers_05.with_a_note).passed
    assert answers_05.noted == ["mine"]


@pytest.mark.parametrize("run", [lambda stream: stream.show(), lambda stream: stream.run("mine").wait()])
def test_a_function_that_runs_a_job_itself_is_refused(run: Callable[[Any], Any]) -> None:
    def hashtags(posts: Any) -> Any:
        run(posts)
        return answers_01.by_flat_map(posts)

    said = wb.lesson("01", progress=False).check("hashtags", hashtags)
    assert "the function runs a job itself" in repr(said)
    assert "mine" not in wb.jobs()


def never(record: Any) -> Any:
    while True:
        pass


def asleep(record: Any) -> Any:
    time.sleep(60)


def endless(record: Any) -> Any:
    return ({"tag": "#x"} for _ in itertools.count())


@pytest.mark.parametrize("function", [never, asleep])
def test_a_program_without_an_end_gets_a_sentence(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = wb.lesson("01", progress=False)
    monkeypatch.setattr(lessons, "LIMIT_S", 0.3)
    said = lesson.check("hashtags", lambda posts: posts.flat_map(function, answers_01.TAG))
    assert "Violated: an end." in repr(said)
    monkeypatch.undo()
    assert lesson.check("hashtags", answers_01.by_flat_map).passed, "the next check is not disturbed"


def test_memory_that_was_given_back_does_not_count() -> None:
    large = b"x" * (1 << 28)
    before = limits._memory()
    del large
    assert limits._memory() < before - (1 << 27)


@pytest.mark.slow
def test_a_program_that_fills_the_memory_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMORY_MAX", 1 << 26)
    began = time.monotonic()
    said = wb.lesson("01", progress=False).check("hashtags", lambda posts: posts.flat_map(endless, answers_01.TAG))
    assert "has filled the memory" in repr(said)
    assert time.monotonic() - began < lessons.LIMIT_S


def leave(*_: Any) -> Any:
    raise SystemExit


@pytest.mark.parametrize(
    ("number", "exercise", "answer"),
    [
        ("01", "hashtags", leave),
        ("05", "alarms", lambda readings: readings.key_by("sensor").process(leave, answers_05.SCHEMA)),
        ("06", "ledger", type("Ledger", (), {"pay": leave, "balance": leave})),
        ("06", "ledger", len),
        ("08", "acker", type("Acker", (), {"__init__": leave, "begin": leave, "update": leave})),
        ("03", "visits", lambda clicks: clicks.sink_to(wb.DiscardSink())),
        ("03", "visits", lambda: None),
        ("09", "fix", lambda orders: orders.no_such_method()),
        ("11", "highest", "SELECT"),
        ("02", "settings", {"buffer_timeout": ["15ms"]}),
    ],
)
def test_a_program_that_fails_gets_a_sentence(number: str, exercise: str, answer: Any) -> None:
    assert repr(wb.lesson(number, progress=False).check(exercise, answer)).startswith("Not yet.")


def test_the_limit_holds_in_any_thread() -> None:
    ended: list[str] = []

    def run() -> None:
        try:
            with time_limit(0.05):
                never(None)
        except TooLongError:
            ended.append("in time")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert ended == ["in time"]


def test_a_number_that_is_far_off_gets_a_reaction() -> None:
    lesson = wb.lesson("02", progress=False)
    said = {}
    for answer in (16, 8, 2, 400, 0):
        lesson.predict("channels-of-four", answer)
        said[answer] = repr(lesson.measured("channels-of-four", 16))
    assert said[16].startswith("Your prediction, 16, was right.")
    assert "times too" not in said[8]
    assert "about 8 times too small" in said[2]
    assert "about 25 times too large" in said[400]
    assert "You expected nothing at all." in said[0]


def test_memory_finds_every_place_outside_of_state() -> None:
    class Kept:
        known: dict[int, int] = {}  # noqa: RUF012  the mistake
        count = 0

        def note(self) -> None:
            self.known[1] = 1
            Kept.count += 1
            Kept.later = 1  # type: ignore[attr-defined]

    def around() -> Callable[[], None]:
        last: dict[int, list[int]] = {1: [0]}
        calls = 0

        def function(mine: list[int] = []) -> None:  # noqa: B006  the mistake
            nonlocal calls
            calls += 1
            last[1].append(2)
            mine.append(1)
            answers_05.everywhere[1] = 1
            function.attribute = 1  # type: ignore[attr-defined]
            Kept().note()

        return function

    function = around()
    memory = Memory([function])
    assert memory.changed() == []
    function()
    assert set(memory.changed()) == {
        "the variable `calls` around `function`",
        "the variable `last` around `function`",
        "a default argument of `function`",
        "the attribute `attribute` of the function `function`",
        "the variable `everywhere` of the module `answers_05`",
        "the class attribute `Kept.known`",
        "the class attribute `Kept.count`",
        "the class attribute `Kept.later`",
    }
    memory.reset()
    assert memory.changed() == []
    assert (Kept.known, Kept.count, hasattr(Kept, "later"), answers_05.everywhere) == ({}, 0, False, {})


def test_a_hint_names_the_learners_own_number() -> None:
    said = wb.lesson("03", progress=False).check("visits", answers_03.windowed(wb.session("601s")))
    assert "Your visits end after 601 s of silence" in repr(said)


def test_a_changelog_is_read_as_the_table_that_it_leaves() -> None:
    def hashtags(posts: Any) -> Any:
        first = wb.sql("SELECT tag, COUNT(*) AS n FROM words GROUP BY tag", words=answers_01.tags(posts))
        return first.filter("n >= 1")

    assert wb.lesson("01", progress=False).check("hashtags", hashtags).passed
