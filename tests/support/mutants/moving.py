"""Bugs in how records, watermarks and barriers move between tasks."""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import numpy as np
import pytest

from workbench.elements import CheckpointBarrier, Records
from workbench.operators.event_time.watermarks import Marks
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.input_gate import WatermarkValve
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.exchange.segments import Spreader
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.source_time import SourceTime, SplitTime
from workbench.runtime.tasks.task import Outcome
from workbench.state.key_groups import KeyPartitioner

Patch = pytest.MonkeyPatch


def barrier_overtakes_partial_buffers(patch: Patch) -> None:
    def emit_event(self: EdgeOutput, element: Any) -> None:
        for pending in self.pending:
            pending.channel.push(element)
            pending.ship()

    patch.setattr(EdgeOutput, "emit_event", emit_event)


def partial_buffers_are_lost_at_a_barrier(patch: Patch) -> None:
    emit_event = EdgeOutput.emit_event

    def forgetful(self: EdgeOutput, element: Any) -> None:
        if isinstance(element, CheckpointBarrier):
            for pending in self.pending:
                pending.parts.clear()
                pending.rows = 0
        emit_event(self, element)

    patch.setattr(EdgeOutput, "emit_event", forgetful)


def watermark_is_the_maximum(patch: Patch) -> None:
    def advance(self: WatermarkValve) -> int | None:
        furthest = max(channel.watermark_us for channel in self._channels)
        if furthest <= self.output_us:
            return None
        self.output_us = furthest
        return furthest

    patch.setattr(WatermarkValve, "advance", advance)


def watermark_overtakes_partial_buffers(patch: Patch) -> None:
    def emit_watermark(self: EdgeOutput, watermark: Any) -> None:
        for pending in self.pending:
            pending.channel.push(watermark)

    patch.setattr(EdgeOutput, "emit_watermark", emit_watermark)


def a_push_does_not_wake_the_receiver(patch: Patch) -> None:
    push = Channel.push

    def quiet(self: Channel, element: Any) -> None:
        receiver, self.receiver = self.receiver, Waker()
        push(self, element)
        self.receiver = receiver

    patch.setattr(Channel, "push", quiet)


def a_poll_does_not_wake_the_sender(patch: Patch) -> None:
    poll = Channel.poll

    def quiet(self: Channel) -> Any:
        sender, self.sender = self.sender, Waker()
        element = poll(self)
        self.sender = sender
        return element

    patch.setattr(Channel, "poll", quiet)


def the_newest_element_comes_first(patch: Patch) -> None:
    poll = Channel.poll

    def last(self: Channel) -> Any:
        self.elements.rotate(1)
        element = poll(self)
        self.sender.wake()
        return element

    patch.setattr(Channel, "poll", last)


def a_full_pool_does_not_stop_the_task(patch: Patch) -> None:
    patch.setattr(OutputPool, "has_room", True)


def rebalance_forgets_the_remainder(patch: Patch) -> None:
    rebalance = EdgeOutput._rebalance

    def rounded(self: EdgeOutput, records: Records) -> None:
        rebalance(self, records.slice(0, len(records) - (len(records) > 2)))

    patch.setattr(EdgeOutput, "_rebalance", rounded)


def source_forgets_how_far_event_time_was(patch: Patch) -> None:
    observe = SourceTime.observe

    def forgetful(self: SourceTime, records: Records, time: SplitTime, now_us: int) -> Marks:
        marks = observe(self, records, time, now_us)
        if records.timestamps is not None:  # as if nulls and disorder were never there
            generator: Any = time.generator
            generator.largest_us = max(generator.largest_us, int(records.timestamps[0]) + 10**6)
        return marks

    patch.setattr(SourceTime, "observe", forgetful)


def idle_inputs_hold_event_time(patch: Patch) -> None:
    advance = WatermarkValve.advance

    def patient(self: WatermarkValve) -> int | None:
        idle = [channel.idle for channel in self._channels]
        for channel in self._channels:
            channel.idle = False
        told = advance(self)
        for channel, was in zip(self._channels, idle, strict=True):
            channel.idle = was
        return told

    patch.setattr(WatermarkValve, "advance", patient)


def keys_go_elsewhere_in_each_attempt(patch: Patch) -> None:
    """What Python's salted hash would do: equal keys have other owners in another process."""
    init = KeyPartitioner.__init__
    attempts = count()

    def salted(self: KeyPartitioner, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self._target_of_group = np.roll(self._target_of_group, 37 * (next(attempts) // 4))

    patch.setattr(KeyPartitioner, "__init__", salted)
    patch.setattr(Spreader, "of", staticmethod(lambda partitioner: None))


def a_buffer_is_sent_twice(patch: Patch) -> None:
    push = Channel.push
    buffers = count(1)

    def stammering(self: Channel, element: Any) -> None:
        push(self, element)
        if type(element) is Records and next(buffers) % 50 == 0:
            Channel.push(self, element)

    patch.setattr(Channel, "push", stammering)


def a_source_that_waits_for_room_is_marked_idle(patch: Patch) -> None:
    advance = SourceTask._advance

    def impatient(self: SourceTask, now_us: int) -> Outcome:
        outcome = advance(self, now_us)
        event_time = self.event_time
        idle_after_us = None if event_time.strategy is None else event_time.strategy.idle_after_us
        if outcome is Outcome.NO_CREDIT and idle_after_us is not None and not event_time.idle:
            silent = [now_us - time.active_us >= idle_after_us for time in event_time.splits.values()]
            if silent and all(silent):
                for time in event_time.splits.values():
                    time.idle = True
                event_time._set_idle(True)
        return outcome

    patch.setattr(SourceTask, "_advance", impatient)


def backpressure_counts_as_silence(patch: Patch) -> None:
    patch.setattr(SourceTime, "stay_active", lambda self, now_us: None)


class _Roomy:
    """A pool that says that it has room."""

    has_room = True
    free = sys.maxsize

    def __init__(self, pool: OutputPool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def a_source_reads_on_without_room(patch: Patch) -> None:
    """What it reads waits as a backlog, in no buffer of the pool."""
    advance = SourceTask._advance

    def careless(self: Any, now_us: int) -> Any:
        pool = self.pool
        self.pool = _Roomy(pool)
        try:
            return advance(self, now_us)
        finally:
            self.pool = pool

    patch.setattr(SourceTask, "_advance", careless)
