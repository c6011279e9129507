"""The Redis key of a sink, and the record of its committed epochs and its owner.

The record is the hash ``KEY:workbench``, written in the same transaction (``WATCH``, ``MULTI``, ``EXEC``) as the rows.
After any crash, it therefore shows whether an epoch's rows are committed, and committing them again has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.runs import Runs
from workbench.connectors.contract.secrets import cause_of
from workbench.connectors.epochs.owner import OwnerRecord, check_owner
from workbench.connectors.epochs.row_store import Epoch, Notes, Undo, due_epochs
from workbench.connectors.redis.server import RedisServer
from workbench.connectors.redis.values import Row, check_values, written_rows
from workbench.errors import SinkError, UnfitTableError
from workbench.from_json import made, parsed

_OWNER = "owner"
_UNDO = "undo "


@dataclass(frozen=True, slots=True)
class _Note:
    """The last epoch that a subtask of a writer has committed, and the run that committed it."""

    epoch: int
    run: str


@dataclass(frozen=True)
class RedisStore:
    """A stream, or hashes of rows by key.

    Attributes:
        server: the server.
        name: the key of the stream or of the hash of values, or the prefix of the keys of the rows' hashes.
        keys: the columns that identify a row to replace; empty: rows are entries of a stream.
        value: the column whose values one hash holds by key; None: each row has a hash.
        max_length: the approximate number of entries that the stream keeps; None: all.
        attempts: the attempts of operations while the server is unreachable or another program changes the record.
    """

    server: RedisServer
    name: str
    keys: tuple[str, ...]
    value: str | None
    max_length: int | None
    attempts: Attempts = field(default_factory=Attempts, compare=False, repr=False)

    @property
    def title(self) -> str:
        """The key and its server, for messages."""
        what = "key" if self.keys else "stream"
        return f"the {what} {self.name!r} of {self.server}"

    @property
    def identity(self) -> str:
        """The key and the server."""
        return f"{self.name} {self.server.url}"

    @property
    def record(self) -> str:
        """The key of the record."""
        return f"{self.name}:workbench"

    @cached_property
    def kind(self) -> str:
        """The Redis type that the key must have; empty: rows have separate keys."""
        return "stream" if not self.keys else "hash" if self.value is not None else ""

    def check(self, schema: pa.Schema) -> None:
        """Reject columns that cannot be written.

        Raises:
            SinkError: names the column.
        """
        check_values(schema, self.title)

    def prepare(self, schema: pa.Schema, *, create: bool) -> None:
        """Check the type of the key, if it exists; the first row creates it."""
        self._atomically(lambda pipe: pipe.multi())

    def commit(self, writer: str, runs: Runs, epochs: Iterable[Epoch], run: str) -> Runs:
        """Add the entries of these epochs that are not committed yet, and record them, in one transaction."""
        given = list(epochs)
        past: set[str] = set()

        def add(pipe: Any) -> None:
            check_owner(_owner(pipe, self.record), self.title, run)
            notes = self._notes(pipe, writer)
            past.update(last for _, last in notes.values())
            due = due_epochs(self, notes, writer, runs, given)
            pipe.multi()
            for epoch in due:
                for row in written_rows(epoch.rows):
                    pipe.xadd(self.name, row or {"": b""}, maxlen=self.max_length)
                note = json.dumps({"epoch": epoch.number, "run": runs.own})
                pipe.hset(self.record, _field(writer, epoch.subtask), note)

        self._atomically(add)
        return runs.among(past)

    def upsert(self, rows: pa.Table, run: str) -> None:
        """Write rows in one transaction; each replaces the row with the same keys."""
        names = self._names(rows)
        columns = rows if self.value is None else rows.select([self.value])
        written = list(zip(names, written_rows(columns), strict=True))

        def put(pipe: Any) -> None:
            check_owner(_owner(pipe, self.record), self.title, run)
            pipe.multi()
            for name, row in written:
                self._put(pipe, name, row)

        self._atomically(put)

    def remove(self, keys: pa.Table, run: str) -> None:
        """Delete the rows with these keys, in one transaction."""
        names = self._names(keys)

        def delete(pipe: Any) -> None:
            check_owner(_owner(pipe, self.record), self.title, run)
            pipe.multi()
            for name in names:
                if self.value is None:
                    pipe.delete(b"%s:%s" % (self.name.encode(), name))
                else:
                    pipe.hdel(self.name, name)

        self._atomically(delete)

    def prepare_undo(self) -> None:
        """Nothing: notes are fields of the record."""

    def keep_undo(self, note: Undo, changes: bytes) -> None:
        """Add a note, as a field of the record."""

        def keep(pipe: Any) -> None:
            check_owner(_owner(pipe, self.record), self.title, note.run)
            pipe.multi()
            pipe.hset(self.record, _undo_field(note), changes)

        self._atomically(keep)

    def undo(self) -> Mapping[Undo, bytes]:
        """The notes in the record."""
        found: dict[Undo, bytes] = {}

        def look(pipe: Any) -> None:
            found.clear()
            for written, changes in pipe.hgetall(self.record).items():
                name = written.decode("utf-8", "replace")
                if name.startswith(_UNDO):
                    try:
                        found[made(Undo, parsed(name.removeprefix(_UNDO)))] = changes
                    except ValueError:
                        raise self._changed(name, "the name of a note") from None
            pipe.multi()

        self._atomically(look)
        return found

    def forget_undo(self, notes: Sequence[Undo]) -> None:
        """Remove notes."""

        def forget(pipe: Any) -> None:
            pipe.multi()
            pipe.hdel(self.record, *map(_undo_field, notes))

        self._atomically(forget)

    def committed(self, writer: str) -> int:
        """The last committed epoch of this writer, or 0."""
        found: Notes = {}

        def look(pipe: Any) -> None:
            nonlocal found
            found = self._notes(pipe, writer)
            pipe.multi()

        self._atomically(look)
        return max((epoch for epoch, _ in found.values()), default=0)

    def rows(self) -> list[tuple[tuple[str, bytes], ...]]:
        """All rows, each as sorted fields and values; rows by key are unordered."""
        with self._connected() as client:
            found: list[dict[bytes, bytes]]
            if not self.keys:
                found = [fields for _, fields in client.xrange(self.name)]
            elif self.value is not None:
                found = [{b"": key, self.value.encode(): value} for key, value in client.hgetall(self.name).items()]
            else:
                names = [name for name in client.scan_iter(f"{self.name}:*") if name.decode() != self.record]
                found = [client.hgetall(name) for name in names]
        return [tuple(sorted((name.decode(), value) for name, value in row.items())) for row in found]

    def exists(self) -> bool:
        """Always true: operations report an unreachable server."""
        return True

    @contextmanager
    def change(
        self, purpose: str, wait_s: float | None = None, attempts: Attempts | None = None
    ) -> Iterator[RedisOwner]:
        """Change the owner's record atomically, once the server is reachable."""
        attempts = attempts or (self.attempts if wait_s is None else Attempts(wait_s))
        with self._connected() as client, self._told(), self._watching(client, attempts) as pipe:
            change = RedisOwner(pipe, self.record)
            yield change
            if change.is_changed:
                pipe.execute()

    def lost(self, error: SinkError) -> str:
        """See `OwnerBook.lost`; a client that loses its connection before it executes says that the record may have
        changed."""
        cause = error.__cause__
        if isinstance(cause, self.server.errors) and (
            isinstance(cause, self.server.watch_error) or self.server.may_return(cause)
        ):
            return self.server.fact(cause)
        return ""

    @contextmanager
    def _watching(self, client: Any, attempts: Attempts) -> Iterator[Any]:
        """A pipeline that watches the record; waits while the server is unreachable."""
        while True:
            with client.pipeline() as pipe:
                try:
                    pipe.watch(self.record)
                    pipe.exists(self.record)  # unlike WATCH, refused while the server loads its data
                except self.server.errors as error:
                    if not self._again(error, attempts):
                        raise
                else:
                    attempts.succeeded()
                    yield pipe
                    return

    def _put(self, pipe: Any, name: bytes, row: Row) -> None:
        if self.value is None:
            key = b"%s:%s" % (self.name.encode(), name)
            pipe.delete(key)
            pipe.hset(key, mapping=row)  # at least the key columns
        elif row:
            pipe.hset(self.name, name, row[self.value])
        else:
            pipe.hdel(self.name, name)

    def _names(self, rows: pa.Table) -> list[bytes]:
        """The text of each row's key."""
        return [name_of(row, self.keys) for row in written_rows(rows.select(self.keys))]

    def _notes(self, pipe: Any, writer: str) -> Notes:
        prefix = _field(writer, None)
        found: dict[int, tuple[int, str]] = {}
        for written, text in pipe.hgetall(self.record).items():
            name = written.decode("utf-8", "replace")
            if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                try:
                    note = made(_Note, parsed(text.decode()))
                except ValueError:
                    raise self._changed(name, "a commit record") from None
                found[int(name[len(prefix) :])] = note.epoch, note.run
        return found

    def _changed(self, name: str, what: str) -> SinkError:
        return SinkError(
            f"the field {name!r} of {self.record!r} at {self.server} is not {what}: another program has changed it; "
            "choose another key"
        )

    def _atomically(self, change: Callable[[Any], object]) -> None:
        """Call `change` with a pipeline that watches the record, and execute it; retry while the server is unreachable.

        A lost answer is harmless: the record shows what was committed.
        """
        while True:
            try:
                with self._connected() as client, client.pipeline() as pipe:
                    pipe.watch(self.record)
                    self._check_kind(pipe)
                    change(pipe)
                    pipe.execute()
                    self.attempts.succeeded()
                    return
            except self.server.errors as error:
                if not self._again(error, self.attempts):
                    raise self.server.error(error, f"write to {self.name!r}", SinkError) from cause_of(
                        error, self.server.url
                    )

    def _again(self, error: Exception, attempts: Attempts) -> bool:
        """Wait for the next attempt, if it can succeed: another program changed the record, or the server is
        unreachable."""
        if isinstance(error, self.server.watch_error):
            return attempts.again("", lost=False)
        return self.server.may_return(error) and attempts.again(self.server.fact(error))

    def _check_kind(self, pipe: Any) -> None:
        """Check the type first: Redis executes the rest of a transaction after a failed command, so no command may
        fail."""
        if self.kind and (found := pipe.type(self.name).decode()) not in ("none", self.kind):
            raise UnfitTableError(
                f"{self.name!r} at {self.server} is a {found}, but this sink writes to a {self.kind}: choose another "
                "key, or delete the existing one"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self.server.errors as error:
            raise self.server.error(error, f"write to {self.name!r}", SinkError) from cause_of(error, self.server.url)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        client = self.server.connect()
        try:
            yield client
        finally:
            with suppress(self.server.errors):
                client.close()


@dataclass
class RedisOwner:
    """The owner's record, within a transaction that has watched it.

    Attributes:
        pipe: the transaction.
        key: the key of the record.
        is_changed: whether there are commands to execute.
    """

    pipe: Any
    key: str
    is_changed: bool = False

    def read(self) -> OwnerRecord | None:
        """The record, or None."""
        return _owner(self.pipe, self.key)

    def write(self, record: OwnerRecord) -> None:
        """Replace it."""
        self._begin()
        self.pipe.hset(self.key, _OWNER, json.dumps(asdict(record)))

    def delete(self) -> None:
        """Remove it."""
        self._begin()
        self.pipe.hdel(self.key, _OWNER)

    def _begin(self) -> None:
        if not self.is_changed:
            self.pipe.multi()
            self.is_changed = True


def _owner(pipe: Any, key: str) -> OwnerRecord | None:
    text = pipe.hget(key, _OWNER)
    if text is None:
        return None
    try:
        return made(OwnerRecord, parsed(text.decode()))
    except ValueError:
        return OwnerRecord("", "", "", 0)  # expired: no job renews it


def _field(writer: str, subtask: int | None) -> str:
    return f"commit {writer} " + ("" if subtask is None else str(subtask))


def name_of(row: Row, keys: Sequence[str]) -> bytes:
    """The text of a row's key; the values of several columns are separated by ``:``, and quoted.

    Example:
        >>> name_of({"day": b"1", "city": b"a:b"}, ["day", "city"])
        b'1:a%3Ab'
    """
    if len(keys) == 1:
        return row[keys[0]]
    return ":".join(quote(row[key], safe="") for key in keys).encode()


def _undo_field(note: Undo) -> str:
    return f"{_UNDO}{json.dumps(asdict(note))}"
