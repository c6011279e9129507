"""The time that an operator rests after each buffer, computed from the desired slowdown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_dashboard_picture import FRAME

from workbench.dashboard.contract.slowness import HOW, Slowness

UID = FRAME.vertices[1].operators[0][0]


def measured(seconds: float, buffers: int, busy_ms: float, slow_down: str | None = None) -> Slowness:
    """What two frames tell of an operator with two subtasks that got so many buffers between them."""
    found = Slowness()
    for time_us, count in ((5_000_000, 1_000), (5_000_000 + round(seconds * 1e6), 1_000 + buffers)):
        metrics = {"numBuffersIn": count, "busyTimeMsPerSecond": busy_ms}
        vertex = replace(FRAME.vertices[1], parallelism=2, metrics=metrics)
        settings = {**FRAME.settings, "slow_down": slow_down}
        found.update(replace(FRAME, time_us=time_us, vertices=(vertex,), settings=settings))
    return found


@pytest.mark.parametrize(
    ("how", "rest"),
    [
        # 400 buffers in 2 s are 100/s for each of two subtasks; busy for 200 ms/s, each buffer takes 2 ms
        ("2 times slower", "2ms"),
        ("10 times slower", "18ms"),
        ("until it saturates", "15ms"),  # 15 ms for each of 100 buffers are one and a half seconds a second
        ("50ms per buffer", "50ms"),
        ("full speed", "0ms"),
    ],
)
def test_the_rest_follows_from_what_was_measured(how, rest):
    assert how in HOW
    assert measured(2.0, 400, 200.0).rest(UID, how) == rest


def test_before_a_second_was_measured_the_rest_is_one_that_shows():
    assert measured(0.5, 400, 200.0).rest(UID, "2 times slower") == "50ms"


def test_an_operator_that_is_slowed_down_tells_nothing_of_its_own_speed():
    assert measured(2.0, 400, 900.0, f"{UID}:20ms").rest(UID, "2 times slower") == "50ms"


def test_a_rest_is_a_round_figure():
    assert measured(2.0, 37, 0.0).rest(UID, "until it saturates") == "160ms"


def test_a_rest_is_never_longer_than_can_be_waited_for():
    assert measured(2.0, 4, 0.0).rest(UID, "until it saturates") == "1500ms"
    assert measured(20.0, 1, 0.0).rest(UID, "until it saturates") == "5s"
