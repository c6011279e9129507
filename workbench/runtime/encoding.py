"""How a task's state is written: one Arrow IPC file, a row for each piece of state; no code and no pickle in it.

Columns: ``operator`` (uid), ``name`` (of the piece), ``kind`` (``table`` or ``json``) and ``payload`` (an Arrow IPC
stream, or JSON text). The file is read back with any Arrow library.
"""

from __future__ import annotations

import json
from typing import cast

import pyarrow as pa

from workbench.errors import CorruptCheckpointError
from workbench.operators.base import Json, Snapshot

_SCHEMA = pa.schema(
    [("operator", pa.string()), ("name", pa.string()), ("kind", pa.string()), ("payload", pa.large_binary())]
)


def encode(states: dict[str, Snapshot]) -> bytes:
    """The bytes of a task's state, by operator uid and name. Deferred values (callables) are called here."""
    rows: list[tuple[str, str, str, bytes]] = []
    for uid, snapshot in states.items():
        for name, value in snapshot.items():
            piece = value() if callable(value) else value
            if isinstance(piece, pa.Table):
                rows.append((uid, name, "table", _table_bytes(piece)))
            else:
                rows.append((uid, name, "json", json.dumps(piece, sort_keys=True).encode()))
        if not snapshot:
            rows.append((uid, "", "json", b"null"))
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(_SCHEMA)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))
    return cast(bytes, sink.getvalue().to_pybytes())


def decode(data: bytes, name: str) -> dict[str, Snapshot]:
    """The states in such bytes.

    Raises:
        CorruptCheckpointError: the bytes are not such a file; `name` says which one.
    """
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        states: dict[str, Snapshot] = {}
        for row in table.to_pylist():
            snapshot = states.setdefault(row["operator"], {})
            if row["name"]:
                snapshot[row["name"]] = _piece(row["kind"], row["payload"])
        return states
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise CorruptCheckpointError(f"the checkpoint file {name} cannot be read: {error}") from error


def _piece(kind: str, payload: bytes) -> pa.Table | Json:
    if kind == "table":
        return pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
    return cast(Json, json.loads(payload))


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return cast(bytes, sink.getvalue().to_pybytes())
