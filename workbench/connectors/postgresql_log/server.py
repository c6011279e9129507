"""What a source asks a server by queries: its settings, the table, the slot, and copies of rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from workbench.connectors.contract.secrets import revealed_url
from workbench.connectors.postgresql_log.positions import Seen, lsn_of
from workbench.connectors.postgresql_log.texts import SETTINGS
from workbench.packages import needed

_CONNECT_S = 3
_ACK_MS = 10_000
_PURPOSE = "reading PostgreSQL's log"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table in the catalog.

    Attributes:
        oid: its id.
        schema, name: as the log names it.
        kind: ``r`` an ordinary table, ``p`` a partitioned one.
        is_logged: whether its changes are in the log.
        identity: as in `Relation`; of a partitioned table, those of all partitions that there are, as one text.
        columns: by name, the id of the type, its modifier and its name, and whether it is generated.
        keys: the column sets that no two rows share, without nulls.
        primary: the primary key; None: there is none.
        identity_key: the columns of the index that is the replica identity; None: there is none.
        may_read: whether the user may read it.
    """

    oid: int
    schema: str
    name: str
    kind: str
    is_logged: bool
    identity: str
    columns: dict[str, tuple[int, int, str, bool]]
    keys: tuple[tuple[str, ...], ...]
    primary: tuple[str, ...] | None
    identity_key: tuple[str, ...] | None
    may_read: bool


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """A replication slot in the catalog.

    Attributes:
        name: of the slot.
        plugin, database: as it was created.
        active_pid: of the process that reads it; 0: none.
        reader: what the program that reads it calls itself; empty: nobody reads it, or the user may not see that.
        status: ``reserved``, ``extended``, ``unreserved`` or ``lost``.
        confirmed: the server sends nothing before it.
        retained_bytes: of the log that the server keeps for it; 0: unknown.
        safe_bytes: that may be written before it is lost; None: without limit.
    """

    name: str
    plugin: str
    database: str
    active_pid: int
    reader: str
    status: str
    confirmed: int
    retained_bytes: int
    safe_bytes: int | None


def conninfo(url: str, **added: str) -> str:
    """A connection string of libpq with the settings on which the notation of values depends.

    Args:
        url: with references to secrets.
        added: further parameters.
    """
    conversion = needed("psycopg.conninfo", _PURPOSE)
    known = conversion.conninfo_to_dict(revealed_url(url))
    options = " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in SETTINGS.items())
    known["options"] = f"{known.get('options', '')} {options}".strip()
    known.setdefault("connect_timeout", _CONNECT_S)
    known.setdefault("tcp_user_timeout", _ACK_MS)
    text: str = conversion.make_conninfo("", **(known | added))
    return text


class Server:
    """A connection for queries, opened with the first of them; each query is a transaction.

    Args:
        url: of the database, with references to secrets.
        name: shown by the server as the application's.
    """

    def __init__(self, url: str, name: str) -> None:
        self._psycopg: Any = needed("psycopg", _PURPOSE)
        self._url, self._name = url, name
        self._connection: Any = None

    @property
    def errors(self) -> type[Exception]:
        """The base class of the driver's exceptions."""
        base: type[Exception] = self._psycopg.Error
        return base

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query with ``%s`` for each parameter."""
        if self._connection is None or self._connection.closed:
            info = conninfo(self._url, application_name=self._name)
            self._connection = self._psycopg.connect(info, autocommit=True)
        cursor = self._connection.execute(sql, parameters or None)
        return list(cursor.fetchall()) if cursor.description else []

    def close(self) -> None:
        """Close the connection; never raises."""
        if self._connection is not None:
            with suppress(self._psycopg.Error):
                self._connection.close()
            self._connection = None

    def settings(self) -> dict[str, str]:
        """The settings that matter, in their base units, and the server's ``system_identifier``."""
        names = ["wal_level", "max_replication_slots", "max_wal_senders", "wal_sender_timeout"]
        found = self.rows("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (names,))
        return {str(name): str(setting) for name, setting in found}

    def may_replicate(self) -> bool:
        """Whether the user may read the log."""
        return bool(self.rows("SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user")[0][0])

    def user(self) -> str:
        """The name of the user."""
        return str(self.rows("SELECT current_user")[0][0])

    def database(self) -> str:
        """The name of the database."""
        return str(self.rows("SELECT current_database()")[0][0])

    def table(self, name: str) -> TableFacts | None:
        """What the catalog has of a table; None: there is none."""
        found = self.rows(_TABLE, (name,))
        if not found:
            return None
        oid, schema, own, kind, persistence, identity, may_read = found[0]
        columns = self.rows(_COLUMNS, (oid,))
        keys = self.rows(_KEYS, (oid,))
        return TableFacts(
            int(oid),
            schema,
            own,
            kind,
            persistence == "p",
            identity or "d",
            {column: (int(of), int(modifier), str(label), bool(made)) for column, of, modifier, label, made in columns},
            tuple(tuple(key) for key, _, _ in keys),
            next((tuple(key) for key, is_primary, _ in keys if is_primary), None),
            next((tuple(key) for key, _, is_identity in keys if is_identity), None),
            bool(may_read),
        )

    def publication(self, name: str) -> dict[str, bool] | None:
        """What a publication sends, by the names of the catalog, such as ``pubinsert``; None: there is none."""
        found = self.rows("SELECT to_jsonb(p) FROM pg_publication p WHERE pubname = %s", (name,))
        return {key: value for key, value in found[0][0].items() if isinstance(value, bool)} if found else None

    def publication_mark(self, name: str, table: int) -> str:
        """Its number in the catalog, and that of the table in it: another one if either was made or added again.

        Args:
            name: of the publication.
            table: the id of the table.

        Returns:
            Empty if there is no such publication.
        """
        found = self.rows(
            "SELECT concat_ws(' ', p.oid, r.oid) FROM pg_publication p LEFT JOIN pg_publication_rel r "
            "ON r.prpubid = p.oid AND r.prrelid = %s WHERE p.pubname = %s",
            (table, name),
        )
        return str(found[0][0]) if found else ""

    def published(self, publication: str, table: TableFacts) -> dict[str, Any] | None:
        """How a publication sends a table: ``attnames`` and ``rowfilter`` since PostgreSQL 15; None: not at all."""
        sql = (
            "SELECT to_jsonb(t) FROM pg_publication_tables t WHERE pubname = %s AND schemaname = %s AND tablename = %s"
        )
        found = self.rows(sql, (publication, table.schema, table.name))
        return dict(found[0][0]) if found else None

    def slot(self, name: str) -> SlotFacts | None:
        """What the catalog has of a slot; None: there is none."""
        found = self.rows(f"{_SLOTS} WHERE slot_name = %s", (name,))
        return _slot_facts(found[0]) if found else None

    def slots(self) -> list[SlotFacts]:
        """The slots of this database that can be read as this source does, by their names."""
        of_ours = "WHERE plugin = 'pgoutput' AND database = current_database() AND NOT temporary ORDER BY slot_name"
        return [_slot_facts(row) for row in self.rows(f"{_SLOTS} {of_ours}")]

    def slots_used(self) -> int:
        """The number of all slots of the server."""
        return int(self.rows("SELECT count(*) FROM pg_replication_slots")[0][0])

    def create_slot(self, name: str) -> int:
        """Create a slot, which waits for all transactions that write; returns where it begins."""
        found = self.rows("SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        return lsn_of(str(found[0][0]))

    def copy_slot(self, name: str, copy: str) -> None:
        """Make another slot that keeps the same part of the log, if there is none of that name."""
        if self.slot(copy) is None:
            self.rows("SELECT pg_copy_logical_replication_slot(%s, %s)", (name, copy))

    def drop_slot(self, name: str) -> None:
        """Drop a slot, if there is one."""
        sql = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
        self.rows(sql, (name,))

    def end(self) -> int:
        """How far the log goes."""
        return lsn_of(str(self.rows("SELECT pg_current_wal_insert_lsn()")[0][0]))

    def flushed(self) -> int:
        """How far the log can be read."""
        return lsn_of(str(self.rows("SELECT pg_current_wal_flush_lsn()")[0][0]))

    def version(self) -> int:
        """The server's version, such as 150018."""
        return int(self.rows("SHOW server_version_num")[0][0])

    def copied(self, table: str, select: str, parameters: Sequence[object] = ()) -> Copied:
        """The rows of a query, and the transactions that it saw.

        Args:
            table: the quoted name of the table, which is locked first: a snapshot does not see the rows of a table that
                is rewritten after it.
            select: the query, with ``%s`` for each parameter.
            parameters: of it.
        """
        self.rows("SELECT 1")
        with self._connection.transaction():
            self.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self.rows(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
            seen, until = Seen.parsed(str(self.rows("SELECT pg_current_snapshot()::text")[0][0])), self.end()
            with self._connection.cursor().copy(f"COPY ({select}) TO STDOUT", parameters or None) as copy:
                rows = list(copy.rows())
            self.rows("SELECT pg_current_xact_id()")  # so that the commit is in the log, and carries it behind `until`
            return Copied(rows, seen, until)


def _slot_facts(row: Sequence[Any]) -> SlotFacts:
    name, plugin, database, pid, reader, status, confirmed, retained, safe = row
    place = lsn_of(confirmed) if confirmed else 0
    kept = int(retained or 0)
    return SlotFacts(name, plugin or "", database or "", pid or 0, reader or "", status or "lost", place, kept, safe)


@dataclass(frozen=True, slots=True)
class Copied:
    """A part of a table.

    Attributes:
        rows: their values in PostgreSQL's notation.
        seen: the transactions that the query saw.
        until: all of these commit before this place in the log.
    """

    rows: list[tuple[str | None, ...]]
    seen: Seen
    until: int


_TABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relpersistence::text,
  CASE c.relkind WHEN 'p' THEN
    (SELECT string_agg(DISTINCT p.relreplident::text, '') FROM pg_partition_tree(c.oid) t
     JOIN pg_class p ON p.oid = t.relid WHERE t.isleaf AND p.relkind = 'r')
  ELSE c.relreplident::text END,
  has_table_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT attname, atttypid, atttypmod, format_type(atttypid, atttypmod), attgenerated <> ''
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_KEYS = """
SELECT (SELECT array_agg(a.attname::text ORDER BY k.place)
  FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE k.place <= i.indnkeyatts),
  i.indisprimary, i.indisreplident
FROM pg_index i
WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
  AND i.indexprs IS NULL AND NOT EXISTS (
    SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE k.place <= i.indnkeyatts AND NOT a.attnotnull)
ORDER BY i.indisprimary DESC, i.indexrelid
"""
_SLOTS = """
SELECT slot_name, plugin, database, active_pid,
  (SELECT r.application_name FROM pg_stat_replication r WHERE r.pid = active_pid), wal_status,
  confirmed_flush_lsn::text,
  CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, safe_wal_size
FROM pg_replication_slots
"""
