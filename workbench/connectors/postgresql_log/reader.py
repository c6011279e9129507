"""Reads a table and its changes: first the copy, then the log from where the slot begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.looks import Looks
from workbench.connectors.contract.retries import Retries
from workbench.connectors.contract.secrets import cause_of
from workbench.connectors.postgresql_log.background import Background, Call
from workbench.connectors.postgresql_log.changes import Changes
from workbench.connectors.postgresql_log.checks import Prepared, fixed_fact, prepared, publication_made_again
from workbench.connectors.postgresql_log.copying import Copy, CopyState, Key
from workbench.connectors.postgresql_log.holding import HeldRows
from workbench.connectors.postgresql_log.positions import Position, Seen
from workbench.connectors.postgresql_log.retention import Retention
from workbench.connectors.postgresql_log.rows import Layout, Rows
from workbench.connectors.postgresql_log.savepoints import Copies, copy_name
from workbench.connectors.postgresql_log.server import Copied, Server, TableFacts, conninfo
from workbench.connectors.postgresql_log.wire import IN_USE, Wire, WireError
from workbench.connectors.sql.session import fact_of, may_return
from workbench.elements import Records
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.snapshots.pieces import value_in

if TYPE_CHECKING:
    from workbench.connectors.postgresql_log.source import PostgresLogSource

_ANSWER_S = 10.0
_LOOK_US = 5_000
_UNSEEN_US = 100_000
_SLOW_US = 2_000_000


class PostgresLogReader(SourceReader):
    """Reads in the first subtask; queries and the log are read by threads, so that no poll waits."""

    shares_event_time = False

    def __init__(self, source: PostgresLogSource) -> None:
        self._source = source
        self._server = Server(source.url, f"workbench {source.slot}")
        self._background = Background()
        self._retries = Retries(source.retries, server=source.server)
        self._looks = Looks()
        self._is_own = False
        self._position: Position | None = None
        self._end: int | None = None
        self._oid: int | None = None
        self._publication: str | None = None
        self._types: tuple[tuple[int, int], ...] = ()
        self._state = CopyState()
        self._held = HeldRows()
        self._drop()

    def _drop(self) -> None:
        """Forget what belongs to a connection."""
        self._preparing: Call[Prepared] | None = None
        self._began_us = 0
        self._copying: Call[Copied] | None = None
        self._copied: Copied | None = None
        self._given = 0
        self._table: TableFacts | None = None
        self._copy: Copy | None = None
        self._report_us = 0
        self._wire: Wire | None = None
        self._changes: Changes | None = None
        self._retention = Retention(self._source.slot, self._source.publication)
        self._copies = Copies(self._source.slot, self._source.url)
        self._confirmed: int | None = None

    def open(self, context: OperatorContext) -> None:
        self._clock, self._job = context.clock, context.job
        self._is_own = context.subtask == 0

    def splits(self) -> Sequence[str]:
        return (self._source.table,) if self._is_own and not self._ended else ()

    @property
    def outage(self) -> Outage | None:
        if self._retries.outage is None and self._began_us:
            now_us = self._clock.now_us()
            if now_us > self._began_us + _SLOW_US and self._table is None:
                said = "it answers late: a new slot waits for the end of all transactions that write"
                return Outage(said, 1, None, now_us, self._began_us, server=self._source.server)
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        if not self.splits() or self._position is None:
            return {}
        what = str(self._position) if self._state.is_whole else f"a copy before {self._position}"
        if waiting := self._held.waiting:
            what += f": {waiting:,} rows of it wait for a checkpoint"
        if (known := self._retention.known) is None:
            return {self._source.table: SplitProgress(what)}
        facts, told_us = known
        state = "; ".join(filter(None, (facts.status, self._copies.problem)))
        kept = facts.retained_bytes, state, facts.safe_bytes
        return {self._source.table: SplitProgress(what, None, told_us, *kept)}

    @property
    def _ended(self) -> bool:
        place, end = self._position, self._end
        is_read = place is not None and end is not None and not place.commit and place.done >= end
        return is_read and self._state.is_settled and not self._held

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._is_own or self._ended:
            return Exhausted()
        now_us = self._clock.now_us()
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        try:
            if self._table is None:
                return self._prepare(now_us)
            self._retention.look(now_us, self._background, self._server, self._table.oid)
            if self._retention.publication not in (None, self._publication):
                source = self._source
                said = publication_made_again(source.publication, source.table)
                raise SourceError(f"cannot read the log of {source.server}: {said}")
            self._confirm()
            if (fetched := self._passed_on(max_records)) is not None:
                return fetched
            if not self._state.is_whole and not self._held.is_full:
                return self._copy_rows(max_records, now_us)
            return WaitUntil(now_us + _LOOK_US) if self._held else self._read(max_records, now_us)
        except (self._server.errors, WireError, TimeoutError) as error:
            return self._failed(error, now_us)

    def snapshot(self) -> Snapshot:
        if not self._is_own or self._position is None:
            return {}
        place = self._position
        return {
            "done": place.done,
            "commit": place.commit,
            "index": place.index,
            "end": self._end,
            "oid": self._oid,
            "publication": self._publication,
            "types": [list(each) for each in self._types],
            **self._state.saved(),
            **self._held.saved(),
        }

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            if "done" in snapshot:
                done, commit, index = (value_in(snapshot, name, int) for name in ("done", "commit", "index"))
                self._position = Position(done, commit, index)
                self._end = value_in(snapshot, "end", int | None)
                self._oid = value_in(snapshot, "oid", int)
                if "publication" in snapshot:
                    self._publication = value_in(snapshot, "publication", str)
                self._state = CopyState.restored(snapshot)
                self._types = value_in(snapshot, "types", tuple[tuple[int, int], ...])
                self._held.restore(snapshot, self._source.schema)

    def hold_back(self, waits: bool) -> None:
        self._held.wait(waits)

    def durable(self, snapshot: Snapshot) -> None:
        self._held.durable(snapshot)

    @property
    def wants_checkpoint(self) -> bool:
        return self._held.waiting > 0 and (self._state.is_whole or self._held.is_full)

    def complete(self, snapshot: Snapshot) -> None:
        if "done" in snapshot and value_in(snapshot, "copied", bool):
            self._confirmed = value_in(snapshot, "done", int)
            self._confirm()

    def _confirm(self) -> None:
        """Let the slot move on, unless it is being copied as it is."""
        if self._copies.are_made() and self._confirmed is not None and self._wire is not None:
            self._wire.confirm(self._confirmed)
            self._confirmed = None

    def keep(self, checkpoint_id: int) -> None:
        if self._is_own and self._position is not None:
            self._copies.begin(checkpoint_id, self._background, self._server)

    def give_up(self, checkpoint_id: int) -> None:
        if self._is_own and self._position is not None:
            copy = copy_name(self._source.slot, checkpoint_id)
            self._background.begin(lambda: self._server.drop_slot(copy))

    def forget(self, checkpoint_id: int) -> None:
        with suppress(self._server.errors):
            self._server.drop_slot(copy_name(self._source.slot, checkpoint_id))
        self._server.close()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._background.begin(self._server.close)
        self._background.close()
        self._drop()

    # the start ---------------------------------------------------------------------------------------------------

    def _prepare(self, now_us: int) -> WaitUntil:
        if self._preparing is None:
            args = self._source, self._server, self._position, self._oid, self._publication
            self._preparing, self._began_us = self._background.begin(lambda: prepared(*args)), now_us
        if not self._preparing.is_over:
            return WaitUntil(now_us + _LOOK_US)
        found = self._preparing.result()
        source = self._source
        self._table, self._position, self._oid = found.table, found.position, found.table.oid
        self._publication, self._report_us = found.publication, found.report_us
        if source.bounded and self._end is None:
            self._end = found.flushed
        self._copy = Copy(found.table, source.columns.names, source.key, source.chunk_rows, self._state)
        return WaitUntil(now_us)

    # the copy ----------------------------------------------------------------------------------------------------

    def _copy_rows(self, max_records: int, now_us: int) -> Fetched | WaitUntil:
        copy = self._copy
        assert copy is not None
        if self._copied is None:
            self._copied, self._given = self._queried(copy.next_part), 0
            if self._copied is None:
                return WaitUntil(now_us + _LOOK_US)
        copied, rows = self._copied, self._no_rows()
        texts = copied.rows[self._given : self._given + max_records]
        for each in texts:
            rows.put(each)
        if rows:
            self._held.add(rows.batch())
        self._given += len(texts)
        is_last = self._given == len(copied.rows)
        copy.deliver(copied, self._key_of(texts[-1]) if texts else None, is_last=is_last)
        if is_last:
            self._copied = None
        return self._passed_on(max_records) or WaitUntil(now_us)

    def _copy_again(self, max_records: int, now_us: int) -> Fetched | WaitUntil:
        """Copy the rows that are missing, before anything else is read."""
        copy = self._copy
        assert copy is not None
        if (copied := self._queried(copy.missing_rows)) is None:
            return WaitUntil(now_us + _LOOK_US)
        found, rows = {self._key_of(each): each for each in copied.rows}, self._no_rows()
        for key in copy.deliver_again(copied):
            if (row := found.get(key)) is None:
                rows.delete(key)
            else:
                rows.put(row)
        if not rows:
            return WaitUntil(now_us + _UNSEEN_US)
        self._held.add(rows.batch())
        return self._passed_on(max_records) or WaitUntil(now_us)

    def _passed_on(self, max_records: int) -> Fetched | None:
        """Copied rows that need not wait any more."""
        batch = self._held.take(max_records)
        return None if batch is None else self._fetched(batch, "a copy")

    def _queried(self, act: Callable[[Server], Copied]) -> Copied | None:
        """What a query returns that was begun; None: it is not over."""
        if self._copying is None:
            self._copying = self._background.begin(lambda: act(self._server))
        if not self._copying.is_over:
            return None
        copied, self._copying = self._copying.result(), None
        self._retries.succeeded()
        return copied

    def _no_rows(self) -> Rows:
        """For rows of a query."""
        assert self._table is not None
        return Rows(self._source.columns, self._key_places, Layout.of_table(self._table, self._source.columns))

    def _key_of(self, row: Sequence[str | None]) -> Key:
        return tuple(str(row[place]) for place in self._key_places)

    def _fetched(self, batch: pa.RecordBatch, what: str) -> Fetched:
        source, place = self._source, f"{self._source.table} of {self._source.server}, {what}"
        return Fetched(Records.timed(batch, source.event_time), source.table, where=lambda row: place)

    @property
    def _key_places(self) -> list[int]:
        names = self._source.columns.names
        return [names.index(name) for name in self._source.key]

    # the log -----------------------------------------------------------------------------------------------------

    def _read(self, max_records: int, now_us: int) -> Fetched | WaitUntil:
        if self._state.missing:
            return self._copy_again(max_records, now_us)
        source, place, table, copy = self._source, self._position, self._table, self._copy
        assert place is not None
        assert table is not None
        assert copy is not None
        if self._wire is None or self._changes is None:
            reader = f"workbench {self._job}, {source.table}"
            info = conninfo(source.url, replication="database", application_name=reader)
            self._wire = Wire(info, source.slot, source.publication, place.done, self._report_us)
            self._changes = Changes(source, table, place, self._types, copy, self._seen_by)
        batch = self._changes.take(self._wire, max_records)
        if self._changes.position != place:
            self._retries.succeeded()
        self._position, self._types = self._changes.position, self._changes.types
        self._state.pass_by(self._position.commit or self._position.done)
        if batch is None:
            return WaitUntil(now_us) if self._state.missing else self._looks.next(now_us)
        self._looks.found()
        return self._fetched(batch, str(place))

    def _seen_by(self, keys: Sequence[Key]) -> list[Seen]:
        copy = self._copy
        assert copy is not None
        return self._background.begin(lambda: copy.seen_by(keys, self._server)).result(_ANSWER_S)

    # failures ----------------------------------------------------------------------------------------------------

    def _failed(self, error: Exception, now_us: int) -> WaitUntil:
        """Wait before the next attempt, or give up."""
        source = self._source
        if self._wire is not None:
            self._wire.close()
        self._background.begin(self._server.close)
        if isinstance(error, TimeoutError):  # the thread may wait for ever
            self._background.close()
            self._background, self._server = Background(), Server(source.url, f"workbench {source.slot}")
        self._drop()
        fact = fact_of(error, source.url)
        returns = isinstance(error, TimeoutError) or may_return(error) or IN_USE in fact
        retry_us = self._retries.failed(now_us, fact) if returns else None
        if retry_us is None:
            said = fixed_fact(fact, source.slot)
            raise SourceError(f"cannot read {source.table!r} of {source.server}: {said}") from cause_of(
                error, source.url
            )
        return WaitUntil(retry_us)
