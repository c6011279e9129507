"""Side outputs of process functions: records by tag, collected until the end of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.errors import unknown
from workbench.operators.functions.record_loop import ResultError, RowError, add_rows
from workbench.operators.functions.user_function import UserFunction, wrong_row
from workbench.raised import shown


class SideOutputs:
    """The records that a function has sent to its side outputs since the last ``take``.

    Args:
        schemas: by tag.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self._adds = {tag: add_rows(schema) for tag, schema in schemas.items()}
        self._columns: dict[str, list[list[Any]]] = {}
        self._marks: dict[str, list[tuple[int, Any]]] = {}

    def add(self, tag: str, record: Any, time_us: int, key: Any) -> None:
        """Add one record.

        Raises:
            TypeError: the tag is unknown, or the record is not a dict of exactly its columns.
        """
        if tag not in self._schemas:
            raise TypeError(unknown("side output", tag, self._schemas))
        schema = self._schemas[tag]
        if tag not in self._columns:
            self._columns[tag] = [[] for _ in schema]
            self._marks[tag] = []
        try:
            self._adds[tag]((record,), self._columns[tag])
        except (RowError, ResultError):
            raise TypeError(f"output({tag!r}) got {wrong_row(record, schema)}") from None
        self._marks[tag].append((time_us, key))

    def take(self, user: UserFunction, has_event_times: bool) -> Iterator[tuple[str, Records]]:
        """The added records, by tag.

        Raises:
            RecordError: a value does not fit its column.
        """
        taken, self._columns = self._columns, {}
        for tag, columns in taken.items():
            marks = self._marks.pop(tag)

            def where(at: int, tag: str = tag, marks: list[tuple[int, Any]] = marks) -> str:
                return f"in output({tag!r}) for key {shown(marks[at][1])}"

            batch = user.batch(columns, self._schemas[tag], where)
            times = np.array([time_us for time_us, _ in marks], np.int64) if has_event_times else None
            yield tag, Records(batch, times)
