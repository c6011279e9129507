"""Fields with a time to live: so long after its last write a value is gone, of lists and maps each element."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa

from workbench.state.descriptors import ListState, MapState, ValueState
from workbench.state.expiring import Entry, ExpiringList, ExpiringMap, Moment
from workbench.state.values import as_python

Stored = tuple[Any, Any]
"""A field's value as it goes into a checkpoint, and the times at which it was written (None without a time to live)."""


class ExpiringValueField:
    """The value and when it was written, or None."""

    stored_as_held = False
    times = pa.int64()

    def __init__(self, name: str, descriptor: ValueState, moment: Moment, ttl_us: int) -> None:
        self.slot = slot = f"_{name}"
        self.type = descriptor.type
        self._moment = moment
        self._ttl_us = ttl_us
        self._default = descriptor.default
        self.access = property(
            lambda state: self.shown(getattr(state, slot)),
            lambda state, value: setattr(state, slot, (value, moment.us)),
        )

    def fresh(self) -> None:
        return None

    def is_fresh(self, held: Entry | None) -> bool:
        return held is None or self._moment.us - held[1] >= self._ttl_us

    def stored(self, held: Entry | None) -> Stored:
        return (None, None) if held is None or self.is_fresh(held) else held

    def loaded(self, value: Any, written: Any) -> Entry:
        return as_python(value, self.type), written

    def shown(self, held: Entry | None) -> Any:
        return deepcopy(self._default) if held is None or self.is_fresh(held) else held[0]


class ExpiringListField:
    """A list whose elements disappear."""

    stored_as_held = False
    times = pa.list_(pa.int64())

    def __init__(self, name: str, descriptor: ListState, moment: Moment, ttl_us: int) -> None:
        self.slot = slot = f"_{name}"
        self.type = pa.list_(descriptor.type)
        self._moment = moment
        self._ttl_us = ttl_us
        self.access = property(
            lambda state: getattr(state, slot),
            lambda state, values: setattr(state, slot, self._written(values, [moment.us] * len(values))),
        )

    def _written(self, values: list[Any], times: list[int]) -> ExpiringList:
        return ExpiringList(self._moment, self._ttl_us, zip(values, times, strict=True))

    def fresh(self) -> ExpiringList:
        return self._written([], [])

    def is_fresh(self, held: ExpiringList) -> bool:
        return not held

    def stored(self, held: ExpiringList) -> Stored:
        entries = held.entries()
        return [value for value, _ in entries], [written for _, written in entries]

    def loaded(self, value: list[Any], written: list[int]) -> ExpiringList:
        return self._written(as_python(value, self.type), written)

    def shown(self, held: ExpiringList) -> list[Any]:
        return list(held)


class ExpiringMapField:
    """A dict whose entries disappear."""

    stored_as_held = False
    times = pa.list_(pa.int64())

    def __init__(self, name: str, descriptor: MapState, moment: Moment, ttl_us: int) -> None:
        self.slot = slot = f"_{name}"
        self.type = pa.map_(descriptor.key_type, descriptor.type)
        self._moment = moment
        self._ttl_us = ttl_us
        self.access = property(
            lambda state: getattr(state, slot),
            lambda state, values: setattr(state, slot, self._written(values, [moment.us] * len(values))),
        )

    def _written(self, values: dict[Any, Any], times: list[int]) -> ExpiringMap:
        entries = ((key, (value, us)) for (key, value), us in zip(values.items(), times, strict=True))
        return ExpiringMap(self._moment, self._ttl_us, entries)

    def fresh(self) -> ExpiringMap:
        return self._written({}, [])

    def is_fresh(self, held: ExpiringMap) -> bool:
        return not held

    def stored(self, held: ExpiringMap) -> Stored:
        entries = held.entries()
        return [(key, value) for key, (value, _) in entries.items()], [us for _, us in entries.values()]

    def loaded(self, value: list[tuple[Any, Any]], written: list[int]) -> ExpiringMap:
        return self._written(as_python(value, self.type), written)

    def shown(self, held: ExpiringMap) -> dict[Any, Any]:
        return dict(held)
