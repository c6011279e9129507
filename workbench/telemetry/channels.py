"""What each channel holds and delivers.

There are as many channels as the square of the parallelism, and most of a wide exchange stand still most of the time.
So the counts of all are read into columns first, and only what has changed since the last look gets another frame.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np

from workbench.durations import NO_TIME
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.tasks.deployment import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Task
from workbench.telemetry.frames import ChannelFrame
from workbench.telemetry.tasks import HORIZON_US, runs

_IDLE, _BLOCKED, _FINISHED = 1, 2, 4
_UNKNOWN = -1

Column = np.ndarray[Any, np.dtype[Any]]


class ChannelSampler:
    """Looks at channels, and turns what they have delivered into rates.

    A redeployed channel counts from zero, while those of other regions continue.
    """

    def __init__(self) -> None:
        self._past: deque[tuple[int, Column]] = deque()
        self.forget()

    def forget(self) -> None:
        """Let go of the channels that were looked at last, and of what lies in them."""
        self._execution: Execution | None = None
        self._channels: tuple[Channel, ...] = ()
        self._known: list[weakref.ref[Channel]] = []
        self._items: list[InputChannel] = []
        self._tasks: list[Task] = []
        self._receivers: Column = np.empty(0, np.int64)
        self._counts: Column = np.empty((7, 0), np.int64)
        self._again: Column = np.empty(0, np.bool_)
        self._frames: list[ChannelFrame] = []
        self._past.clear()

    def release(self) -> None:
        """Keep no attempt alive that has ended; channels that go on are known again."""
        if self._execution is not None:
            self._known = [weakref.ref(channel) for channel in self._channels]
            self._execution, self._channels, self._items, self._tasks = None, (), [], []

    def sample(self, execution: Execution, now_us: int) -> tuple[ChannelFrame, ...]:
        """A frame for each channel, in the order of the graph's edges."""
        if execution is not self._execution:
            self._turn_to(execution)
        counts = self._read()
        running = np.array([runs(task) for task in self._tasks], np.bool_)[self._receivers]
        rates = np.where(running, self._rates(counts[3], now_us), 0.0)
        moving = (counts[6] > 0) | (counts[5] & _BLOCKED > 0) | (rates != 0)
        changed = np.flatnonzero(self._again | moving | (counts != self._counts).any(axis=0))
        found = counts[:, changed].T.tolist()
        for at, own, rate in zip(changed.tolist(), found, rates[changed].tolist(), strict=True):
            self._frames[at] = _frame(self._channels[at], self._items[at], own, rate)
        self._counts, self._again = counts, moving
        return tuple(self._frames)

    def _turn_to(self, execution: Execution) -> None:
        """Look at these channels from now on; those that were there before go on."""
        self.release()
        before = {id(channel): at for at, known in enumerate(self._known) if (channel := known()) is not None}
        kept = [before.get(id(channel), _UNKNOWN) for channel in execution.channels]
        self._past = deque((time_us, _moved(received, kept)) for time_us, received in self._past)
        self._execution, self._channels = execution, execution.channels
        self._tasks = [task for task in execution.tasks if isinstance(task, OperatorTask)]
        inputs = {
            id(item.channel): (item, number)
            for number, task in enumerate(self._tasks)
            if isinstance(task, OperatorTask)
            for item in task.gate.channels
        }
        pairs = [inputs[id(channel)] for channel in self._channels]
        self._items = [item for item, _ in pairs]
        self._receivers = np.array([number for _, number in pairs], np.int64)
        self._counts = np.zeros((7, len(pairs)), np.int64)
        self._again = np.ones(len(pairs), np.bool_)
        nothing = ChannelFrame("", "", "", 0, 0, 0, 0, None)
        self._frames = [nothing] * len(pairs)

    def _read(self) -> Column:
        """Counts by column: buffers and records, sent and received; the watermark, flags, and what lies in it."""
        channels, items = self._channels, self._items
        return np.array(
            [
                [channel.buffers_sent for channel in channels],
                [channel.buffers_received for channel in channels],
                [channel.records_sent for channel in channels],
                [channel.records_received for channel in channels],
                [item.watermark_us for item in items],
                [_IDLE * item.idle | _BLOCKED * item.blocked | _FINISHED * item.finished for item in items],
                [len(channel.elements) for channel in channels],
            ],
            np.int64,
        )

    def _rates(self, received: Column, now_us: int) -> Column:
        past = self._past
        while len(past) > 1 and now_us - past[0][0] > HORIZON_US:
            past.popleft()
        past.append((now_us, received))
        first_us, first = past[0]
        since_us = np.full(len(received), first_us)
        if (first == _UNKNOWN).any():
            since_us, first = since_us.copy(), first.copy()
            for time_us, earlier in past:
                new = (first == _UNKNOWN) & (earlier != _UNKNOWN)
                first[new], since_us[new] = earlier[new], time_us
        seconds = (now_us - since_us) / 1e6
        rates = np.zeros(len(received))
        np.divide(received - first, seconds, out=rates, where=seconds > 0)
        return rates


def _moved(column: Column, places: list[int]) -> Column:
    """What stood at these places; `_UNKNOWN` where there was none."""
    return np.append(column, _UNKNOWN)[places]


def _frame(channel: Channel, item: InputChannel, counts: list[int], rate: float) -> ChannelFrame:
    sent, received, records_sent, records_received, watermark_us, flags, elements = counts
    queued = max(sent - received, 0)
    barriers = channel.barriers_ahead() if elements else ()
    credit = channel.credit
    blocked = bool(flags & _BLOCKED)
    return ChannelFrame(
        edge=channel.edge,
        source=channel.source,
        target=channel.target,
        inputQueueLength=min(queued, credit),
        outputQueueLength=max(queued - credit, 0),
        capacity=credit,
        queued_records=max(records_sent - records_received, 0),
        currentChannelWatermark=None if watermark_us == NO_TIME else watermark_us,
        idle=bool(flags & _IDLE),
        blocked=blocked,
        finished=bool(flags & _FINISHED),
        barriers=tuple(barrier for barrier, _, _ in barriers) if barriers else (),
        barrier_records=tuple(records for _, records, _ in barriers) if barriers else (),
        barrier_buffers=tuple(buffers for _, _, buffers in barriers) if barriers else (),
        blocked_us=(item.blocked_us or None) if blocked else None,
        records_per_second=rate,
    )
