"""Records of one batch that wait for the answers of an asynchronous lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.state.key_index import KeyIndex


class LookupBatch:
    """Records that wait for answers, one for each distinct key.

    Args:
        records: as they arrived.
        names: of the key columns.

    Attributes:
        records: as they arrived.
        codes: shape (n,), the key of each record; -1 where it has a null.
        keys: the distinct keys, as arguments.
        answers: one for each key; None if there is no answer.
        answered: shape (keys + 1,); the last, of code -1, is always true.
        waiting: shape (n,), the records that have not been emitted.
    """

    __slots__ = ("answered", "answers", "codes", "keys", "records", "waiting")

    def __init__(self, records: Records, names: Sequence[str]) -> None:
        batch = records.batch
        complete = np.ones(len(batch), np.bool_)
        for name in names:
            complete &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        known = batch if complete.all() else batch.filter(pa.array(complete))
        index = KeyIndex(names, batch.schema)
        self.records = records
        self.codes: Int64s = np.full(len(batch), -1, np.int64)
        self.codes[complete] = index.codes(known)
        self.keys = list(zip(*(column.to_pylist() for column in index.keys_table().columns), strict=True))
        self.answers: list[Mapping[str, Any] | None] = [None] * (len(self.keys) + 1)
        self.answered = np.zeros(len(self.keys) + 1, np.bool_)
        self.answered[-1] = True
        self.waiting = np.ones(len(batch), np.bool_)

    def answerable(self, ordered: bool) -> Int64s:
        """The records that can be emitted now."""
        ready = self.answered[self.codes]
        if ordered and not ready.all():
            ready[int(np.argmin(ready)) :] = False
        rows: Int64s = np.flatnonzero(ready & self.waiting)
        return rows
