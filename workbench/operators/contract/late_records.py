"""The last records that an operator dropped as late, so that a person can look at them and not only at their number.

Nothing is done for a record that is in time, and for late ones once a batch: the last few rows are copied, so that the
batch itself can go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Int64s

KEPT = 20
"""Late records of one subtask of an operator that are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class LateRows:
    """Late records of one batch.

    Attributes:
        rows: as they reached the operator.
        times: shape (rows,), their event times in us.
        watermark_us: where event time stood.
        keys: the columns of the key.
        senders: the task that sent them; several where small buffers of theirs were processed together, none where they
            came from a source of the same task.
    """

    rows: pa.RecordBatch
    times: Int64s
    watermark_us: int
    keys: tuple[str, ...]
    senders: tuple[str, ...]


class Sender:
    """The tasks whose records are at hand: one, several where small buffers are processed together, none in a source.

    A task writes it for each buffer, and nothing in it leads back to the task, whose memory is to be free at once when
    it has failed.
    """

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()


class LateRecords:
    """Remembers the last late records of one subtask; one thread notes them, any may read.

    Attributes:
        latest: oldest first; replaced as a whole, never changed. It has `KEPT` records where there were so many, and
            may have some older ones.
        sender: who sent the batch at hand; the operators of a task share it.

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

    def note(
        self, batch: pa.RecordBatch, times: Int64s, late: npt.NDArray[np.bool_], watermark_us: int, keys: Sequence[str]
    ) -> None:
        """Remember the last ones of a batch.

        Args:
            batch, times: the records, and shape (rows,) their event times in us.
            late: shape (rows,), which of them are dropped.
            watermark_us: where event time stands.
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
