"""Pipelines drawn from a seed: each built with the public API and, operator by operator, as SQL on DuckDB.

Every operator makes a table in DuckDB with the rows that its stream must have. Two hidden columns go along: ``_et``,
the event time in microseconds (null: none), and ``_n``, the order of rows where the stream has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import workbench as wb
from workbench.api.pipeline import Pipeline

SECOND = 1_000_000
ROWS_MAX = 3_000
DISORDER_US = 20 * SECOND
NUMBERS = ("int", "float")
KEYS = ("int", "str", "bool", "time")


@dataclass(frozen=True)
class Drawn:
    """A stream, and the DuckDB table of its rows.

    Attributes:
        kinds: of the columns: int, float, mean (a float that is only equal up to rounding), str, bool, time or list.
        ordered: whether it has one order, that of ``_n``.
        timed: whether its event times are known, so that windows can follow.
    """

    stream: wb.Stream
    table: str
    kinds: dict[str, str]
    ordered: bool
    timed: bool

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]


@dataclass(frozen=True)
class Expected:
    """What a sink must hold.

    Attributes:
        rows: in any order; None: only the last row of each of `keys` is told, which has the largest `count`.
        total: number of rows.
    """

    sink: str
    rows: pa.Table
    keys: tuple[str, ...] | None = None
    count: str = ""
    total: int = 0


class PipelineGenerator:
    """Draws one pipeline.

    Args:
        chance: the only source of chance.
        folder: for the files of sources and sinks.
        parallelism: of the job.
        most: operators.

    Attributes:
        story: what was drawn, a line each.
        expected: of each sink.
    """

    def __init__(self, chance: Random, folder: Path, parallelism: int, most: int = 8) -> None:
        self.chance = chance
        self.folder = folder
        self.parallelism = parallelism
        self.most = most
        self.story: list[str] = []
        self.expected: list[Expected] = []
        self.folders: dict[str, Path] = {}
        self._db = duckdb.connect(config={"threads": 1})
        self._sinks: list[Pipeline] = []
        self._names = 0
        self._base_us = chance.choice((0, 1_600_000_000 * SECOND, -40 * SECOND, 1_700_000_000_123_456))
        self._time_type = chance.choice((pa.int64(), pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us", "UTC")))
        if self._time_type == pa.timestamp("ms"):
            self._base_us -= self._base_us % 1000

    def draw(self) -> Pipeline:
        """The pipeline; its rows are in `expected`."""
        open_ends = [self._source()]
        operators = (
            (self._filter, 4),
            (self._with_columns, 4),
            (self._select, 2),
            (self._map, 1),
            (self._map_batches, 1),
            (self._flat_map, 1),
            (self._exchange, 2),
            (self._union, 2),
            (self._connect, 1),
            (self._lookup_join, 2),
            (self._assign_timestamps, 1),
            (self._rolling, 2),
            (self._time_window, 5),
            (self._count_window, 3),
            (self._window_join, 3),
            (self._interval_join, 2),
            (self._split, 1),
        )
        choices = [operator for operator, weight in operators for _ in range(weight)]
        for _ in range(self.chance.randint(1, self.most)):
            at = self.chance.randrange(len(open_ends))
            drawn = open_ends[at]
            ends = self.chance.choice(choices)(drawn)
            if ends is None:
                continue
            if self.chance.random() < 0.15:
                self._sink(drawn)
            ends = [self._with_parallelism(end) for end in ends]
            open_ends[at : at + 1] = ends
            if not open_ends:
                break
        for end in open_ends:
            self._sink(end)
        pipeline = self._sinks[0]
        for other in self._sinks[1:]:
            pipeline += other
        return pipeline

    # sources and sinks -------------------------------------------------------------------------------------------

    def _data(self) -> pa.Table:
        chance = self.chance
        n = chance.choice((0, 1, 7, 40, 80, 80, 150, 150, 150, 300))
        few = chance.choice((1, 3, 5, 12))
        nulls = chance.choice((0.0, 0.15))
        apart_us = chance.choice((1_000, SECOND, SECOND, 4 * SECOND))
        nan = chance.random() < 0.15

        def some(draw: Callable[[], Any], part: float = nulls) -> list[Any]:
            return [None if chance.random() < part else draw() for _ in range(n)]

        times = [at * apart_us + chance.randint(-DISORDER_US, 0) // 1000 * 1000 for at in range(n)]
        for at in range(n):
            if at and chance.random() < 0.2:
                times[at] = times[at - 1]
        stamps = [self._base_us + time if chance.random() >= nulls / 3 else None for time in times]
        strings = ["x", "y", "xy", "", "ü", "zz", "a longer text"]
        floats = [value / 4 for value in range(-20, 40)] + ([float("nan")] if nan else [])
        return pa.table(
            {
                "k": pa.array(some(lambda: f"k{chance.randrange(few)}"), pa.string()),
                "d": pa.array(some(lambda: chance.choice("pqr")), pa.string())
                .dictionary_encode()
                .cast(pa.dictionary(pa.int8(), pa.string())),
                "a": pa.array(some(lambda: chance.randint(-9, 30)), pa.int64()),
                "b": pa.array(some(lambda: chance.randint(0, few)), pa.int32()),
                "f": pa.array(some(lambda: chance.choice(floats)), pa.float64()),
                "g": pa.array(some(lambda: chance.random() < 0.5), pa.bool_()),
                "s": pa.array(some(lambda: chance.choice(strings)), pa.string()),
                "t": self._typed(pa.array(stamps, pa.int64())),
            }
        )

    def _source(self) -> Drawn:
        table, name = self._data(), self._fresh("n")
        ordered, bound = True, f"{DISORDER_US // SECOND}s"
        rate = self.chance.choice((None, 1_000, 20_000))  # watermarks are told as time passes
        if self.chance.random() < 0.3 and len(table):
            ordered = False
            files = self.folder / name
            files.mkdir()
            cut = self.chance.randint(0, len(table))
            for number, part in enumerate((table.slice(0, cut), table.slice(cut))):
                pq.write_table(part, files / f"{number}.parquet", row_group_size=self.chance.choice((5, 30)))
            stream = wb.Stream.from_files(files, event_time="t", out_of_orderness=bound, rate=rate)
            self.story.append(f"{name} = {len(table)} rows of files, {self._time_type}")
        else:
            stream = wb.Stream.from_table(table, event_time="t", out_of_orderness=bound, rate=rate)
            self.story.append(f"{name} = {len(table)} rows of a table, {self._time_type}")
        plain = table.set_column(1, "d", table["d"].cast(pa.string()))
        times = (
            plain["t"].cast(pa.timestamp("us", getattr(self._time_type, "tz", None))) if self._stamped else table["t"]
        )
        self._register(
            name,
            plain.set_column(plain.schema.get_field_index("t"), "t", self._as_sql_time(times))
            .append_column("_et", times.cast(pa.int64()))
            .append_column("_n", pa.array(range(len(table)), pa.int64())),
        )
        time = "time" if self._stamped else "micros"
        kinds = {"k": "str", "d": "str", "a": "int", "b": "int", "f": "float", "g": "bool", "s": "str", "t": time}
        return Drawn(stream, name, kinds, ordered and self.parallelism == 1, True)

    def _typed(self, micros: pa.Array) -> pa.Array:
        stamps = micros.cast(pa.timestamp("us", getattr(self._time_type, "tz", None)))
        return stamps.cast(self._time_type)

    @property
    def _stamped(self) -> bool:
        return self._time_type != pa.int64()

    def _as_sql_time(self, column: Any) -> Any:
        return column.cast(pa.int64()).cast(pa.timestamp("us")) if self._stamped else column

    def _sink(self, drawn: Drawn, keys: tuple[str, ...] | None = None, count: str = "") -> None:
        name = self._fresh("out")
        self.story.append(f"{name} <- {drawn.table}")
        stream = drawn.stream
        if self.chance.random() < 0.2 and "list" not in drawn.kinds.values():
            self.folders[name] = self.folder / name
            pipeline = stream.sink_to(wb.ParquetSink(self.folders[name]))
        else:
            pipeline = stream.sink_to(wb.TableSink(name))
        self._sinks.append(pipeline)
        rows = self._query(f"SELECT {_columns(drawn.kinds)} FROM {drawn.table}")
        self.expected.append(Expected(name, rows, keys, count, len(rows)))

    # one record, one record --------------------------------------------------------------------------------------

    def _condition(self, drawn: Drawn) -> tuple[str, str]:
        """A condition in Spark's words and in DuckDB's."""
        chance = self.chance
        name = chance.choice(list(drawn.kinds))
        kind = drawn.kinds[name]
        null = f"{name} IS {chance.choice(('', 'NOT '))}NULL"
        if kind == "int":
            other = chance.choice(drawn.of("int"))
            texts = [
                f"{name} > {chance.randint(0, 6)}",
                f"{name} % 3 = 0",
                f"{name} <= {other}",
                f"{name} IN (1, 2, 5)",
            ]
            texts += [f"{name} BETWEEN 1 AND 9", f"NOT ({name} = {other} AND {name} > 2)", f"coalesce({name}, 3) < 4"]
        elif kind == "float":
            texts = [f"{name} > {chance.randint(-3, 5)}.5", f"{name} < 2", f"{name} > 0 OR {name} IS NULL"]
        elif kind == "str":
            texts = [
                f"{name} = 'x'",
                f"length({name}) > 1",
                f"{name} LIKE '%y'",
                f"{name} <> 'k1'",
                f"{name} IN ('p', 'q')",
            ]
        elif kind == "bool":
            texts = [name, f"NOT {name}", f"{name} OR {name} IS NULL"]
        else:
            texts = [null]
        spark = chance.choice([*texts, null])
        # Here NaN compares as IEEE says; to DuckDB, as to Spark, it is larger than any number.
        duck = spark.replace(f"{name} > ", f"NOT isnan({name}) AND {name} > ") if kind == "float" else spark
        return spark, f"({duck})"

    def _filter(self, drawn: Drawn) -> list[Drawn]:
        spark, duck = self._condition(drawn)
        return [
            self._made(
                drawn, drawn.stream.filter(spark), f"SELECT * FROM {drawn.table} WHERE {duck}", f"filter {spark}"
            )
        ]

    def _value(self, drawn: Drawn) -> tuple[str, str, str]:
        """An expression in Spark's words and in DuckDB's, and its kind."""
        chance = self.chance
        found: list[tuple[str, str, str]] = [("1", "1", "int"), ("'q'", "'q'", "str")]
        for name in drawn.of("int"):
            other = chance.choice(drawn.of("int"))
            found += [(f"{name} + {other}", f"{name} + {other}", "int"), (f"{name} DIV 3", f"{name} // 3", "int")]
            found += [
                (f"abs({name}) % 5", f"abs({name}) % 5", "int"),
                (f"{name} * 0.5D", f"{name} * 0.5::DOUBLE", "float"),
            ]
            case = f"CASE WHEN {name} > 2 THEN 'many' WHEN {name} < 0 THEN NULL ELSE 'few' END"
            found += [(case, case, "str"), (f"coalesce({name}, 7)", f"coalesce({name}, 7)", "int")]
        for name in drawn.of("float"):
            found += [(f"{name} * 2 - 1", f"{name} * 2 - 1", "float"), (f"-{name}", f"-{name}", "float")]
        for name in drawn.of("str"):
            found += [(f"length({name})", f"length({name})", "int"), (f"upper({name})", f"upper({name})", "str")]
            found += [(f"concat({name}, '!')", f"{name} || '!'", "str"), (name, name, "str")]
        for name in drawn.of("bool"):
            found.append((f"NOT {name}", f"NOT {name}", "bool"))
        return chance.choice(found)

    def _with_columns(self, drawn: Drawn) -> list[Drawn]:
        added = {}
        for _ in range(self.chance.randint(1, 2)):
            replaced = [name for name in drawn.kinds if name not in ("window_start", "window_end")]
            name = self.chance.choice(replaced) if replaced and self.chance.random() < 0.3 else self._fresh("c")
            added[name] = self._value(drawn)
        stream = drawn.stream.with_columns(**{name: wb.expr(spark) for name, (spark, _, _) in added.items()})
        kinds = drawn.kinds | {name: kind for name, (_, _, kind) in added.items()}
        chosen = [f"{added[name][1]} AS {name}" if name in added else name for name in kinds]
        query = f"SELECT {', '.join(chosen)}, _et, _n FROM {drawn.table}"
        return [self._made(drawn, stream, query, f"with_columns {added}", kinds=kinds)]

    def _select(self, drawn: Drawn) -> list[Drawn]:
        kept = self.chance.sample(list(drawn.kinds), self.chance.randint(1, len(drawn.kinds)))
        named = {self._fresh("c"): self._value(drawn) for _ in range(self.chance.randint(0, 2))}
        stream = drawn.stream.select(*kept, **{name: spark for name, (spark, _, _) in named.items()})
        kinds = {name: drawn.kinds[name] for name in kept} | {name: kind for name, (_, _, kind) in named.items()}
        computed = [f"{duck} AS {name}" for name, (_, duck, _) in named.items()]
        query = f"SELECT {', '.join([*kept, *computed])}, _et, _n FROM {drawn.table}"
        return [self._made(drawn, stream, query, f"select {kept} {named}", kinds=kinds)]

    def _map(self, drawn: Drawn) -> list[Drawn] | None:
        if not (ints := drawn.of("int")):
            return None
        name = self.chance.choice(ints)

        def doubled(record: dict[str, Any]) -> dict[str, Any]:
            value = record[name]
            return {**record, name: None if value is None else value * 2 + 1}

        query = f"SELECT * REPLACE ({name} * 2 + 1 AS {name}) FROM {drawn.table}"
        return [self._made(drawn, drawn.stream.map(doubled), query, f"map {name} * 2 + 1")]

    def _map_batches(self, drawn: Drawn) -> list[Drawn] | None:
        ints = drawn.of("int")
        if "t" in drawn.kinds and drawn.kinds["t"] in ("time", "micros") and drawn.timed and self.chance.random() < 0.5:

            def known(batch: pa.RecordBatch) -> pa.RecordBatch:
                return batch.filter(batch.column("t").is_valid())

            stream = drawn.stream.map_batches(known, event_time="t")
            micros = "t" if drawn.kinds["t"] == "micros" else "epoch_us(t)"
            # Where the records' event times are no longer their `t`, a watermark may already be ahead of it.
            query = f"SELECT * REPLACE ({micros} AS _et) FROM {drawn.table} WHERE t IS NOT NULL"
            made = self._made(drawn, stream, query, "map_batches t IS NOT NULL")
            return [replace(made, timed=False)]
        if not ints:
            return None
        name = self.chance.choice(ints)

        def negated(batch: pa.RecordBatch) -> pa.RecordBatch:
            at = batch.schema.get_field_index(name)
            return batch.set_column(at, batch.schema.field(at), pc.negate(batch.column(at)))

        query = f"SELECT * REPLACE (-{name} AS {name}) FROM {drawn.table}"
        return [self._made(drawn, drawn.stream.map_batches(negated), query, f"map_batches -{name}")]

    def _flat_map(self, drawn: Drawn) -> list[Drawn] | None:
        if not (ints := drawn.of("int")):
            return None
        name = self.chance.choice(ints)

        def repeated(record: dict[str, Any]) -> Iterable[dict[str, Any]]:
            return [record] * (1 if record[name] is None else abs(record[name]) % 3)

        stream = drawn.stream.flat_map(repeated, drawn.stream.schema)
        query = f"SELECT n.* FROM {drawn.table} n, range(3) r(i) WHERE i < coalesce(abs({name}) % 3, 1)"
        return [self._made(drawn, stream, query, f"flat_map abs({name}) % 3 times")]

    def _exchange(self, drawn: Drawn) -> list[Drawn]:
        streams = {
            "rebalance": drawn.stream.rebalance,
            "shuffle": drawn.stream.shuffle,
            "rescale": drawn.stream.rescale,
            "partition_by": lambda: drawn.stream.partition_by(f"coalesce({drawn.of('int')[0]}, 1)"),
        }
        kind = self.chance.choice([name for name in streams if drawn.of("int") or name != "partition_by"])
        self.story.append(f"   {kind} of {drawn.table}")
        made = replace(drawn, stream=streams[kind]())
        return self._filter(made) if self.chance.random() < 0.7 else [made]

    # several streams ---------------------------------------------------------------------------------------------

    def _union(self, drawn: Drawn) -> list[Drawn]:
        others = [
            drawn if self.chance.random() < 0.2 else self._filter(drawn)[0] for _ in range(self.chance.randint(1, 2))
        ]
        stream = drawn.stream.union(*(other.stream for other in others))
        tables = [drawn.table, *(other.table for other in others)]
        query = " UNION ALL ".join(f"SELECT {_columns(drawn.kinds)}, _et, _n FROM {table}" for table in tables)
        return [self._made(drawn, stream, query, f"union {tables[1:]}", ordered=False)]

    def _connect(self, drawn: Drawn) -> list[Drawn] | None:
        if not (ints := drawn.of("int")):
            return None
        other, name, key = self._source(), self.chance.choice(ints), self.chance.random() < 0.5
        on = {name: "a"} if key else None
        schema = {"side": pa.int64(), "v": pa.int64()}
        try:
            connected = drawn.stream.connect(other.stream, on)
            stream = connected.map(
                lambda record: {"side": 1, "v": record[name]}, lambda record: {"side": 2, "v": record["a"]}, schema
            )
        except wb.PlanError as error:  # an int32 is no key for an int64
            self.story.append(f"   not connected: {error}")
            return None
        query = (
            f"SELECT 1::BIGINT AS side, {name} AS v, _et, _n FROM {drawn.table} "
            f"UNION ALL SELECT 2, a, _et, _n FROM {other.table}"
        )
        kinds = {"side": "int", "v": "int"}
        return [self._made(drawn, stream, query, f"connect {other.table} on {on}", kinds=kinds, ordered=False)]

    def _lookup_join(self, drawn: Drawn) -> list[Drawn] | None:
        if not (keys := drawn.of("str", "int")):
            return None
        key, how = self.chance.choice(keys), self.chance.choice(("inner", "left"))
        values = [f"k{at}" for at in range(3)] + ["x", "x", "p", None]
        if drawn.kinds[key] == "int":
            values = [0, 1, 2, 2, 5, 9, None]
        kind = drawn.stream.schema.field(key).type
        if pa.types.is_dictionary(kind):
            kind = pa.string()
        fact, name = self._fresh("c"), self._fresh("n")
        table = pa.table({"key": pa.array(values, kind), fact: pa.array(range(7), pa.int64())})
        self._register(name, table)
        stream = drawn.stream.join(table, on={key: "key"}, how=how)
        kinds = drawn.kinds | {fact: "int"}
        query = (
            f"SELECT {_columns(drawn.kinds, 'l')}, r.{fact}, l._et, l._n "
            f"FROM {drawn.table} l {how} JOIN {name} r ON l.{key} = r.key"
        )
        return [self._made(drawn, stream, query, f"{how} lookup join on {key}", kinds=kinds, ordered=False)]

    def _split(self, drawn: Drawn) -> list[Drawn]:
        conditions = [self._condition(drawn) for _ in range(self.chance.randint(1, 2))]
        streams = drawn.stream.split({f"way{at}": spark for at, (spark, _) in enumerate(conditions)})
        ways, before = [], "true"
        for at, (spark, duck) in enumerate(conditions):
            query = f"SELECT * FROM {drawn.table} WHERE {before} AND coalesce({duck}, false)"
            ways.append(self._made(drawn, streams[f"way{at}"], query, f"split {spark}"))
            before += f" AND NOT coalesce({duck}, false)"
        return [*ways, self._made(drawn, streams["rest"], f"SELECT * FROM {drawn.table} WHERE {before}", "the rest")]

    def _assign_timestamps(self, drawn: Drawn) -> list[Drawn] | None:
        times = drawn.of("time", "micros")
        if not times:
            return None
        name = self.chance.choice(times)
        micros = name if drawn.kinds[name] == "micros" else f"epoch_us({name})"
        stream = drawn.stream.assign_timestamps(name, out_of_orderness="30d")
        query = f"SELECT * REPLACE ({micros} AS _et) FROM {drawn.table}"
        return [replace(self._made(drawn, stream, query, f"event time {name}"), timed=True)]

    # aggregates --------------------------------------------------------------------------------------------------

    def _keys(self, drawn: Drawn) -> tuple[str, ...]:
        possible = [name for name in drawn.of(*KEYS, "micros") if name not in ("window_start", "window_end")]
        return tuple(self.chance.sample(possible, min(len(possible), self.chance.choice((1, 1, 1, 2)))))

    def _aggregates(self, drawn: Drawn, keys: tuple[str, ...], *, holistic: bool) -> dict[str, tuple[Any, str, str]]:
        """By name: the aggregate, the same in DuckDB's words, and its kind; the first counts the records."""
        found: list[tuple[Any, str, str]] = []
        for name in drawn.kinds:
            kind = drawn.kinds[name]
            column = name
            found.append((wb.count(column), f"count({column})", "int"))
            if kind in NUMBERS:
                whole = f"sum({column})::BIGINT" if kind == "int" else f"sum({column})"
                found += [(wb.sum(column), whole, kind), (wb.mean(column), f"avg({column})", "mean")]
            if kind in (*NUMBERS, "mean", "time"):
                found += [(wb.min(column), f"min({column})", kind), (wb.max(column), f"max({column})", kind)]
            if holistic and kind in NUMBERS:
                found += [(wb.median(column), f"median({column}::DOUBLE)", "float")] * 6
            if holistic and kind in (*NUMBERS, "str"):
                ranked = f"coalesce(list({column} ORDER BY {column} DESC) FILTER ({column} IS NOT NULL), [])[1:2]"
                found.append((wb.top_k(column, 2), ranked, "list"))
        drawn_ones = self.chance.sample(found, min(len(found), self.chance.randint(1, 6)))
        return {self._fresh("m"): one for one in [(wb.count(), "count(*)", "int"), *drawn_ones]}

    def _rolling(self, drawn: Drawn) -> list[Drawn] | None:
        if not (keys := self._keys(drawn)):
            return None
        aggregates = self._aggregates(drawn, keys, holistic=False)
        names = list(aggregates)
        kinds = {key: drawn.kinds[key] for key in keys} | {name: kind for name, (_, _, kind) in aggregates.items()}
        if self.chance.random() < 0.3:
            aggregates = {names[0]: aggregates[names[0]]}
            kinds = {key: drawn.kinds[key] for key in keys} | {names[0]: "int"}
            schema = pa.schema([*(drawn.stream.schema.field(key) for key in keys), pa.field(names[0], pa.int64())])

            def counted(record: dict[str, Any], state: Any) -> dict[str, Any]:
                state.n += 1
                return {**{key: record[key] for key in keys}, names[0]: state.n}

            stream = drawn.stream.key_by(*keys).process(
                counted, schema, state={"n": wb.ValueState(pa.int64(), default=0)}
            )
        else:
            stream = drawn.stream.key_by(*keys).aggregate(**{name: one for name, (one, _, _) in aggregates.items()})
        over = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY _n, _i ROWS UNBOUNDED PRECEDING)"
        chosen = [f"{duck.removesuffix('::BIGINT')} {over} AS {name}" for name, (_, duck, _) in aggregates.items()]
        chosen = [
            f"({text.rpartition(' AS ')[0]})::BIGINT AS {name}" if kinds[name] == "int" else text
            for text, name in zip(chosen, aggregates, strict=True)
        ]
        query = (
            f"SELECT {', '.join([*keys, *chosen])}, _et, _n "
            f"FROM (SELECT *, row_number() OVER () AS _i FROM {drawn.table})"
        )
        made = self._made(drawn, stream, query, f"rolling {list(aggregates.values())} by {keys}", kinds=kinds)
        if drawn.ordered:
            return [made]
        self._sink(made, keys, names[0])
        return []

    def _time_window(self, drawn: Drawn) -> list[Drawn] | None:
        if not drawn.timed or "window_start" in drawn.kinds:
            return None
        chance = self.chance
        keys = self._keys(drawn) if chance.random() < 0.85 else ()
        kind = chance.choice(("tumbling", "tumbling", "sliding", "session", "global"))
        size = chance.choice((1, 3, 10, 60)) * SECOND
        by = f"PARTITION BY {', '.join(keys)} " if keys else ""
        window: wb.WindowAssigner
        if kind == "tumbling":
            offset = chance.choice((0, 0, size // 3))
            window = wb.tumbling(f"{size}us", offset=f"{offset}us")
            placed = self._starts(drawn.table, size, size, offset)
        elif kind == "sliding":
            slide = max(chance.choice((size // 2, size // 3, size // 4 * 3)), 1)
            window = wb.sliding(f"{size}us", f"{slide}us")
            placed = self._starts(drawn.table, size, slide, 0)
        elif kind == "session":
            window = wb.session(f"{size}us")
            placed = (
                f"SELECT *, min(_et) OVER ({by}{',' if by else 'PARTITION BY'} _s) AS _ws, "
                f"max(_et) OVER ({by}{',' if by else 'PARTITION BY'} _s) + {size} AS _we FROM ("
                f"SELECT *, sum(_new) OVER ({by} ORDER BY _et, _new DESC ROWS UNBOUNDED PRECEDING) AS _s FROM ("
                f"SELECT *, CASE WHEN _et - lag(_et) OVER ({by} ORDER BY _et) <= {size} THEN 0 ELSE 1 END AS _new "
                f"FROM {drawn.table} WHERE _et IS NOT NULL))"
            )
        else:
            window, placed = wb.global_window(), f"SELECT *, 0 AS _ws, 1 AS _we FROM {drawn.table}"
        aggregates = self._aggregates(drawn, keys, holistic=chance.random() < 0.5)
        grouped = drawn.stream.key_by(*keys) if keys else drawn.stream
        lateness = "0s" if kind == "global" else chance.choice(("0s", "0s", "5s"))
        stream = grouped.window(window, allowed_lateness=lateness).aggregate(
            **{name: one for name, (one, _, _) in aggregates.items()}
        )
        note = f"{window.describe()} by {keys}, lateness {lateness}: {[duck for _, duck, _ in aggregates.values()]}"
        made = self._windowed(drawn, stream, keys, aggregates, placed, note, bounds=kind != "global")
        if kind != "global" and chance.random() < 0.2:
            late = self._made(drawn, stream.side_output("late"), f"SELECT * FROM {drawn.table} WHERE false", "late")
            self._sink(late)
        return [made]

    def _windowed(
        self,
        drawn: Drawn,
        stream: wb.Stream,
        keys: tuple[str, ...],
        aggregates: dict[str, tuple[Any, str, str]],
        placed: str,
        note: str,
        *,
        bounds: bool,
    ) -> Drawn:
        chosen = list(keys)
        kinds = {key: drawn.kinds[key] for key in keys}
        if bounds:
            chosen += ["make_timestamp(_ws::BIGINT) AS window_start", "make_timestamp(_we::BIGINT) AS window_end"]
            kinds |= {"window_start": "time", "window_end": "time"}
        chosen += [f"{duck} AS {name}" for name, (_, duck, _) in aggregates.items()]
        kinds |= {name: kind for name, (_, _, kind) in aggregates.items()}
        query = (
            f"SELECT {', '.join(chosen)}, (_we - 1)::BIGINT AS _et, 0::BIGINT AS _n "
            f"FROM ({placed}) GROUP BY {', '.join([*keys, '_ws', '_we'])}"
        )
        return replace(self._made(drawn, stream, query, note, kinds=kinds, ordered=False), timed=bounds)

    def _count_window(self, drawn: Drawn) -> list[Drawn] | None:
        if not drawn.ordered or "window_start" in drawn.kinds or not (keys := self._keys(drawn)):
            return None
        length = self.chance.randint(1, 6)
        slide = self.chance.choice((length, length, self.chance.randint(1, 6)))
        window = wb.count_tumbling(length) if slide == length else wb.count_sliding(length, slide)
        aggregates = self._aggregates(drawn, keys, holistic=self.chance.random() < 0.5)
        stream = (
            drawn.stream.key_by(*keys)
            .window(window)
            .aggregate(**{name: one for name, (one, _, _) in aggregates.items()})
        )
        by = ", ".join(keys)
        placed = (
            f"SELECT *, w.i * {slide} AS _ws, w.i * {slide} + {length} AS _we FROM ("
            f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY _n, _i) - 1 AS _p, "
            f"count(*) OVER (PARTITION BY {by}) AS _c FROM (SELECT *, row_number() OVER () AS _i FROM {drawn.table})"
            f"), range({ROWS_MAX // slide + 1}) w(i) "
            f"WHERE _p >= w.i * {slide} AND _p < w.i * {slide} + {length} AND w.i * {slide} + {length} <= _c"
        )
        made = self._windowed(drawn, stream, keys, aggregates, placed, f"{window.describe()} by {keys}", bounds=True)
        kinds = made.kinds | {"window_start": "int", "window_end": "int"}
        positions = ", ".join(f"epoch_us({name}) AS {name}" for name in ("window_start", "window_end"))
        fixed = f"SELECT * REPLACE ({positions}) FROM {made.table}"
        return [replace(self._made(made, stream, fixed, "positions", kinds=kinds), timed=False)]

    # joins -------------------------------------------------------------------------------------------------------

    def _partner(self, drawn: Drawn) -> tuple[Drawn, str, str] | None:
        """Another stream, and a key of each."""
        right = self._source()
        if self.chance.random() < 0.2:
            right = drawn
        elif self.chance.random() < 0.5:
            right = self._filter(right)[0]
        types = {
            name: pa.string() if pa.types.is_dictionary(kind := right.stream.schema.field(name).type) else kind
            for name in right.of("str", "int")
        }
        possible = []
        for name in drawn.of("str", "int"):
            kind = drawn.stream.schema.field(name).type
            kind = pa.string() if pa.types.is_dictionary(kind) else kind
            possible += [(name, other) for other, its in types.items() if its == kind]
        if not possible or not drawn.timed or not right.timed:
            return None
        left_key, right_key = self.chance.choice(possible)
        clashes = {name for name in right.kinds if name != right_key and f"{name}_right" in drawn.kinds}
        named = {self._fresh("c"): name for name in clashes}
        kept = [name for name in right.kinds if name not in clashes]
        if named:
            stream = right.stream.select(*kept, **named)
            kinds = {name: right.kinds[name] for name in kept} | {new: right.kinds[old] for new, old in named.items()}
            chosen = [*kept, *(f"{old} AS {new}" for new, old in named.items())]
            right = self._made(
                right, stream, f"SELECT {', '.join(chosen)}, _et, _n FROM {right.table}", "renamed", kinds=kinds
            )
        return right, left_key, right_key

    def _window_join(self, drawn: Drawn) -> list[Drawn] | None:
        if (found := self._partner(drawn)) is None:
            return None
        right, left_key, right_key = found
        how = self.chance.choice(("inner", "inner", "left", "outer"))
        size = self.chance.choice((1, 5, 20)) * SECOND
        slide = self.chance.choice((size, size, size // 2))
        window = wb.tumbling(f"{size}us") if slide == size else wb.sliding(f"{size}us", f"{slide}us")
        stream = drawn.stream.join(right.stream, on={left_key: right_key}, window=window, how=how)
        sides = [self._starts(side.table, size, slide, 0) for side in (drawn, right)]
        chosen, kinds = self._joined(drawn, right, left_key, right_key)
        join = {"inner": "JOIN", "left": "LEFT JOIN", "outer": "FULL JOIN"}[how]
        query = (
            f"SELECT {', '.join(chosen)}, coalesce(l._we, r._we) - 1 AS _et, 0::BIGINT AS _n "
            f"FROM ({sides[0]}) l {join} ({sides[1]}) r ON l.{left_key} = r.{right_key} AND l._ws = r._ws"
        )
        note = f"{how} join {drawn.table}.{left_key} = {right.table}.{right_key} in {window.describe()}"
        return [self._made(drawn, stream, query, note, kinds=kinds, ordered=False)]

    def _interval_join(self, drawn: Drawn) -> list[Drawn] | None:
        if (found := self._partner(drawn)) is None:
            return None
        right, left_key, right_key = found
        how = self.chance.choice(("inner", "left"))
        low = self.chance.choice((-20, -5, 0, 2)) * SECOND
        high = low + self.chance.choice((0, 4, 15)) * SECOND
        stream = drawn.stream.join(
            right.stream,
            on={left_key: right_key},
            between=(f"{'-' * (low < 0)}{abs(low)}us", f"{'-' * (high < 0)}{abs(high)}us"),
            how=how,
        )
        chosen, kinds = self._joined(drawn, right, left_key, right_key)
        query = (
            f"SELECT {', '.join(chosen)}, 0::BIGINT AS _n, "
            f"CASE WHEN r._et IS NULL THEN l._et + {max(high, 0)} ELSE greatest(l._et, r._et) END AS _et "
            f"FROM (SELECT * FROM {drawn.table} WHERE _et IS NOT NULL) l {'LEFT' if how == 'left' else ''} JOIN "
            f"(SELECT * FROM {right.table} WHERE _et IS NOT NULL) r "
            f"ON l.{left_key} = r.{right_key} AND r._et - l._et BETWEEN {low} AND {high}"
        )
        note = f"{how} join {drawn.table}.{left_key} = {right.table}.{right_key} from {low} to {high} us"
        return [self._made(drawn, stream, query, note, kinds=kinds, ordered=False)]

    def _joined(self, left: Drawn, right: Drawn, left_key: str, right_key: str) -> tuple[list[str], dict[str, str]]:
        chosen = [
            f"l.{name}" if name != left_key else f"coalesce(l.{name}, r.{right_key}) AS {name}" for name in left.kinds
        ]
        kinds = dict(left.kinds)
        for name, kind in right.kinds.items():
            if name != right_key:
                new = name if name not in left.kinds else f"{name}_right"
                chosen.append(f"r.{name} AS {new}")
                kinds[new] = kind
        return chosen, kinds

    # DuckDB ------------------------------------------------------------------------------------------------------

    def _starts(self, table: str, size: int, slide: int, offset: int) -> str:
        """Each row with each of its windows, as ``_ws`` and ``_we``."""
        last = f"_et - ((_et - {offset}) % {slide} + {slide}) % {slide}"
        return (
            f"SELECT n.*, {last} - w.i * {slide} AS _ws, {last} - w.i * {slide} + {size} AS _we "
            f"FROM {table} n, range({-(-size // slide)}) w(i) WHERE {last} - w.i * {slide} + {size} > _et"
        )

    def _made(
        self,
        drawn: Drawn,
        stream: wb.Stream,
        query: str,
        note: str,
        *,
        kinds: dict[str, str] | None = None,
        ordered: bool | None = None,
    ) -> Drawn:
        name = self._fresh("n")
        self._db.execute(f"CREATE TABLE {name} AS {query}").fetchall()
        rows = self._db.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        self.story.append(f"{name} = {note} of {drawn.table} ({rows} rows)")
        made_kinds = drawn.kinds if kinds is None else kinds
        assert stream.columns == list(made_kinds), (stream.columns, list(made_kinds))
        return Drawn(stream, name, made_kinds, drawn.ordered if ordered is None else ordered, drawn.timed)

    def _with_parallelism(self, drawn: Drawn) -> Drawn:
        """Sometimes the operator gets a parallelism of its own; a part of a split is no operator by itself."""
        if self.chance.random() > 0.15 or drawn.stream._tag or drawn.stream._exchange or drawn.stream._node.parallelism:
            return drawn
        own = self.chance.randint(1, 3)
        self.story.append(f"   {own} subtasks of {drawn.table}")
        return replace(drawn, stream=drawn.stream.with_parallelism(own), ordered=drawn.ordered and own == 1)

    def _register(self, name: str, table: pa.Table) -> None:
        self._db.register(f"{name}_arrow", table)
        self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow").fetchall()

    def _query(self, text: str) -> pa.Table:
        return self._db.sql(text).to_arrow_table()

    def _fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"


def _columns(kinds: Iterable[str], table: str = "") -> str:
    return ", ".join(f"{table}.{name}" if table else name for name in kinds)
