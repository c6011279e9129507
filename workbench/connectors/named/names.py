"""Creates sources and sinks from the name of a connector, options as text, and the declaration of a table."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.named.brokers import KAFKA, NATS
from workbench.connectors.named.connector import Declared, NamedConnector, NamedLookup
from workbench.connectors.named.feeds import EVENTS, MQTT, WEB_SOCKET
from workbench.connectors.named.files import BLACKHOLE, FILES, MEMORY, PRINT, REPLAY, SOCKET
from workbench.connectors.named.options import Options
from workbench.connectors.named.stores import POSTGRES_CDC, REDIS, SQL
from workbench.errors import SettingError, unknown

CONNECTORS: Mapping[str, NamedConnector] = {
    connector.name: connector
    for connector in (
        *(
            FILES,
            SOCKET,
            REPLAY,
            KAFKA,
            NATS,
            REDIS,
            SQL,
            POSTGRES_CDC,
            EVENTS,
            WEB_SOCKET,
            MQTT,
            PRINT,
            BLACKHOLE,
            MEMORY,
        ),
    )
}
"""The connectors by name, for ``'connector' = '...'``."""
_CHOICE = "connector"


def named_source(options: Mapping[str, str], table: Declared) -> Source:
    """Create the source of a declared table.

    Args:
        options: ``connector`` and the options of that connector, as text. Secrets are references: ``${NAME}`` for an
            environment variable, ``${keyring:service/user}``.
        table: its declaration.

    Raises:
        SettingError: the connector or an option is unknown, an option is missing or invalid, or a secret is in plain
            text.
        WorkbenchError: the source refuses its arguments.

    Example:
        >>> import pyarrow as pa
        >>> table = Declared("lines", pa.schema({"n": pa.int64()}))
        >>> named_source({"connector": "socket", "port": "9999", "format": "json"}, table).describe()
        'localhost:9999, json'
    """
    connector, given = _chosen(options)
    if connector.source is None:
        raise SettingError(
            f"the connector {connector.name!r} ({connector.title}) cannot be read: choose {_those_with('source')}"
        )
    return connector.source(given, table)


def named_sink(options: Mapping[str, str], table: Declared) -> Sink:
    """Create the sink of a declared table; see `named_source`.

    Raises:
        SettingError: as for `named_source`.
        WorkbenchError: the sink refuses its arguments.

    Example:
        >>> import pyarrow as pa
        >>> named_sink({"connector": "print"}, Declared("out", pa.schema({"n": pa.int64()}))).name
        'print'
    """
    connector, given = _chosen(options)
    if connector.sink is None:
        raise SettingError(
            f"the connector {connector.name!r} ({connector.title}) cannot be written to: choose {_those_with('sink')}"
        )
    return connector.sink(given, table)


def named_lookup(options: Mapping[str, str], table: Declared) -> NamedLookup | None:
    """Create the look-up table of a declared table, or None if its connector has no look-ups; see `named_source`.

    Raises:
        SettingError: as for `named_source`.

    Example:
        >>> import pyarrow as pa
        >>> named_lookup({"connector": "print"}, Declared("out", pa.schema({"n": pa.int64()}))) is None
        True
    """
    connector, given = _chosen(options)
    return None if connector.lookup is None else connector.lookup(given, table)


def _chosen(options: Mapping[str, str]) -> tuple[NamedConnector, Options]:
    name = options.get(_CHOICE)
    if name is None:
        raise SettingError(f"a table needs the option 'connector': add 'connector' = '...', one of {_all()}")
    if name not in CONNECTORS:
        raise SettingError(unknown("connector", name, CONNECTORS))
    connector = CONNECTORS[name]
    rest = {key: value for key, value in options.items() if key != _CHOICE}
    return connector, Options(name, rest, connector.options)


def _all() -> str:
    return ", ".join(sorted(CONNECTORS))


def _those_with(part: str) -> str:
    return " or ".join(sorted(name for name, item in CONNECTORS.items() if getattr(item, part) is not None))
