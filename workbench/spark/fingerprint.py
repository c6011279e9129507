"""The identity of a DataFrame's source, equal in every session, so that a stale history is detected.

A frame that reads nothing but files is known by its query and by the size and modification time of each file, which
costs no job. Any other frame (made from local data, a database, a stream of numbers) is known by its content: Spark
counts its records and sums up their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from workbench.connectors.replay.log import Progress
from workbench.spark.progress import run_job
from workbench.spark.session import spark_setting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_REASONS = {
    "schema": "its columns have changed",
    "options": "other options were given",
    "query": "the query has changed",
    "files": "its source files have changed",
    "content": "its records have changed",
    "data": "the data set has changed",
    "appended": "records were appended to it",
}
"""Why a log is stale, by the part of the fingerprint that differs."""


def fingerprint(df: DataFrame, progress: Progress) -> dict[str, str]:
    """The identity of a frame's records; runs a Spark job only where the records themselves must be looked at."""
    marks = {"schema": _hash(df.schema.json())}
    if _reads_only_files(df):
        marks["query"] = _hash(_query(df))
        marks["files"] = _hash("\n".join(sorted(_file_mark(file) for file in df.inputFiles())))
    else:
        marks["content"] = run_job(df.sparkSession, lambda: _content(df), "compare", progress)
    return marks


def difference(old: Mapping[str, str], new: Mapping[str, str]) -> str | None:
    """Why a log with fingerprint `old` does not hold what `new` describes; None when it does.

    Example:
        >>> difference({"files": "a"}, {"files": "b"})
        'its source files have changed'
    """
    for name in [*new, *old]:
        if old.get(name) != new.get(name):
            return _REASONS.get(name, f"its {name} has changed")
    return None


def quoted(name: str) -> str:
    """A column's name in Spark SQL, whatever it consists of."""
    return f"`{name.replace('`', '``')}`"


def row_hash(df: DataFrame, names: Sequence[str] = ()) -> Column:
    """A hash of these columns of a row, or of all; the same in every session."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, MapType, StructType

    def plain(name: str, kind: Any) -> Column:
        column = df[quoted(name)]
        return functions.to_json(column) if isinstance(kind, ArrayType | MapType | StructType) else column

    fields = [field for field in df.schema if not names or field.name in names]
    return functions.xxhash64(*[plain(field.name, field.dataType) for field in fields])


def _content(df: DataFrame) -> str:
    from pyspark.sql import functions

    # Sums do not depend on the order of the records, which Spark does not guarantee.
    total = functions.sum(row_hash(df).cast("decimal(38,0)"))
    return str(df.agg(functions.count("*"), total).collect()[0])


def _reads_only_files(df: DataFrame) -> bool:
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return False
        if leaf.relation().getClass().getSimpleName() != "HadoopFsRelation":
            return False
    return True


def _query(df: DataFrame) -> str:
    """The analysed plan without the column numbers that a session assigns, and Spark's own hash of it.

    The text alone would not show the options of a reader, and the hash alone is short.
    """
    with spark_setting(df.sparkSession, "spark.sql.debug.maxToStringFields", "100000"):
        text = df._jdf.queryExecution().analyzed().canonicalized().toString()
    return f"{text}\n{df.semanticHash()}"


def _file_mark(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return uri
    stat = Path(unquote(parts.path)).stat()
    return f"{uri} {stat.st_size} {stat.st_mtime_ns}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
