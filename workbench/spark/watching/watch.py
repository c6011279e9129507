"""Watches the streaming queries of a session; see `watch`."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import SettingError
from workbench.packages import needed
from workbench.spark.engine.failures import sentence_of
from workbench.spark.watching.executors import ExecutorSeen, executors_of, losses
from workbench.spark.watching.observation import BatchSeen, reports_after, slow_batch, sources_of, states_of
from workbench.spark.watching.picture import cluster
from workbench.spark.watching.recording import QuerySeen, SparkRecording, continued

_EVERY_S = 0.5
_KEPT = 500
_EXECUTORS_EVERY = 4
"""Looks; a question for executors takes some milliseconds."""


class WatchedQuery:
    """What was seen of one query; one thread writes, any may read.

    Attributes:
        name: of the query, or its ID.
        batches: the last 500, oldest first.
        error: why it failed, in a sentence; empty: it has not.
    """

    def __init__(self, query: Any) -> None:
        self._query = query
        self.name: str = query.name or f"query {str(query.id)[:8]}"
        self.batches: deque[BatchSeen] = deque(maxlen=_KEPT)
        self.error = ""
        self._last: Mapping[str, Any] = {}
        self._over = False

    @property
    def state(self) -> str:
        """RUNNING, FAILED or FINISHED, as for jobs."""
        return "FAILED" if self.error else "FINISHED" if self._over else "RUNNING"

    def look(self) -> None:
        """Read the progress reports since the last look."""
        if self._over:
            return
        active = self._query.isActive  # before the reports, so that none after the last is missed
        known = self.batches[-1].number if self.batches else -1
        for progress in reports_after(self._query, known):
            self._last = progress
            self.batches.append(BatchSeen.of(progress))
        if not active:
            error = self._query.exception()
            self.error = "" if error is None else sentence_of(str(error))
            self._over = True

    @property
    def slow(self) -> str:
        """The slowest batch, and why."""
        return slow_batch(list(self.batches))

    def seen(self) -> QuerySeen:
        """What was seen of it so far."""
        sink = self._last.get("sink") or {}
        return QuerySeen(
            self.name,
            self.state,
            self.error,
            tuple(self.batches),
            tuple(sources_of(self._last)),
            tuple(states_of(self._last)),
            (str(sink.get("description", "sink")), int(sink.get("numOutputRows", -1))),
        )

    def html(self) -> str:
        """Its picture."""
        return self.seen().html()


class SparkWatch:
    """The picture of one query, or of all of a session; made by `watch`.

    Args:
        target: the query or the session.
        over: whether no other query will come; None: when those that were seen have ended.
        session: whose executors are shown; None: those of the target.
        told: of a job, HTML to stand above the picture of its query, however often that was started.

    Attributes:
        queries: what was seen of each, oldest first.
        executors: of the cluster, with those that were lost; none where the driver itself runs the tasks.

    In a notebook it is drawn again while the queries run.
    """

    def __init__(
        self,
        target: Any,
        over: Callable[[], bool] | None = None,
        session: Any = None,
        told: Callable[[], str] | None = None,
    ) -> None:
        self.queries: list[WatchedQuery] = []
        self.executors: list[ExecutorSeen] = []
        self._session = target if session is None else session
        self._told = told
        self._looks = 0
        self._target = target
        self._is_over = over
        self._many = not hasattr(target, "recentProgress")
        self._ended = threading.Event()
        self._look_once = threading.Lock()
        self.look()
        threading.Thread(target=_follow, args=(weakref.ref(self), self._ended), name="watch", daemon=True).start()

    def look(self) -> None:
        """Read what Spark reports now; a thread does it twice a second."""
        with self._look_once:
            known = {query._query.runId for query in self.queries}
            present = self._target.streams.active if self._many else [self._target]
            self.queries += [WatchedQuery(query) for query in present if query.runId not in known]
            for query in self.queries:
                query.look()
            if self._looks % _EXECUTORS_EVERY == 0:
                self.executors = executors_of(self._session)
            self._looks += 1

    @property
    def over(self) -> bool:
        """Whether all queries seen so far have ended, and no other one will come."""
        ended = all(query.state != "RUNNING" for query in self.queries)
        return ended and (self._is_over is None or self._is_over())

    def stop(self) -> None:
        """Look no more; the queries go on."""
        self._ended.set()

    def recording(self, path: str | Path | None = None) -> SparkRecording:
        """What was seen so far: the last 500 batches of each query.

        Args:
            path: of a file to write it to; None: do not write a file.

        Raises:
            SettingError: the file cannot be written.
        """
        self.look()
        recorded = SparkRecording(self._seen(), self.executors)
        if path is not None:
            recorded.save(path)
        return recorded

    def html(self) -> str:
        """The picture as it is now."""
        if not self.queries:
            return "<p>no streaming query is active in this session</p>"
        told = "" if self._told is None else self._told()
        return "".join([told, *(query.html() for query in self._seen()), cluster(self.executors)])

    def _seen(self) -> list[QuerySeen]:
        """Each query; of a job, all of them as one."""
        found = [query.seen() for query in self.queries]
        return found if self._told is None or not found else [continued(found, str(self._target.state))]

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        needed("workbench.jupyter.showing.redrawn", "a picture that is drawn again").show(self.html, self._still)

    def _still(self) -> bool:
        """Whether the picture will stay as it is."""
        return self._ended.is_set() or (bool(self.queries) and self.over)

    def __repr__(self) -> str:
        lines = [
            f"{query.name}: {query.state}, {len(query.batches)} batches"
            + (f"; {query.slow}" if query.slow else "")
            + (f"; {query.error}" if query.error else "")
            for query in self.queries
        ]
        lines += losses(self.executors) if lines else []
        return "\n".join(lines) or "no streaming query is active in this session"


def watch(target: object) -> SparkWatch:
    """Watch streaming queries written in plain PySpark: their plan, sources, event time, state, and batches.

    It reads the progress reports that Spark keeps, twice a second; the query does not change and is not slowed down.
    What Spark does not measure (buffers, back-pressure, the load of a subtask) is not shown.

    Source: the progress reports of Spark's Structured Streaming.

    Args:
        target: a ``StreamingQuery``, or a ``SparkSession``, whose queries are all watched.

    Raises:
        SettingError: neither of them.
        MissingPackageError: PySpark is not installed.

    Example:
        >>> wb.watch("a query")
        Traceback (most recent call last):
        ...
        workbench.errors.SettingError: watch got 'a query': pass a StreamingQuery or a SparkSession of PySpark
    """
    needed("pyspark.sql", "watching Spark")
    if not (hasattr(target, "recentProgress") or hasattr(target, "streams")):
        raise SettingError(f"watch got {target!r}: pass a StreamingQuery or a SparkSession of PySpark")
    return SparkWatch(target)


def _follow(watched: weakref.ref[SparkWatch], ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        one = watched()
        if one is None:
            return
        try:
            one.look()
        except Exception:  # noqa: BLE001  the session may be gone; what was seen stays
            return
        if one.over and one.queries and (one._is_over is not None or not one._many):
            return
