"""A pipeline that is being drawn: its chance, its oracle, and what has been drawn so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.operators.changelogs.row_kinds import KIND

from .drawn import SECOND, Drawn, listed
from .expected import Exactly, Expected

TIME_TYPES = (pa.int64(), pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us", "UTC"))


class Draft:
    """What the operators draw from and write to.

    Args:
        chance: the only source of chance.
        folder: for the files of sources and sinks.
        parallelisms: that the job may have.

    Attributes:
        story: what was drawn, a line each.
        expected: of the sinks.
        tables: names of the sinks that keep their rows in the job.
        folders: of those that write files, by their names.
        disorder_us: how much the sources' records are out of order, at most; they are told.
        base_us: where the event times lie.
        time_type: of the sources' column ``t``.
    """

    def __init__(self, chance: Random, folder: Path, parallelisms: Sequence[int]) -> None:
        self.chance = chance
        self.folder = folder
        self.parallelisms = parallelisms
        self.story: list[str] = []
        self.expected: list[Expected] = []
        self.tables: list[str] = []
        self.folders: dict[str, Path] = {}
        self.disorder_us = chance.choice((0, SECOND, 20 * SECOND))
        self.base_us = chance.choice((0, 1_600_000_000 * SECOND, -40 * SECOND, 1_700_000_000_123_456))
        self.time_type = chance.choice(TIME_TYPES)
        if self.time_type == pa.timestamp("ms"):
            self.base_us -= self.base_us % 1000
        self._db = duckdb.connect(config={"threads": 1})
        self._sinks: list[Pipeline] = []
        self._names = 0

    @property
    def alone(self) -> bool:
        """Whether the job has one subtask of each operator, so that streams have an order."""
        return max(self.parallelisms) == 1

    @property
    def stamped(self) -> bool:
        """Whether ``t`` is a timestamp and not a number."""
        return self.time_type != pa.int64()

    def sometimes(self, part: float) -> bool:
        """True so often."""
        return self.chance.random() < part

    def fresh(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self._names += 1
        return f"{prefix}{self._names}"

    # the pipeline ------------------------------------------------------------------------------------------------

    def pipeline(self) -> Pipeline:
        """All sinks together."""
        pipeline = self._sinks[0]
        for other in self._sinks[1:]:
            pipeline += other
        return pipeline

    def made(
        self,
        drawn: Drawn,
        stream: wb.Stream,
        query: str,
        note: str,
        *,
        kinds: dict[str, str] | None = None,
        ordered: bool | None = None,
    ) -> Drawn:
        """The stream that an operator gives, with the rows that `query` gives."""
        name = self.fresh("n")
        self._db.execute(f"CREATE TABLE {name} AS {query}").fetchall()
        rows = self.value(f"SELECT count(*) FROM {name}")
        self.story.append(f"{name} = {note} of {drawn.table} ({rows} rows)")
        made_kinds = drawn.kinds if kinds is None else kinds
        columns = [name for name in stream.columns if name != KIND]
        assert columns == list(made_kinds), (columns, list(made_kinds))
        return Drawn(stream, name, made_kinds, drawn.ordered if ordered is None else ordered, drawn.timed)

    def sink(self, stream: wb.Stream, table: str) -> str:
        """Write a stream to a sink; its name."""
        name = self.fresh("out")
        self.story.append(f"{name} <- {table}")
        plain = not any(pa.types.is_nested(field.type) for field in stream.schema)
        if self.sometimes(0.2) and plain:
            self.folders[name] = self.folder / name
            self._sinks.append(stream.sink_to(wb.ParquetSink(self.folders[name])))
        else:
            self.keep(name, stream)
        return name

    def keep(self, name: str, stream: wb.Stream) -> None:
        """Write a stream to a table of the job."""
        self.tables.append(name)
        self._sinks.append(stream.sink_to(wb.TableSink(name)))

    def end(self, drawn: Drawn) -> None:
        """Write a stream to a sink that must hold all its rows."""
        name = self.sink(drawn.stream, drawn.table)
        self.expected.append(Exactly(name, self.query(f"SELECT {listed(drawn.kinds)} FROM {drawn.table}")))

    def with_parallelism(self, drawn: Drawn) -> Drawn:
        """Sometimes the operator gets a parallelism of its own; a part of a split is no operator by itself."""
        stream = drawn.stream
        if not self.sometimes(0.15) or stream._end.tag or stream._end.exchange or stream._end.node.parallelism:
            return drawn
        own = self.chance.randint(1, 3)
        self.story.append(f"   {own} subtasks of {drawn.table}")
        return replace(drawn, stream=stream.with_parallelism(own), ordered=drawn.ordered and own == 1)

    # DuckDB ------------------------------------------------------------------------------------------------------

    def register(self, name: str, table: pa.Table) -> None:
        """Make a table of DuckDB's out of Arrow's."""
        self._db.register(f"{name}_arrow", table)
        self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow").fetchall()

    def query(self, text: str) -> pa.Table:
        """The rows of a query."""
        return self._db.sql(text).to_arrow_table()

    def value(self, text: str) -> Any:
        """The only value of a query."""
        return self._db.execute(text).fetchall()[0][0]
