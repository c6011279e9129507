"""The log of offsets: which records each batch consists of, durable before the batch is processed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace

from workbench.errors import CheckpointError
from workbench.from_json import made, parsed
from workbench.runtime.storage import CheckpointStorage

LOG = "batches.json"
"""The name of the file next to the checkpoints."""


@dataclass(frozen=True, slots=True)
class Span:
    """What one subtask of a source contributes to a batch.

    Attributes:
        start, end: records that the subtask had read before the batch, and with it.
        counts: by split, how many of them.
        ended: the subtask had then read everything.
    """

    start: int
    end: int
    counts: Mapping[str, int]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Offsets:
    """The records of one batch.

    Attributes:
        txid: its number.
        checkpoint_id: of the checkpoint that commits it; 0: it is to be processed again, with another one.
        spans: by the names of the source tasks.
    """

    txid: int
    checkpoint_id: int
    spans: Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class _Log:
    base: int
    batches: tuple[Offsets, ...]


class OffsetLog:
    """The offsets of the batches that are not committed, and of the last one that is.

    Args:
        storage: of the job's checkpoints.

    Attributes:
        highest_txid: of all batches that were logged; 0: none.
        committed_txid: of the last batch that was committed, as far as it is known; 0: none.
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage
        self._base = self.committed_txid = self.highest_txid = 0
        self._batches: dict[int, Offsets] = {}
        if content := storage.kept(LOG):
            try:
                log = made(_Log, parsed(content))
            except ValueError as error:
                raise CheckpointError(
                    f"{storage.path_of(LOG)} cannot be read: {error}; without it batches that were not committed may "
                    "be cut differently: delete the file to accept this"
                ) from error
            self._base, self._batches = log.base, {batch.txid: batch for batch in log.batches}
            self.highest_txid = max(self._batches, default=0)

    def resume(self, checkpoint_id: int, tasks: Collection[str]) -> list[Offsets]:
        """The batches that are not committed, oldest first.

        Args:
            checkpoint_id: that the job resumes from; 0: from none.
            tasks: names of the source tasks. With others than before, batches are cut anew.
        """
        of = {each.checkpoint_id: txid for txid, each in self._batches.items() if each.checkpoint_id}
        if checkpoint_id in of:
            self.committed_txid = committed = of[checkpoint_id]
            self._batches = {txid: each for txid, each in self._batches.items() if txid > committed}
        elif checkpoint_id != self._base:
            self._batches = {}  # the job has gone elsewhere, so these are batches of another history
        self._base = checkpoint_id
        if any(set(each.spans) != set(tasks) for each in self._batches.values()):
            self._batches = {}
        # The next checkpoint may have the number of one that has failed, if another process takes it.
        self._batches = {txid: replace(self._batches[txid], checkpoint_id=0) for txid in sorted(self._batches)}
        return list(self._batches.values())

    def add(self, offsets: Offsets) -> bytes:
        """Add a batch, or replace what is known of it; returns the content that is to be kept."""
        self._batches[offsets.txid] = offsets
        self.highest_txid = max(self.highest_txid, offsets.txid)
        return json.dumps(asdict(_Log(self._base, tuple(self._batches.values())))).encode()

    def committed(self, txid: int) -> None:
        """Forget the batches before this one."""
        self._batches = {other: each for other, each in self._batches.items() if other >= txid}
