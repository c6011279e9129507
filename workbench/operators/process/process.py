"""Keyed process functions: a Python function per record, with declared state, timers and side outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyarrow as pa

from workbench.errors import PlanError, unknown
from workbench.operators.contract.base import Operator
from workbench.operators.functions.dead_letters import OnError, check_on_error, side_schemas
from workbench.operators.functions.user_function import SchemaLike, declared_schema, function_name
from workbench.operators.process.process_function import ProcessFunction, declared_state, takes_context
from workbench.operators.process.process_logic import ProcessLogic
from workbench.origin import Origin
from workbench.state.descriptors import Descriptor
from workbench.state.key_columns import check_keys
from workbench.state.states_on_disk import load_packages

StateBackend = Literal["memory", "disk"]
BACKENDS: tuple[StateBackend, ...] = ("memory", "disk")


@dataclass(frozen=True)
class Process:
    """Calls `function` once per record with the state of the record's key.

    Attributes:
        keys: the key columns.
        function: a `ProcessFunction`, or a function of (record, state) or (record, state, ctx).
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name.
        state: of a plain function, by name: descriptors or Arrow types.
        side_outputs: schema of each side output by its tag.
        state_backend: where state is kept.
        origin: the user's line, for errors.
        on_error: what happens to a record for which the function raises or returns something else.

    Example:
        >>> def count(record, state):
        ...     state.n += 1
        ...     return {"user": record["user"], "n": state.n}
        >>> from workbench.state.descriptors import ValueState
        >>> schema = {"user": pa.string(), "n": pa.int64()}
        >>> Process(("user",), count, schema, {"n": ValueState(pa.int64(), default=0)}).describe()
        'count'
    """

    keys: tuple[str, ...]
    function: ProcessFunction | Callable[..., Any]
    schema: SchemaLike
    state: Mapping[str, Descriptor | pa.DataType] | None = None
    side_outputs: Mapping[str, SchemaLike] = field(default_factory=dict)
    state_backend: StateBackend = "memory"
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "process"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The declared schema.

        Raises:
            PlanError: keys, function, schema or state are not valid.
            SettingError: a name of state is not valid.
        """
        check_on_error(self.on_error, self.origin)
        check_keys(self.keys, inputs[0])
        if isinstance(self.function, type) or not callable(getattr(self.function, "process", self.function)):
            raise PlanError(
                f"process got {self.function!r}: pass a ProcessFunction, such as Sessions(), or a function of "
                "(record, state)",
                origin=self.origin,
            )
        if self.state_backend not in BACKENDS:
            raise PlanError(unknown("state backend", self.state_backend, BACKENDS), origin=self.origin)
        if self.state_backend == "disk":
            load_packages()
        self.declared_state()
        self.wants_context()
        return declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        declared = {tag: declared_schema(schema, self.kind, self.origin) for tag, schema in self.side_outputs.items()}
        letters = side_schemas(self.on_error)
        if taken := declared.keys() & letters:
            raise PlanError(
                f"the side output {taken.pop()!r} is for dead letters: give it another tag", origin=self.origin
            )
        return declared | letters

    def describe(self) -> str:
        return function_name(self.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return ProcessLogic(self, inputs[0])

    def declared_state(self) -> dict[str, Descriptor]:
        """The state by name."""
        return declared_state(self.function, self.state, self.origin)

    def sees_watermarks(self) -> bool:
        """It does if timers fire, or if the function can read event time."""
        function = self.function
        timers = isinstance(function, ProcessFunction) and type(function).on_timer is not ProcessFunction.on_timer
        return timers or self.wants_context()

    def wants_context(self) -> bool:
        """Whether the function takes a context."""
        function = self.function
        return takes_context(function.process if isinstance(function, ProcessFunction) else function, self.origin)
