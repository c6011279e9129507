"""Turn each record into any number of records with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.base import Operator, Output
from workbench.operators.user_function import (
    Record,
    SchemaLike,
    UserFunction,
    declared_schema,
    function_name,
    shorten,
)
from workbench.origin import Origin


@dataclass(frozen=True)
class FlatMap:
    """Calls `function` once per record; each record that it returns or yields inherits the record's event time.

    Args:
        function: from a record (a dict) to an iterable of records (none, one or several dicts; a generator will do).
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name.
        origin: the user's line, for errors.

    Raises:
        RecordError: while running, when the function raises or returns something else.

    Example:
        >>> FlatMap(lambda r: ({"word": w} for w in r["line"].split()), {"word": pa.string()})
    """

    function: Callable[[Record], Iterable[Record]]
    schema: SchemaLike
    origin: Origin | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "flat_map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return function_name(self.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return FlatMapLogic(self, self.output_schema(inputs))


class FlatMapLogic(Operator):
    """Runs the function over each batch and emits all that came of it as one batch."""

    def __init__(self, spec: FlatMap, schema: pa.Schema) -> None:
        self._function = spec.function
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._schema = schema

    def process(self, records: Records, port: int, out: Output) -> None:
        sources = records.batch.to_pylist()
        made = [self._call(source) for source in sources]
        rows = list(chain.from_iterable(made))
        if not rows:
            return
        counts = [len(results) for results in made]
        parents = list(chain.from_iterable(map(repeat, sources, counts)))
        batch = self._user.batch(rows, parents, self._schema)
        times = records.timestamps
        out.emit(Records(batch, None if times is None else np.repeat(times, counts)))

    def _call(self, source: Record) -> list[Record]:
        try:
            result = self._function(source)
            if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
                return list(result)
        except Exception as error:
            raise self._user.raised(source, error) from error
        raise self._user.error(
            f"returned {shorten(result)} ({type(result).__name__}), expected an iterable of dicts, "
            f"on record {shorten(source)}: return a list or use yield"
        )
