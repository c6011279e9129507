"""The record that a job leaves in its checkpoint directory, so that it can be found and continued later.

The record is data: name, settings and how the job was started, with the source of its cell if ``%%stream`` started it.
Reading it runs nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.connectors.parts.part_files import write_durably
from workbench.durable.disk import make_folder_durably
from workbench.durable.holder import Holder
from workbench.durable.kind import kind_of
from workbench.from_json import made, parsed
from workbench.printable import printable
from workbench.redaction import redacted
from workbench.runtime.storage import Manifest, is_name

RECORD = "job.json"
FORMAT = 1
_KNOWN_BYTES_MAX = 65_536


MAGICS = ("stream", "stream_sql")
"""The magics of cells that start jobs."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The notebook cell that started a job.

    Attributes:
        line: the text after the magic.
        body: the lines below.
        redacted: secrets were removed, so it cannot be run as it is.
        id: that the notebook has given it; empty where the front end does not tell.
        magic: the one that it begins with, one of `MAGICS`.

    Raises:
        ValueError: another magic.
    """

    line: str
    body: str
    redacted: bool = False
    id: str = ""
    magic: str = "stream"

    def __post_init__(self) -> None:
        if self.magic not in MAGICS:
            raise ValueError(self.magic)

    def without_secrets(self) -> Cell:
        """The cell in the form that is stored."""
        line, body = redacted(self.line, code=True), redacted(self.body, code=True)
        hidden = self.redacted or (line, body) != (self.line, self.body)
        return replace(self, line=line, body=body, redacted=hidden)

    def reads_as(self, other: Cell) -> bool:
        """Whether it has the same text."""
        return (self.magic, self.line, self.body) == (other.magic, other.line, other.body)

    def is_the(self, other: Cell) -> bool:
        """Whether both are one cell of a notebook, whose text may have changed; without ids the text decides."""
        return self.id == other.id if self.id and other.id else self.reads_as(other)

    def __str__(self) -> str:
        return f"%%{self.magic} {self.line}\n{self.body}"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The stored facts about a job.

    Attributes:
        name: of the job.
        state: the last one that the job's process recorded; still RUNNING if that was killed.
        started_us: start time in that process, microseconds since 1970.
        settings: the given ones, as users write them.
        cell: the cell that started it; None: a call of ``run``.
        process: the process that wrote this.
        directory: that it was written to, with secrets masked.
    """

    name: str
    state: str
    started_us: int
    settings: Mapping[str, str | int | float | bool | None]
    cell: Cell | None = None
    process: Holder | None = None
    directory: str = ""

    @property
    def writer(self) -> str:
        """The process as text: `` by process 4321 on node-7 since 2026-07-01 12:00:00``; empty: not known."""
        return "" if self.process is None else printable(f" by {self.process}")

    def has_read_everything(self, latest: Manifest | None) -> bool:
        """Whether the job has read all of its input, given its latest checkpoint; a job that was stopped before is
        FINISHED, too."""
        return self.state == "FINISHED" and (latest is None or latest.kind == "final")

    def to_json(self) -> bytes:
        """The record's file; secrets in URLs of the cell are masked."""
        kept = self if self.cell is None else replace(self, cell=self.cell.without_secrets())
        return json.dumps({"format": FORMAT, **asdict(kept)}, indent=1).encode()

    @staticmethod
    def from_json(content: bytes) -> JobRecord | None:
        """Parse a record; None if it is not one, or of another version."""
        try:
            read = parsed(content)
            record = made(JobRecord, read) if read.pop("format") == FORMAT else None
            return record if record is not None and is_name(record.name) else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


_cell: ContextVar[Cell | None] = ContextVar("cell", default=None)


@contextmanager
def started_from(cell: Cell | None) -> Iterator[None]:
    """Record this cell as the one that starts the jobs in this block; None: none does."""
    token = _cell.set(cell)
    try:
        yield
    finally:
        _cell.reset(token)


def this_cell() -> Cell | None:
    """The cell that starts jobs now, if any."""
    return _cell.get()


class KnownDirectories:
    """The list of checkpoint directories of jobs that were started here, kept in a folder.

    Args:
        folder: created when the first directory is added.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, location: str) -> None:
        """Add a path or URI, unless it contains a secret, which must not be stored."""
        if redacted(location) != location:
            return
        make_folder_durably(self._folder, private=True)
        name = hashlib.sha256(os.fsencode(location)).hexdigest()[:16]
        write_durably(self._folder / f"{name}.json", json.dumps({"directory": location}).encode())

    def locations(self) -> list[str]:
        """All of them that still exist, as far as can be seen from here."""
        found = []
        for file in sorted(self._folder.glob("*.json")):
            try:
                if not file.is_file() or file.stat().st_size > _KNOWN_BYTES_MAX:
                    continue
                location = made(str, parsed(file.read_bytes())["directory"])
                exists = "://" in location or kind_of(location) == "folder"
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if not exists:
                file.unlink(missing_ok=True)
            else:
                found.append(location)
        return found


_known: KnownDirectories | None = None


def remember_directories(folder: Path | None) -> None:
    """Keep the directories of jobs in this folder from now on; None: do not keep them."""
    global _known
    _known = None if folder is None else KnownDirectories(folder)


def known_directories() -> KnownDirectories | None:
    """The list of directories, if it is kept."""
    return _known
