"""Parcels: the elements of one channel in one micro-batch, as bytes in a column of Spark.

Spark moves rows; the workbench moves record batches with event times, and watermarks between them. A parcel holds a
sequence of such elements, so nothing of them changes on the way: types, nulls, nested values and order stay as they
are, and Spark handles few large rows instead of many small ones.

A parcel is a JSON list of the elements, preceded by its length, and followed by an Arrow IPC stream for each element
with records. It is read by the same version of the workbench that wrote it: parcels do not outlive their batch, or, in
the log of a source, the run.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import Records, Watermark, WatermarkStatus

_LENGTH = struct.Struct("<I")
_TIMES = pa.field("event time", pa.int64())
_ALIGNMENT = 64
_FORMAT = pa.ipc.IpcWriteOptions()


@dataclass(frozen=True, slots=True)
class FromSplit:
    """Records that a source has read from one of its splits."""

    split: str
    records: Records


@dataclass(frozen=True, slots=True)
class NotRecords:
    """Input of a source that is not a record, for its side output of dead letters."""

    records: Records


@dataclass(frozen=True, slots=True)
class Splits:
    """The splits that a source still reads.

    Attributes:
        names: of the splits.
        shared: they are parts of one sequence, with one event time.
    """

    names: tuple[str, ...]
    shared: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A source has read everything."""


Item = Records | Watermark | WatermarkStatus | FromSplit | NotRecords | Splits | Ended


def packed(items: Sequence[Item]) -> bytes:
    """The elements as bytes.

    Example:
        >>> unpacked(packed([Watermark(5), WatermarkStatus(True)]))
        [Watermark(timestamp_us=5), WatermarkStatus(idle=True)]
    """
    head: list[Any] = []
    streams: list[bytes] = []
    for item in items:
        match item:
            case Records():
                head.append(["records", item.timestamps is not None])
                streams.append(_stream(item))
            case Watermark(timestamp_us):
                head.append(["watermark", timestamp_us])
            case WatermarkStatus(idle):
                head.append(["idle", idle])
            case FromSplit(split, records):
                head.append(["split", records.timestamps is not None, split])
                streams.append(_stream(records))
            case NotRecords(records):
                head.append(["letters", records.timestamps is not None])
                streams.append(_stream(records))
            case Splits(names, shared):
                head.append(["splits", list(names), shared])
            case Ended():
                head.append(["ended"])
    text = json.dumps(head).encode()
    text += b" " * (-(_LENGTH.size + len(text)) % _ALIGNMENT)  # kernels need aligned columns
    return b"".join((_LENGTH.pack(len(text)), text, *streams))


def unpacked(data: bytes) -> list[Item]:
    """The elements of a parcel; their columns share its memory."""
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    head = json.loads(data[_LENGTH.size : end])
    source = pa.BufferReader(pa.py_buffer(data).slice(end))
    items: list[Item] = []
    for kind, *rest in head:
        match kind:
            case "records":
                items.append(_records(source, *rest))
            case "watermark":
                items.append(Watermark(*rest))
            case "idle":
                items.append(WatermarkStatus(*rest))
            case "split":
                items.append(FromSplit(rest[1], _records(source, rest[0])))
            case "letters":
                items.append(NotRecords(_records(source, *rest)))
            case "splits":
                items.append(Splits(tuple(rest[0]), rest[1]))
            case "ended":
                items.append(Ended())
    return items


def _stream(records: Records) -> bytes:
    batch = records.batch
    if records.timestamps is not None:
        columns = [*batch.columns, pa.array(np.ascontiguousarray(records.timestamps))]
        batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema.append(_TIMES))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_FORMAT) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _records(source: pa.BufferReader, timed: bool) -> Records:
    with pa.ipc.open_stream(source) as stream:
        batch = stream.read_all().combine_chunks()
    batches = batch.to_batches()
    one = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=batch.schema)
    if not timed:
        return Records(one)
    times = np.array(one.column(one.num_columns - 1))
    return Records(one.select(list(range(one.num_columns - 1))), times)
