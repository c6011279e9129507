"""Whoever is the cause of backpressure is named, with those that wait for it and nobody else."""

from __future__ import annotations

import pytest

from workbench.telemetry.diagnosis import explain, level
from workbench.telemetry.frames import EdgeFrame, VertexFrame


def vertex(name: str, busy: int, pressed: int) -> VertexFrame:
    """One that is busy and back-pressured for these shares of its time, in percent."""
    metrics: dict[str, float | int | bool | None] = {
        "busyTimeMsPerSecond": 10 * busy,
        "backPressuredTimeMsPerSecond": 10 * pressed,
    }
    return VertexFrame(name, name, (), 1, metrics, 0.0, 0.0)


def edges(*pairs: str) -> list[EdgeFrame]:
    """From ``"a-b"`` an edge from a to b."""
    ends = [pair.split("-") for pair in pairs]
    return [EdgeFrame(f"{a}->{b}", a, b, "hash", 0, 1, 0.0, 0.0) for a, b in ends]


def test_the_first_busy_one_behind_those_that_are_held_back() -> None:
    chain = [vertex("read", 5, 95), vertex("map", 20, 80), vertex("sum", 97, 3), vertex("write", 10, 0)]
    assert explain(chain, edges("read-map", "map-sum", "sum-write")) == (
        "sum is the cause (97 % busy): read, map are back-pressured, waiting for it."
    )


def test_none() -> None:
    assert explain([vertex("read", 90, 10), vertex("sum", 99, 0)], edges("read-sum")) == "No backpressure."


def test_of_two_pipelines_each_has_its_own_cause() -> None:
    islands = [vertex("a", 1, 99), vertex("b", 2, 60), vertex("slow", 100, 0), vertex("slower", 90, 0)]
    assert explain(islands, edges("a-slow", "b-slower")) == (
        "slow is the cause (100 % busy): a is back-pressured, waiting for it. "
        "slower is the cause (90 % busy): b is back-pressured, waiting for it."
    )


def test_whoever_is_not_held_back_by_the_cause_is_not_blamed_on_it() -> None:
    two_ways = [vertex("read", 1, 99), vertex("left", 3, 90), vertex("right", 30, 0), vertex("join", 95, 0)]
    assert explain(two_ways, edges("read-left", "read-right", "left-join", "right-join")) == (
        "join is the cause (95 % busy): read, left are back-pressured, waiting for it."
    )


def test_the_busiest_of_several_that_could_be() -> None:
    fork = [vertex("read", 1, 99), vertex("quick", 10, 0), vertex("slow", 80, 0)]
    assert explain(fork, edges("read-quick", "read-slow")).startswith("slow is the cause (80 % busy): read is")


def test_an_idle_follower_is_not_named_as_the_cause() -> None:
    chain = [vertex("read", 5, 20), vertex("aggregate", 9, 0)]
    told = explain(chain, edges("read-aggregate"))
    assert told == "read is back-pressured; aggregate, which receives it, is only 9 % busy."


def test_one_busy_subtask_among_idle_ones_is_the_cause() -> None:
    skewed = vertex("aggregate", 30, 0)
    skewed.metrics["maxBusyTimeMsPerSecond"] = 990
    assert explain([vertex("read", 5, 90), skewed], edges("read-aggregate")).startswith(
        "aggregate is the cause (99 % busy): read is"
    )


def test_one_that_leads_nowhere() -> None:
    assert explain([vertex("read", 0, 20)], []) == "read is back-pressured."


@pytest.mark.parametrize(("share", "word"), [(0, "OK"), (100, "OK"), (101, "LOW"), (500, "LOW"), (501, "HIGH")])
def test_flinks_levels(share: float, word: str) -> None:
    assert level(share) == word
