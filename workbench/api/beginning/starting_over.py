"""Whether a run may start over where an earlier run of its job has left checkpoints or rows, and what it says then."""

from __future__ import annotations

from workbench.api.kept.job_record import JobRecord
from workbench.arguments import option, run_call
from workbench.errors import CheckpointError
from workbench.redaction import redacted
from workbench.runtime.storage import Manifest
from workbench.runtime.storage.setting_aside import EARLIER

_ENDS = {
    "FAILED": "which failed",
    "CANCELED": "which was canceled",
    "FINISHED": "which was stopped before the end of its input",
}
"""How an earlier run ended that has not read everything, by the state in its record."""


def check_starts_over(shown: str, latest: Manifest, record: JobRecord | None, job: str, *, replace: bool) -> None:
    """Reject a run without a checkpoint that may not set the checkpoints in its directory aside.

    It may if an earlier run of the same job has left them, and either that run has read all of its input or the user
    asks for a replacement.

    Args:
        shown: the directory, with secrets masked.
        latest: the checkpoint from which a job would resume there.
        record: that the earlier run has left, if it can be read.
        job: the name of the run's job.
        replace: the user asks for a replacement.

    Raises:
        CheckpointError: with the choices.
    """
    owner = latest.job if record is None else record.name
    held = in_use(shown, latest, record)
    if owner != job:
        raise CheckpointError(
            f"{held}, and this run is of {job!r}: choose another {option('checkpoint_dir', '')}, or continue from "
            f"them with {option('resume')}"
        )
    if replace or (record is not None and record.has_read_everything(latest)):
        return
    end = "" if record is None else f", {_ENDS.get(record.state, 'which was killed or still runs')}"
    raise CheckpointError(
        f"{held}{end}: continue it with {option('resume')}, start over with {option('replace')}, which sets them aside "
        f"in its folder {EARLIER!r}, or choose another {option('checkpoint_dir', '')}"
    )


def in_use(shown: str, latest: Manifest, record: JobRecord | None) -> str:
    """The fact that a directory holds checkpoints, for errors."""
    owner = latest.job if record is None else record.name
    writer = f", written{record.writer}" if record is not None and record.writer else ""
    return (
        f"the checkpoint directory {shown!r} already holds checkpoints of job {owner!r} (the latest is "
        f"{latest.checkpoint_id}{writer})"
    )


def told_aside(job: str, folder: str) -> str:
    """What a run says that has set the checkpoints of an earlier one aside.

    Args:
        job: its name.
        folder: that holds them.

    Example:
        >>> told_aside("delays", "/tmp/kept/earlier/1")  # doctest: +NORMALIZE_WHITESPACE
        "'delays' starts over: the checkpoints of its earlier run are now in /tmp/kept/earlier/1, and
        run('delays', checkpoint_dir='/tmp/kept/earlier/1', resume=True) goes back to it"
    """
    place = redacted(folder)
    back = run_call(job, {"checkpoint_dir": place, "resume": True})
    return f"{job!r} starts over: the checkpoints of its earlier run are now in {place}, and {back} goes back to it"
