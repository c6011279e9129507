"""State that is the same on every subtask: rules from one stream, for the records of another (F1-3).

Only records of the broadcast stream may change it. Every subtask receives all of them, so in the end every subtask has
the same state. But only at an aligned barrier have all subtasks read equally far: an unaligned barrier finds different
records in flight to each, and behind a barrier that is only counted some may have read on. So a checkpoint stores the
state of every subtask, and each subtask resumes from its own. After rescaling all resume from the first subtask's
state: then in-flight records cannot be restored, and without them each state holds everything before the barrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from workbench.operators.process.process_function import class_attributes
from workbench.state.descriptors import BroadcastState, MapState
from workbench.state.expiring import Moment
from workbench.state.layout import State, StateLayout, check_names

_SUBTASK = pa.field("subtask", pa.int32(), nullable=False)
"""In a snapshot: the column with the subtask that holds the state."""


class BroadcastView:
    """The broadcast state as ``process1`` sees it: a read-only attribute for each declared dict.

    Args:
        shared: the state, read each time.
    """

    __slots__ = ("_shared",)

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    def __getattr__(self, name: str) -> Mapping[Any, Any]:
        return MappingProxyType(getattr(self._shared.states[0], name))


class SharedState:
    """The broadcast state of one subtask.

    Args:
        declared: by name.

    Attributes:
        states: the one state, in a list because a loop over records looks states up by code.
    """

    def __init__(self, declared: Mapping[str, BroadcastState]) -> None:
        check_names(list(declared))
        self._layout = StateLayout(
            {name: MapState(state.key_type, state.type) for name, state in declared.items()}, Moment()
        )
        self.states: list[State] = [self._layout.make()]

    def table(self, subtask: int) -> pa.Table:
        """A copy, in one row, with the index of this subtask.

        Raises:
            StateTypeError: a dict holds values that its types cannot represent.
        """
        columns = [pa.array([subtask], _SUBTASK.type), *self._layout.columns(self.states)]
        return pa.Table.from_arrays(columns, schema=pa.schema([_SUBTASK, *self._layout.schema()]))

    def load(self, tables: Sequence[pa.Table], subtask: int, parallelism: int, uid: str) -> None:
        """Restore from one of these copies: that of this subtask, if the parallelism is unchanged.

        Raises:
            CheckpointError: it was declared with other types.
        """
        if not tables:
            return
        by_subtask = {_subtask_of(table): table for table in tables}
        own = subtask if by_subtask.keys() == set(range(parallelism)) else min(by_subtask)
        table = by_subtask[own]
        if table.num_rows != 1:
            raise ValueError(f"broadcast has {table.num_rows} rows instead of one")
        if _SUBTASK.name in table.schema.names:
            table = table.drop_columns([_SUBTASK.name])
        self._layout.check(table.schema, uid)
        columns = {name: table.column(name).to_pylist() for name in table.schema.names}
        self.states[:] = self._layout.objects(columns, table.num_rows)


def _subtask_of(table: pa.Table) -> int:
    """The subtask that saved a copy; earlier versions saved only the first subtask's state, without its index."""
    return int(table.column(_SUBTASK.name)[0].as_py()) if _SUBTASK.name in table.schema.names else 0


def declared_broadcast(function: object) -> dict[str, BroadcastState]:
    """The broadcast state that a function's class declares, by name."""
    return {name: value for name, value in class_attributes(function).items() if isinstance(value, BroadcastState)}
