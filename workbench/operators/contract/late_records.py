"""The last records that an operator dropped as late, so that users can inspect them and not only their number.

A record in time costs nothing, and late ones are handled once per batch: the last few rows are copied, so that the
batch itself can be released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Mask

KEPT = 20
"""The number of late records that each subtask of an operator remembers."""


@dataclass(frozen=True, slots=True, eq=False)
class LateRows:
    """Late records of one batch.

    Attributes:
        rows: as they arrived at the operator.
        times: shape (rows,), their event times in us.
        watermark_us: the watermark at that time.
        keys: the columns of the key.
        senders: the tasks that sent them: several if their small buffers were processed together, none if they came
            from a source of the same task.
    """

    rows: pa.RecordBatch
    times: Int64s
    watermark_us: int
    keys: tuple[str, ...]
    senders: tuple[str, ...]


class Sender:
    """The tasks that sent the current records: one, several if small buffers are processed together, none in a source.

    A task sets it for each buffer. It holds no reference to the task, whose memory must be released immediately when it
    has failed.
    """

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()


class LateRecords:
    """Remembers the last late records of one subtask; one thread writes them, any may read.

    Attributes:
        latest: oldest first; replaced as a whole, never changed. It has at least the last `KEPT` records, if there were
            as many, and may have some older ones.
        sender: the sender of the current batch; the operators of a task share it.

    Example:
        >>> seen = LateRecords()
        >>> batch = pa.RecordBatch.from_pydict({"k": ["a", "b"]})
        >>> seen.note(batch, np.array([5, 90]), np.array([True, False]), 60, ["k"])
        >>> [(piece.rows.to_pylist(), piece.times.tolist(), piece.watermark_us) for piece in seen.latest]
        [([{'k': 'a'}], [5], 60)]
    """

    __slots__ = ("latest", "sender")

    def __init__(self) -> None:
        self.latest: tuple[LateRows, ...] = ()
        self.sender = Sender()

    def note(self, batch: pa.RecordBatch, times: Int64s, late: Mask, watermark_us: int, keys: Sequence[str]) -> None:
        """Remember the last late records of a batch.

        Args:
            batch, times: the records, and shape (rows,) their event times in us.
            late: shape (rows,), which of them are dropped.
            watermark_us: the current watermark.
            keys: the columns of the key.
        """
        places = np.flatnonzero(late)[-KEPT:]
        if not len(places):
            return
        kept = [LateRows(batch.take(pa.array(places)), times[places], watermark_us, tuple(keys), self.sender.names)]
        room = KEPT - len(places)
        for piece in reversed(self.latest):
            if room <= 0:
                break
            kept.append(piece)
            room -= len(piece.times)
        self.latest = tuple(reversed(kept))
