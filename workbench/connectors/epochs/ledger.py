"""Names the senders that a sink has ever had, in a file that outlives a killed process.

A killed sender can leave a transaction open, which hides later messages of all senders from readers until it is ended.
Only its transactional ID can end it, so all IDs are written down before the first of them is used. Source: Flink's
FLIP-511 (TransactionOwnership), whose checkpoints name the subtasks whose transactions a job may have to abort.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from io import FileIO
from pathlib import Path

from workbench.durable.disk import DISK, open_no_link, take_folder_durably
from workbench.errors import CheckpointError, SinkError, cannot_be_read, remedy, told_by
from workbench.from_json import made, parsed

SENDERS_MAX = 1 << 15
"""The greatest parallelism."""
_FOLDER = "senders"
_SIZE_MAX = 1 << 20


class Ledger:
    """By writer, the highest number of subtasks that have ever sent its messages.

    Args:
        data_dir: as in ``OperatorContext``; None: nothing is durable, so the ledger is kept in memory only.
        uid: of the sink.

    Raises:
        CheckpointError: the file cannot be read.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> Ledger(folder, "sink").cover("job/sink", 4)
        4
        >>> Ledger(folder, "sink").cover("job/sink", 2)
        4
    """

    def __init__(self, data_dir: Path | None, uid: str) -> None:
        self._path: Path | None = None
        self._counts: dict[str, int] = {}
        if data_dir is not None:
            self._path = data_dir / _FOLDER / f"{blake2b(uid.encode(), digest_size=16).hexdigest()}.json"
            self._counts = _read(self._path)

    def of(self, writer: str) -> int:
        """The number of subtasks that may have sent messages as this writer."""
        return self._counts.get(writer, 0)

    def cover(self, writer: str, count: int) -> int:
        """Name the senders of so many subtasks, before they are used.

        Returns:
            The highest number that this writer has ever had.

        Raises:
            SinkError: the file cannot be written.
        """
        if count > self.of(writer):
            self._counts[writer] = count
            if self._path is not None:
                _write(self._path, json.dumps(self._counts).encode())
        return self.of(writer)


def _read(path: Path) -> dict[str, int]:
    try:
        with FileIO(str(path), opener=open_no_link) as file:
            data = file.read(_SIZE_MAX) or b""
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise cannot_be_read("the ledger of a sink", path, error) from None
    try:
        counts = made(dict[str, int], parsed(data), "the ledger")
        if not all(0 <= count <= SENDERS_MAX for count in counts.values()):
            raise ValueError("it has an impossible number of senders")
    except ValueError as error:
        raise CheckpointError(
            f"{str(path)!r} does not name the senders of a sink ({error}): delete it; a transaction of a former "
            "subtask can then stay open until the broker ends it"
        ) from None
    return counts


def _write(path: Path, data: bytes) -> None:
    disk, draft = DISK.get(), f"{path}.tmp"
    try:
        take_folder_durably(path.parent)
        with FileIO(draft, "w", opener=open_no_link) as file:
            disk.write(file, str(path), data)
            disk.sync(file, str(path))
        disk.rename(draft, str(path))
        disk.sync_folder(str(path.parent))
    except OSError as error:
        raise SinkError(f"cannot write {str(path)!r} ({told_by(error)}): {remedy(error)}") from error
