"""The errors that users may see.

Every message is one sentence that states the fact with the offending value, then the likely fix. If the mistake is in
the user's own code, `origin` names the file and line. Magics and the command line print ``str(error)`` and never a
traceback.
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
    "QueryError",
    "RecordError",
    "SettingError",
    "SinkError",
    "SourceError",
    "WorkbenchError",
]
"""The error classes for users."""

MISSING = (FileNotFoundError, NotADirectoryError)
"""The system's errors for a missing file; any other OSError means that it cannot be read now."""
SENTENCE_MAX = 20_000
"""The maximum length of one of our own sentences: some list every column of a wide table."""


class WorkbenchError(Exception):
    """Base of every error that the workbench raises on purpose.

    Args:
        message: the fact, with the value, and the likely fix; secrets in URLs are masked, and unprintable characters,
            such as a path's bytes that are not UTF-8, are escaped.
        origin: the place of the mistake in the user's code, if known.

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


class QueryError(PlanError):
    """A SQL query cannot be read or planned.

    Args:
        message: the sentence, with the line and the column, from 1.
        excerpt: that line of the query, and a caret below the part; empty: the whole query is meant.
        origin: the place of the query in the user's code, if known.
    """

    def __init__(self, message: str, *, excerpt: str = "", origin: Origin | None = None) -> None:
        super().__init__(message, origin=origin)
        self.excerpt = printable(redacted(excerpt))

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.excerpt}" if self.excerpt else super().__str__()


class MissingPackageError(WorkbenchError):
    """A requested feature needs a package that is not installed, such as that of Spark or the dashboard."""


class HistoryError(WorkbenchError):
    """A history or its replay log is missing, malformed, stale or damaged."""


class CheckpointError(WorkbenchError):
    """A checkpoint cannot be written, or one that exists cannot be used."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint's files do not match their checksums; it is never restored, nor silently passed over."""


class UnreadableCheckpointError(CheckpointError):
    """A checkpoint's file cannot be read or its directory cannot be used now (a disk error, a time-out, no permission);
    it may be intact."""


class SinkError(WorkbenchError):
    """A sink cannot write, or its directory holds data that it must not overwrite."""


class CommittedRowsError(SinkError):
    """A sink's committed rows do not match the checkpoint to restore; retrying does not help."""


class UnfitTableError(SinkError):
    """A database's table does not exist, or lacks what the rows need (a column, a unique index); retrying does not
    help."""


class SourceError(WorkbenchError):
    """A source cannot be read: a file is missing, malformed or has other columns, or a connection fails."""


class RecordError(WorkbenchError):
    """A record cannot be processed: a poison value or an exception in a user's function."""


class JobError(WorkbenchError):
    """A job cannot do what was requested in its current state, or it has failed.

    Args:
        message: the sentence.
        trace: the user's lines that the failure has passed, as in a traceback; empty: there are none.
        origin: the place of the mistake in the user's code, if known.
    """

    def __init__(self, message: str, *, trace: str = "", origin: Origin | None = None) -> None:
        super().__init__(message, origin=origin)
        self.trace = trace

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.trace}" if self.trace else super().__str__()


def __dir__() -> list[str]:
    """The error classes for users: completion shows these and not the functions for internal use."""
    return __all__


def as_error(raised: BaseException) -> Exception:
    """The error for an exception on a job's thread; one that ends a program, such as that of ``sys.exit()``, fails the
    job.

    Example:
        >>> str(as_error(SystemExit(1)))
        'SystemExit(1) was raised, which ends programs and not jobs: raise an error, or end the job with job.stop()'
    """
    if isinstance(raised, Exception):
        return raised
    error = JobError(
        f"{shown(raised)} was raised, which ends programs and not jobs: raise an error, or end the job with job.stop()"
    )
    error.__cause__ = raised
    return error


def told_by(error: OSError) -> str:
    """The system's message, in one line; remote stores add further lines below a first one.

    Example:
        >>> told_by(OSError("When reading: no answer\\nTraceback"))
        'When reading: no answer'
    """
    said = error.strerror
    return one_line(said, SENTENCE_MAX) if isinstance(said, str) and said else first_line_of(error)


def sentence_of(error: BaseException) -> str:
    """The text of an error, in one line and without secrets: one of ours is already a sentence.

    Example:
        >>> sentence_of(SettingError("port 99999 cannot be opened")), sentence_of(KeyError("delay"))
        ('port 99999 cannot be opened', "KeyError: 'delay'")
    """
    if isinstance(error, JobError):
        return one_line(WorkbenchError.__str__(error), SENTENCE_MAX)  # without the lines below it
    return message_of(error, SENTENCE_MAX) if isinstance(error, WorkbenchError) else described(error)


def remedy(error: OSError) -> str:
    """The most likely remedy for a system error.

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
    return "try again when the storage responds"


def cannot_be_read(what: str, path: object, error: OSError) -> UnreadableCheckpointError:
    """The error for a file of a checkpoint that probably exists and that the system cannot read.

    Example:
        >>> str(cannot_be_read("checkpoint 3", "chk-3/map-0", OSError(5, "Input/output error")))
        'checkpoint 3 cannot be read now: chk-3/map-0: Input/output error; try again when the storage responds'
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
