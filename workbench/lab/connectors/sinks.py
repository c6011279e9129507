"""The contract of sinks: the guarantee holds whenever the job crashes, and what would break it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count

from workbench.connectors.contract.base import Sink, SinkContext
from workbench.errors import CommittedRowsError, SinkError
from workbench.lab.connectors.contract_error import ContractError
from workbench.lab.connectors.sink_run import SINK_SCHEMA, SinkRun

MOMENTS = (
    "before the snapshot",
    "after the snapshot",
    "when the checkpoint is written",
    "when some subtasks are notified",
    "when all subtasks are notified",
    "when all subtasks are notified twice",
)
"""Moments of a checkpoint, in order; it is complete from "written" on."""

_WRITTEN = MOMENTS.index("when the checkpoint is written")
_SOME = MOMENTS.index("when some subtasks are notified")

Read = Callable[[Sink], Iterable[object]]


def check_sink(
    make: Callable[[int], Sink],
    read: Read | None = None,
    *,
    rows: int = 4,
    parallelism: Sequence[tuple[int, int]] = ((1, 1), (2, 3), (3, 2)),
    fenced: bool = False,
) -> int:
    """Run a sink through the contract of sinks.

    Rows with the columns ``key`` and ``value`` (see `SINK_SCHEMA`) are processed by several subtasks. For each record
    boundary, each moment of a checkpoint there and each parallelism, the subtasks crash, alone or with their process,
    and new ones restore the latest complete checkpoint, which passes through the format of checkpoints. Then the crash
    is repeated, the rest is processed, and the job crashes once more. Each time, a reader of the place compares its
    rows with the guarantee of the sink: exactly the rows before the latest complete checkpoint (``exactly-once``), each
    of them at least once (``at-least-once``), none twice (``at-most-once``), or, with an upsert key, the last row of
    each key in the end.

    A sink that is exactly once must also refuse to restore a checkpoint that is older than its rows and to start again
    without one, and a sink that holds its place must refuse another job.

    Source: D1: exactly-once sinks commit with the checkpoint; the audit of ``workbench simulate``.

    Args:
        make: returns a sink for `SINK_SCHEMA` that writes to an empty place, a different one for each number.
        read: returns the rows that another program sees at the place of a sink, each as (key, value), a dict or
            JSON text; None:
            ``Sink.committed``.
        rows: the number of rows, and so of record boundaries.
        parallelism: before and after each crash.
        fenced: also demand that a process that has stalled, and has been replaced, adds no rows.

    Returns:
        The number of crashes.

    Raises:
        ContractError: the sink breaks the contract; names the moment.

    Example:
        >>> import tempfile, workbench as wb
        >>> folder = tempfile.mkdtemp()
        >>> check_sink(lambda n: wb.ParquetSink(f"{folder}/{n}"), rows=2, parallelism=[(2, 3)])
        108
    """
    places, crashes = count(), 0
    seen_by = read or _committed
    for before, after in parallelism:
        for boundary in range(rows + 1):
            for moment in MOMENTS:
                for killed in (False, True):
                    who = "the process" if killed else "the subtasks"
                    said = (
                        f"{who} crashed {moment} at record {boundary}, at parallelism {before}, and went on at {after}:"
                    )
                    run = _run(make(next(places)), before, seen_by)
                    _crash_at(run, moment, boundary, rows, after, said, killed=killed)
                    crashes += 3
    sink = make(next(places))
    if sink.guarantee == "exactly-once":
        _refusals(_run(sink, 2, seen_by))
    _exclusive(make(next(places)))
    if fenced:
        _fenced(_run(make(next(places)), 2, seen_by))
    return crashes


def _committed(sink: Sink) -> Iterable[object]:
    rows = sink.committed()
    if rows is None:
        raise ContractError(f"the sink {sink.describe()!r} does not return its committed rows: pass check_sink a read")
    return rows


def _run(sink: Sink, parallelism: int, read: Read) -> SinkRun:
    return SinkRun(sink, parallelism, lambda: read(sink))


def _crash_at(run: SinkRun, moment: str, boundary: int, rows: int, after: int, said: str, *, killed: bool) -> None:
    """Crash at a moment of the second checkpoint, then right after the restore, and at the end."""
    stage = MOMENTS.index(moment)
    run.process(boundary)
    run.checkpoint()
    run.audit(said, restored=True)
    run.process(rows - boundary)
    if stage:
        taken = run.trigger()
        run.process(1)
        if stage >= _WRITTEN:
            run.write(taken)
        run.audit(said)
        if stage == _SOME:
            run.notify(taken, first=1)
        for _ in range(stage - _SOME):
            run.notify(taken)
    run.audit(said)
    for _ in range(2):
        for subtask in run.crash(after, killed=killed):
            subtask.close()
        run.audit(said, restored=True)
    run.process(rows + 2 - run.offset)
    run.checkpoint()
    run.audit_end(f"{said} at the end")
    for subtask in run.crash(after, killed=killed):
        subtask.close()
    run.audit_end(f"{said} after a crash at the end")
    run.close()


def _refusals(run: SinkRun) -> None:
    """An older checkpoint, and a start without one, are refused."""
    run.process(3)
    run.checkpoint()
    older = run.complete
    run.process(3)
    run.checkpoint()
    assert older is not None
    newest, run.complete = run.complete, older
    with suppress(CommittedRowsError):
        run.crash(2, killed=True)
        raise ContractError(
            "a checkpoint that is older than the rows is restored, so rows come twice: raise CommittedRowsError"
        )
    run.complete = newest
    with suppress(CommittedRowsError):
        run.sink.check_fresh(run.context)
        raise ContractError("a job starts afresh where it has written rows, which come twice: raise CommittedRowsError")
    run.close()


def _exclusive(sink: Sink) -> None:
    """Another job is refused while one holds the place."""
    if (held := sink.hold(SinkContext("one", "sink", SINK_SCHEMA, "one"))) is None:
        return
    try:
        with suppress(SinkError):
            held_too = sink.hold(SinkContext("two", "sink", SINK_SCHEMA, "two"))
            if held_too is not None:
                held_too.release()
            raise ContractError("two jobs hold the same place at a time: raise SinkError for the second one")
        held.keep()
    finally:
        held.release()


def _fenced(run: SinkRun) -> None:
    """A process stalls, another one continues from its checkpoint, and then the first one commits."""
    run.process(4)
    run.checkpoint()
    run.process(4)
    stalled = run.crash(2, killed=True)
    number = run.trigger().number
    for subtask in stalled:
        with suppress(SinkError):
            subtask.snapshot(number)
            subtask.notify_complete(number)
        subtask.close()
    run.process(4)
    run.checkpoint()
    run.audit_end("after a process has stalled, was replaced, and committed its rows all the same,")
    run.close()
