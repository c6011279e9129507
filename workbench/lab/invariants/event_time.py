"""I4 and I5: event time never decreases, never overtakes a record, and makes no on-time record late (F2-6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Element, EndOfStream, Records, Watermark, WatermarkStatus
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Line, Model
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Task

_STIRRING = (Watermark, WatermarkStatus, EndOfStream)


class EventTime(Invariant):
    """Watermarks on channels and in tasks (see `Invariant` for the other arguments).

    Args:
        on_time: whether no record of the run is late at its source, so that none may be late anywhere.
    """

    steps_of = OperatorTask

    def __init__(self, model: Model, report: Callable[[str], None], *, on_time: bool) -> None:
        super().__init__(model, report)
        self._on_time = on_time
        self._watermarks: dict[str, int] = {}
        self._stirred: set[str] = set()  # tasks that have received something that may change their minimum

    def attached(self, execution: Execution) -> None:
        stays = self.model.stays
        self._watermarks = {t.name: self._watermarks[t.name] if t.name in stays else NO_TIME for t in execution.tasks}

    def sent(self, channel: Channel, element: Element) -> None:
        if not self._on_time or type(element) is not Records:
            return
        line = self.model.lines[id(channel)]
        if line.output.side or line.watermark_sent == NO_TIME:
            return
        earliest = _earliest(element)
        if earliest is not None and earliest <= line.watermark_sent:
            self.violated("I4", f"{line}: watermark {line.watermark_sent} overtook a record of {earliest}")

    def received(self, channel: Channel, element: Element) -> None:
        if type(element) in _STIRRING:
            self._stirred.add(channel.target)
        if not self._on_time or type(element) is not Records:
            return
        task = self.model.tasks[channel.target]
        if not isinstance(task, OperatorTask) or task.valve.output_us == NO_TIME:
            return
        line = self.model.lines[id(channel)]
        earliest = None if line.output.side else _earliest(element)
        if earliest is not None and earliest <= task.valve.output_us:
            self.violated("I5", f"{line}: a record of {earliest} is late, {task.name} is at {task.valve.output_us}")

    def after_step(self, task: Task) -> None:
        assert isinstance(task, OperatorTask)
        actor = task.name
        expected = self._watermarks[actor]
        if actor in self._stirred:
            self._stirred.remove(actor)
            lines = self.model.inputs[actor]
            going_on = [line for line in lines if line.watermark_received != MAX_TIME and not line.finished]
            active = [line.watermark_received for line in going_on if not line.idle]
            combined = (
                min(active) if active else max(_last(line) if going_on else line.watermark_received for line in lines)
            )
            expected = self._watermarks[actor] = max(expected, combined)
        if task.valve.output_us != expected:
            self.violated("I4", f"{actor}: watermark {task.valve.output_us}, the minimum is {expected}")
        if self._on_time:
            for link in task.links:
                if late := link.counters.numLateRecordsDropped:
                    self.violated("I5", f"{link.uid} dropped {late} records as late, but none was late at its source")


def _last(line: Line) -> int:
    """The last watermark of a channel, before the one at its end."""
    return line.watermark_before if line.watermark_received == MAX_TIME else line.watermark_received


def _earliest(records: Records) -> int | None:
    """The smallest event time of the records, if any."""
    times = records.timestamps
    if times is None or not len(times):
        return None
    earliest = int(times.min())
    if earliest == NO_TIME:
        times = times[times != NO_TIME]
        return int(np.min(times)) if len(times) else None
    return earliest
