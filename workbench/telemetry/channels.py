"""What each channel holds and delivers.

The number of channels grows with the square of the parallelism, and single channels are rarely displayed. So the counts
of all channels are read into columns, and the frame of a channel is created when it is first accessed.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from workbench.durations import NO_TIME
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Task
from workbench.telemetry.frames import ChannelFrame
from workbench.telemetry.tasks import HORIZON_US, runs

_IDLE, _BLOCKED, _FINISHED = 1, 2, 4
_UNKNOWN = -1

Column = np.ndarray[Any, np.dtype[Any]]
_Ends = tuple[str, str, str]
"""The edge of a channel, its sending and its receiving task."""
_Waiting = tuple[Sequence[tuple[int, int, int]], int | None]
"""The barriers in a channel, each with the records and buffers ahead of it, and the time at which alignment blocked the
channel."""


class ChannelFrames(Sequence[ChannelFrame]):
    """The frames of all channels at one moment, kept as columns.

    Args:
        ends: of each channel.
        credit: shape (channels,), buffers that its receiver grants.
        counts: shape (7, channels): buffers and records, sent and received; the watermark, flags, and elements queued.
        rates: shape (channels,), records per second.
        waiting: the barriers of each channel that holds elements or is blocked, by the channel's index.
    """

    __slots__ = ("_counts", "_credit", "_ends", "_made", "_rates", "_waiting")

    def __init__(
        self, ends: Sequence[_Ends], credit: Column, counts: Column, rates: Column, waiting: Mapping[int, _Waiting]
    ) -> None:
        self._ends = ends
        self._credit = credit
        self._counts = counts
        self._rates = rates
        self._waiting = waiting
        self._made: tuple[ChannelFrame, ...] | None = None

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> ChannelFrame: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[ChannelFrame, ...]: ...

    def __getitem__(self, at: int | slice) -> ChannelFrame | tuple[ChannelFrame, ...]:
        if self._made is None:
            counts, credit, rates = self._counts.T.tolist(), self._credit.tolist(), self._rates.tolist()
            parts = zip(self._ends, credit, counts, rates, strict=True)
            self._made = tuple(_frame(*each, self._waiting.get(at)) for at, each in enumerate(parts))
        return self._made[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return ChannelFrames, (self._ends, self._credit, self._counts, self._rates, self._waiting)

    def sums(self) -> dict[str, tuple[int, int, float]]:
        """Queued buffers, granted buffers and records per second of each edge, by its id."""
        edges = {edge: number for number, edge in enumerate(dict.fromkeys(edge for edge, _, _ in self._ends))}
        of = np.array([edges[edge] for edge, _, _ in self._ends], np.int64)
        queued = np.maximum(self._counts[0] - self._counts[1], 0)
        columns = [np.bincount(of, column, len(edges)).tolist() for column in (queued, self._credit, self._rates)]
        return {edge: (int(columns[0][at]), int(columns[1][at]), columns[2][at]) for edge, at in edges.items()}


_NONE: Column = np.empty(0, np.int64)
NO_CHANNELS = ChannelFrames((), _NONE, np.empty((7, 0), np.int64), _NONE, {})


class ChannelSampler:
    """Samples channels, and computes rates from the records that they have delivered.

    A redeployed channel counts from zero, while the channels of other regions continue counting.
    """

    def __init__(self) -> None:
        self._past: deque[tuple[int, Column]] = deque()
        self.forget()

    def forget(self) -> None:
        """Release the channels that were sampled last, and the elements in them."""
        self._execution: Execution | None = None
        self._channels: tuple[Channel, ...] = ()
        self._known: list[weakref.ref[Channel]] = []
        self._items: list[InputChannel] = []
        self._tasks: list[Task] = []
        self._receivers = self._credit = _NONE
        self._ends: tuple[_Ends, ...] = ()
        self._past.clear()
        self._first: tuple[Column, Column] | None = None

    def release(self) -> None:
        """Hold no reference to an attempt that has ended; channels that continue are recognized later."""
        if self._execution is not None:
            self._known = [weakref.ref(channel) for channel in self._channels]
            self._execution, self._channels, self._items, self._tasks = None, (), [], []

    def sample(self, execution: Execution, now_us: int) -> ChannelFrames:
        """A frame for each channel, in the order of the graph's edges."""
        if execution is not self._execution:
            self._turn_to(execution)
        counts = self._read()
        running = np.array([runs(task) for task in self._tasks], np.bool_)[self._receivers]
        rates = np.where(running, self._rates(counts[3], now_us), 0.0)
        waiting = {}
        for at in np.flatnonzero((counts[6] > 0) | (counts[5] & _BLOCKED > 0)).tolist():
            item = self._items[at]
            waiting[at] = self._channels[at].barriers_ahead(), item.blocked_us or None
        return ChannelFrames(self._ends, self._credit, counts, rates, waiting)

    def _turn_to(self, execution: Execution) -> None:
        """Sample these channels from now on; those that existed before continue counting."""
        self.release()
        before = {id(channel): at for at, known in enumerate(self._known) if (channel := known()) is not None}
        kept = [before.get(id(channel), _UNKNOWN) for channel in execution.channels]
        self._past = deque((time_us, _moved(received, kept)) for time_us, received in self._past)
        self._first = None
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
        self._credit = np.array([channel.credit for channel in self._channels], np.int64)
        self._ends = tuple((channel.edge, channel.source, channel.target) for channel in self._channels)

    def _read(self) -> Column:
        """One column for each channel: buffers and records, sent and received; watermark, flags, elements queued."""
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
            self._first = None
        past.append((now_us, received))
        if self._first is None:
            self._first = _first_known(past)
        since_us, first = self._first
        seconds = (now_us - since_us) / 1e6
        rates = np.zeros(len(received))
        np.divide(received - first, seconds, out=rates, where=seconds > 0)
        return rates


def _first_known(past: deque[tuple[int, Column]]) -> tuple[Column, Column]:
    """When each channel was first sampled, and how many records it had received by then."""
    first_us, first = past[0]
    since_us = np.full(len(first), first_us)
    if (first == _UNKNOWN).any():
        first = first.copy()
        for time_us, earlier in past:
            new = (first == _UNKNOWN) & (earlier != _UNKNOWN)
            first[new], since_us[new] = earlier[new], time_us
    return since_us, first


def _moved(column: Column, places: list[int]) -> Column:
    """The values at these indices; `_UNKNOWN` for channels that did not exist."""
    return np.append(column, _UNKNOWN)[places]


def _frame(ends: _Ends, credit: int, counts: list[int], rate: float, waiting: _Waiting | None) -> ChannelFrame:
    sent, received, records_sent, records_received, watermark_us, flags, _ = counts
    edge, source, target = ends
    queued = max(sent - received, 0)
    barriers, blocked_us = waiting or ((), None)
    blocked = bool(flags & _BLOCKED)
    return ChannelFrame(
        edge=edge,
        source=source,
        target=target,
        inputQueueLength=min(queued, credit),
        outputQueueLength=max(queued - credit, 0),
        capacity=credit,
        queued_records=max(records_sent - records_received, 0),
        currentChannelWatermark=None if watermark_us == NO_TIME else watermark_us,
        idle=bool(flags & _IDLE),
        blocked=blocked,
        finished=bool(flags & _FINISHED),
        barriers=tuple(barrier for barrier, _, _ in barriers),
        barrier_records=tuple(records for _, records, _ in barriers),
        barrier_buffers=tuple(buffers for _, _, buffers in barriers),
        blocked_us=blocked_us if blocked else None,
        records_per_second=rate,
    )
