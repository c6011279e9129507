"""I15: what went in came out."""

from __future__ import annotations

from workbench.testing.invariants.invariant import Invariant


class Accounting(Invariant):
    """Compares the records on channels with the counters of tasks and operators when the job has ended."""

    def finished(self) -> None:
        for line in self.model.lines.values():
            if line.rows_sent != line.rows_received:
                self.violated("I15", f"{line}: {line.rows_sent} records sent, {line.rows_received} received")
        for task in self.model.tasks.values():
            received = sum(line.rows_received for line in self.model.inputs[task.name])
            if self.model.inputs[task.name] and received != task.root.counters.numRecordsIn:
                self.violated(
                    "I15", f"{task.name}: {received} records came in, {task.root.counters.numRecordsIn} counted"
                )
        for output in self.model.outputs:
            sent = sum(line.rows_sent for line in output.lines)
            emitted = output.emitted + output.resent
            if not output.side and sent != emitted:
                self.violated("I15", f"{output.link.uid}: {emitted} records emitted, {sent} sent")
