"""Files, sockets, replay logs and console output, as named connectors."""

from __future__ import annotations

import pyarrow as pa

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.files.file_source import FORMATS, FileSource
from workbench.connectors.files.json_times import UNITS, TimeUnit
from workbench.connectors.files.line_parser import LineFormat
from workbench.connectors.live.callback_sink import DiscardSink
from workbench.connectors.live.print_sink import PrintSink
from workbench.connectors.live.socket_source import SocketSource
from workbench.connectors.named.connector import Declared, NamedConnector
from workbench.connectors.named.options import Options
from workbench.connectors.parts.file_sink import FileSink
from workbench.connectors.parts.part_formats import PART_FORMATS
from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_sink import TableSink
from workbench.durations import parse_speed
from workbench.errors import PlanError, SettingError
from workbench.operators.functions.dead_letters import POLICIES

UNIT = "what numbers in columns of timestamps count, in JSON: 's', 'ms', 'us' or 'ns'"
ON_ERROR = "what happens to input that is not a record: 'fail' or 'dead_letter'"


def unit_of(options: Options) -> TimeUnit | None:
    """What numbers in columns of timestamps count; None: they are refused."""
    return options.one_of("unit", UNITS) if "unit" in options else None


def _file_source(options: Options, table: Declared) -> Source:
    form = options.optional("format") and options.one_of("format", list(FORMATS))
    return FileSource(
        options.text("path"),
        table.schema,
        table.event_time,
        form,  # type: ignore[arg-type]
        options.number("rate"),
        options.one_of("on_error", POLICIES, "fail"),
        unit_of(options),
    )


def _file_sink(options: Options, table: Declared) -> Sink:
    return FileSink(options.text("path"), options.one_of("format", list(PART_FORMATS), "parquet"))


def _socket_source(options: Options, table: Declared) -> Source:
    port = options.whole("port")
    if port is None:
        raise SettingError("the connector 'socket' needs the option 'port': add 'port' = '9999'")
    forms: tuple[LineFormat, ...] = ("text", "json", "csv")
    form = options.one_of("format", forms, "json")
    return SocketSource(
        options.text("host", "localhost"),
        port,
        format=form,
        columns=None if form == "text" else table.schema,
        event_time=table.event_time,
        retries=options.whole("retries", 0),
        on_error=options.one_of("on_error", POLICIES, "fail"),
        unit=unit_of(options),
    )


def _replay_source(options: Options, table: Declared) -> Source:
    log = ReplayLog.open(options.text("path"))
    source = ReplaySource(log, parse_speed(options.text("speed", "max")))
    for column in table.schema:
        found = source.schema.field(column.name).type if column.name in source.schema.names else "no column"
        times = isinstance(found, pa.DataType) and pa.types.is_timestamp(found) and pa.types.is_timestamp(column.type)
        if found != column.type and not times:  # times are read as recorded
            raise PlanError(
                f"the table {table.name!r} declares {column.name!r} as {column.type}, but the history has {found}: "
                "declare the columns of the history"
            )
    return source


FILES = NamedConnector(
    "filesystem",
    "files: Parquet, CSV, TSV or JSON lines",
    {
        "path": "a file, a folder, or a pattern; a folder for a sink",
        "format": "'parquet', 'csv', 'tsv' or 'json'; by default from the files' names, and for a sink 'parquet'",
        "rate": "records per second; full speed by default",
        "on_error": ON_ERROR,
        "unit": UNIT,
    },
    _file_source,
    _file_sink,
)
SOCKET = NamedConnector(
    "socket",
    "lines from a TCP server",
    {
        "host": "of the server; 'localhost' by default",
        "port": "of the server",
        "format": "'json' (the default), 'csv' or 'text'",
        "retries": "the number of reconnection attempts in a row; 0 by default",
        "on_error": ON_ERROR,
        "unit": UNIT,
    },
    _socket_source,
)
REPLAY = NamedConnector(
    "replay",
    "a recorded history",
    {"path": "of the history", "speed": "such as '600x'; 'max' by default"},
    _replay_source,
)
PRINT = NamedConnector("print", "the cell's output", {}, sink=lambda options, table: PrintSink())
BLACKHOLE = NamedConnector("blackhole", "counts rows and drops them", {}, sink=lambda options, table: DiscardSink())
MEMORY = NamedConnector(
    "memory",
    "a table in the job, for job.table()",
    {},
    sink=lambda options, table: TableSink(table.name, upsert_key=list(table.key)),
)
