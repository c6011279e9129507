"""What refuses a run and can be known before anything is taken or stopped for it: settings that cannot be, and a
checkpoint directory that the run cannot begin in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.api.job import Job
from workbench.errors import CheckpointError
from workbench.redaction import redacted
from workbench.runtime.settings import Settings
from workbench.runtime.storage import CheckpointReader, DirectoryStorage, folder_named, folder_of, is_name, open_files
from workbench.runtime.storage.locations import folder_in, looked_into


def settings_of(values: Mapping[str, object], settings: Settings | None = None) -> Settings:
    """The settings that a person wrote, on top of others; speed is none.

    Raises:
        SettingError: an unknown name, or a value that cannot be.
    """
    settings = settings or Settings()
    for setting, value in values.items():
        if setting != "speed":
            settings = settings.with_value(setting, value)
    return settings.check()


def check_directory(checkpoint_dir: str, running: object, *, resume: bool, restore: str | None) -> None:
    """Refuse to begin afresh where checkpoints lie, or will lie when the job that is replaced has stopped, and to
    restore what is not there; in the words of ``%%stream``.

    Args:
        checkpoint_dir: a path or URI; nobody may write there but the running job.
        running: the job that is replaced, if there is one.
        resume: go on from what is there.
        restore: a savepoint's name or folder.

    Raises:
        CheckpointError: as above, or the directory cannot be looked into.
    """
    shown = redacted(checkpoint_dir)
    files = open_files(checkpoint_dir)
    reader = CheckpointReader(files)
    if restore is not None:
        with looked_into(files):
            known = is_name(restore) and reader.is_complete(folder_of(0, restore))
        if not known and folder_named(restore) is None:
            raise CheckpointError(
                f"there is no savepoint {redacted(restore)!r} in {shown!r}, and no folder of that name holds one: "
                "'%stream savepoints' lists those of the running job"
            )
        return
    if resume:
        return
    with looked_into(files):
        places = [*files.folders(), *(folder_of(0, name) for name in files.folders("savepoints"))]
        used = any(reader.is_complete(place) for place in places)
    if used or _is_of(running, checkpoint_dir):
        raise CheckpointError(
            f"the checkpoint directory {shown!r} holds the checkpoints of a job: add --resume to continue from the "
            "latest, --restore SAVEPOINT to go back to one, or choose another --checkpoint-dir"
        )


def _is_of(job: object, checkpoint_dir: str | Path) -> bool:
    """Whether a running job keeps its checkpoints in this directory, where it leaves its last one."""
    storage = job._master.storage if isinstance(job, Job) and not job.over else None
    return isinstance(storage, DirectoryStorage) and storage.place_of(folder_in(str(checkpoint_dir), "x")) == "x"
