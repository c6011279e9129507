"""Secrets of sources and lookups, which run in other processes: by reference only, and passed in the environment.

The plan that these processes receive is a file, so it may not hold a secret. They receive the environment variables to
which it refers from Spark, which otherwise gives them those of the time at which it was started.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from workbench.connectors.contract.base import Source
from workbench.connectors.contract.secrets import is_literal, references
from workbench.connectors.files.record_limit import SETTING as RECORD_LIMIT
from workbench.operators.functions.lookup_table import LookupTable
from workbench.plan.logical import LogicalGraph, Node

_DEPTH = 4
_OF_LIBPQ = ("PGPASSWORD", "PGUSER", "PGPASSFILE", "PGSSLPASSWORD")
"""Variables that a client of PostgreSQL reads by itself."""

_ONE_START = threading.RLock()
"""All jobs of a session share the dictionary from which Spark takes the variables when a query starts."""


def plain_secret(node: Node) -> str:
    """The name of an attribute or option of a source or lookup that has a secret in plain text; empty: none has."""
    return next((name for each in _sent(node) for name, text in _texts(each) if is_literal(name, text)), "")


@contextmanager
def environment_sent(spark: Any, graph: LogicalGraph) -> Iterator[None]:
    """Within the block, functions that are given to Spark take along the variables to which sources and lookups refer,
    and the limit of a record. Other jobs start before or after it.

    Args:
        spark: the session.
        graph: of the pipeline.
    """
    names = {
        name
        for node in graph.nodes
        for each in _sent(node)
        for _, text in _texts(each)
        for name in (*references(text), *(_OF_LIBPQ if text.startswith("postgresql://") else ()))
    } | {RECORD_LIMIT}
    values = {name: value for name in names if (value := os.environ.get(name)) is not None}
    with _ONE_START:
        environment: dict[str, str] = spark.sparkContext.environment if values else {}
        before = dict(environment)
        environment.update(values)
        try:
            yield
        finally:
            environment.clear()
            environment.update(before)


def _sent(node: Node) -> Iterator[object]:
    """The connectors of a node that run in other processes."""
    if isinstance(node.spec, Source):
        yield node.spec
    elif isinstance(function := getattr(node.spec, "function", None), LookupTable):
        yield function


def _texts(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts in an object, with the names of their attributes."""
    if isinstance(value, str):
        yield name, value
    elif depth > _DEPTH or isinstance(value, type | ModuleType | pa.Schema | pa.Table) or callable(value):
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, str(key), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts(item, name, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name, None), field.name, depth + 1)
    elif own := getattr(value, "__dict__", None):
        for key, item in own.items():
            yield from _texts(item, key, depth + 1)
