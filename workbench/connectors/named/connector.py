"""A named connector: its kinds, its options, and how it is created from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.named.options import Options
from workbench.operators.functions.lookup_table import LookupTable


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a connector's table.

    Attributes:
        name: the name of the table.
        schema: its columns.
        event_time: the event-time column, or None.
        key: the columns that identify a row to replace; empty: rows are only added.
    """

    name: str
    schema: pa.Schema
    event_time: str | None = None
    key: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NamedLookup:
    """A table for look-ups.

    Attributes:
        table: creates the table, given its key columns.
        cache: how long an answer is cached; None: only within a batch.
    """

    table: Callable[[Sequence[str]], LookupTable]
    cache: str | None = None


@dataclass(frozen=True, slots=True)
class NamedConnector:
    """A connector with a name.

    Attributes:
        name: its name, as in ``'connector' = 'redis'``.
        title: a short description.
        options: the names and meanings of its options; a name that ends in ``*`` is a prefix.
        source: creates its source, or None.
        sink: creates its sink, or None.
        lookup: creates a table for look-ups, or None.
    """

    name: str
    title: str
    options: Mapping[str, str] = field(repr=False)
    source: Callable[[Options, Declared], Source] | None = None
    sink: Callable[[Options, Declared], Sink] | None = None
    lookup: Callable[[Options, Declared], NamedLookup] | None = None
