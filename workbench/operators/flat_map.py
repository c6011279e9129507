"""Turn each record into any number of records with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.errors import RecordError
from workbench.operators.base import Operator, Output
from workbench.operators.user_function import (
    Record,
    SchemaLike,
    build_batch,
    declared_schema,
    function_name,
    raised,
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
        self._spec = spec
        self._schema = schema

    def process(self, records: Records, port: int, out: Output) -> None:
        sources = records.batch.to_pylist()
        rows: list[Record] = []
        counts = []
        for source in sources:
            made = self._call(source)
            rows.extend(made)
            counts.append(len(made))
        if not rows:
            return
        origins = [source for source, count in zip(sources, counts, strict=True) for _ in range(count)]
        spec = self._spec
        batch = build_batch(rows, origins, self._schema, spec.kind, spec.function, spec.origin)
        times = records.timestamps
        out.emit(Records(batch, None if times is None else np.repeat(times, counts)))

    def _call(self, source: Record) -> list[Record]:
        spec = self._spec
        try:
            result = spec.function(source)
            if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
                return list(result)
        except Exception as error:
            raise raised(spec.kind, spec.function, source, error, spec.origin) from error
        raise RecordError(
            f"{spec.kind} function {function_name(spec.function)!r} returned {shorten(result)} ({type(result).__name__}), expected an "
            f"iterable of dicts, on record {shorten(source)}: return a list or use yield",
            origin=spec.origin,
        )
