"""I18: batches are logged before they are sent, consist of what was logged, and are committed once, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.drivers.contract.probes import Point
from workbench.elements import CheckpointBarrier, Element, Records
from workbench.from_json import parsed
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.runtime.batches.offsets import LOG
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.tasks.execution import Execution

_Spans = dict[str, dict[str, Any]]


class Batches(Invariant):
    """Compares what sources send between two barriers with the log of offsets, as its file says."""

    points = frozenset[Point](("offsets write ends", "manifest write ends"))

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self._logged: dict[int, tuple[int, _Spans]] = {}  # by checkpoint: the txid, and what was logged last
        self._spans: dict[int, _Spans] = {}  # by txid, as logged first
        self._ended: dict[str, set[int]] = {}  # by source task: the checkpoints whose barriers it has sent
        self._passed: dict[Channel, int] = {}  # by channel of a source: the last of these on it
        self._read: dict[str, int] = {}  # by source task: records that it had sent by its last barrier
        self._committed = 0

    def attached(self, execution: Execution) -> None:
        self._logged, self._passed = {}, {}
        self._ended = {task.name: set() for task in execution.sources}
        self._read = {task.name: task.root.counters.numRecordsIn for task in execution.sources}

    def reached(self, point: Point, owner: str, number: int) -> None:
        batches = self.model.master.settings.policy.batches
        if batches is None:
            return
        if point == "offsets write ends":
            for batch in parsed(self.model.master.storage.kept(LOG))["batches"]:
                txid, spans = batch["txid"], batch["spans"]
                before = self._spans.setdefault(txid, spans)
                if batches.same and before != spans and before.keys() == spans.keys():
                    self.violated("I18", f"batch {txid} is read again as {spans}, and was {before}")
                self._logged[batch["checkpoint_id"]] = txid, spans
        elif number in self._logged:
            txid, _ = self._logged[number]
            if txid <= self._committed:
                self.violated("I18", f"batch {txid} was committed after batch {self._committed}")
            self._committed = txid

    def sent(self, channel: Channel, element: Element) -> None:
        ended = self._ended.get(channel.source)
        if ended is None or self.model.master.settings.policy.batches is None:
            return
        if type(element) is Records:
            if not any(logged > self._passed.get(channel, 0) for logged in self._logged):
                self.violated("I18", f"{channel.source} sends records of a batch whose offsets are not logged")
        elif type(element) is CheckpointBarrier:
            self._passed[channel] = element.checkpoint_id
            if element.checkpoint_id in ended:
                return
            ended.add(element.checkpoint_id)
            read = self.model.tasks[channel.source].root.counters.numRecordsIn
            before, self._read[channel.source] = self._read[channel.source], read
            txid, spans = self._logged.get(element.checkpoint_id, (0, {}))
            wanted = sum(spans.get(channel.source, {}).get("counts", {}).values())
            if read - before != wanted:
                self.violated("I18", f"{channel.source} sent {read - before} of {wanted} records of batch {txid}")
