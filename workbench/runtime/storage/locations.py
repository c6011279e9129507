"""The locations of checkpoints as users write them: a path, or a URI of a file system that Arrow supports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from workbench.arguments import location_of
from workbench.errors import CheckpointError, UnreadableCheckpointError, remedy, told_by
from workbench.raised import first_line_of
from workbench.redaction import redacted
from workbench.runtime.storage.files import Files, LocalFiles
from workbench.runtime.storage.manifest import MANIFEST
from workbench.runtime.storage.remote_files import RemoteFiles


def open_files(location: str | Path) -> Files:
    """The files below a path or URI; nothing is created.

    Raises:
        CheckpointError: Arrow does not support such a URI, or a requirement of it is missing.
        SettingError: neither a path nor a URI, or a URI that was converted to a path.
    """
    text = location_of(location, "the checkpoint directory")
    if "://" not in text:
        return LocalFiles(Path(location).expanduser())
    if text.startswith("file://"):
        return LocalFiles(Path(text.removeprefix("file://")))
    try:
        system, root = fs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        now = isinstance(error, OSError)  # the URI is supported, but the system cannot be reached
        raise (UnreadableCheckpointError if now else CheckpointError)(_unusable(text, error)) from None
    base = text.partition("?")[0]
    return RemoteFiles(system, root.rstrip("/"), redacted(base.rstrip("/")))


def lasting(location: str | Path) -> str | Path:
    """The same location, independent of the working directory.

    Example:
        >>> lasting("s3://bucket/checkpoints"), lasting("/tmp/checkpoints")
        ('s3://bucket/checkpoints', '/tmp/checkpoints')
    """
    text = str(location)
    local = "://" not in text or text.startswith("file://")
    return open_files(location).path_of("") if local else location


@contextmanager
def looked_into(files: Files) -> Iterator[None]:
    """Turn an OSError into an error that names the location and the remedy.

    Raises:
        UnreadableCheckpointError: instead of an OSError, whose message may contain secrets.
    """
    try:
        yield
    except OSError as error:
        fix = remedy(error) if isinstance(files, LocalFiles) else "check that it exists and the credentials"
        raise UnreadableCheckpointError(
            f"the checkpoint directory {files.shown!r} cannot be used ({told_by(error)}): {fix}, or choose another"
        ) from None


def without_options(location: str) -> tuple[str, str, str]:
    """Split a URI at its question mark: before, the mark, and after; in a path it is an ordinary character.

    Example:
        >>> without_options("s3://bucket/a?region=x"), without_options("runs?/a")
        (('s3://bucket/a', '?', 'region=x'), ('runs?/a', '', ''))
    """
    return location.partition("?") if "://" in location else (location, "", "")


def folder_in(location: str, name: str) -> str:
    """The path or URI of a folder in a location; the options of a URI are kept."""
    head, question, options = without_options(location)
    return f"{head.rstrip('/')}/{name}{question}{options}"


def folder_named(location: str | Path) -> tuple[Files, str] | None:
    """The directory around a checkpoint's folder and the folder's name, if it holds a complete checkpoint.

    Raises:
        CheckpointError: the directory cannot be opened, or not be read now.
    """
    head, question, options = without_options(location_of(location, "the checkpoint's folder"))
    parent, _, place = head.rstrip("/").rpartition("/")
    if not place:
        return None
    files = open_files((parent or ("/" if head.startswith("/") else ".")) + question + options)
    with looked_into(files):
        return (files, place) if files.exists(f"{place}/{MANIFEST}") else None


def _unusable(uri: str, error: Exception) -> str:
    fact = first_line_of(error).rstrip(".")
    scheme = uri.partition("://")[0]
    fix = "write a path, or a URI such as s3://bucket/prefix or hdfs://host:port/path"
    if scheme in ("hdfs", "viewfs"):
        fix = "install Hadoop's client with libhdfs, and set HADOOP_HOME, JAVA_HOME, CLASSPATH or ARROW_LIBHDFS_DIR"
    return f"checkpoints cannot be kept in {redacted(uri)!r} ({fact}): {fix}"
