"""Finds the streaming queries and sessions of PySpark among a user's variables; imports nothing of PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import SettingError, unknown
from workbench.spark.watching.watch import SparkWatch, watch


def queries_in(variables: Mapping[str, object]) -> dict[str, Any]:
    """The streaming queries by the variable's name, in their order.

    Example:
        >>> queries_in({"n": 1})
        {}
    """
    return _held(variables, "StreamingQuery")


def sessions_in(variables: Mapping[str, object]) -> dict[str, Any]:
    """The sessions by the variable's name, in their order.

    Example:
        >>> sessions_in({"n": 1})
        {}
    """
    return _held(variables, "SparkSession")


def watch_variable(name: str | None, variables: Mapping[str, object]) -> SparkWatch:
    """Watch what a variable holds; without a name the session, which has all queries, or else the only query.

    Args:
        name: of the variable, or None.
        variables: by name.

    Raises:
        SettingError: no such variable, it holds neither a query nor a session, or it is unclear which one is meant.

    Example:
        >>> watch_variable(None, {})
        Traceback (most recent call last):
        ...
        workbench.errors.SettingError: no variable holds a streaming query or a session of PySpark: start a query, ...
    """
    sessions, queries = sessions_in(variables), queries_in(variables)
    known = {**queries, **sessions}
    if name is None:
        meant = sessions or queries
        different = {id(value): value for value in meant.values()}
        if not meant:
            raise SettingError(
                "no variable holds a streaming query or a session of PySpark: start a query, as in "
                "query = frame.writeStream.start()"
            )
        if len(different) > 1:
            raise SettingError(f"name what to watch, '%stream watch NAME', from {', '.join(known)}")
        return watch(next(iter(different.values())))
    if name in variables and name not in known:
        kind = type(variables[name]).__name__
        raise SettingError(
            f"the variable {name!r} holds an object of class {kind}, not a streaming query or a session of PySpark"
        )
    if name not in known:
        raise SettingError(unknown("query or session", name, known))
    return watch(known[name])


def _held(variables: Mapping[str, object], kind: str) -> dict[str, Any]:
    """Those whose class is PySpark's; only classes are looked at, because a value's attributes may have effects."""
    return {
        name: value
        for name, value in list(variables.items())
        if not name.startswith("_")
        and any(each.__name__ == kind and each.__module__.startswith("pyspark.") for each in type(value).__mro__)
    }
