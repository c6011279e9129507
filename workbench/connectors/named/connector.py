"""A connector under a name: what it can be, its options, and how it is created from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.named.options import Options
from workbench.operators.functions.lookup_table import LookupTable


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a table that a connector reads or writes.

    Attributes:
        name: of the table.
        schema: its columns.
        event_time: the column with event times, or None.
        key: columns by which a row replaces another one; empty: rows are only added.
    """

    name: str
    schema: pa.Schema
    event_time: str | None = None
    key: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NamedLookup:
    """A table that records are looked up in.

    Attributes:
        table: the table by its key columns.
        cache: how long an answer holds; None: for the records of a batch.
    """

    table: Callable[[Sequence[str]], LookupTable]
    cache: str | None = None


@dataclass(frozen=True, slots=True)
class NamedConnector:
    """A connector under a name.

    Attributes:
        name: as in ``'connector' = 'redis'``.
        title: what it is, in a few words.
        options: names and meanings; a name that ends in ``*`` stands for all that begin so.
        source: creates its source; None: it has none.
        sink: creates its sink; None: it has none.
        lookup: creates a table to look rows up in; None: it has none.
    """

    name: str
    title: str
    options: Mapping[str, str] = field(repr=False)
    source: Callable[[Options, Declared], Source] | None = None
    sink: Callable[[Options, Declared], Sink] | None = None
    lookup: Callable[[Options, Declared], NamedLookup] | None = None
