"""As `test_statements`, for what lessons 2 and 9 to 12 say of buffers, savepoints, services, queries and clusters."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from lesson_cells import LessonCells

import workbench as wb
from workbench.lessons.course import plan_of
from workbench.lessons.exercises.question import Choice
from workbench.plan.arrival_order import unordered


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # lessons keep their progress in it


def answer(number: str, name: str, measured: Any) -> str:
    """The letter of the answer that holds for a measurement; exactly one does."""
    [question] = [each for each in plan_of(number).questions if each.name == name]
    assert isinstance(question, Choice)
    [letter] = [a for a, option in zip(question.letters, question.options, strict=True) if option.holds(measured)]
    return letter


@pytest.mark.slow
def test_the_median_is_half_the_timeout_unless_buffers_fill_first() -> None:
    shop = LessonCells("02")
    shop.run("def shop(")

    def median(**settings: Any) -> float:
        latencies, _ = shop["shop"](buffer_size=64, **settings)
        return float(latencies[len(latencies) // 2])

    for timeout_ms in (10, 20):
        assert 0.4 <= median(buffer_timeout=f"{timeout_ms}ms") / timeout_ms <= 0.6
    full_ms = 64 / 10_000 * 1_000
    assert median(rate=10_000, buffer_timeout="50ms") < full_ms < 25


def test_state_is_taken_over_only_with_its_uid_its_key_and_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    cells = LessonCells("09")
    cells.run("def first_version(", 'shops")', "saved = ", "renamed = ")
    assert cells["kept"] == "uid"
    capsys.readouterr()
    cells.run("changed = {")
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(cells["changed"]) == 2
    assert not any(line.endswith("fits") for line in said)
    assert "keys or aggregates have changed" in said[0]
    assert "was int64 in it and is double" in said[1]


@pytest.mark.parametrize(
    ("held", "letter"),
    [([["1", "2"], ["3"], ["4"]], "b"), ([["1", "2"], ["3", "4"], []], "c"), ([["1", "2"], ["2"], ["1"]], "a")],
)
def test_rescaling_is_measured_by_where_each_key_is(held: list[list[str]], letter: str) -> None:
    tasks = [
        SimpleNamespace(name=f"count[{number}]", state=[(f"page {page}", "n=5") for page in pages])
        for number, pages in enumerate(held)
    ]
    seen = SimpleNamespace(scene=SimpleNamespace(tasks=tasks))
    cells = LessonCells("09")
    cells.names["job"] = SimpleNamespace(stepper=SimpleNamespace(scene=lambda: seen))
    assert f"The run shows {letter}:" in repr(cells.run("held = "))


@pytest.mark.slow
def test_a_coordinator_that_continues_is_distinguished_from_one_that_begins_again() -> None:
    cells = LessonCells("09")
    cells.run("def first_version(", "job.faults.fail(coordinator=True)")
    assert "The run shows b:" in repr(cells.run("undisturbed = "))
    job = cells["start"](cells["first_version"](cells["orders"]()), "forgetful")
    job.stepper.until("revenue > 1500", "revenue")
    job.faults.fail(coordinator=True)  # before any checkpoint
    cells.names["job"] = job
    assert "The run shows a:" in repr(cells.run("undisturbed = "))


def test_requests_are_about_as_many_as_keys_and_are_timed_without_the_start_of_the_job() -> None:
    cells = LessonCells("10")
    said = repr(cells.run("def city_of("))
    users = [row["user"] for row in cells["found"].to_pylist()]
    assert (len(users), len(set(users))) == (400, 40), "as the question says"
    assert len(set(users)) <= len(cells["requests"]) < len(users) / 2
    begins, ends = zip(*cells["requests"], strict=True)
    assert cells["took"] == max(ends) - min(begins)
    assert f"{cells['took'] * 1_000:.0f}"[:1] in said
    assert [answer("10", "service", ms) for ms in (8_000, 1_001, 1_000, 60, 50, 20)] == ["a", "a", "b", "b", "b", "c"]


@pytest.mark.slow
def test_a_window_query_emits_each_row_once_when_a_bid_has_passed_its_end() -> None:
    cells = LessonCells("11")
    cells.run("bids = pa.table(", "def note(", "pd.DataFrame(left)", "emissions = ")
    left, seconds = cells["left"], cells["seconds"]
    assert len(left) == len({(row["auction"], row["window_start"]) for row in left})
    for row in left:
        end = row["window_start"].timestamp() + 60
        passed = next((n for n, second in enumerate(seconds, 1) if second >= end), len(seconds))
        assert row["bids read"] == passed
    assert answer("11", "when", {"times": 1, "moments": cells["moments"]}) == "b"
    assert answer("11", "when", {"times": 2, "moments": [1, 2]}) == "a"
    assert answer("11", "when", {"times": 1, "moments": [8]}) == "c"


def test_the_changes_of_a_query_are_shown_with_their_kinds_and_make_its_table() -> None:
    cells = LessonCells("11")
    shown = cells.run("bids = pa.table(", "def note(", "running = wb.sql(").to_dict("records")
    table: dict[int, int] = {}
    for row in shown:
        match row["$kind"]:
            case "+I":
                assert row["auction"] not in table
            case "-U":
                assert table[row["auction"]] == row["n"]
                continue
            case kind:
                assert kind == "+U"
                assert row["auction"] in table
        table[row["auction"]] = row["n"]
    auctions = cells["bids"]["auction"].to_pylist()
    assert table == {auction: auctions.count(auction) for auction in auctions}
    result = cells.run("running.collect()").to_dict("records")
    assert table == {row["auction"]: row["n"] for row in result}
    assert {row["$kind"] for row in shown} == {"+I", "-U", "+U"}
    assert answer("11", "changes", len(shown)) == "b"


@pytest.mark.parametrize(
    ("rows", "pairs", "alarms"),
    [
        ([(0, 0.5), (59, 900)], 1, 1),
        ([(0, 0.5), (60, 900)], 0, 0),
        ([(0, 0.5), (10, 900), (20, 900)], 1, 1),
        ([(0, 0.5), (10, 20), (20, 900)], 1, 0),
        ([(0, 0.5), (10, 0.6), (20, 900)], 2, 1),
        ([(10, 900), (0, 0.5)], 1, 0),
    ],
)
def test_a_pattern_and_the_function_differ_as_the_lesson_says(
    rows: list[tuple[int, float]], pairs: int, alarms: int
) -> None:
    cells = LessonCells("11")
    cells.run("payments = pa.table(")
    times, amounts = zip(*rows, strict=True)
    table = pa.table(
        {
            "card": ["a"] * len(rows),
            "amount": [float(amount) for amount in amounts],
            "ts": pa.array([at * 1_000_000 for at in times], pa.timestamp("us", "UTC")),
        }
    )
    cells.names["cards"] = wb.Stream.from_table(table, event_time="ts", out_of_orderness="1min").key_by("card")
    found = cells["cards"].match(cells["theft"], small="small.amount", large="large.amount").collect()
    assert (len(found), len(cells.run("class SmallThenLarge("))) == (pairs, alarms)


@pytest.mark.slow
def test_the_first_picture_of_a_cluster_shows_all_of_it_at_work() -> None:
    cells = LessonCells("12")
    scene = cells.run("def report(", "paced = ").scene
    assert {task.status for task in scene.tasks} == {"RUNNING"}
    for subtask in ("report[0]", "report[1]"):
        held = dict(scene.task(subtask).state)
        held.pop("committed", None)
        assert held, f"{subtask} has stations"
        assert all(windows.startswith("[08:10:00–08:20:00)") for windows in held.values()), "the first have left"


@pytest.mark.slow
def test_several_subtasks_read_a_history_in_the_order_of_each_station() -> None:
    cells = LessonCells("12")
    read = cells.run("def report(", "History.from_arrow(", "class Clock(")
    assert sum(records > 1 for records in read.values()) > 2
    assert sum(read.values()) >= 70
    parallelism = len(read)
    assert unordered(cells["pipeline"].logical_graph(), parallelism) == [], "what the runtime would warn of"


@pytest.mark.slow
def test_both_cities_have_forty_stations_and_one_has_an_airport() -> None:
    cells = LessonCells("12")
    cells.run("def city(")
    alike, airport = (cells[name]["station"].to_pylist() for name in ("alike", "airport"))
    assert len(alike) == len(airport) == 400
    assert len(set(alike)) == len(set(airport)) == 40
    assert {alike.count(station) for station in alike} == {10}
    assert airport.count("airport") == 0.7 * 400
