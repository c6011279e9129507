"""The record that a job was taken back to a savepoint, so that what it did after that savepoint no longer counts."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass

from workbench.errors import CorruptCheckpointError

TAKEN_BACK = "taken-back.json"


@dataclass(frozen=True, slots=True)
class GoneBack:
    """To which savepoint.

    Attributes:
        place: its folder within the storage.
        first_id: of the first checkpoint since.
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


def read_gone_back(data: bytes, path: str) -> GoneBack:
    """The record in a file's bytes; `path` names the file in errors.

    Raises:
        CorruptCheckpointError: they are not what was written.
    """
    try:
        content = json.loads(data)
        back = GoneBack(str(content["place"]), int(content["first_id"]))
        if back.to_json() == data:
            return back
        reason = "it is not what was written"
    except (ValueError, TypeError, KeyError) as error:
        reason = str(error)
    raise CorruptCheckpointError(
        f"{path} cannot be read ({reason}); it says from which savepoint the job goes on: restore that savepoint again,"
        " or choose another checkpoint_dir"
    )
