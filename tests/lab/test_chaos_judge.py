"""The judge of ``make chaos`` sees each row that is lost, doubled, reordered, changed or unreadable, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from chaos.flows import SCHEMA, End, flow, mapped
from chaos.judge import Found, Promise, Unreadable, judge_kept, judge_log, judge_table
from chaos.messages import read_message, read_texts
from chaos.outputs import COLUMNS, expected_of, identity_of
from chaos.plans import FAULTS, SERVER_OF, SERVERS, drawn, runs
from chaos.rows import KEYS, PARTS, part_of, row
from chaos.stores import FilesSystem

import workbench as wb
from workbench import col

ROWS = 200
PASSED = pa.schema({**SCHEMA, "twice": pa.int64()})
EXPECTED = expected_of("csv", "rows", ROWS, table=False)
COUNTS = expected_of("csv", "counts", ROWS, table=False)
WHOLE, LOSSY = (Promise.EXACTLY_ONCE, Promise.AT_LEAST_ONCE), (Promise.AT_MOST_ONCE, Promise.NEITHER)
SAME_KEY = next(at for at in range(51, ROWS) if EXPECTED[at]["key"] == EXPECTED[50]["key"])


def swapped(at: int, other: int) -> list[Found]:
    found: list[Found] = list(EXPECTED)
    found[at], found[other] = found[other], found[at]
    return found


def again(at: int) -> list[Found]:
    return [*EXPECTED[: at + 10], *EXPECTED[at:]]


LOGS: dict[str, tuple[list[Found], dict[Promise, dict[str, int]]]] = {
    "as fed": (list(EXPECTED), {each: {} for each in Promise}),
    "one is lost": (
        [*EXPECTED[:50], *EXPECTED[51:]],
        {**{each: {"lost": 1} for each in WHOLE}, **{each: {} for each in LOSSY}},
    ),
    "the end is lost": (
        list(EXPECTED[:-7]),
        {**{each: {"lost": 7} for each in WHOLE}, **{each: {} for each in LOSSY}},
    ),
    "ten come again": (
        again(50),
        {
            Promise.EXACTLY_ONCE: {"doubled": 10},
            Promise.AT_LEAST_ONCE: {},
            Promise.AT_MOST_ONCE: {"doubled": 10},
            Promise.NEITHER: {},
        },
    ),
    "two of a key change places": (swapped(50, SAME_KEY), {each: {"reordered": 1} for each in Promise}),
    "two of different keys change places": (
        swapped(50, 51 if EXPECTED[50]["key"] != EXPECTED[51]["key"] else 52),
        {each: {} for each in Promise},
    ),
    "a text is changed": (
        [*EXPECTED[:50], {**EXPECTED[50], "text": "00000050"}, *EXPECTED[51:]],
        {each: {"changed": 1} for each in Promise},
    ),
    "a number is a text": (
        [*EXPECTED[:50], {**EXPECTED[50], "value": str(EXPECTED[50]["value"])}, *EXPECTED[51:]],
        {each: {"changed": 1} for each in Promise},
    ),
    "a column is missing": (
        [*EXPECTED[:50], {name: value for name, value in EXPECTED[50].items() if name != "twice"}, *EXPECTED[51:]],
        {each: {"changed": 1} for each in Promise},
    ),
    "a row was never fed": ([*EXPECTED, {**EXPECTED[0], "id": ROWS}], {each: {"changed": 1} for each in Promise}),
    "one is not a row": (
        [*EXPECTED[:50], Unreadable("{"), *EXPECTED[51:]],
        {**{each: {"unreadable": 1, "lost": 1} for each in WHOLE}, **{each: {"unreadable": 1} for each in LOSSY}},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_appended(name: str) -> None:
    found, right = LOGS[name]
    for promise, wrong in right.items():
        verdict = judge_log(EXPECTED, found, identity_of("csv", "rows"), promise)
        assert dict(verdict.wrong) == wrong, promise
        assert verdict.rows == len(found)


def test_rows_that_come_again_and_are_changed_or_late_are_wrong_with_at_least_once_too() -> None:
    later = [*EXPECTED[:60], {**EXPECTED[50], "text": ""}, *EXPECTED[60:]]
    verdict = judge_log(EXPECTED, later, ("id",), Promise.AT_LEAST_ONCE)
    assert (dict(verdict.wrong), verdict.repeated) == ({"changed": 1}, 1)
    late = [*EXPECTED[:50], *EXPECTED[51 : SAME_KEY + 1], *EXPECTED[50:]]  # the first coming of one is late
    verdict = judge_log(EXPECTED, late, ("id",), Promise.AT_LEAST_ONCE)
    assert dict(verdict.wrong) == {"reordered": 1}


def test_counts_of_a_state_that_lost_or_doubled_a_row_are_changed() -> None:
    """A count tells of a row that the state has lost, even if every row of the output is there once."""
    key = COUNTS[50]["key"]
    wrong = [
        {**each, "total": int(str(each["total"])) + 1} if each["key"] == key and at >= 50 else each
        for at, each in enumerate(COUNTS)
    ]
    verdict = judge_log(COUNTS, wrong, identity_of("csv", "counts"), Promise.EXACTLY_ONCE)
    assert dict(verdict.wrong) == {"changed": sum(each["key"] == key for each in COUNTS[50:])}


def test_what_is_updated() -> None:
    last = expected_of("csv", "counts", ROWS, table=True)
    assert len(last) == KEYS
    assert judge_table(last, last, ("key",)).fine
    first = last[0]
    wrong: list[Found] = [{**first, "n": 0}, *last[2:], last[2], {**first, "key": 99}, Unreadable("?")]
    assert dict(judge_table(last, wrong, ("key",)).wrong) == {"changed": 2, "doubled": 1, "unreadable": 1, "lost": 1}


def test_a_row_that_was_deleted_must_not_stay() -> None:
    assert dict(judge_table(EXPECTED[1:], EXPECTED, ("id",)).wrong) == {"changed": 1}


def test_what_is_taken_back() -> None:
    assert judge_kept(EXPECTED[:50], EXPECTED).fine
    assert dict(judge_kept(EXPECTED, EXPECTED[1:]).wrong) == {"gone": 1}
    assert dict(judge_kept([EXPECTED[0], EXPECTED[0]], EXPECTED).wrong) == {"gone": 1}


@pytest.mark.parametrize("value", [b"", b"{", b"[1]", b"\xff", b"1"])
def test_messages_that_are_no_rows(value: bytes) -> None:
    assert isinstance(read_message(value), Unreadable)


def test_texts_that_are_no_rows() -> None:
    assert isinstance(read_texts({b"id": b""}, {"id": int}), Unreadable)
    assert isinstance(read_texts({b"text": b"\xff"}, {"text": str}), Unreadable)


def doubled(each: dict[str, object]) -> list[dict[str, object]]:
    return [each] * (1 + (each["id"] == 50))


def reversed_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


MAPS: dict[str, tuple[Callable[[wb.Stream], wb.Stream], set[str]]] = {
    "as it is": (mapped, set()),
    "loses": (lambda rows: mapped(rows).filter(col("id") != 50), {"lost"}),
    "doubles": (
        lambda rows: mapped(rows).flat_map(lambda each: [each] * (1 + (each["id"] == 50)), PASSED),
        {"doubled"},
    ),
    "reorders": (lambda rows: mapped(rows).map_batches(reversed_rows, PASSED), {"reordered"}),
    "changes": (lambda rows: mapped(rows).with_columns(text="trim(text)"), {"changed"}),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_pipeline_that_is_wrong(name: str, tmp_path: Path) -> None:
    through, wrong = MAPS[name]
    files = FilesSystem(tmp_path)
    files.feed("jsonl", 1, range(ROWS))
    job = flow(End("jsonl", files.place), [End("json", files.place)], 1, shape="rows", through=through).run("wrong")
    assert job.wait("60s") == "FINISHED"
    found = files.found("json", 1, COLUMNS["rows"])
    assert set(judge_log(EXPECTED, found, ("id",), Promise.EXACTLY_ONCE).wrong) == wrong


def test_a_run_is_drawn_alike_every_time_and_all_is_drawn() -> None:
    plans = runs(300, 1, [])
    assert plans == [drawn(each.seed) for each in plans]
    faults = [fault for plan in plans for fault in plan.faults]
    assert {fault.kind for fault in faults} == set(FAULTS)
    assert Counter(server for plan in plans for server in plan.servers).keys() == set(SERVERS)
    assert {each for plan in plans for each in (plan.source, *plan.sinks)} >= set(SERVER_OF)
    assert all(SERVER_OF["mqtt"] in plan.servers for plan in runs(20, 1, ["mqtt"]))
    assert not [fault for fault in faults if fault.kind == "restart" and fault.server == "kafka"]


def test_the_rows_of_a_key_are_in_one_partition() -> None:
    rows = [row(number) for number in range(ROWS)]
    assert {each["key"] for each in rows} == set(range(KEYS))
    assert len({(each["key"], part_of(each)) for each in rows}) == KEYS
    assert {part_of(each) for each in rows} == set(range(PARTS))
