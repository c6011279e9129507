"""Messages of PostgreSQL's log, as a server or what stands between sends them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

import pyarrow as pa

import workbench as wb
from workbench.connectors.postgresql_log.changes import Changes
from workbench.connectors.postgresql_log.copying import Copy, CopyState, Key
from workbench.connectors.postgresql_log.positions import Position, Seen
from workbench.connectors.postgresql_log.server import TableFacts
from workbench.connectors.postgresql_log.wire import Wire
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext, Output

from ..mutations import octets
from ..trial import Format, Trial

SCHEMA = {
    "id": pa.int64(),
    "word": pa.string(),
    "at": pa.timestamp("us", "UTC"),
    "price": pa.decimal128(9, 2),
    "raw": pa.binary(),
    "ok": pa.bool_(),
}
_TYPES = (20, 25, 1184, 1700, 17, 16)
_ID = (0x4001).to_bytes(4)


def _row(*texts: str | None) -> bytes:
    cells = [b"n" if text is None else b"t" + struct.pack(">I", len(text.encode())) + text.encode() for text in texts]
    return struct.pack(">H", len(texts)) + b"".join(cells)


def _messages() -> list[bytes]:
    """A transaction with all kinds of changes."""
    at = "2026-03-29 01:30:00.5+00"
    columns = b"".join(
        bytes([name == "id"])
        + name.encode()
        + b"\0"
        + struct.pack(">Ii", kind, (9 << 16 | 2) + 4 if kind == 1700 else -1)
        for name, kind in zip(SCHEMA, _TYPES, strict=True)
    )
    none: list[str | None] = [None] * 5
    return [
        b"B" + struct.pack(">QqI", 64, 0, 731),
        b"R" + _ID + b"public\0t\0d" + struct.pack(">H", len(SCHEMA)) + columns,
        b"I" + _ID + b"N" + _row("1", "a b", at, "12.50", r"\x00ff", "t"),
        b"I" + _ID + b"N" + _row("2", "é", None, "0.01", r"\x", "f"),
        b"U" + _ID + b"N" + _row("1", "c", at, None, None, None),
        b"U" + _ID + b"K" + _row("2", *none) + b"N" + _row("3", "moved", at, "-1.00", None, "t"),
        b"U" + _ID + b"N" + struct.pack(">H", 6) + b"t\0\0\0\x013" + b"u" * 5,
        b"D" + _ID + b"K" + _row("3", *none),
        b"T" + struct.pack(">IB", 1, 0) + _ID,
        b"I" + _ID + b"N" + _row("9", "last", at, "1.00", None, "t"),
        b"C\0" + struct.pack(">QQq", 64, 96, 0),
    ]


class _Wire:
    """Gives frames as long as there are some."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = [*reversed(frames)]

    def take(self) -> bytes | int | None:
        return self._frames.pop() if self._frames else None

    take_ready = take


class _Checked(Output):
    """Counts valid rows."""

    def __init__(self) -> None:
        self.rows = 0

    def emit(self, records: Records) -> None:
        records.batch.validate(full=True)
        self.rows += records.batch.num_rows

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError("there is no side output")


def _nothing_seen(keys: Sequence[Key]) -> list[Seen]:
    return [Seen(0, 0, frozenset())] * len(keys)


class PostgresMessages(Format):
    """A transaction is read, and completed to a changelog."""

    name = "postgresql-log"
    share = 12

    def make(self, trial: Trial) -> list[bytes]:
        frames = _messages()
        for _ in trial.changes():
            at = trial.chance.randrange(len(frames))
            match trial.chance.randrange(8):
                case 0:
                    frames.insert(trial.chance.randrange(len(frames)), frames[at])
                    trial.story.append(f"message {at} twice")
                case 1 if len(frames) > 1:
                    del frames[at]
                    trial.story.append(f"without message {at}")
                case _:
                    frames[at] = trial.changed(octets.changed, frames[at], f"message {at}")
        return frames

    def read(self, trial: Trial, made: list[bytes]) -> None:
        source = wb.PostgresLogSource("postgresql://h/d", "t", SCHEMA, slot="s", publication="p")
        facts = {name: (kind, -1, "text", False) for name, kind in zip(SCHEMA, _TYPES, strict=True)}
        table = TableFacts(0x4001, "public", "t", "r", True, "d", facts, (("id",),), ("id",), None, True)
        copy = Copy(table, [*SCHEMA], ["id"], 10, CopyState(is_whole=True))
        changes = Changes(source, table, Position(0), (), copy, _nothing_seen)
        completing = source.completed_by.create([source.schema])
        completing.open(OperatorContext())
        wire, out = cast("Wire", _Wire(made)), _Checked()
        for _ in range(len(made) + 1):
            if (batch := changes.take(wire, 100)) is None:
                break
            batch.validate(full=True)
            completing.process(Records.timed(batch, None), 0, out)
        trial.must(bool(trial.story) or out.rows == 9, f"{out.rows} changes came of those that nobody changed")
