"""The errors that a person may see.

Every message is one sentence that states the fact with the offending value, then the likely fix. Where the mistake
stands in the user's own code, `origin` names the file and line. Magics and the command line print ``str(error)`` and
never a traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import get_close_matches

from workbench.origin import Origin
from workbench.printable import printable
from workbench.raised import described, first_line_of, message_of, one_line, shown
from workbench.redaction import redacted

__all__ = [
    "CheckpointError",
    "CorruptCheckpointError",
    "ExpressionError",
    "HistoryError",
    "JobError",
    "MissingPackageError",
    "PlanError",
    "RecordError",
    "SettingError",
    "SinkError",
    "SourceError",
    "WorkbenchError",
]
"""What people catch."""

MISSING = (FileNotFoundError, NotADirectoryError)
"""What the system raises for a file that is not there; any other OSError says that it cannot be read now."""
SENTENCE_MAX = 20_000
"""Characters of one of our own sentences: some name every column of a wide table."""


class WorkbenchError(Exception):
    """Base of every error that the workbench raises on purpose.

    Args:
        message: the fact, with the value, and the likely fix; secrets in URLs are hidden, and what cannot be printed,
            such as a path's bytes that are no UTF-8, is escaped.
        origin: where in the user's code the mistake stands, if known.

    Example:
        >>> import workbench as wb
        >>> try:
        ...     wb.tumbling("1 parsec")
        ... except wb.errors.WorkbenchError as error:
        ...     print(type(error).__name__)
        SettingError
    """

    def __init__(self, message: str, *, origin: Origin | None = None) -> None:
        self.message = printable(redacted(message))
        super().__init__(self.message)
        self.origin = origin

    def __str__(self) -> str:
        return f"{self.message} ({self.origin})" if self.origin else self.message


class SettingError(WorkbenchError):
    """A setting has an unknown name or a value that cannot be used."""


class ExpressionError(WorkbenchError):
    """An expression does not parse, names an unknown column or has the wrong types."""


class PlanError(WorkbenchError):
    """A pipeline cannot be turned into a plan."""


class MissingPackageError(WorkbenchError):
    """A package is not installed that what was asked for needs, such as Spark or the dashboard."""


class HistoryError(WorkbenchError):
    """A history or its replay log is missing, malformed, stale or damaged."""


class CheckpointError(WorkbenchError):
    """A checkpoint cannot be written, or one that exists cannot be used."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint's files do not match their checksums; it is never restored, nor silently passed over."""


class UnreadableCheckpointError(CheckpointError):
    """A checkpoint's file cannot be read now, or its directory used (a disk error, a time-out, no permission); it may
    be whole."""


class SinkError(WorkbenchError):
    """A sink cannot write, or its directory holds what it must not overwrite."""


class CommittedRowsError(SinkError):
    """What a sink has committed does not go with the checkpoint to restore; trying again changes nothing."""


class UnfitTableError(SinkError):
    """A database's table is not there, or lacks what the rows need (a column, a unique index); trying again changes
    nothing."""


class SourceError(WorkbenchError):
    """A source cannot be read: a file is missing, malformed or of other columns, a connection cannot be made."""


class RecordError(WorkbenchError):
    """A record cannot be processed: a poison value or an exception in a user's function."""


class JobError(WorkbenchError):
    """A job cannot do what was asked in the state that it is in, or it has failed."""


def __dir__() -> list[str]:
    """What people catch: completion shows this and not what the package does with errors."""
    return __all__


def as_error(raised: BaseException) -> Exception:
    """What was raised on a thread of a job; what would end a program, as ``sys.exit()`` does, is the failure of a job.

    Example:
        >>> str(as_error(SystemExit(1)))
        'SystemExit(1) was raised, which ends programs and not jobs: raise an error, or end the job with job.stop()'
    """
    if isinstance(raised, Exception):
        return raised
    return JobError(
        f"{shown(raised)} was raised, which ends programs and not jobs: raise an error, or end the job with job.stop()"
    )


def told_by(error: OSError) -> str:
    """What the system says, in one line; stores on other machines say it in several, below a first one.

    Example:
        >>> told_by(OSError("When reading: no answer\\nTraceback"))
        'When reading: no answer'
    """
    said = error.strerror
    return one_line(said, SENTENCE_MAX) if isinstance(said, str) and said else first_line_of(error)


def sentence_of(error: BaseException) -> str:
    """What to say of an error, in one line and without secrets: one of ours is a sentence already.

    Example:
        >>> sentence_of(SettingError("port 99999 cannot be opened")), sentence_of(KeyError("delay"))
        ('port 99999 cannot be opened', "KeyError: 'delay'")
    """
    return message_of(error, SENTENCE_MAX) if isinstance(error, WorkbenchError) else described(error)


def remedy(error: OSError) -> str:
    """What most likely helps against an error of the system's.

    Example:
        >>> remedy(PermissionError(13, "Permission denied"))
        'change its permissions'
    """
    if isinstance(error, PermissionError):
        return "change its permissions"
    if isinstance(error, IsADirectoryError):
        return "name a file in it"
    if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
        return "check the path"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "close files that are open, or raise the limit of open files (ulimit -n)"
    return "try again when the storage answers"


def cannot_be_read(what: str, path: object, error: OSError) -> UnreadableCheckpointError:
    """The error for a file of a checkpoint that is there, as far as is known, and that the system does not read.

    Example:
        >>> str(cannot_be_read("checkpoint 3", "chk-3/map-0", OSError(5, "Input/output error")))
        'checkpoint 3 cannot be read now: chk-3/map-0: Input/output error; try again when the storage answers'
    """
    return UnreadableCheckpointError(f"{what} cannot be read now: {path}: {told_by(error)}; {remedy(error)}")


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The sentence for a name that does not exist: the value, the nearest match, and all valid ones.

    Example:
        >>> unknown("setting", "bufer_timeout", ["buffer_timeout", "speed"])
        "unknown setting 'bufer_timeout': did you mean 'buffer_timeout'? Valid: buffer_timeout, speed"
    """
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}:{hint} Valid: {', '.join(names) or 'none'}"
