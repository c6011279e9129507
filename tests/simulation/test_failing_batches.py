"""The simulation finds bugs that are planted into micro-batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench.lab.simulation.search import Search
from workbench.lab.simulation.simulation import run_scenario
from workbench.runtime.barriers.micro_batches import Batched
from workbench.runtime.batches.offsets import OffsetLog, Offsets
from workbench.runtime.batches.queue import BatchQueue
from workbench.runtime.batches.source import BatchSourceTask
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.job.batched import BatchedAttempts
from workbench.runtime.messages.messages import Collected


def the_newest_batch_is_processed_again_first(patch: pytest.MonkeyPatch) -> None:
    resume = OffsetLog.resume
    patch.setattr(OffsetLog, "resume", lambda self, *rest: resume(self, *rest)[::-1])


def batches_are_sent_before_they_are_logged(patch: pytest.MonkeyPatch) -> None:
    collected = BatchQueue.collected

    def early(self: BatchQueue, report: Collected) -> None:
        collected(self, report)
        for batch in self.open:
            if batch.spans and len(batch.spans) == len(self._sources) and batch.state == "collecting":
                batch.state = "waiting"
        self._release()

    patch.setattr(BatchQueue, "collected", early)


def batches_are_cut_anew(patch: pytest.MonkeyPatch) -> None:
    """A transactional batch is not read again as it was."""
    source_task = BatchQueue.source_task

    def without(self: BatchQueue, **rest: Any) -> Any:
        self._knobs = replace(self._knobs, same=False)
        return source_task(self, **rest)

    patch.setattr(BatchQueue, "source_task", without)


def the_log_is_of_the_batch_before(patch: pytest.MonkeyPatch) -> None:
    resume = OffsetLog.resume

    def all_of_them(self: OffsetLog, checkpoint_id: int, tasks: Any) -> list[Offsets]:
        before = dict(self._batches)
        resume(self, checkpoint_id, tasks)
        return [before[txid] for txid in sorted(before)]

    patch.setattr(OffsetLog, "resume", all_of_them)


def positions_are_those_of_the_reader(patch: pytest.MonkeyPatch) -> None:
    """A snapshot holds the position that the source has reached meanwhile, not that behind the batch."""

    def present(self: BatchSourceTask) -> Any:
        self._position = None
        return super(BatchSourceTask, self).source_state()

    patch.setattr(BatchSourceTask, "source_state", present)


def only_the_failed_region_restarts(patch: pytest.MonkeyPatch) -> None:
    """The other regions go on, with batches that have other records under the same txid."""
    patch.setattr(BatchedAttempts, "apart", Attempts.apart)


def a_batch_that_fails_is_left_to_the_next(patch: pytest.MonkeyPatch) -> None:
    """Its checkpoint fails, and its records are committed with another batch."""
    patch.setattr(CheckpointCoordinator, "intolerable", lambda self, settings: None)


PLANTED = {
    the_newest_batch_is_processed_again_first: 2,
    batches_are_sent_before_they_are_logged: 0,
    batches_are_cut_anew: 2,
    the_log_is_of_the_batch_before: 2,
    positions_are_those_of_the_reader: 8,
    only_the_failed_region_restarts: 9,
    a_batch_that_fails_is_left_to_the_next: 76,
}
"""Bugs, with the seed of a short run that finds each. Others find it too, some of them only after a minute."""


@pytest.mark.parametrize("plant", PLANTED, ids=lambda each: str(each.__name__))
def test_a_planted_bug_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    search = Search("", (), "micro-batches")
    seeds = [PLANTED[plant], *range(150)]
    assert any(not run_scenario(search.scenario(seed)).ok for seed in seeds)


def test_the_queue_is_bounded() -> None:
    assert [Batched(max_pending=pending).most for pending in (1, 3)] == [5, 7]
