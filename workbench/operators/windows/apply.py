"""A user's Python function over all records of a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.operators.aggregates.grouping import output_fields
from workbench.operators.contract.base import Operator
from workbench.operators.functions.record_loop import RowError
from workbench.operators.functions.user_function import (
    Record,
    SchemaLike,
    UserFunction,
    declared_schema,
    function_name,
    wrong_row,
)
from workbench.operators.windows.contents import Contents, Fired, Results
from workbench.operators.windows.operator import WindowOperator
from workbench.operators.windows.rows import KeptRecords
from workbench.operators.windows.settings import WindowSettings
from workbench.origin import Origin
from workbench.raised import PASSING, shown
from workbench.windows import Window

Applied = Callable[[Any, Window, pa.Table], Record | Iterable[Record] | None]
"""Takes the key (a value, a tuple of several, or None without keys), the window and its records; returns results."""


@dataclass(frozen=True)
class WindowApply:
    """Calls `function` once per firing of a window, with its key, its bounds and its records in order of arrival.

    Attributes:
        keys: the key columns; none means one group.
        settings: the windows.
        function: see `Applied`.
        schema: of its results; the keys and the bounds of the window precede them.
        late_tag: the side output for late records, or None.
        origin: the user's line, for errors.

    Raises:
        RecordError: while running, when the function raises or returns something else.
    """

    kind: ClassVar[str] = "apply"
    keys: tuple[str, ...]
    settings: WindowSettings
    function: Applied
    schema: SchemaLike
    late_tag: str | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The key columns, ``window_start`` and ``window_end`` (the global window has none), the declared columns.

        Raises:
            PlanError: a column that cannot be a key, or duplicate output columns.
        """
        self.settings.check(inputs[0])
        added = self.settings.bounds() + list(declared_schema(self.schema, self.kind, self.origin))
        return pa.schema(output_fields(self.keys, inputs[0], added))

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {} if self.late_tag is None else {self.late_tag: inputs[0]}

    def sees_watermarks(self) -> bool:
        """It does if the windows do."""
        return self.settings.sees_watermarks()

    def windows_kept(self) -> str:
        """The layout of the windows."""
        return self.settings.layout()

    def describe(self) -> str:
        return f"{self.settings.describe()}: {function_name(self.function)}"

    def growing(self) -> str | None:
        """The windows of counts, which only more records end."""
        counts = self.settings.window.bounds == "position"
        return f"a window of each {', '.join(self.keys)}" if counts and self.keys else None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return self.logic(inputs[0], self.output_schema(inputs), lambda contents: contents)

    def logic(self, schema: pa.Schema, output: pa.Schema, around: Callable[[Contents], Contents]) -> Operator:
        """New logic for one subtask; see `WindowAggregate.logic`."""
        function = _Applied(self, schema.names, declared_schema(self.schema, self.kind, self.origin))
        contents = KeptRecords(schema.names, schema, function, self.settings.evictor)
        return WindowOperator(self.settings, self.keys, schema, output, around(contents), self.late_tag)


class _Applied:
    """Calls the function for each window that fires."""

    def __init__(self, spec: WindowApply, columns: Sequence[str], schema: pa.Schema) -> None:
        self._function = spec.function
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._columns = list(columns)
        self._schema = schema
        self._names = set(schema.names)

    def compute(self, fired: Fired, records: pa.RecordBatch, groups: Int64s, bounds: Int64s) -> Results:
        table = pa.Table.from_batches([records.select(self._columns)])
        keys = [tuple(key.values()) for key in fired.keys.to_pylist()] or [()] * len(fired.entries)
        values: list[list[Any]] = [[] for _ in self._schema]
        counts = []
        cuts = bounds.tolist()
        for at, (key, start, end) in enumerate(zip(keys, fired.starts.tolist(), fired.ends.tolist(), strict=True)):
            window = Window(start, end)
            some = table.slice(cuts[at], cuts[at + 1] - cuts[at])
            where = f"on the {some.num_rows} records of key {shown(_plain(key))} in {window}"
            try:
                result = self._function(_plain(key), window, some)
                returned: list[Any] = (
                    [] if result is None else [result] if isinstance(result, Mapping) else list(result)
                )
                for row in returned:
                    if not isinstance(row, Mapping) or row.keys() != self._names:
                        raise RowError(row)
                    for column, name in zip(values, self._schema.names, strict=True):
                        column.append(row[name])
            except PASSING:
                raise
            except RowError as error:
                raise self._user.error(f"returned {wrong_row(error.row, self._schema)}, {where}") from None
            except BaseException as error:
                raise self._user.raised(error, where) from error
            counts.append(len(returned))
        which = np.repeat(np.arange(len(counts)), counts)
        batch = self._user.batch(values, self._schema, lambda at: f"for key {shown(_plain(keys[which[at]]))}")
        return Results(list(batch.columns), which)


def _plain(key: tuple[Any, ...]) -> Any:
    """A key of one column as its value, of several as a tuple, of none as None."""
    return key[0] if len(key) == 1 else key or None
