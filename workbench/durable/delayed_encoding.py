"""Large pieces of snapshots, which are encoded, hashed and synced off the data path.

A value of a snapshot may be a piece with *delayed encoding*: a function without arguments. The task hands over the
snapshot immediately. The checkpoint's background writer calls the function, stores the result, and only then
acknowledges the checkpoint. For state that is larger than memory, the function returns a reader, whose batches are
written one by one. The function may be called more than once, and from a different thread than the operator's, so it
uses only data that it owns. If it or its reader raises an error, the checkpoint fails and the operator continues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import pyarrow as pa

from workbench.from_json import Json

DelayedEncoding = Callable[[], "pa.Table | pa.RecordBatchReader | Json"]
"""Returns a snapshot's value when the background writer calls it."""

FILES = "$files"
"""Name of a snapshot's piece that lists the additional files that the snapshot needs: paths relative to
``OperatorContext.data_dir``. The runtime deletes a file when the last complete checkpoint that lists it is gone; the
operator never does. A restore does not receive this piece."""

GONE = pa.field("$gone", pa.bool_())
"""A column of changed rows: true if the key no longer has state. If a key has several rows, the last one counts."""


@runtime_checkable
class ChangingRows(Protocol):
    """A piece with delayed encoding that can also return the changes since an earlier snapshot's piece.

    Attributes:
        moment: identifies the snapshot; unique.
    """

    @property
    def moment(self) -> object: ...

    def __call__(self) -> pa.RecordBatchReader:
        """All rows."""

    def since(self, moment: object) -> pa.RecordBatchReader | None:
        """The rows that have changed since that moment, with the column `GONE`; None if that is not known."""
