"""The common part of feed descriptions: an address, columns, a format, and retries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa

from workbench.arguments import as_given, text_of, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.secrets import check_url, revealed, shown
from workbench.connectors.feeds.certificates import ca_file_of
from workbench.connectors.feeds.link import Link
from workbench.connectors.feeds.reader import FeedReader
from workbench.connectors.feeds.tcp_link import Address
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.connectors.messages.message_format import MessageFormat
from workbench.errors import SettingError
from workbench.expressions import ColumnName, column_name
from workbench.operators.functions.dead_letters import OnError, check_on_error
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller

_HEADER = re.compile(r"[\t\x20-\x7e]*")
_ENCRYPTED = ("https", "wss", "mqtts")


@dataclass(frozen=True)
class FeedSource(Source):
    """Base class of the sources over live feeds.

    Attributes:
        url: the URL of the feed; ``${NAME}`` is an environment variable.
        columns: the names and types of the columns.
        format: the format of messages.
        event_time: the event-time column, or None.
        headers: the headers of the request, with secrets as ``${NAME}``.
        on_error: how to handle a message that is not a record.
        retries: the number of reconnection attempts in a row.
        ca_file: a PEM file of the authorities to trust with TLS; empty: those of the system.
        unit: what numbers in columns of timestamps count, in JSON; None: they are refused.
    """

    url: str = field(repr=False)
    columns: SchemaLike = field(repr=False)
    format: MessageFormatName = "json"
    event_time: ColumnName | None = None  # type: ignore[assignment]
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    on_error: OnError = "fail"
    retries: int = 12
    ca_file: str | PathLike[str] = ""
    unit: TimeUnit | None = field(default=None, kw_only=True)
    schemes: ClassVar[Mapping[str, int]] = {}
    bounded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        text_of(self.url, "url", f"{next(iter(self.schemes))}://localhost")
        check_url(self.url)
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in self.schemes and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            forms = " or ".join(f"{scheme}://host" for scheme in self.schemes)
            raise SettingError(f"url is {shown(self.url)!r}: write {forms}")
        if self.headers is not None and not isinstance(self.headers, Mapping):
            raise SettingError(f"headers is {as_given(self.headers)}: write a dictionary of names and values")
        whole_number(self.retries, "retries", 0)
        object.__setattr__(self, "ca_file", ca_file_of(self.ca_file))
        object.__setattr__(self, "columns", declared_schema(self.columns, "the source", caller()))
        if self.event_time is not None:
            object.__setattr__(self, "event_time", column_name(self.event_time, "event_time"))
        check_event_time(self.schema, self.event_time)  # type: ignore[arg-type]
        check_on_error(self.on_error, None)
        self.message_format.check(self.schema)
        self.link()

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.columns

    @property
    def resettable(self) -> bool:
        """Most feeds cannot be replayed: messages are lost while the job is disconnected."""
        return False

    @cached_property
    def message_format(self) -> MessageFormat:
        """The format of messages; each message is one record."""
        if self.format not in ("json", "csv", "raw"):
            raise SettingError(f"format is {as_given(self.format)}: write 'json', 'csv' or 'raw'")
        return message_format(self.format, None, self.unit)

    @property
    def address(self) -> Address:
        """The address of the server."""
        parts = urlsplit(self.url)
        port = parts.port or self.schemes[parts.scheme]
        return Address(parts.hostname or "", port, parts.scheme in _ENCRYPTED, fspath(self.ca_file))

    def revealed_headers(self) -> dict[str, str]:
        """The headers, including secrets."""
        headers = {name: revealed(value) for name, value in (self.headers or {}).items()}
        for name, value in headers.items():
            if not _HEADER.fullmatch(value):
                raise SettingError(f"the header {name!r} has a line end, or a letter that is not ASCII: remove it")
        return headers

    def link(self) -> Link:
        """Create a connection without opening it."""
        raise NotImplementedError  # abstract

    @property
    def server(self) -> str:
        """Its URL without secrets, for messages."""
        return shown(urlsplit(self.url)._replace(query="", fragment="").geturl())

    def describe(self) -> str:
        return self.server

    def create(self) -> SourceReader:
        feed: Any = self
        return FeedReader(feed, self.link)
