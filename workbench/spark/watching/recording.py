"""What was seen of streaming queries, in a file that needs neither Spark nor the queries."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.arguments import path_of
from workbench.errors import SettingError
from workbench.from_json import made, parsed
from workbench.spark.watching.executors import ExecutorSeen
from workbench.spark.watching.observation import PHASES, BatchSeen, SourceSeen, StateSeen, slow_batch
from workbench.spark.watching.picture import cluster, page
from workbench.telemetry.whole_file import replaced

_FORMAT = "workbench recording of Spark"
_MOST = 1 << 26
"""Bytes of a file's content, decompressed; a thousand batches have a third of a megabyte."""


@dataclass(frozen=True, slots=True)
class QuerySeen:
    """One query.

    Attributes:
        name: of the query.
        state: RUNNING, FAILED or FINISHED.
        error: why it failed; empty: it has not.
        batches: oldest first.
        sources, states: in the last batch.
        sink: its description, and the rows that it wrote in the last batch; -1: not counted.
    """

    name: str
    state: str
    error: str
    batches: tuple[BatchSeen, ...]
    sources: tuple[SourceSeen, ...]
    states: tuple[StateSeen, ...]
    sink: tuple[str, int]

    def html(self) -> str:
        """Its picture."""
        return page(
            self.name,
            self.state,
            self.batches,
            self.sources,
            self.states,
            self.sink,
            slow_batch(self.batches),
            self.error,
        )


def continued(parts: Sequence[QuerySeen], state: str) -> QuerySeen:
    """A job's query that was started several times, each time from its last batch, as one.

    Args:
        parts: oldest first, at least one.
        state: of the job.

    Example:
        >>> first = QuerySeen("words", "FINISHED", "", (BatchSeen(0, "", 5, 9, {}, "", ""),), (), (), ("sink", -1))
        >>> again = QuerySeen("words", "RUNNING", "", (BatchSeen(1, "", 7, 9, {}, "", ""),), (), (), ("sink", -1))
        >>> [batch.rows for batch in continued([first, again], "RUNNING").batches]
        [5, 7]
    """
    newest = next((part for part in reversed(parts) if part.batches), parts[-1])
    batches = {batch.number: batch for part in parts for batch in part.batches}
    error = parts[-1].error if state == "FAILED" else ""
    return replace(newest, state=state, error=error, batches=tuple(batches[number] for number in sorted(batches)))


@dataclass(frozen=True, slots=True)
class _Content:
    format: str
    queries: tuple[QuerySeen, ...]
    executors: tuple[ExecutorSeen, ...]


class SparkRecording:
    """What was seen of queries and executors; made by ``job.recording()`` of a job on Spark, and by `SparkWatch`.

    It holds counts and names but no records, and no code.

    Source: Spark's progress reports.

    Args:
        queries: oldest first.
        executors: of the cluster.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/run.recording"
        >>> seen = SparkRecording([QuerySeen("words", "RUNNING", "", (), (), (), ("sink", -1))])
        >>> SparkRecording.open(seen.save(path)).queries == seen.queries
        True
    """

    def __init__(self, queries: Sequence[QuerySeen], executors: Sequence[ExecutorSeen] = ()) -> None:
        self.queries = tuple(queries)
        self.executors = tuple(executors)

    @staticmethod
    def open(path: str | Path) -> SparkRecording:
        """Read a recording from a file, which may come from anyone.

        Args:
            path: of a file that `save` wrote.

        Raises:
            SettingError: there is no such file, or it is not a complete recording of Spark.
        """
        file = path_of(path, "path")
        try:
            with gzip.open(file, "rb") as opened:
                text = opened.read(_MOST + 1)
            if len(text) > _MOST:
                raise ValueError(f"it has more than {_MOST:,} bytes")
            content = made(_Content, parsed(text), "it")
            if content.format != _FORMAT:
                raise ValueError(f"its format is {content.format!r}")
            phases = {name for query in content.queries for batch in query.batches for name in batch.phases_ms}
            if strange := phases - set(PHASES):
                raise ValueError(f"it has the phase {min(strange)!r}")
        except OSError as error:
            raise SettingError(f"no recording can be read from {str(file)!r}: {error.strerror or error}") from error
        except (ValueError, EOFError, zlib.error) as error:
            raise SettingError(f"{str(file)!r} is not a complete recording of a job on Spark: {error}") from error
        return SparkRecording(content.queries, content.executors)

    def save(self, path: str | Path) -> Path:
        """Write it to a file, as compressed JSON.

        Args:
            path: of the file; an existing one is replaced.

        Raises:
            SettingError: the file cannot be written.
        """
        target = path_of(path, "path")
        text = json.dumps(asdict(_Content(_FORMAT, self.queries, self.executors)))
        with replaced(target) as draft:
            draft.write_bytes(gzip.compress(text.encode()))
        return target

    def html(self) -> str:
        """The picture as it was then."""
        return "".join([*(query.html() for query in self.queries), cluster(self.executors)])

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        lines = [f"{query.name}: {query.state}, {len(query.batches)} batches" for query in self.queries]
        return "\n".join(lines) or "no streaming query was active"
