"""Calls a learner's function, and makes sure that it returns a pipeline on the streams that it was given."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from workbench.api.job.registry import forget, jobs
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import MissingAnswerError, ViolatedError
from workbench.raised import described

Streams = Callable[..., Sequence[Stream]]
"""Makes the streams of an exercise from its tables."""

_PIPELINE = "a pipeline from the streams to the result"


def try_out(answer: Callable[..., Any], streams: Streams, tables: Sequence[pa.Table]) -> None:
    """Call an answer once with streams that have no records: if it runs a job of its own, that ends at once.

    Raises:
        ViolatedError, MissingAnswerError: as for `built`.
    """
    built(answer, streams(*(table.slice(0, 0) for table in tables)))


def built(answer: Callable[..., Any], streams: Sequence[Stream]) -> Stream:
    """The stream that an answer returns.

    Raises:
        ViolatedError: it fails, returns no stream, runs a job, or returns a stream of something else.
        MissingAnswerError: it returns ``...``.
    """
    before = jobs()
    try:
        result = answer(*streams)
    except (Exception, SystemExit) as error:
        _check_no_runs(before)
        raise ViolatedError("a function that works", f"it raises an error: {_where(error)}") from error
    _check_no_runs(before)
    if result is ...:
        raise MissingAnswerError("its function still returns `...`")
    if result is None:
        raise ViolatedError("a stream as the result", "the function returns nothing: is a `return` missing?")
    if not isinstance(result, Stream):
        kind = type(result).__name__
        more = {
            "WindowedStream": ": a window needs an aggregate",
            "KeyedStream": ": what should happen for each key?",
            "Pipeline": ": return the stream, and let the check end it in a sink",
            "Table": ": return a stream, whose rows are computed while its records arrive",
        }
        raise ViolatedError("a stream as the result", f"the function returns a {kind}{more.get(kind, '')}")
    _check_sources(result, streams)
    return result


def _check_no_runs(before: dict[str, Any]) -> None:
    ran = [job for name, job in jobs().items() if before.get(name) is not job]
    for job in ran:
        if not job.over:
            job.cancel()
        forget(job)
    if ran:
        raise ViolatedError(
            _PIPELINE,
            "the function runs a job itself, by `collect()`, `show()` or `run()`, and computes with its rows in "
            "Python. Such a program sees only records that are there already, and loses what it knows in a failure. "
            "Return a stream that is made of operators; the check runs it.",
        )


def _check_sources(result: Stream, streams: Sequence[Stream]) -> None:
    given = [spec for stream in streams for spec in _sources(stream)]
    for spec in _sources(result):
        if not any(spec is each for each in given):
            raise ViolatedError(
                _PIPELINE,
                f"the result comes from a source that the function makes itself ({spec.kind}), not from the stream "
                "that it is given. Rows that Python has computed before are no stream: return one that is made of the "
                "given stream and of operators.",
            )


def _sources(stream: Stream) -> list[Any]:
    graph = stream.sink_to(TableSink("sources")).logical_graph()
    return [node.spec for node in graph.nodes if node.role == "source"]


def _where(error: BaseException) -> str:
    if isinstance(error, WorkbenchError):
        return str(error)
    line = traceback.extract_tb(error.__traceback__)[-1]
    return f"{described(error)}, in line {line.lineno}: {line.line}"
