"""The pipelines of simulations, each with random input and a plain model of the expected rows.

The models share no code with the operators: they are Python loops over the rows. Event times are disordered within the
source's bound, so that no record is late, except in the pipeline for late records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.keyed import KeyedStream
from workbench.api.streams.stream import Stream
from workbench.api.streams.windowed import WindowedStream
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.tables.table_sink import TableSink
from workbench.expressions import col
from workbench.lab.pipelines.comparing import Outputs, Rows, some
from workbench.lab.pipelines.comparing import differences as _differences
from workbench.lab.pipelines.comparing import equal as _equal
from workbench.lab.pipelines.databases import read_database
from workbench.lab.pipelines.inputs import Row
from workbench.lab.pipelines.inputs import source as _source
from workbench.lab.pipelines.recorded import recorded
from workbench.operators.aggregates import aggregations
from workbench.operators.contract.base import Counters
from workbench.operators.functions.dead_letters import as_json
from workbench.windows.tumbling import Tumbling

_COPIES = 8
"""Bytes of each record, for simulations that need to fill the memory that buffers share."""
_MANY = pa.schema([("m", pa.int64()), ("v", pa.int64())])


# Expressions are immutable: parsed once, each has one text.
_LARGE, _EVERY, _TWICE, _KEYED = col("v") > 3, col("n") >= 0, col("v") * 2, col("key").is_not_null()
_BUCKETS = {keys: col("m") % keys for keys in (1, 3, 40)}


@dataclass(frozen=True, slots=True)
class Trial:
    """One pipeline with its input.

    Attributes:
        pipeline: the pipeline to run.
        verify: returns sentences on how the committed rows differ from the expected ones.
        parallelisms: from which every start of the job draws; mostly few tasks, of which all orders can be tried.
        on_time: no record is late.
        folders: of its sinks that write files, by uid; the rows of Parquet parts are compared.
        outside: reads rows committed outside of the job, by the sink's uid; None: there are none.
        upserts: sinks whose rows replace one another; rows of all others are permanent once visible.
        records: a sink whose rows must be records of the input, and these records; None: there is none.
        settings: settings that the job must have; others are drawn.
        counted: returns sentences on how the sums of all operators' counters differ from the expected ones, given the
            committed rows; called after runs without a restart, because counters start with an attempt. None: not
            compared.
    """

    pipeline: Pipeline
    verify: Callable[[Outputs], list[str]]
    parallelisms: tuple[int, ...] = (1, 1, 1, 1, 2, 2, 2, 2, 3)
    on_time: bool = True
    folders: tuple[tuple[str, Path], ...] = ()
    outside: Callable[[], Outputs] | None = None
    upserts: tuple[str, ...] = ()
    records: tuple[str, Rows] | None = None
    settings: Mapping[str, int] = field(default_factory=dict)
    counted: Callable[[Outputs, Counters], list[str]] | None = None


def filtered(chance: Random, folder: Path) -> Trial:
    """A source, a filter and a sink in one chain."""
    stream, rows = _source(chance)
    kept = stream.filter(_LARGE).with_columns(double=_TWICE)
    expected = _rows((row.n, row.key, row.t, row.v, row.v * 2) for row in rows if row.v is not None and row.v > 3)
    return Trial(kept.sink_to(TableSink("out")), _equal("out", expected), records=("out", expected))


def windows(chance: Random, folder: Path) -> Trial:
    """Keyed windows behind a hash exchange."""
    stream, rows = _source(chance)
    size = _size(chance)
    return Trial(_windowed(stream.key_by("key"), size).sink_to(TableSink("out")), _equal("out", _by_window(rows, size)))


def latest(chance: Random, folder: Path) -> Trial:
    """A rolling aggregate: all its rows, and the latest row of each key."""
    stream, rows = _source(chance)
    rolling = stream.key_by("key").aggregate(n=aggregations.count(), total=aggregations.sum("v"))
    seen: Counter[str | None] = Counter()
    counts: Rows = Counter()
    for row in rows:
        seen[row.key] += 1
        counts[row.key, seen[row.key]] += 1
    last = _rows((key, n, _sum(row.v for row in rows if row.key == key)) for key, n in seen.items() if key is not None)

    def verify(outputs: Outputs) -> list[str]:
        every = _rows((key, n) for (key, n, _), copies in outputs["all"].items() for _ in range(copies))
        return [*_differences("all", every, counts), *_differences("latest", outputs["latest"], last)]

    pipeline = rolling.filter(_KEYED).sink_to(TableSink("latest", upsert_key="key")) + rolling.sink_to(TableSink("all"))
    return Trial(pipeline, verify, upserts=("latest",))


def numbered(chance: Random, folder: Path) -> Trial:
    """A rolling aggregate by a number: without nulls and texts, records are written directly into buffers."""
    stream, rows = _source(chance)
    keys = chance.choice(tuple(_BUCKETS))
    many = stream.flat_map(
        lambda row: [{"m": _COPIES * row["n"] + copy, "v": row["v"]} for copy in range(_COPIES)], _MANY
    )
    keyed = many.with_columns(bucket=_BUCKETS[keys]).key_by("bucket")
    if chance.random() < 0.5:
        counted = keyed.aggregate(count=aggregations.count(), first=aggregations.min("m"))
    else:  # an occasional null takes another path
        counted = keyed.aggregate(count=aggregations.count(), total=aggregations.sum("v"))
    expected: Rows = Counter((m % keys, m // keys + 1) for m in range(_COPIES * len(rows)))
    return Trial(counted.select("bucket", "count").sink_to(TableSink("out")), _equal("out", expected))


def united(chance: Random, folder: Path) -> Trial:
    """Windows over the union of two sources."""
    left, left_rows = _source(chance)
    right, right_rows = _source(chance)
    size = _size(chance)
    result = _windowed(left.filter(_EVERY).union(right).key_by("key"), size)
    return Trial(result.sink_to(TableSink("out")), _equal("out", _by_window([*left_rows, *right_rows], size)))


def islands(chance: Random, folder: Path) -> Trial:
    """Two pipelines without a common task: when one fails, the other continues."""
    left, left_rows = _source(chance)
    right, right_rows = _source(chance)
    size = _size(chance)
    place = folder / "right"
    counted = _windowed(left.key_by("key"), size).sink_to(TableSink("left"))
    kept = right.rebalance().filter(_LARGE).sink_to(_files_in(place))
    first = _equal("left", _by_window(left_rows, size))
    expected = _rows((row.n, row.key, row.t, row.v) for row in right_rows if row.v is not None and row.v > 3)
    second = _equal("right", expected)
    return Trial(counted + kept, lambda outputs: first(outputs) + second(outputs), folders=(("right", place),))


def rebalanced(chance: Random, folder: Path) -> Trial:
    """A source of one subtask spread over many, twice."""
    stream, rows = _source(chance)
    spread = stream.with_parallelism(chance.choice((1, 2))).rebalance().filter(_EVERY)
    again = spread.rebalance().with_columns(m=col("n") + 1)
    expected = _rows((row.n, row.key, row.t, row.v, row.n + 1) for row in rows)
    return Trial(again.sink_to(TableSink("out")), _equal("out", expected), records=("out", expected))


def exchanged(chance: Random, folder: Path) -> Trial:
    """Three exchanges of random kinds between operators of random widths."""
    stream, rows = _source(chance)
    kinds: list[Callable[[Stream], Stream]] = [
        lambda stream: stream.rebalance(local=True),
        Stream.shuffle,
        Stream.rebalance,
        lambda stream: stream.partition_by("n - 7"),
    ]
    for _ in range(3):
        stream = chance.choice(kinds)(stream).filter(_EVERY)
        if chance.random() < 0.5:
            stream = stream.with_parallelism(chance.choice((1, 2, 3, 4)))
        if chance.random() < 0.2:
            stream = stream.slot_sharing_group("apart")
    expected = _rows((row.n, row.key, row.t, row.v) for row in rows)
    return Trial(stream.sink_to(TableSink("out")), _equal("out", expected), records=("out", expected))


def broadcast(chance: Random, folder: Path) -> Trial:
    """Every record to every subtask."""
    stream, rows = _source(chance)
    parallelism = chance.choice((1, 2, 3))
    copies = stream.broadcast().select("n", "v")
    expected = _rows((row.n, row.v) for row in rows for _ in range(parallelism))
    return Trial(copies.sink_to(TableSink("out")), _equal("out", expected), (parallelism,))


def late(chance: Random, folder: Path, drops: float = 0.4) -> Trial:
    """Windows and the late records: together they are the input, whether late records go to a side output or, in a
    share `drops` of the trials, are counted and dropped."""
    size = chance.choice((30, 100))
    stream, rows = _source(
        chance,
        disorder=chance.choice((0, 3 * size, 3 * size)),
        bound=chance.choice((0, size)),
        idle_after=chance.choice((None, "200us")),
    )
    lateness = chance.choice((0, size))
    result = _windowed(stream.key_by("key"), size, lateness)
    expected = {(key, start): (n, total or 0) for (key, start, _, n, total, _) in _by_window(rows, size)}

    def in_windows(outputs: Outputs) -> dict[tuple[Any, ...], tuple[int, int]]:
        fired: dict[tuple[Any, ...], tuple[int, int]] = {}
        for key, start, _, n, total, _ in outputs["out"]:
            # A window that fires again has more records than before.
            fired[key, start] = max(fired.get((key, start), (0, 0)), (n, total or 0))
        return fired

    def fired_twice(outputs: Outputs) -> list[str]:
        times = Counter((key, start) for key, start, *_ in outputs["out"])
        again = [window for window, n in times.items() if lateness == 0 and n > 1]
        again += [row[:2] for row, copies in outputs["out"].items() if copies > 1]
        return [f"out: the window {start} of {key} was emitted twice" for key, start in again]

    def put_aside(outputs: Outputs) -> list[str]:
        whole = in_windows(outputs)
        for (_, key, t, v), copies in outputs["late"].items():
            n, total = whole.get((key, t - t % size), (0, 0))
            whole[key, t - t % size] = (n + copies, total + (v or 0) * copies)
        same = whole == expected
        problems = [] if same else [f"windows and late records are not the input: {some(whole, expected)}"]
        return fired_twice(outputs) + problems

    def dropped(outputs: Outputs) -> list[str]:
        found = in_windows(outputs).items()
        more = [window for window, (n, _) in found if n > expected.get(window, (0, 0))[0]]
        return fired_twice(outputs) + [f"out: the window {start} of {key} has too many records" for key, start in more]

    def counted(outputs: Outputs, totals: Counters) -> list[str]:
        timeless = sum(row.t is None for row in rows)
        taken = sum(n for n, _ in in_windows(outputs).values())
        aside = outputs["late"].total() if "late" in outputs else 0
        late, without = totals.numLateRecordsDropped, totals.numRecordsWithoutTimestamp
        if (late, without) == (len(rows) - timeless - taken - aside, timeless):
            return []
        return [
            f"of {len(rows)} records {taken} are in windows, {aside} were put aside and {timeless} have no event time, "
            f"but {late} were counted as late and {without} as without event time"
        ]

    out = result.sink_to(TableSink("out"))
    if chance.random() < drops:  # drawn last, so that the rest does not change
        return Trial(out, dropped, on_time=False, counted=counted)
    pipeline = out + result.side_output("late").sink_to(TableSink("late"))
    return Trial(pipeline, put_aside, on_time=False, counted=counted)


def layered(chance: Random, folder: Path) -> Trial:
    """Windows over windows behind two exchanges: barriers are aligned at three levels."""
    stream, rows = _source(chance)
    size = _size(chance)
    counts = stream.rebalance().filter(_EVERY).key_by("key").window(Tumbling(size)).aggregate(n=aggregations.count())
    result = WindowedStream(counts, ("n",), Tumbling(2 * size)).aggregate(keys=aggregations.count())
    inner: Counter[tuple[str | None, int]] = Counter(
        (row.key, row.t - row.t % size) for row in rows if row.t is not None
    )
    outer: Counter[tuple[int, int]] = Counter((n, start - start % (2 * size)) for (_, start), n in inner.items())
    expected = _rows((n, start, start + 2 * size, keys) for (n, start), keys in outer.items())
    return Trial(result.sink_to(TableSink("out")), _equal("out", expected))


def replayed(chance: Random, folder: Path) -> Trial:
    """Windows over a recorded history, replayed at a random pace."""
    disorder = chance.choice((0, 5, 200))
    log, rows = recorded(chance, folder, disorder)
    stream = Stream.replay(log, speed=chance.choice(("max", 0.1)), out_of_orderness=f"{disorder}us")
    size = _size(chance)
    return Trial(_windowed(stream.key_by("key"), size).sink_to(TableSink("out")), _equal("out", _by_window(rows, size)))


def silent(chance: Random, folder: Path) -> Trial:
    """Channels of a recorded history that become silent, and receivers that keep them waiting, which is different."""
    log, rows = recorded(chance, folder, 0, long=chance.random() < 0.5, most=20)
    stream = Stream.replay(log, speed=chance.choice(("max", "max", 0.1)), idle_after="200us")
    # Silence makes later records late, so nothing here depends on event time.
    received = stream.select("n", "v").rebalance().filter(_EVERY).sink_to(TableSink("out"))
    # Few records fill a few buffers of one, and silence is detected only when event time is updated.
    settings = {
        "buffer_size": 1,
        "floating_buffers": chance.choice((0, 1)),
        "watermark_interval_us": chance.choice((100, 1_000)),
    }
    return Trial(received, _equal("out", _rows((row.n, row.v) for row in rows)), on_time=False, settings=settings)


def in_files(chance: Random, folder: Path) -> Trial:
    """Files that become visible with their checkpoints."""
    stream, rows = _source(chance)
    place = folder / "files"
    expected = _rows((row.n, row.key, row.t, row.v) for row in rows)
    return Trial(stream.sink_to(_files_in(place)), _equal("files", expected), folders=(("files", place),))


def in_a_database(chance: Random, folder: Path) -> Trial:
    """Two tables of one database: one gets rows with its checkpoints, the other the latest row of each key at once."""
    stream, rows = _source(chance)
    url, known = f"sqlite:///{folder}/out.db", stream.filter(_KEYED)
    appended = stream.select("n", "key").sink_to(SqlSink(url, "rows"))
    counts = known.key_by("key").aggregate(n=aggregations.count(), last=aggregations.max("n"))
    upserted = counts.sink_to(SqlSink(url, "latest", upsert_key="key"))
    expected = Counter((row.n, row.key) for row in rows)
    groups = {key: [row.n for row in rows if row.key == key] for key in {row.key for row in rows} - {None}}
    last = Counter((key, len(numbers), max(numbers)) for key, numbers in groups.items())

    def verify(outputs: Outputs) -> list[str]:
        return [*_differences("rows", outputs["rows"], expected), *_differences("latest", outputs["latest"], last)]

    read = partial(read_database, folder / "out.db", ("rows", "latest"))
    return Trial(appended + upserted, verify, outside=read, upserts=("latest",))


def poisoned(chance: Random, folder: Path) -> Trial:
    """Functions that fail on some records: output and dead letters together are the input (I15), and every dead letter
    has the row's position in the source."""
    stream, rows = _source(chance)
    bad = chance.randrange(-9, 10)

    def inverse(row: dict[str, Any]) -> dict[str, Any]:
        return {"n": row["n"], "inverse": 60 // (row["v"] - bad)}

    made = stream.map(inverse, {"n": pa.int64(), "inverse": pa.int64()}, on_error="dead_letter")
    letters = made.dead_letters().select("record", "key", "position")
    good = Counter((row.n, 60 // (row.v - bad)) for row in rows if row.v is not None and row.v != bad)
    dead = Counter((as_json(row._asdict()), None, f"row {row.n}") for row in rows if row.v is None or row.v == bad)

    def verify(outputs: Outputs) -> list[str]:
        found: Rows = Counter()
        for (record, key, position), copies in outputs["dead"].items():
            found[record, key, str(position).rpartition(", ")[2]] += copies  # after the word for the kind of source
        return [*_differences("good", outputs["good"], good), *_differences("dead", found, dead)]

    def counted(outputs: Outputs, totals: Counters) -> list[str]:
        errors = totals.numRecordsInErrors
        return [] if errors == dead.total() else [f"{errors} errors were counted, and {dead.total()} records are bad"]

    pipeline = made.sink_to(TableSink("good")) + letters.rebalance().sink_to(TableSink("dead"))
    return Trial(pipeline, verify, counted=counted)


TOPOLOGIES: dict[str, Callable[[Random, Path], Trial]] = {
    "filtered": filtered,
    "windows": windows,
    "latest": latest,
    "numbered": numbered,
    "united": united,
    "islands": islands,
    "rebalanced": rebalanced,
    "broadcast": broadcast,
    "exchanged": exchanged,
    "late": late,
    "layered": layered,
    "replayed": replayed,
    "silent": silent,
    "in a database": in_a_database,
    "in files": in_files,
    "poisoned": poisoned,
}
"""Draws a trial, given a random source and a folder that it may use."""


def _size(chance: Random) -> int:
    return chance.choice((30, 100, 1_000))


def _files_in(place: Path) -> ParquetSink:
    """Files of a few rows, for which compression would take longer than everything else."""
    return ParquetSink(place, compression="none")


def _windowed(stream: KeyedStream, size: int, lateness: int = 0) -> Stream:
    windowed = stream.window(Tumbling(size), allowed_lateness=f"{lateness}us")
    return windowed.aggregate(n=aggregations.count(), total=aggregations.sum("v"), highest=aggregations.max("v"))


def _by_window(rows: Iterable[Row], size: int) -> Rows:
    """Rows of the result of `_windowed`, by a plain loop."""
    groups: dict[tuple[str | None, int], list[Row]] = {}
    for row in rows:
        if row.t is not None:
            groups.setdefault((row.key, row.t - row.t % size), []).append(row)
    return _rows(
        (key, start, start + size, len(group), _sum(row.v for row in group), _largest(row.v for row in group))
        for (key, start), group in groups.items()
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _rows(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return Counter(rows)
