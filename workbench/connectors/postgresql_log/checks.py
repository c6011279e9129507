"""What keeps a table from being read from the log, each with what to do, and the start if nothing does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from workbench.connectors.postgresql_log.positions import Position, lsn_text
from workbench.connectors.postgresql_log.savepoints import slot_for
from workbench.connectors.postgresql_log.server import Server, SlotFacts, TableFacts
from workbench.connectors.postgresql_log.texts import fits
from workbench.connectors.postgresql_log.wire import IN_USE, WireError
from workbench.connectors.sql.session import fixed
from workbench.errors import SourceError, unknown

if TYPE_CHECKING:
    from workbench.connectors.postgresql_log.source import PostgresLogSource

_VERSION_MIN = 130_000
_BOUNDED_REPORT_US = 100_000
_TIMEOUT_SHARE = 4
_OPERATIONS = ("insert", "update", "delete", "truncate")


class Asks(Protocol):
    """What is asked of a server: see `Server`."""

    def version(self) -> int: ...

    def settings(self) -> dict[str, str]: ...

    def may_replicate(self) -> bool: ...

    def user(self) -> str: ...

    def publication(self, name: str) -> dict[str, bool] | None: ...

    def published(self, publication: str, table: TableFacts) -> dict[str, Any] | None: ...


def table_problem(
    server: Asks, table: TableFacts | None, name: str, schema: pa.Schema, key: Sequence[str], publication: str
) -> str | None:
    """Why a table cannot be read, with the fix; None: it can.

    Args:
        server: is asked.
        table: what its catalog has of it.
        name: of the table, as the user wrote it.
        schema: the declared columns.
        key: the declared key.
        publication: its name.
    """
    if (version := server.version()) < _VERSION_MIN:
        return f"the server has the version {version // 10_000}: PostgreSQL 13 is the first that can be read"
    if (level := server.settings().get("wal_level")) != "logical":
        return f"the server's wal_level is {level!r}: ALTER SYSTEM SET wal_level = 'logical', and restart the server"
    if not server.may_replicate():
        return f"the user {server.user()!r} may not replicate: ALTER ROLE {server.user()} REPLICATION"
    if table is None:
        return f"there is no table {name!r} that the user can see: check its name, or create it first"
    found = [*_of_table(table, name, key), *_of_columns(table, name, schema)]
    return found[0] if found else _of_publication(server, table, name, schema, publication)


def _of_table(table: TableFacts, name: str, key: Sequence[str]) -> Iterator[str]:
    if not table.is_logged:
        yield f"the table {name!r} is unlogged: ALTER TABLE {name} SET LOGGED"
    if not table.may_read:
        yield f"the user may not read the table {name!r}: GRANT SELECT ON {name}"
    if not any(sorted(each) == sorted(key) for each in table.keys):
        known = " or ".join(f"({', '.join(each)})" for each in table.keys) or "none at all"
        yield (
            f"the key ({', '.join(key)}) of {name!r} is neither the primary key nor a unique index without nulls: such "
            f"keys are {known}"
        )
        return
    full = f"ALTER TABLE {name} REPLICA IDENTITY FULL"
    for identity in table.identity:
        if identity == "n":
            yield f"the replica identity of {name!r} is NOTHING, so deletions name no row: {full}"
        if identity == "d" and sorted(table.primary or ()) != sorted(key):
            yield f"the log names rows of {name!r} by its primary key, and the key is ({', '.join(key)}): {full}"
        if identity == "i" and (table.kind == "p" or sorted(table.identity_key or ()) != sorted(key)):
            yield f"the log names rows of {name!r} by an index that is not on ({', '.join(key)}): {full}"


def _of_columns(table: TableFacts, name: str, schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        if field.name not in table.columns:
            yield f"{name!r}: {unknown('column', field.name, list(table.columns))}"
            continue
        kind, _, label, is_generated = table.columns[field.name]
        if is_generated:
            yield f"the column {field.name!r} of {name!r} is generated, and not in the log: leave it out"
        elif not fits(kind, field.type):
            yield type_problem(name, field, label)


def type_problem(name: str, field: pa.Field, label: str) -> str:
    """Why a column cannot have its declared type.

    Args:
        name: of the table.
        field: as declared.
        label: the name of its type in the database.
    """
    return (
        f"the column {field.name!r} of {name!r} is {label}, whose values are not exact as {field.type}: declare it as "
        "pa.string(), and cast it"
    )


def _of_publication(server: Asks, table: TableFacts, name: str, schema: pa.Schema, publication: str) -> str | None:
    sends = server.publication(publication)
    root = " WITH (publish_via_partition_root)" if table.kind == "p" else ""
    if sends is None:
        return f"there is no publication {publication!r}: CREATE PUBLICATION {publication} FOR TABLE {name}{root}"
    if table.kind == "p" and not sends.get("pubviaroot"):
        return (
            f"the publication {publication!r} sends the partitions under their own names: ALTER PUBLICATION "
            f"{publication} SET (publish_via_partition_root)"
        )
    if lacking := [each for each in _OPERATIONS if not sends.get(f"pub{each}")]:
        return (
            f"the publication {publication!r} leaves out {', '.join(lacking)}: ALTER PUBLICATION {publication} SET "
            f"(publish = '{', '.join(_OPERATIONS)}')"
        )
    if (way := server.published(publication, table)) is None:
        return (
            f"the publication {publication!r} does not contain {name!r}, so its changes would be missed: ALTER "
            f"PUBLICATION {publication} ADD TABLE {name}"
        )
    return _of_selection(way, name, schema, publication)


def _of_selection(way: Mapping[str, Any], name: str, schema: pa.Schema, publication: str) -> str | None:
    if way.get("rowfilter") is not None:
        return f"the publication {publication!r} leaves out rows of {name!r}: use one without WHERE, and filter them"
    columns = way.get("attnames")
    lacking = [column for column in schema.names if columns is not None and column not in columns]
    if lacking:
        return (
            f"the publication {publication!r} leaves out the column {lacking[0]!r} of {name!r}: add it, or read it not"
        )
    return None


def slot_problem(name: str, slot: SlotFacts, database: str, done: int | None) -> str | None:
    """Why a slot cannot be read, with the fix; None: it can.

    Args:
        name: of the slot.
        slot: what the catalog has of it.
        database: that the source reads.
        done: the position to resume from; None: there is none.
    """
    drop = f"SELECT pg_drop_replication_slot('{name}')"
    if slot.plugin != "pgoutput":
        return f"the slot {name!r} belongs to the plug-in {slot.plugin!r}: choose another name"
    if slot.database != database:
        return f"the slot {name!r} belongs to the database {slot.database!r}: choose another name"
    if slot.status == "lost":
        return (
            f"the slot {name!r} is lost: the server has removed log that it needs (max_slot_wal_keep_size); {drop}, "
            "and start the job anew, which copies the table again"
        )
    if done is not None and slot.confirmed > done:
        return (
            f"the slot {name!r} was read up to {lsn_text(slot.confirmed)}, the checkpoint up to {lsn_text(done)}: "
            "the changes between them are gone; resume from a later checkpoint, or start the job anew"
        )
    return None


def publication_made_again(name: str, table: str) -> str:
    """That the log has changes that no publication sent; the server leaves them out without a word, that of a dropped
    publication from version 18 on.

    Args:
        name: of the publication.
        table: its name.
    """
    return f"the publication {name!r}, or {table!r} in it, was dropped or made again: {_ANOTHER_SLOT}"


def missing_slot(name: str) -> str:
    """That a slot is gone that a checkpoint needs."""
    return (
        f"the slot {name!r} does not exist: it was dropped, or this is another server, such as a new primary; changes "
        "since the checkpoint may be gone, so start the job anew, which copies the table again"
    )


_ANOTHER_SLOT = (
    "a publication that was dropped and made again is not in the older log: start the job anew, with another slot"
)
_FIXES = {
    "is active for PID": "end the other job, or give this source a slot of its own",
    "publication": _ANOTHER_SLOT,
    "cannot read from logical replication slot": "the server has removed log that was not read: start the job anew",
    "requested WAL segment": "the server has removed log that was not read: start the job anew",
    "must be superuser or replication role": "ALTER ROLE ... REPLICATION",
    "max_wal_senders": "raise max_wal_senders and restart the server",
    "already exists": "end the other job, or give this source a slot of its own",
}


def fixed_fact(fact: str, slot: str) -> str:
    """What the server says, with the likely fix.

    Args:
        fact: one line.
        slot: the name of the slot.
    """
    fix = next((each for words, each in _FIXES.items() if words in fact), "")
    return f"{fact} (slot {slot!r}); {fix}" if fix else fixed(fact)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known of the server before the first rows.

    Attributes:
        table: in the catalog.
        position: where the log is read from.
        publication: its mark in the catalog.
        flushed: how far the log could be read.
        report_us: how often the server has to hear of its reader.
    """

    table: TableFacts
    position: Position
    publication: str
    flushed: int
    report_us: int


def prepared(
    source: PostgresLogSource, server: Server, place: Position | None, oid: int | None, publication: str | None
) -> Prepared:
    """Look at the server, and create the slot for a new start.

    Args:
        source: the description.
        server: is asked.
        place: where reading goes on; None: at a new start.
        oid: of the table that was read to there.
        publication: the mark of the publication that was read to there; None: it was not noted.

    Raises:
        SourceError: the table cannot be read.
        WireError: another connection reads the slot.
    """

    def refuse(problem: str | None) -> None:
        if problem is not None:
            raise SourceError(f"cannot read the log of {source.server}: {problem}")

    table = server.table(source.table)
    refuse(table_problem(server, table, source.table, source.columns, source.key, source.publication))
    assert table is not None
    if place is not None and table.oid != oid:
        refuse(f"{source.table!r} is another table than that of the checkpoint: start the job anew")
    mark = server.publication_mark(source.publication, table.oid)
    if publication not in (None, mark):
        refuse(publication_made_again(source.publication, source.table))
    slot, flushed = slot_for(server, source.slot, None if place is None else place.done), server.flushed()
    if slot is None and place is not None:
        refuse(missing_slot(source.slot))
    if slot is None:
        used, most = server.slots_used(), int(server.settings().get("max_replication_slots", "0"))
        if used >= most:
            refuse(
                f"all {most} replication slots of the server are in use: drop one that is no longer needed "
                "with pg_drop_replication_slot, or raise max_replication_slots and restart the server"
            )
        place = Position(server.create_slot(source.slot))
    else:
        refuse(slot_problem(source.slot, slot, server.database(), None if place is None else place.done))
        if slot.active_pid:
            raise WireError(f"the slot {source.slot!r} {IN_USE} {slot.active_pid}")
        place = Position(slot.confirmed) if place is None else place
        if place.done > flushed:
            refuse(
                f"the checkpoint ends at {lsn_text(place.done)} of the log, and the server's log at "
                f"{lsn_text(flushed)}: it is another server, or was set back; start the job anew"
            )
    timeout_ms = int(server.settings().get("wal_sender_timeout", "0")) or 60_000
    report_us = _BOUNDED_REPORT_US if source.bounded else timeout_ms * 1000 // _TIMEOUT_SHARE
    return Prepared(table, place, mark, max(flushed, server.flushed()), report_us)
