"""Savepoints and checkpoints as somebody else may have written them: their pieces changed one by one, all checksums
right again.

    edited = EditedSavepoint(folder)
    edited.pieces()  # [Piece(task="aggregate[0]", operator="counts", name="groups")]
    edited.change("counts", "groups", lambda table: table.slice(1))  # the JSON value, or the table, of each subtask
    edited.change_manifest(lambda content: content["files"][0].update(size=7))
    edited.save()

It shares no code with the reading of checkpoints. Where a piece is to be no JSON, or no table that Arrow would write,
it becomes a `JsonText` or a `Stream` of any bytes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

_INDEX = pa.schema(
    [("operator", pa.string()), ("name", pa.string()), ("json", pa.large_string()), ("parts", pa.list_(pa.string()))]
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Names one piece of state: of a task, its operator's uid (``$task`` for the task's own), and the piece's name."""

    task: str
    operator: str
    name: str


@dataclass(frozen=True, slots=True)
class JsonText:
    """A piece's JSON as it stands in the file."""

    text: str


@dataclass(frozen=True, slots=True)
class Stream:
    """The bytes that stand where a table's Arrow stream is expected."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Parts:
    """The files that hold a table, its base first; as the index lists them."""

    paths: tuple[str, ...]


class EditedSavepoint:
    """The folder of a complete savepoint or checkpoint; nothing is written before `save`.

    Attributes:
        folder: with the manifest.
        manifest: its content as JSON gives it, without the checksum; sizes and checksums are put right by `save`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_bytes())
        del self.manifest["checksum"]
        self._content: dict[str, list[tuple[str, str, Any]]] = {
            file["task"]: _read((self.folder / file["file"]).read_bytes()) for file in self.manifest["files"]
        }
        self._raw: dict[str, bytes] = {}

    def pieces(self) -> list[Piece]:
        """All pieces; an operator without state has none."""
        return [Piece(task, own, name) for task, rows in self._content.items() for own, name, _ in rows if name]

    def value(self, piece: Piece) -> Any:
        """A JSON value, a table, or `Parts`."""
        return next(value for own, name, value in self._content[piece.task] if (own, name) == _named(piece))

    def put(self, piece: Piece, value: Any) -> None:
        """Give a piece another value: JSON, a table, `Parts`, `JsonText` or `Stream`; one that is not there is new."""
        rows = self._content[piece.task]
        at = next((at for at, row in enumerate(rows) if row[:2] == _named(piece)), len(rows))
        rows[at : at + 1] = [(piece.operator, piece.name, value)]

    def drop(self, piece: Piece) -> None:
        """Leave a piece out."""
        rows = self._content[piece.task]
        rows[:] = [row for row in rows if row[:2] != _named(piece)]

    def change(self, operator: str, name: str, function: Callable[[Any], Any]) -> None:
        """Give a piece of every subtask of an operator the value that `function` makes of the one it has."""
        found = [piece for piece in self.pieces() if _named(piece) == (operator, name)]
        assert found, f"no {name!r} of {operator!r} among {self.pieces()}"
        for piece in found:
            self.put(piece, function(self.value(piece)))

    def change_manifest(self, function: Callable[[dict[str, Any]], object]) -> None:
        """Have `function` change the manifest's content in place."""
        function(self.manifest)

    def put_file(self, task: str, content: bytes) -> None:
        """Have any bytes in the place of a task's file."""
        self._raw[task] = content

    def save(self) -> None:
        """Write the tasks' files and the manifest, with the sizes and checksums of what is written."""
        for file in self.manifest["files"]:
            rows = self._content.get(file["task"])
            if rows is None:  # a task that only the changed manifest knows
                continue
            content = self._raw.get(file["task"]) or state_file_of(rows)
            (self.folder / Path(file["file"]).name).write_bytes(content)
            file["size"], file["checksum"] = len(content), checksum_of(content)
        self.save_manifest()

    def save_manifest(self) -> None:
        """Write the manifest alone, as it is."""
        write_manifest(self.folder, self.manifest)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write a manifest with this content, and a right checksum of its own."""
    body = json.dumps(content, sort_keys=True).encode().removeprefix(b"{")
    (folder / "manifest.json").write_bytes(f'{{"checksum": "{checksum_of(body)}", '.encode() + body)


def checksum_of(content: bytes) -> str:
    """As manifests name it."""
    return f"crc32:{zlib.crc32(content):08x}"


def stream_of(table: pa.Table, **options: Any) -> bytes:
    """The bytes of a table's Arrow stream; `options` are those of ``pyarrow.ipc.IpcWriteOptions``."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _named(piece: Piece) -> tuple[str, str]:
    return piece.operator, piece.name


def _read(content: bytes) -> list[tuple[str, str, Any]]:
    source = pa.BufferReader(content)
    rows = []
    for row in pa.ipc.open_stream(source).read_all().to_pylist():
        value: Any = None
        if row["json"] is not None:
            value = json.loads(row["json"])
        elif row["parts"] is not None:
            value = Parts(tuple(row["parts"]))
        else:
            value = pa.ipc.open_stream(source).read_all()
        rows.append((row["operator"], row["name"], value))
    return rows


def state_file_of(rows: Iterable[tuple[str, str, Any]]) -> bytes:
    """A task's file with pieces: operator, name, and the value as `EditedSavepoint.put` takes it."""
    index, streams = [], []
    for operator, name, value in rows:
        text, parts = None, None
        if isinstance(value, pa.Table | Stream):
            streams.append(value.content if isinstance(value, Stream) else stream_of(value))
        elif isinstance(value, Parts):
            parts = list(value.paths)
        else:
            text = value.text if isinstance(value, JsonText) else json.dumps(value)
        index.append({"operator": operator, "name": name, "json": text, "parts": parts})
    return b"".join([stream_of(pa.Table.from_pylist(index, schema=_INDEX)), *streams])
