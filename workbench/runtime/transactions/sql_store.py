"""A store in SQLite or PostgreSQL: it outlives the process, and another one continues from its last transactions.

Three tables hold the rows of all jobs that use a database. ``workbench_store_jobs`` has the run of a job that owns its
rows, ``workbench_store_ranges`` the token of each range, and ``workbench_store_cells`` everything else. A write is one
transaction of the database: it compares the token, deletes and inserts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from workbench.errors import CheckpointError, WorkbenchError
from workbench.runtime.transactions.cells import Cell, cells_of, changes, row_of
from workbench.runtime.transactions.databases import Database, Place, Statements
from workbench.runtime.transactions.store import Origin, Row, Write, fenced

_TABLES = (
    "CREATE TABLE IF NOT EXISTS workbench_store_jobs (job VARCHAR NOT NULL PRIMARY KEY, owner VARCHAR NOT NULL, "
    "claims BIGINT NOT NULL, plan VARCHAR NOT NULL, checkpoint BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS workbench_store_ranges (job VARCHAR NOT NULL, task VARCHAR NOT NULL, "
    "token BIGINT NOT NULL, PRIMARY KEY (job, task))",
    "CREATE TABLE IF NOT EXISTS workbench_store_cells (job VARCHAR NOT NULL, task VARCHAR NOT NULL, "
    "kind VARCHAR NOT NULL, name VARCHAR NOT NULL, number BIGINT NOT NULL, content {bytes} NOT NULL, "
    "PRIMARY KEY (job, task, kind, name, number))",
)
_BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}
_OF_JOB = ("workbench_store_cells", "workbench_store_ranges", "workbench_store_jobs")
_INSERT = (
    "INSERT INTO workbench_store_cells (job, task, kind, name, number, content) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (job, task, kind, name, number) DO UPDATE SET content = excluded.content"
)
_DELETE = "DELETE FROM workbench_store_cells WHERE job = ? AND task = ? AND kind = ? AND name = ? AND number <= ?"
_CELLS = "SELECT kind, name, number, content FROM workbench_store_cells WHERE job = ? AND task = ?"


class SqlStore:
    """Rows in a database (see `Store`).

    Args:
        place: of the database.

    Example:
        >>> import tempfile
        >>> from workbench.runtime.barriers.transactions import store_at
        >>> store = SqlStore(store_at(f"sqlite:///{tempfile.mkdtemp()}/transactions.db"))
        >>> store.open("counts", owner="first run")
        >>> token = store.claim("counts[0]")
        >>> store.begin([Write("counts[0]", token)], Origin("counts[0]"))
        >>> store.write(Write("counts[0]", token, taken=[("a", 0, 2)]))
        >>> store.taken("counts[0]", "a")
        [(0, 2)]
        >>> store.open("counts", owner="second run")
        >>> store.origin
        Origin(plan='counts[0]', checkpoint_id=0)
        >>> store.end()
    """

    def __init__(self, place: Place) -> None:
        self._database = Database(place)
        self._job = self._owner = ""

    def check(self) -> None:
        """Reject a database that cannot be used, and close it again.

        Raises:
            WorkbenchError: a package is missing, it does not answer, or has other tables of these names.
        """
        try:
            self._make_tables()
        finally:
            self._database.close()

    def open(self, rows: str, owner: str, forget: str = "") -> None:
        """Own these rows."""
        self._job, self._owner = rows, owner
        self._make_tables()
        with self._database.transaction("open a store") as statements:
            if forget:
                _delete(statements, forget)
            statements.run(
                "INSERT INTO workbench_store_jobs (job, owner, claims, plan, checkpoint) VALUES (?, ?, 0, '', 0) "
                "ON CONFLICT (job) DO UPDATE SET owner = excluded.owner",
                (rows, owner),
            )

    @property
    def origin(self) -> Origin | None:
        """What the rows began from."""
        with self._database.transaction("read a store") as statements:
            found = statements.run("SELECT plan, checkpoint FROM workbench_store_jobs WHERE job = ?", (self._job,))
        return Origin(*found[0]) if found and found[0][0] else None

    def begin(self, writes: Iterable[Write], origin: Origin) -> None:
        """Replace everything, unless another run owns the rows."""
        job = self._job
        with self._database.transaction("begin a store") as statements:
            self._check_owner(statements)
            for table in _OF_JOB[:2]:
                statements.run(f"DELETE FROM {table} WHERE job = ?", (job,))
            for write in writes:
                statements.run("INSERT INTO workbench_store_ranges VALUES (?, ?, ?)", (job, write.range, write.token))
                _insert(statements, job, write.range, changes(write)[1])
            statements.run(
                "UPDATE workbench_store_jobs SET plan = ?, checkpoint = ? WHERE job = ?",
                (origin.plan, origin.checkpoint_id, job),
            )

    def knows(self, checkpoint_id: int) -> bool:
        """Whether it is among those of the sinks."""
        with self._database.transaction("read a store") as statements:
            return bool(
                statements.run(
                    "SELECT 1 FROM workbench_store_cells WHERE job = ? AND kind = 'flushed' AND number = ? LIMIT 1",
                    (self._job, checkpoint_id),
                )
            )

    def claim(self, range: str) -> int:
        """The next token of a range."""
        with self._database.transaction("claim a range") as statements:
            token = self._check_owner(statements)
            statements.run(
                "INSERT INTO workbench_store_ranges (job, task, token) VALUES (?, ?, ?) "
                "ON CONFLICT (job, task) DO UPDATE SET token = excluded.token",
                (self._job, range, token),
            )
            return token

    def write(self, write: Write) -> None:
        """Apply a transaction: the comparison of the token is part of it."""
        job, task = self._job, write.range
        with self._database.transaction("write a transaction") as statements:
            # An update, not a query: it locks the row, so no one claims the range before this is committed.
            held = statements.run(
                "UPDATE workbench_store_ranges SET token = token WHERE job = ? AND task = ? AND token = ? "
                "RETURNING token",
                (job, task, write.token),
            )
            if not held:
                found = statements.run(
                    "SELECT token FROM workbench_store_ranges WHERE job = ? AND task = ?", (job, task)
                )
                raise fenced(write, found[0][0] if found else 0)
            taken: list[Cell] = []
            if write.taken or write.past:
                taken = cells_of(statements.run(f"{_CELLS} AND kind = 'taken'", (job, task)))
            deleted, cells = changes(write, taken)
            for each in deleted:
                statements.run(_DELETE, (job, task, each.kind, each.name, each.number))
            _insert(statements, job, task, cells)

    def row(self, range: str) -> Row:
        """The row of a range."""
        job = self._job
        with self._database.transaction("read a store") as statements:
            token = statements.run("SELECT token FROM workbench_store_ranges WHERE job = ? AND task = ?", (job, range))
            return row_of(cells_of(statements.run(_CELLS, (job, range))), token[0][0] if token else 0)

    def taken(self, range: str, channel: str) -> list[tuple[int, int]]:
        """The ids that a range has processed of a channel."""
        with self._database.transaction("read a store") as statements:
            found = statements.run(f"{_CELLS} AND kind = 'taken' AND name = ?", (self._job, range, channel))
        return row_of(cells_of(found)).taken.get(channel, [])

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def end(self) -> None:
        """Delete the rows of this run; an unreachable database keeps them, as after a kill."""
        with suppress(WorkbenchError), self._database.transaction("end a store") as statements:
            self._check_owner(statements)
            _delete(statements, self._job)
        self._database.close()

    def _make_tables(self) -> None:
        place = self._database.place
        place.check()
        place.make_ready()
        with self._database.transaction("open a store") as statements:
            for table in _TABLES:
                statements.run(table.format(bytes=_BYTES[place.engine.name]))
            statements.run("SELECT job, owner, claims, plan, checkpoint FROM workbench_store_jobs WHERE job = ''")

    def _check_owner(self, statements: Statements) -> int:
        """The next token, if this run owns the rows."""
        found = statements.run(
            "UPDATE workbench_store_jobs SET claims = claims + 1 WHERE job = ? AND owner = ? RETURNING claims",
            (self._job, self._owner),
        )
        if not found:
            raise CheckpointError(
                f"another process continues this job from {self._database.place.url}: this one ends, and its writes "
                "are refused"
            )
        return int(found[0][0])


def _insert(statements: Statements, job: str, task: str, cells: Iterable[Cell]) -> None:
    rows = [(job, task, cell.kind, cell.name, cell.number, cell.content) for cell in cells]
    if rows:
        statements.run_each(_INSERT, rows)


def _delete(statements: Statements, job: str) -> None:
    for table in _OF_JOB:
        statements.run(f"DELETE FROM {table} WHERE job = ?", (job,))
