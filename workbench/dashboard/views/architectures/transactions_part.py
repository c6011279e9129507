"""The transactions of each task: what is durable, what is sent, and what came twice."""

from __future__ import annotations

from html import escape

from workbench.dashboard.charts.html import none, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.architectures.transactions import TransactionFrame, TransactionsFrame
from workbench.telemetry.frames import Frame

_COLUMNS = (
    *("task", "sequencer", "next", "writes", "records in them", "state, bytes", "not sent", "not acknowledged"),
    *("duplicates", "false duplicates", "sent again", "writes refused"),
)


def html(frame: Frame) -> str:
    """A line with the rates of the whole job, and a row for each task.

    `Not sent` are elements that a task has made, `not acknowledged` those that it has sent and whose receiver has not
    written them yet. A `false duplicate` is new, but the Bloom filter said that the store may know it.
    """
    found = frame.transactions
    if found is None:
        return none("There are no transactions: start the job with fault_tolerance=wb.transactions().")
    return f"<p>{summary(found)}</p>" + table(_COLUMNS, [_row(each) for each in found.tasks])


def summary(found: TransactionsFrame) -> str:
    """Such as ``1,000 records in 250 writes, 4.0 a write, at most 10; 12 duplicates refused``."""
    each = found.records / found.writes if found.writes else 0.0
    order = "durable before they are sent" if found.strong else "sent before they are durable (weak)"
    return (
        f"{found.records:,} records in {found.writes:,} writes to {escape(found.store)}, {each:,.1f} a write, at most "
        f"{found.coalesce:,}; {found.round_trips:,} round trips; productions are {order}; "
        f"{found.duplicates:,} duplicates refused, {found.false_duplicates:,} false ones; {found.resent:,} sent again"
    )


def _row(each: TransactionFrame) -> str:
    counts = (each.writes, each.records, each.state_bytes, each.held, each.unacked)
    rest = (each.duplicates, each.false_duplicates, each.resent, each.fenced)
    figures = "".join(f"<td>{count:,}</td>" for count in (*counts, *rest))
    return f"<tr><td>{escape(each.task)}</td><td>{each.sequencer}</td><td>{each.phase}</td>{figures}</tr>"


class TransactionsPart(Part):
    """A line and a table."""

    hint = "what a task has written, and what of it is on its way"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Transactions")
        self.models = [self._piece.div]

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame))
