"""Queries for the state of a key in a running operator."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections import Counter
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.jupyter.told import sent_head
from workbench.jupyter.verbs.running import run_verb

ROWS = 700


def table(**more: Any) -> pa.Table:
    numbers = range(ROWS)
    columns = {"n": pa.array(numbers, pa.int64()), "origin": [("JFK", "LGA", "EWR")[n % 3] for n in numbers]}
    return pa.table({**columns, "t": pa.array([n * 1_000 for n in numbers], pa.int64()), **more})


def source(**more: Any) -> wb.Stream:
    return wb.Stream.from_table(table(**more), event_time="t")


def rolling(*keys: str, **more: Any) -> wb.types.Pipeline:
    stream = source(**more).key_by(*keys).aggregate(count=wb.count(), last=wb.max("n"))
    return stream.sink_to(wb.TableSink("out"))


def stepped(pipeline: wb.types.Pipeline, parallelism: int = 3) -> Job:
    return pipeline.run(
        "asked", driver="stepping", parallelism=parallelism, buffer_size=8, buffer_timeout="0ms", speed=None
    )


def processed(job: Job) -> int:
    return sum(row["numRecordsIn"] for row in job.metrics() if row["task"].startswith("aggregate"))


def test_a_key_is_answered_by_its_owner() -> None:
    job = stepped(rolling("origin"))
    state = job.operator_state("aggregate")
    assert (state.size(), state.keys(), state.get("JFK")) == (0, [], None)
    job.stepper.step(120)
    assert 0 < processed(job) < ROWS
    held = {key["origin"]: state.get(**key) for key in state.keys(9)}
    assert sorted(held) == ["EWR", "JFK", "LGA"]
    assert sum(found["count"] for found in held.values() if found is not None) == processed(job)
    assert state.get("JFK") == state.get(origin="JFK") == held["JFK"]
    assert state.get("SFO") is None
    job.stepper.driver.run_until(lambda: all(task.drained for task in job.stepper.driver.execution.sources))  # type: ignore[union-attr]
    job.stepper.driver.run_until(lambda: processed(job) == ROWS)
    assert state.get("JFK") == {"count": 234, "last": 699}
    assert state.get("LGA") == {"count": 233, "last": 697}
    assert state.size() == 3


def test_looking_does_not_move_a_job_that_is_stepped() -> None:
    job = stepped(rolling("origin"))
    job.stepper.step(100)
    moment, before = job.stepper.driver.clock.now_us(), job.metrics()
    for _ in range(5):
        job.operator_state("aggregate").get("JFK")
        job.operator_state("aggregate").keys(1)
    assert job.stepper.driver.clock.now_us() == moment
    assert job.metrics() == before


def test_keys_are_limited_and_counted_over_all_subtasks() -> None:
    job = stepped(rolling("n"))
    job.stepper.driver.run_until(lambda: processed(job) == ROWS)
    state = job.operator_state("aggregate")
    assert state.size() == ROWS
    assert len(state.keys(10)) == 10
    assert state.keys(0) == []
    assert sorted(key["n"] for key in state.keys(ROWS)) == list(range(ROWS))


def test_keys_of_every_type_find_their_owner() -> None:
    flags = pa.array([n % 2 == 0 for n in range(ROWS)])
    days = pa.array([date(2013, 1, 1 + n % 5) for n in range(ROWS)])
    names = pa.array([("a", None)[n % 2] for n in range(ROWS)]).dictionary_encode()
    job = stepped(rolling("flag", "day", "name", "n", flag=flags, day=days, name=names))
    job.stepper.driver.run_until(lambda: processed(job) == ROWS)
    state = job.operator_state("aggregate")
    assert state.get(True, date(2013, 1, 5), "a", 4) == {"count": 1, "last": 4}
    assert state.get(n=5, flag=False, day=date(2013, 1, 1), name=None) == {"count": 1, "last": 5}
    assert state.get("false", "2013-01-01", None, "5") == {"count": 1, "last": 5}  # as text, as a magic gives it
    assert state.get(True, date(2013, 1, 5), "b", 4) is None


def test_windows_tell_what_is_open() -> None:
    windows = source().key_by("origin").window(wb.tumbling("100ms")).aggregate(count=wb.count())
    job = stepped(windows.sink_to(wb.TableSink("out")), parallelism=2)
    job.stepper.driver.run_until(lambda: processed(job) >= 250)
    state = job.operator_state("aggregate")
    fired = Counter(row["window_start"] for row in job.table("out").to_pylist())
    held = [window for key in state.keys(9) for window in (state.get(**key) or {})["windows"]]
    assert sum(window["count"] for window in held) == processed(job) - sum(
        row["count"] for row in job.table("out").to_pylist()
    )
    assert {window["window_start"] for window in held}.isdisjoint(fired)
    first = (state.get("JFK") or {})["windows"][0]
    assert first["window_end"] == datetime(1970, 1, 1, 0, 0, 0, 100_000, UTC)


def test_an_aggregate_without_keys_has_one_state() -> None:
    total = source().window(wb.tumbling("10s")).aggregate(count=wb.count())
    job = stepped(total.sink_to(wb.TableSink("out")), parallelism=2)
    job.stepper.driver.run_until(lambda: processed(job) == 240)
    state = job.operator_state("aggregate")
    assert state.size() == 1
    assert (state.get() or {})["windows"][0]["count"] == 240


def test_state_is_found_again_after_a_rescaling() -> None:
    job = stepped(rolling("n"), parallelism=1)
    job.stepper.step(60)
    known = job.operator_state("aggregate").size()
    assert 0 < known < ROWS
    job.rescale(4)
    state = job.operator_state("aggregate")
    assert state.size() >= known
    assert all(state.get(**key) == {"count": 1, "last": key["n"]} for key in state.keys(50))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda job: job.operator_state("agregate"), "unknown operator 'agregate': did you mean 'aggregate'"),
        (lambda job: job.operator_state("out"), "unknown operator 'out'"),
        (lambda job: job.operator_state("aggregate").get(), "is keyed by origin: query it with get\\(origin\\)"),
        (lambda job: job.operator_state("aggregate").get("JFK", 1), "is keyed by origin"),
        (lambda job: job.operator_state("aggregate").get(dest="JFK"), "is keyed by origin"),
        (lambda job: job.operator_state("aggregate").get("JFK", origin="JFK"), "is keyed by origin"),
        (lambda job: job.operator_state("aggregate").get(5), "has type string, which 5 does not fit"),
        (lambda job: job.operator_state("filter").get(), "'filter' has no keyed state to query"),
        (lambda job: job.operator_state("filter").size(), "'filter' has no keyed state to query"),
    ],
)
def test_a_question_that_makes_no_sense_says_why(ask: Any, message: str) -> None:
    stream = source().filter("n >= 0").key_by("origin").aggregate(count=wb.count())
    job = stepped(stream.sink_to(wb.TableSink("out")))
    job.stepper.step(20)
    with pytest.raises(wb.errors.JobError, match=message):
        ask(job)
    assert job.state == "RUNNING"


def test_a_key_of_the_wrong_type_is_refused_with_both() -> None:
    job = stepped(rolling("n"))
    with pytest.raises(wb.errors.JobError, match="the key n of 'aggregate' has type int64, which 'five' does not fit"):
        job.operator_state("aggregate").get("five")
    with pytest.raises(wb.errors.JobError, match=r"which 2\.5 does not fit"):
        job.operator_state("aggregate").get(2.5)


def test_nobody_answers_for_a_job_that_does_not_run() -> None:
    job = stepped(rolling("origin"))
    job.stepper.step(50)
    state = job.operator_state("aggregate")
    job.fail("aggregate[0]")
    job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    with pytest.raises(wb.errors.JobError, match=r"cannot be queried now \(the job is RESTARTING\): try again"):
        state.get("JFK")
    job.wait()
    with pytest.raises(wb.errors.JobError, match="has ended"):
        job.operator_state("aggregate")


def test_a_running_job_answers_between_two_steps() -> None:
    """Every record adds one to two counts; whoever looks sees them equal."""

    def endless(first: int, n: int) -> pa.RecordBatch:
        return pa.record_batch({"k": pa.array([row % 5 for row in range(first, first + n)], pa.int64())})

    stream = wb.Stream.from_generator(endless, {"k": pa.int64()})
    counted = stream.key_by("k").aggregate(a=wb.count(), b=wb.count("k"))
    job = counted.sink_to(wb.DiscardSink()).run("live", parallelism=2, buffer_size=64)
    state = job.operator_state("aggregate")
    seen: list[tuple[int, int]] = []
    while len(seen) < 50:
        found = state.get(3)
        if found is not None:
            seen.append((found["a"], found["b"]))
    job.cancel()
    job.wait("120s")
    assert all(a == b for a, b in seen)
    assert [a for a, _ in seen] == sorted(a for a, _ in seen)
    assert seen[-1][0] > seen[0][0]


def test_an_owner_in_a_long_step_is_not_waited_for_for_ever() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        entered.set()
        leave.wait(20)
        return batch

    stream = source().key_by("origin").aggregate(count=wb.count()).map_batches(slow)
    job = stream.sink_to(wb.TableSink("out")).run("slow", buffer_timeout="0ms")
    assert entered.wait(20)
    with pytest.raises(wb.errors.JobError, match="has not answered within 50ms: it is in a long step"):
        job.operator_state("aggregate").get("JFK", timeout="50ms")
    leave.set()
    assert job.wait("120s") == "FINISHED"


def test_the_state_of_a_job_is_still_a_text() -> None:
    job = stepped(rolling("origin"))
    assert job.state == "RUNNING"
    assert f"{job.state}" == "RUNNING"
    assert {"RUNNING": 1}[job.state] == 1
    assert repr(job.operator_state("aggregate")) == "StateView of 'aggregate'; get(origin), keys(limit), size()"


def test_the_magic_asks_like_its_twin() -> None:
    job = stepped(rolling("n"))
    job.stepper.step(30)
    assert run_verb(["plan", "asked"]).channels == 9
    run_verb(["set", "parallelism=2"])
    assert run_verb(["plan"]).channels == 4
    job.stepper.driver.run_until(lambda: job.operator_state("aggregate").get(5) is not None)
    assert run_verb(["state", "asked", "aggregate", "5"]) == {"count": 1, "last": 5}
    assert run_verb(["state", "aggregate", "5"]) == {"count": 1, "last": 5}
    assert run_verb(["state", "asked", "aggregate"]) == job.operator_state("aggregate").keys()


def test_a_copy_of_a_jobs_state_is_plain_text_so_that_it_can_be_sent() -> None:
    job = stepped(rolling("n"))
    for copied in (copy.deepcopy(job.state), pickle.loads(pickle.dumps(job.state))):
        assert copied == job.state
        assert type(copied) is str
    assert json.loads(json.dumps(sent_head(job)))["state"] == job.state
