"""Sessions that fire before they are final, as a changelog.

A record that is late, or that comes after an early result, can lengthen a session or merge several. Then rows with
other bounds describe the same records, and no key of the new row is that of the old one. So each session keeps the rows
that it has emitted, and takes them back when it fires again; merged sessions take back the rows of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import CheckpointError
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import AFTER, BEFORE, DELETE, FIELD, INSERT, plain_schema, with_kinds
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot
from workbench.operators.snapshots.pieces import numbers_in, table_in
from workbench.operators.snapshots.saved_rows import restored_rows, saved_rows
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.operators.windows.apply import WindowApply
from workbench.operators.windows.contents import Contents, Fired, Incoming, Results
from workbench.operators.windows.settings import WindowSettings
from workbench.windows.schedule import Schedule
from workbench.windows.session import Session

_SENT = "sent"


def revises(settings: WindowSettings) -> bool:
    """Whether a session can change after its first result; not if each firing forgets its records.

    Example:
        >>> import workbench as wb
        >>> revises(WindowSettings(wb.session("10s"))), revises(WindowSettings(wb.session("10s"), "event", 5))
        (False, True)
    """
    if not isinstance(settings.window, Session):
        return False
    trigger = settings.trigger
    if not isinstance(trigger, Schedule):
        return True
    if trigger.purge:
        return False
    early = trigger.records is not None or trigger.every_us is not None
    return bool(settings.allowed_lateness_us) or early or trigger.end not in ("window", "never", settings.time)


@dataclass(frozen=True)
class RevisedAggregate(WindowAggregate):
    """A `WindowAggregate` whose sessions take back the rows that they replace."""

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Those of a `WindowAggregate`, and the kind of each change."""
        return super().output_schema(inputs).append(FIELD)

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """The keys and the start: the sessions of a key never overlap."""
        return (*self.keys, "window_start")

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        plain = plain_schema(self.output_schema(inputs))
        return self.logic(inputs[0], plain, lambda contents: SentRows(contents, plain))


@dataclass(frozen=True)
class RevisedApply(WindowApply):
    """A `WindowApply` whose sessions take back the rows that they replace."""

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Those of a `WindowApply`, and the kind of each change."""
        return super().output_schema(inputs).append(FIELD)

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """None: the function may return several rows for a session."""
        return None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        plain = plain_schema(self.output_schema(inputs))
        return self.logic(inputs[0], plain, lambda contents: SentRows(contents, plain))


class SentRows:
    """The contents of windows, together with the rows that each window has emitted and not taken back.

    Args:
        contents: those of the windows.
        schema: of the rows.
    """

    def __init__(self, contents: Contents, schema: pa.Schema) -> None:
        self._contents = contents
        self._schema = schema
        self._rows = LinkedRows(schema)
        self._known = 0

    def revised(self, entries: Int64s, rows: pa.RecordBatch, which: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """The changes that lead from the rows that windows have emitted to others, those taken back first."""
        of, sent = self._rows.follow(entries)
        back = self._rows.take(sent)
        self._rows.remove(sent)
        self._rows.add(rows, entries[which])
        again, come = np.isin(of, which), np.isin(which, of)
        kinds = np.concatenate([np.where(again, BEFORE, DELETE), np.where(come, AFTER, INSERT)]).astype(np.int8)
        both = pa.concat_batches([back, rows]) if len(sent) else rows
        self._rows.tidy()
        return with_kinds(both, kinds), np.concatenate([of, which])

    def grow(self, entries: int) -> None:
        self._known = max(self._known, entries)
        self._rows.grow(entries)
        self._contents.grow(entries)

    def add(self, entries: Int64s, rows: Int64s | None, incoming: Incoming) -> None:
        self._contents.add(entries, rows, incoming)

    def move(self, sources: Int64s, targets: Int64s) -> None:
        self._contents.move(sources, targets)
        if not self._rows.live:
            return
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            _, rows = self._rows.follow(np.array([source]))
            if len(rows):
                batch = self._rows.take(rows)
                self._rows.remove(rows)
                self._rows.add(batch, np.full(len(rows), target))

    def purge(self, entries: Int64s) -> None:
        self._contents.purge(entries)
        self._drop(entries)

    def release(self, entries: Int64s) -> None:
        self._contents.release(entries)
        self._drop(entries)

    def _drop(self, entries: Int64s) -> None:
        if self._rows.live:
            self._rows.remove(self._rows.follow(entries)[1])
            self._rows.tidy()

    def retain(self, entries: Int64s) -> None:
        self._contents.retain(entries)
        codes = np.zeros(self._known, np.int64)
        codes[entries] = np.arange(len(entries))
        self._rows.renumber(codes)
        self._known = len(entries)
        self._rows.grow(self._known)

    def results(self, fired: Fired) -> Results:
        return self._contents.results(fired)

    def glance(self, entries: Int64s) -> dict[str, pa.Array]:
        return self._contents.glance(entries)

    def state_names(self) -> Sequence[str]:
        return self._contents.state_names()

    def state_columns(self, entries: Int64s) -> list[pa.Array]:
        return self._contents.state_columns(entries)

    def state_tables(self, entries: Int64s) -> Snapshot:
        of, rows = self._rows.follow(entries)
        sent = saved_rows(self._rows.take(rows), {"place": pa.array(of)})
        return cast("Snapshot", {**self._contents.state_tables(entries), _SENT: sent})

    def load(self, entries: Int64s, table: pa.Table, places: Int64s, tables: Snapshot) -> None:
        if _SENT not in tables:
            raise CheckpointError(
                "the checkpoint has sessions without the rows that they have emitted, which could not be taken back: "
                "give the operator another uid to start it afresh"
            )
        self._contents.load(entries, table, places, tables)
        sent = table_in(tables, _SENT)
        of = numbers_in(sent, "place", 0)
        ours = np.full(int(max(of.max(initial=-1), places.max(initial=-1))) + 1, -1)
        ours[places] = entries
        mine = np.flatnonzero(ours[of] >= 0)
        if len(mine):
            rows = restored_rows(sent.take(pa.array(mine)).combine_chunks(), self._schema, _SENT, OperatorContext())
            self._rows.add(rows, ours[of[mine]])
