"""Queryable state: the state of a running operator for a key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from workbench.durations import Duration, parse_duration
from workbench.errors import JobError, unknown
from workbench.plan.logical import LogicalGraph, Node
from workbench.runtime.messages.queries import Question
from workbench.state.key_columns import is_text

Ask = Callable[[Question], None]
"""Passes a question to the job's master."""

Wait = Callable[[threading.Event, float], bool]
"""Waits for an event, with a limit in seconds."""


class StateView:
    """The state of one operator of a running job; made by ``Job.operator_state``.

    Every answer comes from the operator's owner between two of its steps, so it is consistent: all records before some
    record have been counted, and none after it. Records that wait in buffers are not included.

    Source: Flink's queryable state.

    Example::

        state = job.operator_state("aggregate")
        state.get("JFK")                 # {'flights': 1203, 'mean_delay': 12.4}, or None
        state.get(origin="JFK")
        state.keys(10); state.size(); state.items(10)
    """

    def __init__(self, uid: str, node: Node, ask: Ask, wait: Wait) -> None:
        self._uid = uid
        self._ask = ask
        self._wait = wait
        item = next((item for item in node.inputs if item.exchange == "hash"), None)
        self._fields = [] if item is None else [item.schema.field(name) for name in item.keys]

    def get(self, *key: object, timeout: Duration = "5s", **named: object) -> dict[str, Any] | None:
        """The state of a key, or None if there is none.

        Args:
            key, named: the key's values in the order of ``key_by``, or by column: ``get("JFK")``,
                ``get(origin="JFK")``.
            timeout: how long to wait for the operator's owner, such as ``"5s"``.

        Raises:
            JobError: the key does not fit, the operator keeps no such state, or there was no answer in time.
        """
        answers = self._answers(self._key(key, named), 0, timeout)
        return next((dict(found) for found in answers if found is not None), None)

    def keys(self, limit: int = 100, *, timeout: Duration = "5s") -> list[dict[str, Any]]:
        """At most `limit` of the keys in the state, each as a dictionary for ``get(**key)``.

        Args:
            limit: maximum number of keys; which ones is not specified.
            timeout: how long to wait for the operator's owner, such as ``"5s"``.

        Raises:
            JobError: the operator keeps no such state, or there was no answer in time.
        """
        found = [key for _, keys in self._answers(None, max(0, limit), timeout) for key in keys]
        return found[: max(0, limit)]

    def items(
        self, limit: int = 100, *, timeout: Duration = "5s"
    ) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """At most `limit` keys of each subtask with their state, as (key, value).

        Args:
            limit: maximum number of keys of each subtask; which ones is not specified.
            timeout: how long to wait for the operator's owner, such as ``"5s"``.

        Raises:
            JobError: the operator keeps no such state, or there was no answer in time.
        """
        answers = self._answers(None, max(0, limit), timeout, with_values=True)
        return [(dict(key), None if value is None else dict(value)) for _, items in answers for key, value in items]

    def size(self, *, timeout: Duration = "5s") -> int:
        """The number of keys in the state; each subtask counts its own at a different moment.

        Args:
            timeout: how long to wait for the operator's owner, such as ``"5s"``.

        Raises:
            JobError: the operator keeps no such state, or there was no answer in time.
        """
        return sum(count for count, _ in self._answers(None, 0, timeout))

    def __repr__(self) -> str:
        key = ", ".join(field.name for field in self._fields)
        return f"StateView of {self._uid!r}; get({key}), keys(limit), size()"

    def _key(self, values: tuple[object, ...], named: dict[str, object]) -> pa.RecordBatch:
        """The key as a batch of one row."""
        names = [field.name for field in self._fields]
        given = dict(named) if named else dict(zip(names, values, strict=False))
        if sorted(given) != sorted(names) or len(values) != (0 if named else len(names)):
            known = ", ".join(names)
            raise JobError(f"the state of {self._uid!r} is keyed by {known or 'no column'}: query it with get({known})")
        columns = [self._column(field, given[field.name]) for field in self._fields]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(self._fields))

    def _column(self, field: pa.Field, value: object) -> pa.Array:
        kind = field.type
        try:
            if is_text(kind) and value is not None and not isinstance(value, str):
                raise TypeError
            return pa.array([value]).cast(kind)  # converted from text too, as typed in a magic
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            raise JobError(
                f"the key {field.name} of {self._uid!r} has type {kind}, which {value!r} does not fit"
            ) from None

    def _answers(
        self, key: pa.RecordBatch | None, limit: int, timeout: Duration, *, with_values: bool = False
    ) -> list[Any]:
        done = threading.Event()
        question = Question(self._uid, key, limit, done.set, with_values=with_values)
        self._ask(question)
        if not self._wait(done, parse_duration(timeout, "timeout") / 1e6):
            raise JobError(f"the operator {self._uid!r} has not answered within {timeout}: it is in a long step")
        if question.refused:
            raise JobError(f"the operator {self._uid!r} cannot be queried now ({question.refused}): try again")
        for found in question.answers.values():
            if isinstance(found, NotImplementedError):
                raise JobError(f"the operator {self._uid!r} has no keyed state to query")
            if isinstance(found, Exception):
                raise JobError(f"the state of {self._uid!r} could not be read: {found!r}") from found
        return [question.answers[task] for task in sorted(question.answers)]


def state_view(uid: str, logical: LogicalGraph, ask: Ask, wait: Wait) -> StateView:
    """The view of the operator `uid`.

    Raises:
        JobError: no such operator.
    """
    nodes = {own: node for node, own in logical.uids.items() if node.role == "operator"}
    if uid not in nodes:
        raise JobError(unknown("operator", uid, nodes))
    return StateView(uid, nodes[uid], ask, wait)
