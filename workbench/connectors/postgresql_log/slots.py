"""The slots of a database, for those who look after the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workbench.connectors.contract.secrets import cause_of, shown
from workbench.connectors.postgresql_log.server import Server, SlotFacts
from workbench.connectors.sql.postgresql import PostgreSQL
from workbench.connectors.sql.server import SCHEME, DatabaseServer
from workbench.connectors.sql.session import fact_of, fixed
from workbench.errors import SettingError, SourceError, unknown


def slots_of(url: str) -> list[SlotFacts]:
    """The slots of the plug-in pgoutput in a database, by their names.

    Args:
        url: as of `PostgresLogSource`.

    Raises:
        SettingError: not such a URL.
        SourceError: the server cannot be asked.
        MissingPackageError: the package psycopg is not installed.
    """
    with _asked(url) as server:
        return server.slots()


def drop_slots(url: str, names: Sequence[str]) -> list[str]:
    """Drop slots that nobody reads; returns their names.

    Args:
        url: as of `PostgresLogSource`.
        names: none is dropped if one of them is refused.

    Raises:
        SettingError: not such a URL, there is no such slot of the plug-in pgoutput in the database, or it is active.
        SourceError: the server cannot be asked, or refuses.
        MissingPackageError: the package psycopg is not installed.
    """
    names = list(dict.fromkeys(names))
    with _asked(url) as server:
        known = {slot.name: slot for slot in server.slots()}
        for name in names:
            if name not in known:
                raise SettingError(unknown("slot", name, list(known)))
            if pid := known[name].active_pid:
                reader = f" by {known[name].reader!r}" if known[name].reader else ""
                raise SettingError(f"the slot {name!r} is read{reader} (PID {pid}): end its reader first")
        for name in names:
            server.drop_slot(name)
    return names


@contextmanager
def _asked(url: str) -> Iterator[Server]:
    if not url.startswith(f"{SCHEME}://"):
        raise SettingError(f"the URL is {shown(url)!r}: write {SCHEME}://[user[:password]@]host[:port]/database")
    DatabaseServer(PostgreSQL(), url)
    server = Server(url, "workbench slots")
    try:
        yield server
    except server.errors as error:
        raise SourceError(f"the slots of {shown(url)}: {fixed(fact_of(error, url))}") from cause_of(error, url)
    finally:
        server.close()
