"""Any order of what can happen to a transactional sink, for a search of orders in which it goes wrong."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sink_job import SinkJob


class SinkMachine(RuleBasedStateMachine):
    """Rows, barriers, writes, notices (lost, repeated, partial) and crashes, in any order.

    Attributes:
        durable: what is committed outlives the process.
    """

    durable = True

    @initialize(parallelism=st.integers(1, 3))
    def begin(self, parallelism: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.job = self.made(parallelism)

    def made(self, parallelism: int) -> SinkJob:
        """The job, which may write to the folder."""
        raise NotImplementedError  # abstract

    def visible(self) -> list[int]:
        """The values that others see, in order."""
        raise NotImplementedError  # abstract

    def check_exact(self) -> None:
        """Nothing less is seen than what the latest complete checkpoint covers, and nothing more."""
        assert self.visible() == list(range(self.job.completed_offset))

    @rule(count=st.integers(1, 12))
    def process(self, count: int) -> None:
        self.job.process(count)

    @rule()
    def trigger(self) -> None:
        self.job.trigger()

    @rule(data=st.data(), subtasks=st.one_of(st.none(), st.integers(0, 2)))
    def write(self, data: st.DataObject, subtasks: int | None) -> None:
        open_ids = [i for i in self.job.pending if i > self.job.completed]
        if open_ids:
            self.job.write(data.draw(st.sampled_from(open_ids)), subtasks)

    @rule(mask=st.integers(0, 7))
    def notify(self, mask: int) -> None:
        if self.job.completed:
            self.job.notify(self.job.completed, only=lambda index: bool(mask >> index & 1))

    @rule()
    def notify_all(self) -> None:
        self.job.notify(self.job.completed)
        self.check_exact()

    @rule(parallelism=st.integers(1, 3), killed=st.booleans())
    def crash(self, parallelism: int, killed: bool) -> None:
        self.job.crash(parallelism=parallelism, killed=killed and self.durable)
        self.check_exact()

    @invariant()
    def nothing_early_nothing_twice(self) -> None:
        if hasattr(self, "job"):
            seen = self.visible()
            assert len(set(seen)) == len(seen)
            assert all(value < self.job.completed_offset for value in seen)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
