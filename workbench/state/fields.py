"""The fields of a key's state: their content in memory for each kind of state, and their form in a checkpoint.

In a checkpoint a field is the column ``state:NAME`` and, with a time to live, ``written:NAME`` with the processing
times, in microseconds, at which its value or its elements were written.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from operator import attrgetter
from typing import Any

import pyarrow as pa

from workbench.state.descriptors import AggregatingState, ReducingState, ValueState
from workbench.state.expiring import Entry, Moment
from workbench.state.values import as_python

Stored = tuple[Any, Any]
"""A field's value in a checkpoint, and the times at which it was written (None without a time to live)."""


class Field:
    """One field: `slot` is the attribute that stores it, `access` a property over it, or None if it is the field
    itself.

    A slot's content is called *held*.
    """

    stored_as_held = False
    """Whether checkpoints store the held value unchanged."""
    times: pa.DataType | None = None
    """Arrow type of the write times; None without a time to live."""
    access: property | None = None
    """What the class has under the field's name; None if that is the slot itself."""

    def __init__(self, slot: str, kind: pa.DataType) -> None:
        self.slot = slot
        self.type = kind

    def fresh(self) -> Any:
        """The held value of a key without state."""
        raise NotImplementedError  # abstract

    def is_fresh(self, held: Any) -> bool:
        """Whether a key that holds this has no state."""
        return not held

    def stored(self, held: Any) -> Stored:
        """The form for checkpoints; called only if it differs from the held value."""
        raise NotImplementedError  # abstract

    def loaded(self, value: Any, written: Any) -> Any:
        """The held value, from its form in a checkpoint."""
        return as_python(value, self.type)

    def shown(self, held: Any) -> Any:
        """The value that a state query returns."""
        raise NotImplementedError  # abstract


class ValueField(Field):
    """The value itself."""

    stored_as_held = True

    def __init__(self, name: str, descriptor: ValueState) -> None:
        super().__init__(name, descriptor.type)
        self._default = descriptor.default
        self._mutable = pa.types.is_nested(descriptor.type)

    def fresh(self) -> Any:
        return deepcopy(self._default) if self._mutable else self._default

    def is_fresh(self, held: Any) -> bool:
        return held is self._default or (type(held) is type(self._default) and bool(held == self._default))

    def shown(self, held: Any) -> Any:
        return held


class ListField(Field):
    """A plain list."""

    stored_as_held = True

    def fresh(self) -> list[Any]:
        return []

    def loaded(self, value: list[Any] | None, written: Any) -> list[Any]:
        return as_python(value, self.type) or []

    def shown(self, held: list[Any]) -> list[Any]:
        return list(held)


class MapField(Field):
    """A plain dict."""

    def fresh(self) -> dict[Any, Any]:
        return {}

    def stored(self, held: dict[Any, Any]) -> Stored:
        return list(held.items()), None

    def loaded(self, value: list[tuple[Any, Any]] | None, written: Any) -> dict[Any, Any]:
        return as_python(value, self.type) or {}

    def shown(self, held: dict[Any, Any]) -> dict[Any, Any]:
        return dict(held)


class Folded:
    """What a user sees of reducing and aggregating state."""

    __slots__ = ("_entry", "_field")

    def __init__(self, field: FoldField, entry: Entry | None = None) -> None:
        self._field = field
        self._entry = entry

    def add(self, value: Any) -> None:
        """Fold a value in."""
        self._entry = self._field.folded(self.entry, value)

    def get(self) -> Any:
        """The folded value, None if nothing was added."""
        entry = self.entry
        return None if entry is None else self._field.result(entry[0])

    def clear(self) -> None:
        """Forget all values."""
        self._entry = None

    @property
    def entry(self) -> Entry | None:
        """The accumulator and its write time, unless it has expired."""
        entry = self._entry
        return None if entry is None or self._field.has_expired(entry) else entry

    def __repr__(self) -> str:
        return repr(self.get())


class FoldField(Field):
    """Reducing and aggregating state: an object with ``add``, ``get`` and ``clear``, which cannot be replaced."""

    def __init__(
        self, name: str, descriptor: ReducingState | AggregatingState, moment: Moment, ttl_us: int | None
    ) -> None:
        super().__init__(f"_{name}", descriptor.type)
        self.times = None if ttl_us is None else pa.int64()
        self._descriptor = descriptor
        self._moment = moment
        self._ttl_us = ttl_us
        self.result: Callable[[Any], Any] = (
            descriptor.result if isinstance(descriptor, AggregatingState) else lambda held: held
        )
        self.access = property(attrgetter(self.slot))

    def folded(self, entry: Entry | None, value: Any) -> Entry:
        """The entry with one more value."""
        descriptor = self._descriptor
        if isinstance(descriptor, AggregatingState):
            held = descriptor.add(descriptor.create() if entry is None else entry[0], value)
        else:
            held = value if entry is None else descriptor.function(entry[0], value)
        return held, self._moment.us

    def has_expired(self, entry: Entry) -> bool:
        """Whether its time to live has passed."""
        return self._ttl_us is not None and self._moment.us - entry[1] >= self._ttl_us

    def fresh(self) -> Folded:
        return Folded(self)

    def is_fresh(self, held: Folded) -> bool:
        return held.entry is None

    def stored(self, held: Folded) -> Stored:
        entry = held.entry
        if entry is None:
            return None, None
        return entry if self.times is not None else (entry[0], None)

    def loaded(self, value: Any, written: int | None) -> Folded:
        return Folded(self, (as_python(value, self.type), written or 0))

    def shown(self, held: Folded) -> Any:
        return held.get()
