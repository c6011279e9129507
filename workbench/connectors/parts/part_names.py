"""The names of a part sink's files, and the validation of those in a snapshot.

``part-EPOCH-SUBTASK-NUMBER`` with the format's suffix is a committed file.
``.pending-EPOCH-SUBTASK-ATTEMPT-NUMBER-RUN`` is one that is not committed yet. Its epoch is the one in which it was
begun; if checkpoints have failed since, it is committed with a later one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.connectors.contract.saved_files import impossible, is_there, own_name, saved_as, shown
from workbench.operators.contract.base import Snapshot

_PART = re.compile(r"part-([0-9]{8,19})-([0-9]{4,9})-([0-9]{3,9})(\.[a-z.0-9]+)")
_STRAY = re.compile(r"\.pending-[0-9]+-([0-9]+)-.*")
_PENDING = re.compile(
    r"\.pending-([0-9]{8,19})-([0-9]{4,9})-[0-9]{1,9}-[0-9]{3,9}(?:-[A-Za-z0-9_ -]{0,64})?(\.[a-z.0-9]+)"
)


def part_name(epoch: int, subtask: int, number: int, suffix: str) -> str:
    """The name of a committed file.

    Example:
        >>> part_name(7, 0, 2, ".csv")
        'part-00000007-0000-002.csv'
    """
    return f"part-{epoch:08d}-{subtask:04d}-{number:03d}{suffix}"


def pending_name(epoch: int, subtask: int, attempt: int, number: int, run: str, suffix: str) -> str:
    """The name of a file that is not committed yet. It contains the run, so jobs that start from the same savepoint
    never write each other's files.

    Example:
        >>> pending_name(7, 0, 1, 2, "ab", ".csv")
        '.pending-00000007-0000-1-002-ab.csv'
    """
    return f".pending-{epoch:08d}-{subtask:04d}-{attempt}-{number:03d}-{run}{suffix}"


def order_of(name: str) -> tuple[int, int, int] | None:
    """Epoch, subtask and number of a committed file; None for any other name.

    Example:
        >>> order_of("part-00000007-0000-002.csv"), order_of("notes.txt")
        ((7, 0, 2), None)
    """
    found = _PART.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def writer_of(name: str) -> int | None:
    """The subtask that wrote a hidden file, complete or not; None for any other name.

    Example:
        >>> writer_of(".pending-00000007-0003-1-002-ab.csv.tmp")
        3
    """
    found = _STRAY.fullmatch(name)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class SavedPart:
    """A pre-committed file, as a snapshot describes it.

    Attributes:
        file: its name.
        target: its name after its epoch is complete.
        checksum: of its bytes.
    """

    file: str
    target: str
    checksum: str

    @property
    def epoch(self) -> int:
        """The epoch that it is committed with."""
        order = order_of(self.target)
        assert order is not None, "names are checked before anybody asks"
        return order[0]

    def check(self, suffix: str, checkpoint: int) -> None:
        """Reject names that no sink with this suffix creates, up to this checkpoint.

        Raises:
            CorruptCheckpointError: with the name.
        """
        file = own_name(_PENDING, self.file, "a pre-committed file")
        target = own_name(_PART, self.target, "a part")
        if {file[3], target[4]} != {suffix}:
            raise impossible(f"{shown(self.file)} becomes {shown(self.target)}, and this sink writes {suffix!r} files")
        if int(file[2]) != int(target[2]):
            raise impossible(f"{shown(self.file)} becomes {shown(self.target)}, a part of another subtask")
        if not 1 <= int(file[1]) <= int(target[1]) <= checkpoint:
            raise impossible(
                f"{shown(self.file)} becomes {shown(self.target)}, whose epochs are not those up to {checkpoint}"
            )


@dataclass(frozen=True, slots=True)
class SavedParts:
    """What one subtask of a part sink saves, or all of them together.

    Attributes:
        checkpoint: the checkpoint that it was taken for.
        pending: files that were pre-committed and are not known to be committed.
    """

    checkpoint: int
    pending: tuple[SavedPart, ...]

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], folder: Path, suffix: str) -> SavedParts:
        """The combined saved files of the subtasks of one checkpoint.

        Args:
            snapshots: of all subtasks; at least one is not empty.
            folder: of the sink.
            suffix: of its files.

        Raises:
            CorruptCheckpointError: no sink saves this, or a file in the folder is a link.
        """
        saved = [saved_as(cls, snapshot, f"the state of the sink to {folder}") for snapshot in snapshots if snapshot]
        pending = tuple(part for each in saved for part in each.pending)
        for each in saved:
            for part in each.pending:
                part.check(suffix, each.checkpoint)
        for names in ([part.file for part in pending], [part.target for part in pending]):
            if len(set(names)) < len(names):
                raise impossible(f"{shown(Counter(names).most_common(1)[0][0])} is named twice")
        for part in pending:
            is_there(folder / part.file)
            is_there(folder / part.target)
        return cls(max(each.checkpoint for each in saved), pending)
