"""The state of one key as an object, and that of many keys as Arrow columns.

For each operator a class is generated whose attributes are the declared fields, so that ``state.n += 1`` is one
attribute access; no other attribute can be set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from workbench.elements import Mask
from workbench.errors import CheckpointError, SettingError
from workbench.state.descriptors import Descriptor, ListState, MapState, ValueState
from workbench.state.expiring import Moment
from workbench.state.expiring_fields import ExpiringListField, ExpiringMapField, ExpiringValueField
from workbench.state.fields import Field, FoldField, ListField, MapField, Stored, ValueField
from workbench.state.values import UnfitError, to_array

RESERVED = frozenset({"clear"})


class State:
    """The state of one key: an attribute for each declared field, and ``clear()``, which resets all of them.

    Source: F2-7; Flink's keyed state.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def clear(self) -> None:
        """Reset everything: every field reads as if it had never been written."""
        type(self).__init__(self)


class StateTypeError(Exception):
    """A field holds a value that its type cannot represent.

    Attributes:
        name, kind: of the field.
        value: the value.
        at: index of the object.
    """

    def __init__(self, name: str, kind: pa.DataType, value: object, at: int) -> None:
        super().__init__(name, kind, value, at)
        self.name = name
        self.kind = kind
        self.value = value
        self.at = at


class StateLayout:
    """Converts state between objects and columns, for the declared fields.

    Args:
        descriptors: by name.
        moment: the processing time for times to live.

    Example:
        >>> from workbench.state.descriptors import ListState, ValueState
        >>> layout = StateLayout({"n": ValueState(pa.int64(), default=0), "seen": ListState(pa.string())}, Moment())
        >>> state = layout.make()
        >>> state.n += 1
        >>> state.seen.append("a")
        >>> [column.to_pylist() for column in layout.columns([state, layout.make()])]
        [[1, 0], [['a'], []]]
    """

    def __init__(self, descriptors: Mapping[str, Descriptor], moment: Moment) -> None:
        self.fields: dict[str, Field] = {
            name: _field(name, descriptor, moment) for name, descriptor in descriptors.items()
        }
        self.expires = any(descriptor.ttl_us is not None for descriptor in descriptors.values())
        self.make = _state_class(self.fields)

    def is_fresh(self, state: State) -> bool:
        """Whether this equals the state of a key without state."""
        return all(field.is_fresh(getattr(state, field.slot)) for field in self.fields.values())

    def used(self, states: Sequence[State]) -> Mask:
        """Shape (len(states),): which of these are not fresh; checked field by field, as the first decides most of
        them."""
        fresh = list(range(len(states)))
        for field in self.fields.values():
            is_fresh, held = field.is_fresh, attrgetter(field.slot)
            fresh = [at for at in fresh if is_fresh(held(states[at]))]
        mask = np.ones(len(states), np.bool_)
        mask[fresh] = False
        return mask

    def purge(self, state: State) -> None:
        """Remove what has expired."""
        for field in self.fields.values():
            if field.times is not None and field.is_fresh(getattr(state, field.slot)):
                setattr(state, field.slot, field.fresh())

    def shown(self, state: State) -> dict[str, Any]:
        """The state as a dict of copied values, lists and dicts."""
        return {name: field.shown(getattr(state, field.slot)) for name, field in self.fields.items()}

    def schema(self) -> pa.Schema:
        """The schema of ``columns``."""
        found = []
        for name, field in self.fields.items():
            found.append(pa.field(f"state:{name}", field.type))
            if field.times is not None:
                found.append(pa.field(f"written:{name}", field.times))
        return pa.schema(found)

    def columns(self, states: Sequence[State]) -> list[pa.Array]:
        """A copy of these objects' state.

        Raises:
            StateTypeError: a field holds a value that its type cannot represent.
        """
        found: list[pa.Array] = []
        for name, field in self.fields.items():
            values: list[Any] = list(map(attrgetter(field.slot), states))
            stored: list[Stored] = []
            if not field.stored_as_held:
                try:
                    stored = [field.stored(held) for held in values]
                except (TypeError, AttributeError, ValueError):
                    raise self._misused(name, field, states) from None
                values = [value for value, _ in stored]
            try:
                found.append(to_array(values, field.type))
            except UnfitError as unfit:
                raise StateTypeError(name, field.type, unfit.value, unfit.at) from None
            if field.times is not None:
                found.append(to_array([written for _, written in stored], field.times))
        return found

    def _misused(self, name: str, field: Field, states: Sequence[State]) -> StateTypeError:
        for at, state in enumerate(states):
            held = getattr(state, field.slot)
            try:
                field.stored(held)
            except (TypeError, AttributeError, ValueError):
                return StateTypeError(name, field.type, held, at)
        raise AssertionError("every field can be stored")

    def objects(self, columns: Mapping[str, list[Any]], count: int) -> list[State]:
        """New objects with the state in columns of that schema, as Python values by name; a new field is fresh."""
        states = [self.make() for _ in range(count)]
        for name, field in self.fields.items():
            values = columns.get(f"state:{name}")
            if values is None:
                continue
            if field.times is None:
                always = field.access is None  # a value may be None
                for state, value in zip(states, values, strict=True):
                    if always or value is not None:
                        setattr(state, field.slot, field.loaded(value, None))
            else:
                for state, value, written in zip(states, values, columns[f"written:{name}"], strict=True):
                    if written is not None:
                        setattr(state, field.slot, field.loaded(value, written))
        return states

    def check_times(self, table: pa.Table) -> None:
        """Reject rows of a checkpoint in which a value, or element, lacks its write time.

        Raises:
            ValueError: names the field.
        """
        for name, field in self.fields.items():
            if field.times is None or f"state:{name}" not in table.schema.names:
                continue
            values, times = table.column(f"state:{name}"), table.column(f"written:{name}")
            fits = True
            if pa.types.is_list(field.times):
                fits = _lengths(values).equals(_lengths(times)) and not any(
                    chunk.flatten().null_count for chunk in times.chunks
                )
            if not fits:
                raise ValueError(f"its state {name} has elements without the times at which they were written")

    def check(self, schema: pa.Schema, uid: str) -> None:
        """Reject a checkpoint's state that does not have these fields.

        Raises:
            CheckpointError: a field has another type now, or is no longer declared.
        """
        mine = self.schema()
        for field in schema:
            if not field.name.startswith(("state:", "written:")):
                continue
            kind, _, name = field.name.partition(":")
            if field.name not in mine.names:
                fact = "is no longer declared" if kind == "state" else "no longer has a ttl"
            elif mine.field(field.name).type != field.type:
                fact = f"was {field.type} and is declared as {mine.field(field.name).type}"
            else:
                continue
            raise CheckpointError(
                f"the state {name!r} of operator {uid!r} {fact}: declare it as before, or give the operator another "
                "uid to start it afresh"
            )
        for name, declared in self.fields.items():
            if f"state:{name}" in schema.names and declared.times is not None and f"written:{name}" not in schema.names:
                raise CheckpointError(
                    f"the state {name!r} of operator {uid!r} has a ttl now and had none in the checkpoint: declare it "
                    "as before, or give the operator another uid to start it afresh"
                )


def check_names(names: Sequence[str]) -> None:
    """Reject names that cannot be attributes of a key's state.

    Raises:
        SettingError: names one.
    """
    for name in names:
        if not name.isidentifier() or name.startswith("_") or name in RESERVED:
            raise SettingError(
                f"state cannot be called {name!r}: use a Python name that does not begin with '_' and is not "
                f"{' or '.join(sorted(RESERVED))}"
            )


def _field(name: str, descriptor: Descriptor, moment: Moment) -> Field:
    ttl_us = descriptor.ttl_us
    match descriptor:
        case ValueState():
            return (
                ValueField(name, descriptor) if ttl_us is None else ExpiringValueField(name, descriptor, moment, ttl_us)
            )
        case ListState():
            kind = pa.list_(descriptor.type)
            return ListField(name, kind) if ttl_us is None else ExpiringListField(name, kind, moment, ttl_us)
        case MapState():
            kind = pa.map_(descriptor.key_type, descriptor.type)
            return MapField(name, kind) if ttl_us is None else ExpiringMapField(name, kind, moment, ttl_us)
        case _:
            return FoldField(name, descriptor, moment, ttl_us)


def _state_class(fields: Mapping[str, Field]) -> type[State]:
    """The class whose attributes are the fields; creating an object runs one line for each."""
    names: dict[str, Any] = {}
    lines = []
    for at, field in enumerate(fields.values()):
        fresh = field.fresh()
        if isinstance(fresh, int | float | str | bytes | bool | None):
            names[f"value{at}"] = fresh
            lines.append(f"    self.{field.slot} = value{at}")
        else:
            names[f"make{at}"] = field.fresh
            lines.append(f"    self.{field.slot} = make{at}()")
    exec("\n".join(["def __init__(self):", *(lines or ["    pass"])]), names)
    members: dict[str, Any] = {"__slots__": tuple(field.slot for field in fields.values())}
    members["__init__"] = names["__init__"]
    members |= {name: field.access for name, field in fields.items() if field.access is not None}
    return type("State", (State,), members)


def _lengths(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The number of elements of each list, or of entries of each map."""
    counted = [pa.array(np.diff(chunk.offsets), mask=chunk.is_null().to_numpy(False)) for chunk in column.chunks]
    return pa.chunked_array(counted, pa.int32())
