"""Fields with a time to live after the last write; in lists and maps each element has its own."""

from __future__ import annotations

from copy import deepcopy
from operator import attrgetter
from typing import Any

import pyarrow as pa

from workbench.state.descriptors import ValueState
from workbench.state.expiring import Entry, ExpiringList, ExpiringMap, Moment
from workbench.state.fields import Field, Stored
from workbench.state.values import as_python


class ExpiringValueField(Field):
    """The value and when it was written, or None."""

    times = pa.int64()

    def __init__(self, name: str, descriptor: ValueState, moment: Moment, ttl_us: int) -> None:
        super().__init__(f"_{name}", descriptor.type)
        slot = self.slot
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


class _ExpiringElements(Field):
    """A collection whose elements expire one by one."""

    times = pa.list_(pa.int64())

    def __init__(self, name: str, kind: pa.DataType, moment: Moment, ttl_us: int) -> None:
        super().__init__(f"_{name}", kind)
        slot = self.slot
        self._moment = moment
        self._ttl_us = ttl_us
        self.access = property(
            attrgetter(slot),
            lambda state, values: setattr(state, slot, self._written(values, [moment.us] * len(values))),
        )

    def _written(self, values: Any, times: list[int]) -> Any:
        raise NotImplementedError  # abstract

    def loaded(self, value: Any, written: list[int]) -> Any:
        return self._written(as_python(value, self.type), written)


class ExpiringListField(_ExpiringElements):
    """A list whose elements expire."""

    def _written(self, values: list[Any], times: list[int]) -> ExpiringList:
        return ExpiringList(self._moment, self._ttl_us, zip(values, times, strict=True))

    def fresh(self) -> ExpiringList:
        return self._written([], [])

    def stored(self, held: ExpiringList) -> Stored:
        entries = held.entries()
        return [value for value, _ in entries], [written for _, written in entries]

    def shown(self, held: ExpiringList) -> list[Any]:
        return list(held)


class ExpiringMapField(_ExpiringElements):
    """A dict whose entries expire."""

    def _written(self, values: dict[Any, Any], times: list[int]) -> ExpiringMap:
        entries = ((key, (value, us)) for (key, value), us in zip(values.items(), times, strict=True))
        return ExpiringMap(self._moment, self._ttl_us, entries)

    def fresh(self) -> ExpiringMap:
        return self._written({}, [])

    def stored(self, held: ExpiringMap) -> Stored:
        entries = held.entries()
        return [(key, value) for key, (value, _) in entries.items()], [us for _, us in entries.values()]

    def shown(self, held: ExpiringMap) -> dict[Any, Any]:
        return dict(held)
