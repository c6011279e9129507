"""The interface of a file format for a source: infer a schema, and stream the rows of a file from a given row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import strerror
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from workbench.connectors.files.exact_cast import exact_cast
from workbench.errors import SourceError, remedy
from workbench.raised import first_line_of

BATCH_ROWS = 65_536
"""Rows decoded at once, where the format has a choice."""

BLOCK_BYTES = 1 << 20
"""Bytes of text parsed at once."""


COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
"""Suffixes of text files that are decompressed."""

_COMPRESSIONS = {
    "gzip": (b"\x1f\x8b\x08",),
    "bzip2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "xz": (b"\xfd7zXZ\0",),
}
"""The first bytes of compressed files."""


class AdvisedError(pa.ArrowInvalid):  # type: ignore[misc]  # Arrow's classes have no types
    """A value does not fit its column, and the sentence says what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """The unit that one subtask reads: a file, or a row group of one.

    Attributes:
        name: the path, with the number of the row group if there are several.
        path: of the file.
        index: of the row group, or 0.
        rows: their number, if known before reading.
        size: bytes of the whole file; a position in a file of another size means nothing.
        modified_ns: when the file was written, by the clock of its file system.
    """

    name: str
    path: Path
    index: int
    rows: int | None
    size: int
    modified_ns: int


class FileFormat(Protocol):
    """A format of rows in a file."""

    def schema(self, path: Path) -> pa.Schema:
        """The columns of a file; text formats infer them from its first rows."""

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        """The parts of a file, in order; raises a SourceError when it cannot yield rows of `schema`."""

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part from row `skip` on as batches of `schema`; close the iterator to close the file.

        Raises:
            SourceError: while iterating; names the file and the problem.
        """


@contextmanager
def reading(path: Path, fix: str = "fix the file, or declare its types with schema=...") -> Iterator[None]:
    """Add the file's name to errors raised in this context, and the likely fix."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"{path} is missing: it was deleted or renamed; bring it back") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow says of damage that it is one without
            raise SourceError(f"{path} cannot be read: {strerror(error.errno)}; {remedy(error)}") from error
        advice = "" if isinstance(error, AdvisedError) else f"; {fix}"
        raise SourceError(f"{path} cannot be read: {first_line_of(error)}{advice}") from error


def open_text(path: Path) -> Any:
    """A stream of the file's bytes, decompressed by its suffix (``.gz``, ``.bz2``, ``.zst``, ``.lz4``).

    Raises:
        OSError: its name and its first bytes do not agree about compression.
    """
    with path.open("rb") as file:
        begin = file.read(10)
    if path.suffix in COMPRESSED:
        if not begin:
            raise OSError("it has no bytes, not even those of an empty compressed file")
    elif found := next((name for name, first in _COMPRESSIONS.items() if begin.startswith(first)), None):
        raise OSError(f"it is compressed by {found}, which its name does not show")
    return pa.input_stream(str(path), compression="detect")


def whole(path: Path) -> Part:
    """The file as one part."""
    stat = path.stat()
    return Part(str(path), path, 0, None, stat.st_size, stat.st_mtime_ns)


def unchanged(part: Part, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a part, whose file must stay as it was: half of an old file and half of a new one are neither.

    Raises:
        SourceError: while iterating, if the file was written to or replaced.
    """
    with reading(part.path):
        _check_unchanged(part)
        yield from batches
        if part.path.exists():  # one that was deleted meanwhile has been read to its end
            _check_unchanged(part)


def _check_unchanged(part: Part) -> None:
    stat = part.path.stat()
    if (stat.st_size, stat.st_mtime_ns) != (part.size, part.modified_ns):
        raise SourceError(
            f"{part.path} was changed while the job read it: it had {part.size:,} bytes and has {stat.st_size:,}; add "
            "further rows as another file, and start the job again"
        )


def without(batches: Iterator[pa.RecordBatch], skip: int) -> Iterator[pa.RecordBatch]:
    """The batches without their first `skip` rows; empty ones are left out."""
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        yield batch.slice(skip) if skip else batch
        skip = 0


def in_one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, as one batch."""
    columns = [table.column(field.name) for field in schema]
    whole = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in columns]
    return pa.RecordBatch.from_arrays(whole, schema=schema)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch's columns in the order and types of `schema`."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [exact_cast(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
