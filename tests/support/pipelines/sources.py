"""Random records, and the sources that read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb

from .draft import Draft
from .drawn import SECOND, Drawn

STRINGS = ("x", "y", "xy", "", "ü", "zz", "a longer text", "日本", "a\u0308", "\U0001f40c", "Straße\u200b")


def records(draft: Draft) -> pa.Table:
    """Random records; ``n`` numbers them, and ``t`` is at most ``draft.disorder_us`` out of order."""
    chance = draft.chance
    n = chance.choice((0, 1, 7, 40, 80, 80, 150, 150, 150, 300))
    few = chance.choice((1, 3, 5, 12))
    nulls = chance.choice((0.0, 0.15))
    apart_us = chance.choice((1_000, SECOND, SECOND, 4 * SECOND))
    grain_us = chance.choice((1_000, SECOND))
    nan = draft.sometimes(0.15)

    def some(draw: Callable[[], Any], part: float = nulls) -> list[Any]:
        return [None if draft.sometimes(part) else draw() for _ in range(n)]

    times = [at * apart_us + chance.randint(-draft.disorder_us, 0) // grain_us * grain_us for at in range(n)]
    for at in range(1, n):
        if draft.sometimes(0.2):
            times[at] = times[at - 1]
    stamps = [draft.base_us + time if not draft.sometimes(nulls / 3) else None for time in times]
    floats = [value / 4 for value in range(-20, 40)] + ([float("nan"), -0.0] * 8 if nan else [])
    return pa.table(
        {
            "n": pa.array(range(n), pa.int64()),
            "k": pa.array(some(lambda: f"k{chance.randrange(few)}"), pa.string()),
            "d": pa.array(some(lambda: chance.choice("pqr")), pa.string())
            .dictionary_encode()
            .cast(pa.dictionary(pa.int8(), pa.string())),
            "a": pa.array(some(lambda: chance.randint(-9, 30)), pa.int64()),
            "b": pa.array(some(lambda: chance.randint(0, few)), pa.int32()),
            "f": pa.array(some(lambda: chance.choice(floats)), pa.float64()),
            "g": pa.array(some(lambda: draft.sometimes(0.5)), pa.bool_()),
            "s": pa.array(some(lambda: chance.choice(STRINGS)), pa.string()),
            "t": _typed(draft, pa.array(stamps, pa.int64())),
        }
    )


def _typed(draft: Draft, micros: pa.Array) -> pa.Array:
    stamps = micros.cast(pa.timestamp("us", getattr(draft.time_type, "tz", None)))
    return stamps.cast(draft.time_type)


def source(draft: Draft) -> Drawn:
    """A table or files, read at some rate."""
    table, name = records(draft), draft.fresh("n")
    ordered, bound = True, f"{draft.disorder_us}us"
    rate = draft.chance.choice((None, 1_000, 20_000))  # watermarks are told as time passes
    if draft.sometimes(0.3) and len(table):
        ordered = False
        files = draft.folder / name
        files.mkdir()
        cut = draft.chance.randint(0, len(table))
        for number, part in enumerate((table.slice(0, cut), table.slice(cut))):
            pq.write_table(part, files / f"{number}.parquet", row_group_size=draft.chance.choice((5, 30)))
        stream = wb.Stream.from_files(files, event_time="t", out_of_orderness=bound, rate=rate)
        draft.story.append(f"{name} = {len(table)} rows of files, {draft.time_type}")
    else:
        stream = wb.Stream.from_table(table, event_time="t", out_of_orderness=bound, rate=rate)
        draft.story.append(f"{name} = {len(table)} rows of a table, {draft.time_type}")
    plain = table.set_column(table.column_names.index("d"), "d", table["d"].cast(pa.string()))
    times = table["t"]
    if draft.stamped:
        times = times.cast(pa.timestamp("us", getattr(draft.time_type, "tz", None)))
    micros = times.cast(pa.int64())
    shown = micros.cast(pa.timestamp("us")) if draft.stamped else micros
    plain = plain.set_column(plain.column_names.index("t"), "t", shown)
    draft.register(name, plain.append_column("_et", micros).append_column("_n", plain["n"]))
    time = "time" if draft.stamped else "micros"
    kinds = {"n": "int", "k": "str", "d": "str", "a": "int", "b": "int", "f": "float", "g": "bool", "s": "str"}
    return Drawn(stream, name, kinds | {"t": time}, ordered and draft.alone, True)
