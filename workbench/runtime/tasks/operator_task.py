"""A task that takes its input from channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from workbench.durations import MAX_TIME
from workbench.elements import (
    CheckpointBarrier,
    Element,
    EndOfInFlight,
    EndOfStream,
    LatencyMarker,
    Records,
    Watermark,
    WatermarkStatus,
)
from workbench.operators.aggregates.preaggregated import is_preaggregated
from workbench.operators.contract.late_records import Sender
from workbench.runtime.barriers.policy import OperatorBarriers
from workbench.runtime.exchange.input_gate import InputChannel, InputGate, WatermarkValve
from workbench.runtime.tasks.task import Outcome, Task

_FEW = 4_096
"""Up to this many records are cheaper to copy than to process in two steps."""
_FROM_EACH = (Watermark, CheckpointBarrier, EndOfStream)
"""Elements that arrive on every channel and take effect only when the last channel has delivered them."""


class OperatorTask(Task):
    """Polls its input gate and processes elements with the chain (see `Task` for the other arguments).

    Args:
        inputs: its channels, in the order of the edges and sending subtasks.

    Attributes:
        gathers: a step takes the small buffers that are ready on several channels at once, because a step costs the
            same for few records as for many; likewise watermarks, barriers and the end, which every channel delivers,
            and latency markers behind each other. Off where steps are watched one by one.
        watched: an observer wants to see the next buffer.
        shown: the buffer that came when it did, for the observer to take.
    """

    def __init__(self, *, inputs: Sequence[InputChannel], **rest: Any) -> None:
        super().__init__(**rest)
        self.gate = InputGate(inputs)
        self.valve = WatermarkValve(inputs)
        self.policy = OperatorBarriers(self.gate, self.snapshots)
        self._attention = self.gate.attention
        self.gathers = False
        self.watched = False
        self.shown: Records | None = None
        self._mixed = any(item.channel.preaggregates for item in self.gate.channels)
        self._sender = Sender()
        for link in self.links:
            link.counters.late.sender = self._sender

    def _advance(self, now_us: int) -> Outcome:
        if self._attention.wanted and (overtaking := self.gate.overtaking()):
            for channel, barrier in overtaking:  # even if there is no room for records
                self._on_barrier(channel, barrier, now_us)
            return Outcome.PROGRESSED
        if now_us < self._not_before_us:
            return Outcome.WAITING
        if not self.pool.has_room or (self._gates and not self._takes_input):
            return Outcome.NO_CREDIT
        polled = self.gate.poll()
        if polled is None:
            return Outcome.NO_INPUT
        channel, element = polled
        together = self.gathers and channel.log is None and not self._rest_us
        if together and type(element) is Records and element.batch.num_rows < _FEW:
            return self._take_together(channel, element, now_us)
        outcome = self._take(channel, element, now_us)
        if self.gathers and type(element) in _FROM_EACH and outcome is Outcome.PROGRESSED:
            return self._take_alike(type(element), now_us)
        if self.gathers and type(element) is LatencyMarker:
            return self._take_markers(channel, now_us)
        return outcome

    def _take_markers(self, channel: InputChannel, now_us: int) -> Outcome:
        """Take the markers behind one: a source sends many of them after a rest."""
        elements = channel.channel.elements
        while elements and type(elements[0]) is LatencyMarker and not self._attention.wanted:
            element = channel.channel.poll()  # another element if a barrier has overtaken since
            assert element is not None
            outcome = self._take(channel, element, now_us)
            if type(element) is not LatencyMarker:
                return outcome
        return Outcome.PROGRESSED

    def _take_alike(self, kind: type[Element], now_us: int) -> Outcome:
        """Take elements of this kind from all channels where one is next, while there is room for what follows."""
        outcome = Outcome.PROGRESSED
        for channel in self.gate.filled():
            elements = channel.channel.elements
            if type(elements[0]) is not kind:
                continue
            if self._attention.wanted or not self.pool.has_room or (self._gates and not self._takes_input):
                break
            element = channel.channel.poll()  # another element if a barrier has overtaken since; it is handled as usual
            assert element is not None
            outcome = self._take(channel, element, now_us)
            if type(element) is not kind:
                break
        return outcome

    def _take_together(self, first: InputChannel, records: Records, now_us: int) -> Outcome:
        """Process a buffer together with those that are ready on the other channels, in each channel's order."""
        parts, senders = [records], [first.channel.source]
        rows, mixed = records.batch.num_rows, self._mixed
        partial = mixed and is_preaggregated(records.batch)
        behind: tuple[InputChannel, Element] | None = None
        for channel in self.gate.filled():
            if rows >= _FEW:
                break
            if channel is first or channel.port != first.port or channel.log is not None:
                continue
            head = channel.channel.elements[0]
            if type(head) is not Records or (mixed and is_preaggregated(head.batch) is not partial):
                continue
            element = channel.channel.poll()
            if type(element) is not Records:  # a barrier has overtaken since: it follows what is taken already
                assert element is not None
                behind = channel, element
                break
            parts.append(element)
            senders.append(channel.channel.source)
            rows += element.batch.num_rows
        self._sender.names = tuple(senders)
        if len(parts) > 1:
            try:  # noqa: SIM105  suppress() takes three calls
                parts = [Records.concat(parts)]
            except pa.ArrowInvalid:  # together they would exceed the size of a column of text
                pass
        outcome = Outcome.PROGRESSED
        for part in parts:
            outcome = self._take_records(first, part)
        return outcome if behind is None else self._take(*behind, now_us)

    def _take(self, channel: InputChannel, element: Element, now_us: int) -> Outcome:
        match element:
            case Records():
                self._sender.names = (channel.channel.source,)
                return self._take_records(channel, element)
            case Watermark(timestamp_us):
                if channel.log is not None:
                    channel.log.append(element)
                was_idle = self.valve.idle
                if (watermark_us := self.valve.reach(channel, timestamp_us)) is not None:
                    self.root.on_watermark(watermark_us)
                if self.valve.idle != was_idle:
                    self.root.on_idle(self.valve.idle)
            case CheckpointBarrier():
                self._on_barrier(channel, element, now_us)
            case LatencyMarker():
                self.markers.add(now_us, element)
                self._emit_marker(element)
            case WatermarkStatus(idle):
                silenced = idle and not channel.idle
                channel.idle = idle
                self._advance_event_time(channel if silenced else None)
            case EndOfInFlight():
                self._on_restored(channel, now_us)
            case EndOfStream():
                last = self.gate.finish(channel)
                self._advance_event_time(None if channel.idle else channel)
                self.policy.on_end(channel, now_us)
                if last:
                    self._finish()
                    return Outcome.FINISHED
        return Outcome.PROGRESSED

    def _take_records(self, channel: InputChannel, records: Records) -> Outcome:
        if channel.log is not None:
            channel.log.append(records)
        if self.watched:
            self.shown, self.watched = records, False
        self.root.receive(records, channel.port)
        if self._rest_us:
            self._rest_behind(channel)
        return Outcome.PROGRESSED

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        for output in self.outputs:
            output.emit_marker(marker, self._marker_turn, behind=self.gathers)

    def _rest_behind(self, channel: InputChannel) -> None:
        """The task is slowed down, and a buffer of this channel has passed: so do the markers behind its records."""
        self._take_markers(channel, self._now_us())
        self._rest()

    def _on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        if self.restored is not None:
            self.restored.barriers.append((channel, barrier))
        else:
            self.policy.on_barrier(channel, barrier, now_us)

    def _on_restored(self, channel: InputChannel, now_us: int) -> None:
        """One sender has delivered its in-flight records; when all have, continue with new input."""
        restored = self.restored
        assert restored is not None
        restored.arrived(channel)
        if restored.over:
            self.restored = None
            for item in self.gate.channels:
                item.blocked = False
            for waiting, barrier in restored.barriers:
                self.policy.on_barrier(waiting, barrier, now_us)

    @property
    def is_quiet(self) -> bool:
        if self.mailbox or self._timed or self._gates or self._attention.wanted or self.gate.has_more:
            return False
        if self.load.held_back or self._not_before_us or self.restored is not None:
            return False
        if self.snapshots.due_us != MAX_TIME:
            return False
        for output in self.outputs:  # noqa: SIM110  a loop takes half the time of a generator
            if 1 in output.marks:
                return False
        return True

    @property
    def has_news(self) -> bool:
        return not self.is_quiet and ((self._attention.wanted and not self.finished) or super().has_news)

    def _has_more(self) -> bool:
        return self.gate.has_more

    def _advance_event_time(self, silenced: InputChannel | None) -> None:
        """Update event time: an input has become idle or ended, or the set of active inputs has changed otherwise."""
        was_idle = self.valve.idle
        watermark_us = self.valve.advance() if silenced is None else self.valve.silence(silenced)
        if watermark_us is not None:
            self.root.on_watermark(watermark_us)
        if self.valve.idle != was_idle and self.gate.open_channels:
            self.root.on_idle(self.valve.idle)
