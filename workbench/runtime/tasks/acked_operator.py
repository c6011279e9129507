"""Tasks with inputs whose records are acknowledged, and the ackers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import LatencyMarker, Records
from workbench.operators.acking.acker import ACK_SCHEMA, FROM_OPERATOR, UNTRACKED, Acker
from workbench.plan.acking import ACKS
from workbench.runtime.acking.tracking import Anchors, process_by_root
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Outcome


class AckedOperatorTask(OperatorTask):
    """Processes the records of one root after another, and acknowledges them (other arguments as for `OperatorTask`).

    Args:
        anchors: where its outputs note the ids that they give.
    """

    def __init__(self, *, anchors: Anchors, **rest: Any) -> None:
        super().__init__(**rest)
        self._anchors = anchors

    def _take_records(self, channel: InputChannel, records: Records) -> Outcome:
        anchors, port = self._anchors, channel.port

        def process(root: int, part: Records) -> int:
            anchors.begin(root)
            self.root.receive(part, port)
            return anchors.value

        roots, values = process_by_root(records, process)
        anchors.begin(UNTRACKED)
        if roots:
            send_acks(self.root, roots, values, FROM_OPERATOR)
        if self._rest_us:
            self._rest_behind(channel)
        return Outcome.PROGRESSED

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        for output in self.outputs[:-1]:  # latency is measured along the records, not their acknowledgements
            output.emit_marker(marker, self._marker_turn)


class AckerTask(OperatorTask):
    """One of the ackers.

    Attributes:
        acker: its operator.
    """

    def __init__(self, **rest: Any) -> None:
        self.acker: Acker = rest["root"].operator
        super().__init__(**rest)

    def _use(self, settings: Settings) -> None:
        super()._use(settings)
        if settings.policy.acking is not None:
            self.acker.pending.retime(settings.policy.acking.message_timeout_us)


def acking_task(anchors: Anchors, **rest: Any) -> OperatorTask:
    """The task of a vertex with inputs; arguments as for `AckedOperatorTask`."""
    if isinstance(rest["root"].operator, Acker):
        return AckerTask(**rest)
    return AckedOperatorTask(anchors=anchors, **rest)


def send_acks(root: Link, roots: list[int], values: list[int], source: int) -> None:
    """Send messages to the ackers.

    Args:
        root: head of the task's chain.
        roots, values: n roots, and the XOR of ids for each.
        source: number of the source that announces them, or `FROM_OPERATOR`.
    """
    columns = [pa.array(roots, pa.int64()), pa.array(values, pa.int64()), pa.array(np.full(len(roots), source))]
    root.emit_side(ACKS, Records(pa.RecordBatch.from_arrays(columns, schema=ACK_SCHEMA)))
