"""The record that a job was reset to a savepoint, so that its later checkpoints no longer count."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from workbench.arguments import option
from workbench.errors import CheckpointError, CorruptCheckpointError
from workbench.from_json import made, parsed
from workbench.raised import first_line_of
from workbench.runtime.storage.manifest import Manifest

TAKEN_BACK = "taken-back.json"


@dataclass(frozen=True, slots=True)
class GoneBack:
    """The savepoint that a job was reset to.

    Attributes:
        place: its folder within the storage.
        first_id: id of the first checkpoint taken after that.
    """

    place: str
    first_id: int

    def counts(self, checkpoint_id: int, place: str) -> bool:
        """Whether a checkpoint still counts."""
        return checkpoint_id >= self.first_id or place == self.place

    def to_json(self) -> bytes:
        """The record's file, with a checksum."""
        content = json.dumps(asdict(self), sort_keys=True).encode()
        return json.dumps({**asdict(self), "checksum": f"crc32:{zlib.crc32(content):08x}"}, sort_keys=True).encode()


def latest_of(manifests: Iterable[Manifest], back: GoneBack | None, shown: str) -> Manifest | None:
    """The checkpoint or savepoint from which a job resumes, out of all complete ones; None when it has none.

    A savepoint commits to the sinks like any checkpoint, so a job never resumes from an earlier one; but checkpoints
    that were taken before the job was reset to an earlier savepoint no longer count.

    Args:
        manifests: in any order.
        back: the record, if the job was reset to a savepoint.
        shown: the directory, for errors.

    Raises:
        CheckpointError: the job was reset to a savepoint that no longer exists.
    """
    complete = list(manifests)
    if back is not None:
        complete = [manifest for manifest in complete if back.counts(manifest.checkpoint_id, manifest.place)]
        if not complete:
            raise CheckpointError(
                f"the job in {shown!r} was restored from {back.place}, which is missing: bring it back, restore "
                f"another savepoint, or choose another {option('checkpoint_dir', '')}"
            )
    return max(complete, key=lambda manifest: manifest.checkpoint_id, default=None)


def read_gone_back(data: bytes, path: str) -> GoneBack:
    """The record in a file's bytes; `path` names the file in errors.

    Raises:
        CorruptCheckpointError: the bytes are not such a record.
    """
    try:
        content = parsed(data)
        back = GoneBack(made(str, content["place"]), made(int, content["first_id"]))
        if back.to_json() == data:
            return back
        reason = "it is not what was written"
    except (ValueError, TypeError, KeyError) as error:
        reason = first_line_of(error)
    raise CorruptCheckpointError(
        f"{path} cannot be read ({reason}); it says from which savepoint the job continues: restore that savepoint "
        f"again, or choose another {option('checkpoint_dir', '')}"
    )
