"""Rolling reduce: a Python function folds each record into the result of its key (F1-5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.errors import CheckpointError, RecordError
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.record_loop import CHUNK, LoopError, chunks, reduce_loop
from workbench.operators.functions.user_function import Record, UserFunction, function_name, on_record
from workbench.operators.snapshots.changed_types import as_type, as_written
from workbench.operators.snapshots.keyed_snapshot import key_rows, owned_table
from workbench.operators.snapshots.pieces import codes_in
from workbench.origin import Origin
from workbench.raised import shown
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import with_keys


@dataclass(frozen=True)
class Reduce:
    """Folds each record into the result held for its key and emits the new result, with the record's event time.

    The first record of a key is held and emitted unchanged.

    Attributes:
        keys: the key columns.
        function: takes the held record and a new one and returns the record to hold, all with the input's columns.
        origin: the user's line, for errors.
        on_error: what happens to a record for which the function raises or returns something else; the held record of
            its key stays unchanged.

    Raises:
        RecordError: while running, for such a record, unless it becomes a dead letter.

    Example:
        >>> Reduce(("user",), lambda a, b: a if a["score"] >= b["score"] else b).kind
        'reduce'
    """

    keys: tuple[str, ...]
    function: Callable[[Record, Record], Record]
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "reduce"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The schema of the input.

        Raises:
            PlanError: a column cannot be a key.
        """
        check_on_error(self.on_error, self.origin)
        check_keys(self.keys, inputs[0])
        return inputs[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

    def describe(self) -> str:
        return function_name(self.function)

    def growing(self) -> str | None:
        """One record for each key."""
        return f"a record of each {', '.join(self.keys)}" if self.keys else None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return ReduceLogic(self, inputs[0])


class ReduceLogic(Operator):
    """State: the record held for each key, at the key's code."""

    def __init__(self, spec: Reduce, schema: pa.Schema) -> None:
        self._keys = spec.keys
        self._function = spec.function
        self._schema = schema
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._index = KeyIndex(spec.keys, schema)
        self._held: list[Record | None] = []
        self._loop = reduce_loop(schema)
        self._poison = PoisonRecords(spec.on_error, self._user)
        self._copy = deepcopy if any(pa.types.is_nested(kind) for kind in schema.types) else copy

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            made: list[Records] = []
            for at in chunks(records):
                parts = self._poison.parts(records.slice(at, CHUNK), self._reduced, self._key, at)
                made += [part for _, part in parts]
            if made:
                out.emit(Records.concat(made))
            self._poison.send(out, with_times=records.timestamps is not None)

    def _key(self, records: Records) -> Any:
        values = [records.batch.column(name)[0].as_py() for name in self._keys]
        return values[0] if len(values) == 1 else tuple(values)

    def _reduced(self, records: Records) -> Records:
        codes = self._index.codes(records.batch)
        self._held += [None] * (len(self._index) - len(self._held))
        if not self._poison.kept:
            return self._folded(records, codes)
        before = {code: self._copy(self._held[code]) for code in set(codes.tolist())}
        try:
            return self._folded(records, codes)
        except RecordError:
            for code, held in before.items():
                self._held[code] = held
            raise

    def _folded(self, records: Records, codes: Int64s) -> Records:
        batch = records.batch
        made: list[list[Any]] = [[] for _ in self._schema]
        try:
            columns = self._user.values(batch)
            self._loop(self._function, columns, codes.tolist(), self._held, made)
        except LoopError as failure:
            held = None if failure.code is None else self._held[failure.code]
            where = f"with {shown(held)} held, on record {shown(failure.record)}"
            raise self._user.explained(failure.cause, where, self._schema, "a dict") from failure.cause
        rows = self._user.batch(made, self._schema, lambda at: on_record(batch, at))
        return Records(rows, records.timestamps)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        code = int(self._index.find(one_key(self._keys, self._schema, key))[0])
        return None if code < 0 else self._held[code]

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        known = len(self._index)
        return known, python_rows(self._index.keys_table(np.arange(min(limit, known))))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        held = [record for record in self._held if record is not None]  # complete: each key was added with a record
        columns = [[record[name] for record in held] for name in self._schema.names]
        rows = self._user.batch(columns, self._schema, lambda at: f"in the record held, {shown(held[at])}")
        names = [f"held:{name}" for name in self._schema.names]
        return {"held": with_keys(self._index.keys_table(), rows.columns, names)}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        table = owned_table(snapshots, "held", self._keys, self._context)
        if table is None:
            return
        columns = [f"held:{name}" for name in self._schema.names]
        held = [name for name in table.schema.names if name.startswith("held:")]
        if held != columns:
            raise CheckpointError(
                f"the state of operator {self._context.uid!r} has the columns {', '.join(map(as_written, held))}, "
                f"and its input has {', '.join(map(as_written, columns))}: give the operator another uid to start it "
                "afresh"
            )
        codes = codes_in(self._index, key_rows(table, self._keys))
        self._held = [None] * len(self._index)
        arrays = [
            as_type(table.column(name), name, kind) for name, kind in zip(columns, self._schema.types, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        for code, record in zip(codes.tolist(), rows.to_pylist(), strict=True):
            self._held[code] = record
