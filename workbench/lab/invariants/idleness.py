"""I5: backpressure is not silence: a source that cannot read does not become idle (F2-6)."""

from __future__ import annotations

from collections.abc import Callable

from workbench.elements import Element
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task


class Idleness(Invariant):
    """Measures independently since when a source could read: its splits can have been silent for at most this long."""

    steps_of = SourceTask

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self._full: set[str] = set()  # sources whose output has no room
        self._kept_until_us: dict[str, int] = {}  # when one had none last
        self._idle: dict[str, set[str]] = {}  # the idle splits of each

    def attached(self, execution: Execution) -> None:
        stays = self.model.stays
        self._full &= stays
        self._kept_until_us = {task: us for task, us in self._kept_until_us.items() if task in stays}
        self._idle = {task: splits for task, splits in self._idle.items() if task in stays}

    def received(self, channel: Channel, element: Element) -> None:
        if channel.source in self._full:
            self._kept_until_us[channel.source] = self._now_us()
            if self.model.tasks[channel.source].pool.has_room:
                self._full.remove(channel.source)

    def after_step(self, task: Task) -> None:
        assert isinstance(task, SourceTask)
        strategy = task.event_time.strategy
        if strategy is None or strategy.idle_after_us is None:
            return
        actor = task.name
        now_us = self._now_us()
        if actor in self._full:  # since its step before this one
            self._kept_until_us[actor] = now_us
        before = self._idle.get(actor, set())
        idle = self._idle[actor] = {split for split, time in task.event_time.splits.items() if time.idle}
        if new := idle - before:
            free_us = now_us - self._kept_until_us.get(actor, 0)
            if free_us < strategy.idle_after_us:
                self.violated("I5", f"{actor}: {min(new)} is idle, and {free_us} us ago nothing could be read from it")
        if task.pool.has_room:
            self._full.discard(actor)
        else:
            self._full.add(actor)
            self._kept_until_us[actor] = now_us

    def _now_us(self) -> int:
        return self.model.master.services.clock.now_us()
