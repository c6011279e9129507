"""The PostgreSQL sink compared with COPY alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil
import pyarrow as pa

import workbench as wb
from workbench.errors import SettingError
from workbench.lab.bench.works.connectors.beside import Beside, measured
from workbench.packages import needed

ROWS = 4_000_000
"""Starting a job and opening its connections take as long as writing some 200,000 rows."""
_BATCH = 100_000
_USER = "postgres"
_TABLES = count()


def postgresql_speeds(repeats: int, rows: int = ROWS) -> Iterator[Beside]:
    """For each round: COPY alone in transactions of 100,000 rows, and the sink, exactly once, a checkpoint a second.
    The server's processor time counts, too: it does most of the work.

    Args:
        repeats: number of rounds.
        rows: to write.

    Raises:
        SettingError: PostgreSQL is not installed, or does not start.
        MissingPackageError: a package is missing.
    """
    table = pa.table({"id": range(rows), "user": [f"user-{n % 977}" for n in range(rows)], "amount": [0.25] * rows})
    with _server() as (url, server):
        for _ in range(repeats):
            alone = measured("COPY alone", rows, lambda: _copy(url, table), (), server)
            yield alone
            yield measured("SqlSink", rows, lambda: _write(url, table), (alone,), server)


def _copy(url: str, table: pa.Table) -> bool:
    name = f"copied_{next(_TABLES)}"
    driver = needed("adbc_driver_postgresql.dbapi", "PostgreSQL")
    with driver.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f'CREATE TABLE {name} (id BIGINT, "user" TEXT, amount DOUBLE PRECISION)')
        for begin in range(0, table.num_rows, _BATCH):
            cursor.adbc_ingest(name, table.slice(begin, _BATCH), mode="append")
            connection.commit()
    return bool(_count(url, name) == table.num_rows)


def _write(url: str, table: pa.Table) -> bool:
    name = f"written_{next(_TABLES)}"
    pipeline = wb.Stream.from_table(table).sink_to(wb.SqlSink(url, name))
    job = pipeline.run("postgresql-speed", parallelism=1, checkpoint_interval="1s")
    return job.wait("600s") == "FINISHED" and _count(url, name) == table.num_rows


def _count(url: str, name: str) -> int:
    driver = needed("adbc_driver_postgresql.dbapi", "PostgreSQL")
    with driver.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {name}")
        return int(cursor.fetchone()[0])


@contextmanager
def _server() -> Iterator[tuple[str, psutil.Process]]:
    """A server at a socket in a folder of its own; it refuses to run as root."""
    needed("adbc_driver_postgresql.dbapi", "PostgreSQL")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    program = shutil.which("pg_ctl") or (found[-1] if found else None)
    if program is None:
        raise SettingError("PostgreSQL is not installed: install it (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="wb-pg-"))  # a socket's path is short
    own = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
    if own:
        shutil.chown(folder, _USER)

    def run(name: str, *arguments: str) -> None:
        command = [*own, str(Path(program).parent / name), "-D", str(folder / "data"), *arguments]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        except (subprocess.CalledProcessError, OSError) as error:
            raise SettingError(f"{name} of PostgreSQL fails: run '{' '.join(command)}' to see why") from error

    try:
        run("initdb", "-A", "trust", "-U", "wb", "-E", "UTF8", "--no-sync")
        run("pg_ctl", "-l", str(folder / "log"), "-o", f"-k {folder} -c listen_addresses=", "-w", "start")
        number = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        yield f"postgresql://wb@/postgres?host={folder}", psutil.Process(number)
        run("pg_ctl", "-m", "fast", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
