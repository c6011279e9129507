"""Simulations of the checkpointing modes: each promise is kept, and each bug that is planted in them is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from workbench.elements import CheckpointBarrier
from workbench.lab import simulate
from workbench.lab.pipelines import drawing
from workbench.runtime.barriers.at_least_once import CountedBarriers
from workbench.runtime.barriers.snapshots import Snapshots
from workbench.runtime.barriers.unaligned import UnalignedBarriers
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.restored import Restored

Patch = pytest.MonkeyPatch
SEEDS = 400
WHERE = ("exchanged", "layered", "rebalanced", "numbered")
"""Pipelines in which there is much in flight."""


def always(patch: Patch, *modes: str) -> None:
    """Take frequent checkpoints in these modes; exactly once goes over to unaligned soon."""

    def draw(chance: Random, settings: Settings) -> Settings:
        mode = chance.choice(modes)
        return replace(
            settings,
            checkpoint_mode=mode,
            aligned_checkpoint_timeout_us=chance.choice((0, 100, 300)) if mode == "exactly-once" else None,
            checkpoint_interval_us=chance.choice((200, 500, 1_000)),
        )

    patch.setattr(drawing, "draw_checkpointing", draw)


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_unaligned_checkpoints_keep_every_promise(first: int, monkeypatch: Patch) -> None:
    always(monkeypatch, "unaligned", "exactly-once")
    results = [simulate(seed, pipelines=WHERE) for seed in range(first, first + 20)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.checkpoints for result in results) > 20


def test_at_least_once_loses_nothing_and_counts_twice_what_it_says(monkeypatch: Patch) -> None:
    always(monkeypatch, "at-least-once")
    results = [simulate(seed, pipelines=["exchanged", "rebalanced"]) for seed in range(20)]
    assert [str(result) for result in results if not result.ok] == []


# bugs --------------------------------------------------------------------------------------------------------------


def what_is_queued_is_not_kept(patch: Patch) -> None:
    patch.setattr(Channel, "oldest", lambda self, buffers: ())


def one_buffer_too_many_is_kept(patch: Patch) -> None:
    oldest = Channel.oldest
    patch.setattr(Channel, "oldest", lambda self, buffers: oldest(self, buffers + 1))


def what_comes_before_the_other_barriers_is_not_logged(patch: Patch) -> None:
    begin = UnalignedBarriers.begin

    def forgetful(self: UnalignedBarriers, *arguments: Any) -> None:
        begin(self, *arguments)
        for channel in self._gate.channels:
            channel.log = None

    patch.setattr(UnalignedBarriers, "begin", forgetful)


def what_is_not_shipped_is_not_kept(patch: Patch) -> None:
    overtake = EdgeOutput.overtake

    def careless(self: EdgeOutput, barrier: CheckpointBarrier) -> list[Any]:
        overtake(self, barrier)
        return []

    patch.setattr(EdgeOutput, "overtake", careless)


def what_was_in_flight_is_not_sent_again(patch: Patch) -> None:
    init = Restored.__init__
    patch.setattr(Restored, "__init__", lambda self, sends, inputs: init(self, [], inputs))


def the_snapshot_waits_for_the_last_barrier(patch: Patch) -> None:
    report = Snapshots.report

    def late(self: Snapshots, copied: Any, arrival: Any) -> None:
        if copied.overtook:
            states = {link.uid: link.operator.snapshot(copied.barrier.checkpoint_id) for link in self._links}
            head = self._links[0].uid
            states[head] = {**states[head], **self._own_state()}
            copied = replace(copied, states=states)
        report(self, copied, arrival)

    patch.setattr(Snapshots, "report", late)


def nobody_hears_of_a_barrier_that_has_overtaken(patch: Patch) -> None:
    def overtake(self: Channel, barrier: CheckpointBarrier) -> None:
        self.elements.appendleft(barrier)
        self._ready[self._at] = 1

    patch.setattr(Channel, "overtake", overtake)


def the_count_in_the_barrier_is_one_too_small(patch: Patch) -> None:
    overtake = Channel.overtake

    def miscounting(self: Channel, barrier: CheckpointBarrier) -> None:
        assert barrier.behind is not None
        overtake(self, replace(barrier, behind=max(barrier.behind - 1, 0)))

    patch.setattr(Channel, "overtake", miscounting)


UNALIGNED = [
    what_is_queued_is_not_kept,
    one_buffer_too_many_is_kept,
    what_comes_before_the_other_barriers_is_not_logged,
    what_is_not_shipped_is_not_kept,
    what_was_in_flight_is_not_sent_again,
    the_snapshot_waits_for_the_last_barrier,
    nobody_hears_of_a_barrier_that_has_overtaken,
    the_count_in_the_barrier_is_one_too_small,
]


@pytest.mark.parametrize("mutant", UNALIGNED)
def test_a_bug_in_unaligned_checkpoints_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    always(monkeypatch, "unaligned")
    mutant(monkeypatch)
    assert any(not simulate(seed, pipelines=WHERE).ok for seed in range(SEEDS))


def test_what_is_counted_twice_must_be_told(monkeypatch: Patch) -> None:
    always(monkeypatch, "at-least-once")
    complete = CountedBarriers._complete

    def silent(self: CountedBarriers, now_us: int) -> None:
        for counting in self._counting.values():
            counting.received = {channel: channel.channel.records_received for channel in counting.received}
        complete(self, now_us)

    monkeypatch.setattr(CountedBarriers, "_complete", silent)
    assert any(not simulate(seed, pipelines=["exchanged", "rebalanced"]).ok for seed in range(SEEDS))
