"""The effect of a change, computed from samples with known values before and after it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from workbench.runtime.settings.settings import Settings
from workbench.telemetry.effects.change_frames import Measured
from workbench.telemetry.effects.change_log import OPENED, ChangeLog
from workbench.telemetry.effects.in_force import InForce
from workbench.telemetry.effects.shipping import timeout_idle

SECOND_US = 1_000_000
BEFORE = Measured(48, 90, 99, 1_000, 20, 100, 120)


class Told:
    """A log that samples ten times a second."""

    def __init__(self) -> None:
        self.log = ChangeLog()
        self.now_us = self.openings = 0

    def run(self, seconds: float, measured: Measured, limit: str = "", price: str = "", **how: bool) -> None:
        for _ in range(round(10 * seconds)):
            self.now_us += SECOND_US // 10
            self.log.sample(self.now_us, measured, limit, price, self.openings, **how)

    def does(self, text: str) -> None:
        self.log.change(self.now_us, {}, {}, text)

    @property
    def sentence(self) -> str:
        return self.log.changes[-1].sentence

    def change(self, name: str, before: str | None, after: str | None) -> None:
        self.log.change(self.now_us, {name: before}, {name: after}, "")


def test_within_three_seconds_a_sentence_tells_before_and_after() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(0.5, Measured(None, None, None, 1_000, 30, 100, 0))
    assert told.log.changes[-1].state == "measuring"
    told.run(2, Measured(4, 7, 8, 1_000, 180, 11, 120))
    [change] = told.log.changes
    assert change.state == "holds"
    assert change.sentence == (
        "buffer_timeout 100ms → 5ms: latency p50 48 → 4.0 ms, p99 99 → 8.0 ms, throughput unchanged, 9.0x more buffers"
    )
    assert change.before is not None
    assert change.after is not None
    assert (change.before.p50_ms, change.after.p50_ms) == (48, 4)


def test_the_second_after_a_change_does_not_count_for_its_throughput() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("rate", "1000", "2000")
    told.run(1, replace(BEFORE, records_per_second=1_500))
    told.run(2, replace(BEFORE, records_per_second=2_000))
    assert "throughput 1,000 → 2,000 records/s" in told.log.changes[-1].sentence


def test_it_is_measured_until_there_are_enough_markers() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "2s")
    told.run(2.5, replace(BEFORE, p50_ms=1_000, p99_ms=1_950, markers=130))
    assert told.log.changes[-1].state == "measuring"  # a second beyond what the slowest take
    told.run(0.5, replace(BEFORE, p50_ms=1_000, p99_ms=1_950, markers=130))
    assert told.log.changes[-1].state == "holds"


@pytest.mark.parametrize(
    ("markers", "latency"),
    [
        (100, "latency p50 48 → 4.0 ms, p99 99 → 342 ms"),
        (99, "latency p50 48 → 4.0 ms, p95 90 → 7.0 ms"),
        (20, "latency p50 48 → 4.0 ms, p95 90 → 7.0 ms"),
        (19, "latency p50 48 → 4.0 ms"),
    ],
)
def test_a_percentile_of_too_few_markers_is_not_told(markers: int, latency: str) -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "1s", "5ms")
    told.run(2.9, Measured(4, 7, 342, 1_000, 20, markers=markers))
    assert told.log.changes[-1].sentence == f"buffer_timeout 1s → 5ms: {latency}, throughput unchanged"


def test_what_was_sent_before_every_task_had_the_change_is_no_effect_of_it() -> None:
    earlier, later = Settings(buffer_timeout_us=1_000_000), Settings(buffer_timeout_us=5_000)
    source, end = (SimpleNamespace(settings=earlier, finished=False) for _ in range(2))
    in_force = InForce()
    in_force.look([source, end], earlier, 4_900_000)
    assert in_force.since_us == 0
    in_force.changed(5_000_000)
    end.settings = later
    in_force.look([source, end], later, 5_100_000)
    in_force.look([source, end], later, 5_340_000)
    source.settings = later
    in_force.look([source, end], later, 5_440_000)
    source.settings = earlier  # such as of a task that is restored
    in_force.look([source, end], later, 5_500_000)
    assert in_force.since_us == 5_340_000


def test_a_task_that_has_ended_or_does_not_step_is_not_waited_for() -> None:
    earlier, later = Settings(buffer_timeout_us=1_000_000), Settings(buffer_timeout_us=5_000)
    in_force = InForce()
    in_force.changed(5_000_000)
    in_force.look([SimpleNamespace(settings=earlier, finished=True)], later, 5_100_000)
    assert in_force.since_us == 5_000_000
    stuck = SimpleNamespace(settings=earlier, finished=False)
    in_force.changed(6_000_000)
    for now_us in range(6_100_000, 8_000_000, 100_000):
        in_force.look([stuck], later, now_us)
    assert in_force.since_us == 6_900_000


def test_while_nothing_arrives_it_says_so_instead_of_the_old_latency() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("slow_down", None, "aggregate:200ms")
    told.run(6, replace(BEFORE, p50_ms=None, p95_ms=None, p99_ms=None, markers=0))
    [change] = told.log.changes
    assert change.state == "measuring"
    assert change.sentence == ("slow_down 200ms on aggregate: measuring; after 6.0 s, no record sent since has arrived")


def test_of_two_changes_close_together_both_are_named_and_none_is_blamed_alone() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(0.4, BEFORE)
    told.change("rate", "1000", "2000")
    told.run(3, replace(BEFORE, p50_ms=4, records_per_second=2_000))
    first, second = told.log.changes
    assert first.state == "superseded"
    assert first.sentence.startswith("buffer_timeout 100ms → 5ms: another change came after 0.4 s")
    assert second.sentence.startswith(
        "rate 1000 → 2000 with buffer_timeout 100ms → 5ms: throughput 1,000 → 2,000 records/s, latency p50 48 → 4.0 ms"
    )
    assert second.before is not None
    assert second.before.p50_ms == 48


def test_a_failure_is_no_effect_of_the_change_before() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("slow_down", None, "sum:69ms")
    told.run(4, replace(BEFORE, p50_ms=1_040, p99_ms=1_238))
    held = told.log.changes
    told.log.failed()
    told.run(4, replace(BEFORE, p50_ms=336, p99_ms=525))
    assert told.log.changes == held
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, replace(BEFORE, p50_ms=4, p99_ms=8))
    assert told.log.changes[-1].state == "holds"


def test_changes_at_once_are_one() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("speed", "600x", "6000x")
    told.now_us += 20_000
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, replace(BEFORE, p50_ms=4, records_per_second=2_000))
    [change] = told.log.changes
    assert change.sentence == (
        "speed 600x → 6000x, buffer_timeout 100ms → 5ms: throughput 1,000 → 2,000 records/s, latency p50 48 → 4.0 ms"
    )


def test_what_was_not_measured_before_the_end_says_so() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("speed", "600x", "max")
    told.run(0.5, BEFORE)
    told.log.end()
    [change] = told.log.changes
    assert (change.state, change.sentence) == (
        "superseded", "speed 600x → max: the job ended before it could be measured"
    )  # fmt: skip


def test_what_holds_for_ten_seconds_stays_as_it_was() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_size", "32768", "1")
    told.run(11, replace(BEFORE, p50_ms=4))
    held = told.log.changes
    told.run(5, replace(BEFORE, p50_ms=400))
    assert told.log.changes == held


def test_where_nothing_changes_it_says_why() -> None:
    told = Told()
    full = replace(BEFORE, p50_ms=8, fill_ms=15)
    told.run(3, full)
    told.change("buffer_timeout", "100ms", "1s")
    told.run(3, full)
    assert told.log.changes[-1].sentence == (
        "buffer_timeout 100ms → 1s: latency p50 stays 8.0 ms, throughput unchanged; "
        "buffers are full after 15 ms at this rate: the timeout has no effect"
    )
    told.change("rate", "1000", "max")
    told.run(3, full, "sum is the cause (99 % busy): read is back-pressured, waiting for it")
    assert told.log.changes[-1].sentence.endswith(
        "unchanged; sum is the cause (99 % busy): read is back-pressured, waiting for it"
    )


@pytest.mark.parametrize(("name", "value"), [("buffer_timeout", "5ms"), ("buffer_size", "64")])
def test_a_queue_that_grows_is_not_blamed_on_a_changed_buffer(name: str, value: str) -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change(name, None, value)
    told.run(3, replace(BEFORE, p50_ms=961), "sum is the cause (99 % busy): read is back-pressured, waiting for it")
    assert told.log.changes[-1].sentence.endswith(
        "; backpressure decides, not this setting: sum is the cause (99 % busy): read is back-pressured, waiting for it"
    )


def test_before_the_first_sample_nothing_is_compared() -> None:
    told = Told()
    told.change("rate", "1000", "2000")
    told.run(3, BEFORE)
    assert told.log.changes[-1].sentence == "rate 1000 → 2000: latency p50 48 ms, throughput 1,000 records/s"


@pytest.mark.parametrize(("timeout", "fill_ms", "acts"), [("100ms", 15, False), ("100ms", 99, True), ("0ms", 15, True)])
def test_a_timeout_acts_where_buffers_are_not_full_before_it_ends(timeout: str, fill_ms: float, acts: bool) -> None:
    assert (timeout_idle(timeout, fill_ms) == "") is acts


def test_a_moment_in_which_something_else_took_the_processor_is_not_compared_with() -> None:
    """As while a page is opened."""
    told = Told()
    told.run(8, BEFORE)
    told.run(1.5, Measured(480, 900, 990, 300, 6, 300, 120))
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, replace(BEFORE, p50_ms=4, p95_ms=7, p99_ms=8, buffers_per_second=180))
    assert told.log.changes[-1].sentence == (
        "buffer_timeout 100ms → 5ms: latency p50 48 → 4.0 ms, p99 99 → 8.0 ms, throughput unchanged, 9.0x more buffers"
    )


OPENING = Measured(480, 900, 990, 300, 6, 300, 120)
"""While a page is opened."""
FASTER = replace(BEFORE, p50_ms=4, p95_ms=7, p99_ms=8, buffers_per_second=180)
TOLD = "buffer_timeout 100ms → 5ms: latency p50 48 → 4.0 ms, p99 99 → 8.0 ms, throughput unchanged, 9.0x more buffers"


def test_a_tuning_is_not_compared_with_the_opening_of_a_page() -> None:
    """Even where it takes most of the time before the tuning."""
    told = Told()
    told.run(1, BEFORE)
    told.openings += 1
    told.run(3.4, OPENING)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, FASTER)
    assert told.log.changes[-1].sentence == TOLD


def test_where_a_page_was_opened_all_the_time_before_a_tuning_it_says_so() -> None:
    told = Told()
    told.openings += 1
    told.run(2, OPENING)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, FASTER)
    assert told.log.changes[-1].sentence.endswith(f"; {OPENED}")


def test_a_page_that_is_opened_after_a_tuning_is_no_effect_of_it() -> None:
    told = Told()
    told.run(8, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(7, FASTER)
    told.openings += 1
    told.run(3.2, OPENING)
    assert told.log.changes[-1].sentence == TOLD


def test_an_effect_that_is_measured_while_a_page_is_opened_is_told_anew_after_that() -> None:
    told = Told()
    told.run(8, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    told.openings += 1
    told.run(3, OPENING)
    assert told.log.changes[-1].sentence.endswith(f"; {OPENED}")
    told.run(3, FASTER)
    assert told.log.changes[-1].sentence == TOLD


def test_a_source_that_catches_up_after_a_pause_is_no_throughput() -> None:
    told = Told()
    told.run(8, BEFORE)
    told.change("buffer_timeout", "1s", "100ms")
    told.run(4, BEFORE)
    told.run(0.5, replace(BEFORE, records_per_second=9_000))  # nobody took a sample in the second before
    told.run(2, BEFORE)
    assert told.log.changes[-1].sentence == "buffer_timeout 1s → 100ms: latency p50 stays 48 ms, throughput unchanged"


def test_a_changed_parallelism_and_a_changed_mode_have_their_reasons() -> None:
    told = Told()
    told.run(5, replace(BEFORE, busiest="sum", busy=0.97))
    told.change("parallelism", "1", "2")
    told.run(3, replace(BEFORE, records_per_second=1_900, busiest="sum", busy=0.5))
    assert told.log.changes[-1].sentence == (
        "parallelism 1 → 2: throughput 1,000 → 1,900 records/s, latency p50 stays 48 ms; "
        "sum was 97 % busy and is now 50 % busy"
    )
    told.run(8, replace(BEFORE, busiest="sum", busy=0.99))
    told.change("parallelism", "2", "4")
    told.run(3, replace(BEFORE, records_per_second=1_900, busiest="read", busy=0.98))
    assert told.log.changes[-1].sentence.endswith("; sum was the busiest (99 %), and now it is read (98 %)")
    told.run(8, replace(BEFORE, alignment_ms=41))
    told.change("checkpoint_mode", "exactly-once", "unaligned")
    told.run(3, replace(BEFORE, alignment_ms=0))
    assert told.log.changes[-1].sentence == (
        "checkpoint_mode exactly-once → unaligned: tasks waited 41 ms for barriers and now wait 0.0 ms; "
        "latency p50 stays 48 ms, throughput unchanged"
    )


def test_a_changed_checkpoint_interval_says_how_often_they_are_taken_and_at_what_price() -> None:
    told = Told()
    told.run(3, replace(BEFORE, checkpoint_gap_ms=5_000))
    told.change("checkpoint_interval", "5s", "200ms")
    told.run(3, replace(BEFORE, checkpoint_gap_ms=204))
    assert told.log.changes[-1].sentence == (
        "checkpoint_interval 5s → 200ms: a checkpoint is taken every 204 ms; latency p50 stays 48 ms, "
        "throughput unchanged"
    )
    told.run(1, replace(BEFORE, checkpoint_gap_ms=204), price="costs 0.8 % of the time of sum[0]")
    assert "200ms: a checkpoint is taken every 204 ms and costs 0.8 % of the time of sum[0]; latency" in (
        told.log.changes[-1].sentence
    )


def test_a_changed_mode_says_how_long_checkpoints_took_and_take() -> None:
    told = Told()
    told.run(3, replace(BEFORE, checkpoint_ms=431, alignment_ms=24))
    told.change("checkpoint_mode", "exactly-once", "unaligned")
    told.run(3, replace(BEFORE, checkpoint_ms=35, alignment_ms=23.5))
    assert told.log.changes[-1].sentence == (
        "checkpoint_mode exactly-once → unaligned: checkpoints took 431 ms and now take 35 ms; latency p50 stays "
        "48 ms, throughput unchanged"
    )


def test_what_a_figure_does_all_the_time_is_no_effect() -> None:
    told = Told()
    for p99_ms in (99, 210, 130, 160, 240, 120):
        told.run(1, replace(BEFORE, p50_ms=p99_ms / 2, p99_ms=p99_ms))
    told.change("checkpoint_mode", "exactly-once", "at-least-once")
    told.run(3, replace(BEFORE, p50_ms=60, p99_ms=125))
    assert told.log.changes[-1].sentence.endswith(
        ": no checkpoint has been completed since; latency p50 stays between 60 and 105 ms, throughput unchanged"
    )
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(3, replace(BEFORE, p50_ms=4, p99_ms=8))
    assert told.log.changes[-1].sentence.endswith(": latency p50 60 → 4.0 ms, p99 125 → 8.0 ms, throughput unchanged")


def test_an_effect_is_told_anew_once_a_second() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    sentences = []
    for p50_ms in range(4, 54):
        told.run(0.1, replace(BEFORE, p50_ms=p50_ms / 10))
        sentences.append(told.log.changes[-1].sentence)
    assert 4 <= len(set(sentences)) <= 7


def test_a_percentile_that_has_moved_is_told_anew_sooner() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "500ms")
    told.run(2.5, replace(BEFORE, p50_ms=155))
    assert "p50 48 → 155 ms" in told.log.changes[-1].sentence
    told.run(0.4, replace(BEFORE, p50_ms=128))
    assert "p50 48 → 128 ms" in told.log.changes[-1].sentence


def test_a_setting_that_is_moved_several_times_is_told_from_its_first_value_to_its_last() -> None:
    told = Told()
    told.run(3, BEFORE)
    for before, after in (("100ms", "5ms"), ("5ms", "1s"), ("1s", "20ms")):
        told.change("buffer_timeout", before, after)
        told.run(0.5, BEFORE)
    told.run(3, replace(BEFORE, p50_ms=10))
    assert told.sentence == "buffer_timeout 100ms → 20ms: latency p50 48 → 10 ms, throughput unchanged"


def test_a_setting_that_is_moved_back_before_it_was_measured_is_what_it_was() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(0.5, BEFORE)
    told.change("rate", "1000", "2000")
    told.run(0.5, BEFORE)
    told.change("rate", "2000", "1000")
    told.run(0.5, BEFORE)
    told.change("buffer_timeout", "5ms", "100ms")
    told.run(3, BEFORE)
    assert told.sentence == "buffer_timeout 100ms again: latency p50 stays 48 ms, throughput unchanged"


def test_a_slow_operator_is_told_with_how_slow_it_was() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("slow_down", "sums:400ms, map:5ms", "sums:200ms, map:5ms")
    assert told.sentence == "slow_down 400ms → 200ms on sums: measuring"


PAUSED = Measured(None, None, None, 0.0, 0.0, None, 0)


def test_the_pause_of_a_job_is_no_effect_of_a_setting() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.does("paused")
    told.run(4, PAUSED, paused=True)
    assert told.sentence == "paused: throughput 1,000 → 0 records/s"
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(15, PAUSED, paused=True)
    assert told.sentence == ("buffer_timeout 100ms → 5ms: measuring; the job is paused: resume it to see the effect")
    told.does("resumed")
    told.run(3, FASTER)
    assert told.sentence == TOLD.replace("buffer_timeout", "resumed with buffer_timeout")


def test_a_setting_that_is_changed_right_after_a_pause_is_measured_once_the_job_goes_on() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.does("paused")
    told.run(2, PAUSED, paused=True)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(4, PAUSED, paused=True)
    assert told.sentence.startswith("buffer_timeout 100ms → 5ms: measuring; the job is paused")
    told.does("resumed")
    told.run(3, FASTER)
    assert told.sentence == TOLD.replace("buffer_timeout", "resumed with buffer_timeout")


def test_what_is_read_again_after_a_failure_is_no_effect_of_a_change() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.log.failed()
    told.now_us += SECOND_US
    told.change("buffer_timeout", "100ms", "5ms")
    told.now_us += 3 * SECOND_US
    told.log.deployed(told.now_us)
    told.run(1, PAUSED)
    assert told.sentence == "buffer_timeout 100ms → 5ms: measuring"
    told.run(2, replace(FASTER, records_per_second=9_000), recovers=True)
    assert told.sentence.endswith("measuring; the sources first read again what they had read before the failure")
    told.run(5, FASTER)
    assert told.sentence == TOLD


def test_a_change_after_a_failure_is_compared_with_the_job_before_it() -> None:
    told = Told()
    told.run(6, BEFORE)
    told.log.deployed(told.now_us)
    told.run(3, OPENING, recovers=True)
    told.change("buffer_timeout", "100ms", "5ms")
    told.run(5, FASTER)
    assert told.sentence == TOLD


def test_a_median_within_its_earlier_span_is_not_said_to_stay_where_it_was_not() -> None:
    told = Told()
    told.run(6, BEFORE)
    told.run(3, replace(BEFORE, p50_ms=400, p99_ms=900))
    told.change("checkpoint_mode", "exactly-once", "unaligned")
    told.run(3, replace(BEFORE, p50_ms=300, p99_ms=600, alignment_ms=1))
    assert told.sentence.endswith(": latency p50 stays between 48 and 400 ms, throughput unchanged")


def test_a_timeout_that_barriers_precede_says_so() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("buffer_timeout", "5ms", "1s")
    told.run(3, replace(BEFORE, p50_ms=121, fill_ms=None, barrier_gap_ms=202.0))
    assert told.sentence.endswith(
        "throughput unchanged; the barriers of checkpoints ship buffers every 202 ms, before the timeout ends"
    )


@pytest.mark.parametrize(
    ("interval", "told_of_it"),
    [("30s", "a checkpoint is taken every 30s"), ("disabled", "no checkpoint is taken periodically")],
)
def test_an_interval_that_cannot_be_measured_soon_is_told(interval: str, told_of_it: str) -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("checkpoint_interval", "200ms", interval)
    told.run(3, BEFORE)
    assert told.sentence.endswith(f"{interval}: {told_of_it}; latency p50 stays 48 ms, throughput unchanged")


def test_checkpoints_that_take_longer_than_their_interval_say_so() -> None:
    told = Told()
    told.run(3, BEFORE)
    told.change("checkpoint_interval", "2s", "200ms")
    told.run(3, replace(BEFORE, checkpoint_ms=480, checkpoint_gap_ms=500))
    assert ": a checkpoint is taken every 500 ms, as one takes 480 ms; latency" in told.sentence


def test_a_mode_in_which_no_checkpoint_is_complete_says_so() -> None:
    told = Told()
    told.run(3, replace(BEFORE, checkpoint_ms=480, alignment_ms=12))
    told.change("checkpoint_mode", "exactly-once", "unaligned")
    told.run(3, BEFORE)
    assert "unaligned: no checkpoint has been completed since; latency" in told.sentence
