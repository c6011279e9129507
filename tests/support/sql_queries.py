"""Random queries, each as the text for a stream and as the text by which DuckDB computes the same rows from tables.

The texts differ in the window table functions only: DuckDB gets sub-queries that compute the windows of each row.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import workbench as wb

SECOND = 1_000_000
_START = dt.datetime(2024, 5, 1)
_COLUMNS = ("ts", "k", "v", "f", "s")


def tables(seed: int, rows: int = 60) -> dict[str, pa.Table]:
    """Two tables, `a` and `b`, out of order by at most 20 seconds, with nulls everywhere but in their times."""
    random = Random(f"rows {seed}")

    def maybe(value: Any) -> Any:
        return None if random.random() < 0.15 else value

    made = {}
    for name in ("a", "b"):
        moments = [_START + dt.timedelta(seconds=at * 2 + random.randint(0, 20)) for at in range(rows)]
        made[name] = pa.table(
            {
                "ts": pa.array(moments, pa.timestamp("us")),
                "k": pa.array([maybe(random.randint(0, 4)) for _ in moments], pa.int64()),
                "v": pa.array([maybe(random.randint(-20, 20)) for _ in moments], pa.int64()),
                "f": pa.array([maybe(random.randint(-40, 40) / 4) for _ in moments], pa.float64()),
                "s": pa.array([maybe(random.choice(("x", "Yy", "z z", ""))) for _ in moments], pa.string()),
            }
        )
    return made


@dataclass(frozen=True)
class Both:
    """The same query for a stream and for DuckDB."""

    stream: str
    duck: str

    def __format__(self, which: str) -> str:
        return self.stream if which == "s" else self.duck


def filled(template: str, **parts: Both | str) -> Both:
    """A text in both forms; ``{name}`` stands for a part."""
    texts = []
    for which in ("s", "d"):
        texts.append(template.format(**{name: format(part, which) if isinstance(part, Both) else part
                                        for name, part in parts.items()}))  # fmt: skip
    return Both(*texts)


class Queries:
    """Draws queries.

    Args:
        seed: the same seed draws the same query.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def draw(self) -> Both:
        kinds = (self._plain, self._plain, self._grouped, self._grouped, self._again, self._session, self._interval)
        bounded = (*kinds, self._interval, self._windows_joined, self._groups_joined, self._united)
        updated = (self._updated, self._updated_again, self._distinct, self._top, self._top, self._joined, self._outer)
        asked = (self._asked, self._asked, self._over)
        return self._random.choice((*bounded, *updated, *asked, self._half, self._joined))()

    # expressions --------------------------------------------------------------------------------------------------

    def _number(self, table: str = "") -> str:
        return self._random.choice(
            (
                f"{table}v",
                f"{table}k",
                f"{table}v * 2 - {table}k",
                f"abs({table}v)",
                f"COALESCE({table}v, {table}k, 0)",
                f"CASE WHEN {table}v > 0 THEN {table}v WHEN {table}k = 1 THEN -1 ELSE {table}k END",
                f"length({table}s)",
                f"CAST({table}f * 4 AS BIGINT)",
                f"hour({table}ts) + minute({table}ts)",
            )
        )

    def _condition(self, table: str = "") -> str:
        number = self._number(table)
        simple = (
            f"{number} > {self._random.randint(-10, 10)}",
            f"{table}v BETWEEN -5 AND 12",
            f"{table}s IS NOT NULL",
            f"{table}s IN ('x', 'Yy')",
            f"{table}s LIKE '%y%'",
            f"{table}k <> 2 OR {table}f < 1.5",
            f"NOT ({table}k = 1)",
            f"lower({table}s) = 'yy'",
        )
        first = self._random.choice(simple)
        return f"({first}) AND ({self._random.choice(simple)})" if self._random.random() < 0.3 else first

    def _aggregates(self, table: str = "") -> list[str]:
        made = []
        for _ in range(self._random.randint(1, 3)):
            function = self._random.choice(("COUNT", "SUM", "MIN", "MAX", "AVG"))
            call = f"{function}({self._random.choice((f'{table}f', self._number(table)))})"
            if function == "COUNT" and self._random.random() < 0.5:
                call = "COUNT(*)"
            if self._random.random() < 0.3:
                call += f" FILTER (WHERE {self._condition(table)})"
            if self._random.random() < 0.2:
                call = f"COALESCE({call}, 0) + 1"
            made.append(call)
        return made

    # relations ----------------------------------------------------------------------------------------------------

    def _source(self) -> Both:
        """A table, or a query over it with the same columns."""
        name = self._random.choice("ab")
        if self._random.random() < 0.6:
            return Both(name, name)
        where = f" WHERE {self._condition()}" if self._random.random() < 0.7 else ""
        text = f"(SELECT ts, k, v, f, s FROM {name}{where}) AS q{self._random.randint(0, 9)}"
        return Both(text, text)

    def _named(self) -> str:
        return self._random.choice("ab")

    def _windowed(self, name: str | None = None, drawn: tuple[str, int, int] | None = None) -> Both:
        """A table with windows."""
        name = name or self._named()
        return windows(name, *(drawn or self.draw_windows()))

    def draw_windows(self) -> tuple[str, int, int]:
        kind = self._random.choice(("TUMBLE", "HOP", "CUMULATE"))
        size = self._random.choice((10, 12, 30))
        step = {"TUMBLE": size, "HOP": self._random.choice((5, 6, size, 7)), "CUMULATE": size // 2}[kind]
        return kind, size, step

    # queries ------------------------------------------------------------------------------------------------------

    def _plain(self) -> Both:
        items = ", ".join(f"{self._number()} AS c{at}" for at in range(self._random.randint(1, 3)))
        where = f" WHERE {self._condition()}" if self._random.random() < 0.7 else ""
        if self._random.random() < 0.3:
            return filled("WITH w AS (SELECT * FROM {source}{where}) SELECT {items}, ts FROM w AS x",
                          source=self._source(), where=where, items=items)  # fmt: skip
        if self._random.random() < 0.2:
            return filled("SELECT v, window_start, window_end FROM {rows}{where}", rows=self._windowed(), where=where)
        return filled("SELECT {items}, s FROM {source}{where}", items=items, source=self._source(), where=where)

    def _grouped(self) -> Both:
        keys = self._random.sample(("k", "s", "k % 2", "v > 0"), self._random.randint(0, 2))
        chosen = [f"{key} AS g{at}" for at, key in enumerate(keys)]
        chosen += [f"{call} AS m{at}" for at, call in enumerate(self._aggregates())]
        where = f" WHERE {self._condition()}" if self._random.random() < 0.4 else ""
        having = f" HAVING COUNT(*) > {self._random.randint(1, 2)}" if self._random.random() < 0.3 else ""
        return filled(
            "SELECT window_start, window_end, {chosen} FROM {rows}{where} "
            "GROUP BY {keys}window_start, window_end{having}",
            chosen=", ".join(chosen),
            rows=self._windowed(),
            where=where,
            keys="".join(f"{key}, " for key in keys),
            having=having,
        )

    def _again(self) -> Both:
        """Groups of groups of the same window."""
        inner = filled(
            "(SELECT k, s, COUNT(*) AS n, SUM(v) AS total, window_start AS w0, window_end AS w1 FROM {rows} "
            "GROUP BY k, s, window_start, window_end) AS i",
            rows=self._windowed(),
        )
        key = self._random.choice(("", "k, ", "s, "))
        return filled("SELECT {key}w0, w1, MAX(n) AS best, SUM(total) AS total, COUNT(*) AS groups FROM {inner} "
                      "GROUP BY {key}w0, w1", key=key, inner=inner)  # fmt: skip

    def _session(self) -> Both:
        name, gap, key = self._named(), self._random.choice((3, 5, 9)), self._random.choice(("k", "s", None))
        by = "" if key is None else f" PARTITION BY {key}"
        over = "" if key is None else f"PARTITION BY {key} "
        opens = f"epoch_us(ts) - lag(epoch_us(ts)) OVER ({over}ORDER BY ts) > {gap * SECOND}"
        opened = f"SELECT *, COALESCE({opens}, false)::INT AS opens FROM {name}"
        before = f"OVER ({over}ORDER BY ts RANGE UNBOUNDED PRECEDING)"  # rows of one time are one
        numbered = f"SELECT *, sum(opens) {before} AS session FROM ({opened})"
        whole = "session" if key is None else f"{key}, session"
        bounds = (
            f"SELECT *, min(ts) OVER (PARTITION BY {whole}) AS window_start, "
            f"max(ts) OVER (PARTITION BY {whole}) + INTERVAL {gap} SECOND AS window_end FROM ({numbered})"
        )
        rows = Both(f"TABLE(SESSION(TABLE {name}{by}, DESCRIPTOR(ts), INTERVAL '{gap}' SECOND))", f"({bounds}) AS w")
        calls = ", ".join(f"{call} AS m{at}" for at, call in enumerate(self._aggregates()))
        keys = "" if key is None else f"{key}, "
        return filled(
            "SELECT {keys}window_start, window_end, {calls} FROM {rows} GROUP BY {keys}window_start, window_end",
            keys=keys,
            calls=calls,
            rows=rows,
        )

    def _interval(self) -> Both:
        low, high = self._random.randint(-15, 2), self._random.randint(2, 15)
        side = self._random.choice(("JOIN", "JOIN", "LEFT JOIN"))
        left, right = self._random.choice((("a", "b"), ("b", "a"), ("a", "a")))
        on = self._random.choice(("x.k = y.k", "x.k = y.k AND x.s = y.s", "x.v % 3 = y.v % 3", "x.k + 1 = y.k"))
        between = self._random.choice(
            (
                f"y.ts BETWEEN x.ts + INTERVAL '{low}' SECOND AND x.ts + INTERVAL '{high}' SECOND",
                f"y.ts > x.ts - INTERVAL '{-low + 3}' SECOND AND x.ts + INTERVAL '{high}' SECOND >= y.ts",
                "y.ts = x.ts - INTERVAL '5' SECOND",
            )
        )
        where = f" WHERE {self._condition('x.')}" if self._random.random() < 0.4 else ""
        more = f" AND ({self._condition('y.')})" if self._random.random() < 0.3 else ""
        if side == "JOIN" and self._random.random() < 0.4:
            more += " AND x.v < y.v"
        text = (
            f"SELECT x.k AS xk, y.k AS yk, x.v AS xv, y.v AS yv, x.ts, y.ts AS other, y.s FROM {left} AS x "
            f"{side} {right} AS y ON {on} AND {between}{more}{where}"
        )
        return Both(text, text)

    def _windows_joined(self) -> Both:
        """Rows of the same window."""
        drawn = self.draw_windows()
        side = self._random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        return filled(
            "SELECT x.v AS xv, x.k AS xk, y.k AS yk, y.v AS yv, x.window_end AS e FROM {left} AS x {side} {right} AS y "
            "ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end",
            left=self._windowed("a", drawn),
            right=self._windowed("b", drawn),
            side=side,
        )

    def _groups_joined(self) -> Both:
        """Groups of the same window."""
        drawn = self.draw_windows()
        inner = (
            "(SELECT k, COUNT(*) AS n, window_start AS w0, window_end AS w1 FROM {rows} "
            "GROUP BY k, window_start, window_end) AS {name}"
        )
        return filled(
            "SELECT x.k, x.n, y.n AS other, x.w0 FROM {left} {side} {right} ON x.w0 = y.w0 AND x.w1 = y.w1 AND {more}",
            left=filled(inner, rows=self._windowed("a", drawn), name="x"),
            right=filled(inner, rows=self._windowed("b", drawn), name="y"),
            **self._random.choice(
                ({"side": "JOIN", "more": "x.n >= y.n"}, {"side": "JOIN", "more": "x.k = y.k"},
                 {"side": "LEFT JOIN", "more": "x.k = y.k"})
            ),
        )  # fmt: skip

    def _updated(self) -> Both:
        """Groups without a window."""
        keys = self._random.sample(("k", "s", "k % 2", "v > 0", "date_format(ts, 'HH:mm')"), self._random.randint(1, 2))
        calls = self._aggregates()
        calls += [f"COUNT(DISTINCT {self._number()})" for _ in range(self._random.randint(0, 2))]
        calls += [f"MAX(s) FILTER (WHERE {self._condition()})"] if self._random.random() < 0.3 else []
        chosen = [*(f"{key} AS g{at}" for at, key in enumerate(keys)), *(f"{c} AS m{at}" for at, c in enumerate(calls))]
        having = f" HAVING COUNT(*) > {self._random.randint(1, 4)}" if self._random.random() < 0.3 else ""
        where = f" WHERE {self._condition()}" if self._random.random() < 0.4 else ""
        text = f"SELECT {', '.join(chosen)} FROM {self._named()}{where} GROUP BY {', '.join(keys)}{having}"
        return _of_spark(text)

    def _counts(self, name: str = "i") -> str:
        """Groups of two columns."""
        return f"(SELECT k, s, COUNT(*) AS n, SUM(v) AS total FROM {self._named()} GROUP BY k, s) AS {name}"

    def _updated_again(self) -> Both:
        """Groups of groups, whose rows are taken back."""
        key = self._random.choice(("k", "s", "n", "n % 3"))
        text = (
            f"SELECT {key} AS g, COUNT(*) AS c, SUM(n) AS n, MIN(total) AS low, MAX(n) AS high, AVG(n) AS mean, "
            f"COUNT(DISTINCT k) AS ks FROM {self._counts()} WHERE n > {self._random.randint(0, 3)} GROUP BY {key}"
        )
        return Both(text, text)

    def _distinct(self) -> Both:
        items = ", ".join(
            f"{item} AS c{at}" for at, item in enumerate(self._random.sample(("k", "s", "v > 3", "v"), 2))
        )
        source = self._random.choice((self._named(), self._counts()))
        if source not in "ab":
            items = items.replace("v", "n")
        text = f"SELECT DISTINCT {items} FROM {source}"
        if self._random.random() < 0.4:
            text = f"SELECT k FROM {self._named()} UNION SELECT n FROM {self._counts()}"
        return Both(text, text)

    def _top(self) -> Both:
        """The first rows of each key; all columns order them, so that no two are equal."""
        of_groups = self._random.random() < 0.5
        columns = ["k", "s", "n", "total"] if of_groups else ["v", "f", "s", "k"]
        keys = self._random.sample(("k", "s", "k % 2"), self._random.randint(0, 1))
        ways = [(column, self._random.random() < 0.5) for column in self._random.sample(columns, len(columns))]
        limit = self._random.choice((1, 1, 2, 4))
        source = self._counts() if of_groups else f"(SELECT DISTINCT v, f, s, k FROM {self._named()})"
        by = f"PARTITION BY {keys[0]} " if keys else ""
        place = ", place" if self._random.random() < 0.5 else ""
        texts = []
        for nulls in (("", ""), (" NULLS LAST", " NULLS FIRST")):
            order = ", ".join(f"{name} DESC{nulls[0]}" if down else f"{name}{nulls[1]}" for name, down in ways)
            texts.append(
                f"SELECT {', '.join(columns)}{place} FROM (SELECT *, ROW_NUMBER() OVER ({by}ORDER BY {order}) AS place "
                f"FROM {source}) WHERE place <= {limit}"
            )
        return Both(*texts)

    def _asked(self) -> Both:
        """Rows, or groups, that are or are not among others."""
        of_groups = self._random.random() < 0.4
        source, columns, number = (self._counts("x"), "k, s, n", "n") if of_groups else ("a AS x", "k, s, v", "v")
        others = self._random.choice(("b AS y", self._counts("y")))
        other = self._random.choice(("k", "v" if others == "b AS y" else "n"))
        where = self._random.choice(("", f" WHERE {other} IS NOT NULL", f" WHERE {other} > 2"))
        conditions = (
            f"{self._random.choice(('k', number))} {{no}} IN (SELECT {other} FROM {others}{where})",
            f"(k, s) IN (SELECT y.{other}, s FROM {others}{where})",
            f"{{no}} EXISTS (SELECT 1 FROM {others} WHERE y.k = x.k AND y.{other} > {self._random.randint(-5, 5)})",
            f"{{no}} EXISTS (SELECT 1 FROM {others} WHERE y.{other} = 99)",
            f"x.k {{no}} IN (SELECT {other} FROM {others} WHERE y.s = x.s)",
        )
        condition = self._random.choice(conditions).format(no=self._random.choice(("", "NOT")))
        more = self._random.choice(("", "", f" AND {number} > 0", " AND k IS NOT NULL"))
        text = f"SELECT {columns} FROM {source} WHERE {condition}{more}"
        return Both(text, text)

    def _over(self) -> Both:
        """Aggregates of the rows before each row; times that are equal come in no order, so rows have none."""
        if self._random.random() < 0.3:
            back, key = self._random.randint(0, 3), self._random.choice(("", "PARTITION BY s "))
            frame = f"OVER ({key}ORDER BY k ROWS BETWEEN {back} PRECEDING AND CURRENT ROW)"
            groups = f"(SELECT k, MIN(s) AS s, COUNT(*) AS n FROM {self._named()} WHERE k IS NOT NULL GROUP BY k) AS i"
            text = f"SELECT k, n, SUM(n) {frame} AS total, MIN(n) {frame} AS least FROM {groups}"
            return Both(text, text)
        back, key = self._random.randint(0, 15), self._random.choice(("k", "s", "v % 3", None))
        by = f"PARTITION BY {key} " if key else ""
        frame = self._random.choice(
            (
                "",
                f"RANGE BETWEEN INTERVAL '{back}' SECOND PRECEDING AND CURRENT ROW",
                "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            )
        )
        value = self._random.choice(("f", self._number()))
        calls = ("COUNT(*)", f"COUNT({value})", f"SUM({value})", f"MIN({value})", f"MAX({value})", f"AVG({value})")
        made = [
            f"{call} OVER ({by}ORDER BY ts {frame}) AS m{at}" for at, call in enumerate(self._random.sample(calls, 2))
        ]
        where = f" WHERE {self._condition()}" if self._random.random() < 0.4 else ""
        return _of_spark(f"SELECT ts, v, {', '.join(made)} FROM {self._named()}{where}")

    def _joined(self) -> Both:
        """A join without bounds, of rows or of groups."""
        left, right = self._random.choice((("a AS x", "b AS y"), (self._counts("x"), self._counts("y"))))
        number = "v" if left == "a AS x" else "n"
        on = self._random.choice((f"x.k = y.k AND x.{number} = y.{number}", "x.k = y.k AND x.s = y.s", "x.s = y.s"))
        more = f" AND x.{number} < y.{number}" if self._random.random() < 0.4 else ""
        text = f"SELECT x.k, x.s, x.{number} AS xn, y.{number} AS yn FROM {left} JOIN {right} ON {on}{more}"
        return Both(text, text)

    def _outer(self) -> Both:
        side = self._random.choice(("LEFT", "RIGHT", "FULL"))
        left, right = self._random.choice((("a AS x", self._counts("y")), (self._counts("x"), self._counts("y"))))
        on = self._random.choice(("x.k = y.n", "x.k = y.k AND x.s = y.s", "x.s = y.s AND x.k = y.total"))
        text = f"SELECT x.k AS xk, x.s AS xs, y.k AS yk, y.n, total FROM {left} {side} JOIN {right} ON {on}"
        return Both(text.replace(", total", ", y.total"), text.replace(", total", ", y.total"))

    def _half(self) -> Both:
        """The rows with a partner, or without one."""
        kind = self._random.choice(("SEMI", "ANTI"))
        left = self._random.choice(("a AS x", self._counts("x")))
        right = self._random.choice(("b AS y", self._counts("y")))
        on = self._random.choice(("x.k = y.k AND x.s = y.s", "x.k = y.k", "x.s = y.s"))
        text = "SELECT x.k, x.s FROM {} {} JOIN {} ON {}"
        return Both(text.format(left, f"LEFT {kind}", right, on), text.format(left, kind, right, on))

    def _united(self) -> Both:
        one, two = self._plain_pair(), self._plain_pair()
        if self._random.random() < 0.5:
            return filled("{one} UNION ALL {two}", one=one, two=two)
        return filled(
            "SELECT window_end AS e, COUNT(*) AS n, SUM(c) AS total FROM {rows} GROUP BY window_start, window_end",
            rows=windows_of(filled("({one} UNION ALL {two})", one=one, two=two), "TUMBLE", 12, 12),
        )

    def _plain_pair(self) -> Both:
        where = f" WHERE {self._condition()}" if self._random.random() < 0.5 else ""
        text = f"SELECT ts, {self._random.choice(('v', 'k', 'v + k'))} AS c FROM {self._named()}{where}"
        return Both(text, text)


def _of_spark(text: str) -> Both:
    """A text in which DuckDB writes instants with a function of another name."""
    return Both(text, text.replace("date_format(ts, 'HH:mm')", "strftime(ts, '%H:%M')"))


def windows(name: str, kind: str, size: int, step: int) -> Both:
    """The rows of a table with their windows."""
    return windows_of(Both(f"TABLE {name}", name), kind, size, step)


def windows_of(rows: Both, kind: str, size: int, step: int) -> Both:
    """The same of any rows; sizes are in seconds."""
    long, short = f"INTERVAL '{size}' SECOND", f"INTERVAL '{step}' SECOND"
    intervals = long if kind == "TUMBLE" else f"{short}, {long}"
    us, size_us, step_us = "epoch_us(ts)", size * SECOND, step * SECOND
    if kind == "CUMULATE":
        start, last = f"{us} - {us} % {size_us}", f"{us} - {us} % {size_us} + (i + 1) * {step_us}"
        count = size // step
    else:
        start = f"{us} - {us} % {step_us} - i * {step_us}"
        last, count = f"{start} + {size_us}", -(-size // step)
    duck = (
        f"(SELECT *, make_timestamp({start}) AS window_start, make_timestamp({last}) AS window_end FROM {rows:d} "
        f"CROSS JOIN range({count}) AS n(i) WHERE {last} > {us})"
    )
    return Both(f"TABLE({kind}({rows:s}, DESCRIPTOR(ts), {intervals}))", duck)


def of_duckdb(query: Both, rows: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    """The rows that DuckDB computes."""
    with duckdb.connect() as connection:
        for name, table in rows.items():
            connection.register(name, table)
        return counted(connection.execute(query.duck).fetchall())


def of_stream(query: Both, rows: dict[str, pa.Table], parallelism: int) -> Counter[tuple[Any, ...]]:
    """The rows that a job computes."""
    streams = {
        name: wb.Stream.from_table(table, event_time="ts", out_of_orderness="20s") for name, table in rows.items()
    }
    stream = wb.sql(query.stream, **streams)
    job = stream.sink_to(wb.TableSink("rows")).run(
        "query", parallelism=parallelism, checkpoint_interval=None, buffer_timeout="1ms"
    )
    assert job.wait("60s") == "FINISHED"
    return counted([tuple(row.values()) for row in job.table("rows").to_pylist()])


def counted(rows: Sequence[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """How often each row occurs; times are those of UTC."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return float(value) if isinstance(value, float) else value
