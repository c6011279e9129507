"""Sets the checkpoints of an earlier run aside in a checkpoint directory, so that a run can start over in it.

They are copied to ``earlier/1``, or the next free number, where the file system has hard links without a second copy of
their bytes. That folder is a checkpoint directory like any other: a job can resume from it, or restore what is in it.
Then they are removed from the directory, the one from which the job would resume as the last. So after a crash:

- while they are copied, the directory is as it was;
- while they are removed, the job still resumes from the same checkpoint, and the folder holds all of them;
- after that, a job that resumes starts from the beginning, and the folder holds all of them.

A later run takes another number, so a folder never holds the checkpoints of two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.errors import CheckpointError, told_by
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.going_back import TAKEN_BACK, GoneBack
from workbench.runtime.storage.manifest import CHECKPOINT, MANIFEST, SAVEPOINTS, SHARED, Manifest

EARLIER = "earlier"
"""The folder of what is set aside, within the checkpoint directory."""


def copy_aside(files: Files, manifests: Sequence[Manifest], kept: Sequence[str], check: Callable[[], None]) -> str:
    """Copy these complete checkpoints and savepoints, with all that a restore of them needs, to a new folder.

    Args:
        files: of the checkpoint directory.
        manifests: of the checkpoints and savepoints.
        kept: names of small files next to them, which are copied, too, if they exist.
        check: raises a CheckpointError if this process no longer owns the directory.

    Returns:
        The folder within the directory.

    Raises:
        CheckpointError: a file cannot be read or written now; nothing is changed in the directory but the new folder.
    """
    try:
        numbers = [int(name) for name in files.folders(EARLIER) if name.isdecimal()]
        target = f"{EARLIER}/{max(numbers, default=0) + 1}"
        others = [name for name in files.folders() if not _is_of_checkpoints(name)]
        shared = {path for manifest in manifests for path in manifest.needs}
        beside = [*(path for folder in others for path in files.files(folder)), *sorted(shared)]
        beside += [name for name in (TAKEN_BACK, *kept) if files.exists(name)]
        for path in beside:
            files.take(files, path, f"{target}/{path}")
        for manifest in manifests:
            last = f"{manifest.place}/{MANIFEST}"
            check()
            for path in files.files(manifest.place):
                if path != last:
                    files.take(files, path, f"{target}/{path}")
            files.take(files, last, f"{target}/{last}")  # it makes the copy complete
    except OSError as error:
        raise CheckpointError(
            f"the checkpoints in {files.shown!r} cannot be set aside ({told_by(error)}), and are unchanged"
        ) from error
    return target


def in_order(manifests: Sequence[Manifest], back: GoneBack | None) -> tuple[list[Manifest], list[Manifest]]:
    """The checkpoints in the order in which they can be removed while a job resumes from the same one: first those that
    no longer count since the job was reset to a savepoint, after which the record of that is needless, then the rest.
    """
    by_age = sorted(manifests, key=lambda manifest: manifest.checkpoint_id)
    if back is None:
        return [], by_age
    counts = {manifest.place for manifest in by_age if back.counts(manifest.checkpoint_id, manifest.place)}
    stale = [manifest for manifest in by_age if manifest.place not in counts]
    return stale, [manifest for manifest in by_age if manifest.place in counts]


def _is_of_checkpoints(folder: str) -> bool:
    return folder in (EARLIER, SAVEPOINTS, *SHARED) or CHECKPOINT.fullmatch(folder) is not None
