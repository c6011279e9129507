"""I15: every input record was emitted, filtered, late, or is a dead letter."""

from __future__ import annotations

from collections.abc import Callable

from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.operators.aggregates.aggregate import RollingAggregate
from workbench.operators.contract.base import Counters
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.filter_function import FilterFunction
from workbench.operators.stateless.map import FlatMap, Map
from workbench.operators.stateless.projection import Projection
from workbench.operators.stateless.union import Union
from workbench.runtime.exchange.chain import Emitter, Link
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task

_ONE_FOR_ONE = (Map, Projection, RollingAggregate, Union)
"""Operators that emit one record for each input record, or a dead letter."""
_FILTERS = (Filter, FilterFunction)


class Accounting(Invariant):
    """Compares the records on channels with the counters of tasks and operators, and the counters with each other.

    All comparisons are at the end of the job, so that a record costs nothing: counters start with an attempt, and those
    of an attempt must be consistent even if it started from a checkpoint.

    Attributes:
        totals: the sums of all operators' counters, if the whole run was one attempt; otherwise None.
    """

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self.totals: Counters | None = None
        self._attempts = 0
        self._resend: set[str] = set()  # tasks that start with in-flight records

    def attached(self, execution: Execution) -> None:
        self._attempts += 1
        new = [task for task in execution.tasks if task.name not in self.model.stays]
        self._resend -= {task.name for task in new}
        self._resend |= {task.name for task in new if task.restored is not None}

    def finished(self) -> None:
        for line in self.model.lines.values():
            if line.rows_sent != line.rows_received:
                self.violated("I15", f"{line}: {line.rows_sent} records sent, {line.rows_received} received")
        vertices = {vertex.id: vertex for vertex in self.model.master.graph.vertices}
        for task in self.model.tasks.values():
            received = sum(line.rows_received for line in self.model.inputs[task.name])
            if self.model.inputs[task.name] and received != task.root.counters.numRecordsIn:
                self.violated(
                    "I15", f"{task.name}: {received} records came in, {task.root.counters.numRecordsIn} counted"
                )
            vertex = vertices[task.vertex]
            specs = {uid: node.spec for uid, node in zip(vertex.uids, vertex.nodes, strict=True)}
            for link in task.links:
                self._operator(task, link, specs[link.uid])
        for output in self.model.outputs:
            sent = sum(line.rows_sent for line in output.lines)
            emitted = output.emitted + output.resent
            if not output.side and sent != emitted:
                self.violated("I15", f"{output.link.uid}: {emitted} records emitted, {sent} sent")
        if self._attempts == 1:
            self.totals = self._sum()

    def _operator(self, task: Task, link: Link, spec: object) -> None:
        """Compare the input of one subtask of an operator with its output."""
        counters, place = link.counters, f"{task.name}/{link.uid}"
        taken, given, errors = counters.numRecordsIn, counters.numRecordsOut, counters.numRecordsInErrors
        if isinstance(spec, _ONE_FOR_ONE) and not isinstance(spec, FlatMap) and taken != given + errors:
            self.violated("I15", f"{place}: {taken} records in, {given} out and {errors} dead letters")
        if isinstance(spec, _FILTERS) and taken < given + errors:
            self.violated("I15", f"{place}: {taken} records in, but {given} out and {errors} dead letters")
        gone = counters.numLateRecordsDropped + counters.numRecordsWithoutTimestamp + errors
        if not isinstance(link.operator, Emitter) and gone > taken + counters.numRecordsInFolded:
            self.violated("I15", f"{place}: {taken} records in, but {gone} late, without event time or dead letters")
        if task.name in self._resend:
            return  # in-flight records do not come from the operators that emitted them
        for tag, child in link.children:
            if tag is None and child.counters.numRecordsIn != given:
                self.violated("I15", f"{place}: {given} records out, {child.counters.numRecordsIn} into {child.uid}")
        for letters in self._on_side(link, DEAD_LETTERS):
            if letters != errors:
                self.violated("I15", f"{place}: {errors} records could not be processed, {letters} are dead letters")

    def _on_side(self, link: Link, tag: str) -> list[int]:
        """The number of records that each consumer of a side output received."""
        chained = [child.counters.numRecordsIn for own, child in link.children if own == tag]
        edges = link.side_edges.get(tag, ())
        outputs = [output for output in self.model.outputs if output.output in edges]
        return chained + [sum(line.rows_sent for line in output.lines) // output.copies for output in outputs]

    def _sum(self) -> Counters:
        totals = Counters()
        for task in self.model.tasks.values():
            for link in task.links:
                counters = link.counters
                totals.numLateRecordsDropped += counters.numLateRecordsDropped
                totals.numRecordsWithoutTimestamp += counters.numRecordsWithoutTimestamp
                totals.numRecordsInErrors += counters.numRecordsInErrors
        return totals
