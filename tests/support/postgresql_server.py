"""A real PostgreSQL server of a test's own, at a socket in its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_USER = "postgres"


class PostgresProcess:
    """A server whose data survives its restarts; it refuses to run as root.

    Args:
        programs: the folder of its programs.
        folder: an empty folder.
        options: further options of the server, as ``name=value``.
    """

    def __init__(self, programs: Path, folder: Path, *options: str) -> None:
        self.folder = folder
        self.url = f"postgresql://wb:pa55word@/postgres?host={folder}"
        self._programs = programs
        self._options = ("listen_addresses=", "fsync=off", *options)
        self._as = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, _USER)
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "wb", "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-k {self.folder} " + " ".join(f"-c {each}" for each in self._options)
        self._run("pg_ctl", *self._place(), "-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", *self._place(), "-m", "fast", "-w", "stop")

    def crash(self) -> None:
        """End it without a last checkpoint of its own."""
        self._run("pg_ctl", *self._place(), "-m", "immediate", "-w", "stop")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """What another program reads."""
        import adbc_driver_postgresql.dbapi as driver

        with driver.connect(self.url, autocommit=True) as connection:
            return rows_of(connection, sql)

    def _place(self) -> list[str]:
        return ["-D", str(self.folder / "data")]

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._programs / program), *arguments]
        with (self.folder / "out").open("ab") as out:
            subprocess.run(command, check=True, stdout=out, stderr=out, cwd=self.folder, timeout=60)


def rows_of(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def running(*options: str) -> Iterator[PostgresProcess]:
    """A server; skips the test where there is none.

    Its programs are those in the folder that ``WORKBENCH_POSTGRES_BIN`` names, else the newest that are installed.
    """
    pytest.importorskip("adbc_driver_postgresql", reason="the package adbc-driver-postgresql is not installed")
    program = _pg_ctl()
    if program is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path is short
    server = PostgresProcess(program.parent, folder, *options)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _pg_ctl() -> Path | None:
    """The program that starts and stops a server.

    Raises:
        FileNotFoundError: ``WORKBENCH_POSTGRES_BIN`` names a folder without it.
    """
    if chosen := os.environ.get("WORKBENCH_POSTGRES_BIN"):
        return (Path(chosen) / "pg_ctl").resolve(strict=True)
    found = [shutil.which("pg_ctl"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), reverse=True)]
    return next((Path(path) for path in found if path), None)
