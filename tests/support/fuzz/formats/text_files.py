"""CSV files and files of JSON lines, read strictly, and leniently, where lines that are no records become dead
letters."""

from __future__ import annotations

import csv
import gzip
import io
import json
from random import Random
from typing import Any, ClassVar

import pyarrow as pa

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.files.file_source import FileSource
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext

from ..mutations import octets, tables, texts, values
from ..trial import Format, Trial

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("word", pa.string()),
        ("x", pa.float64()),
        ("ok", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)
RECORDS = [
    {"n": n, "word": word, "x": n / 4, "ok": n % 3 == 0, "t": f"2013-07-01T06:{n:02}:00Z"}
    for n, word in enumerate(["plain", "with, comma", 'a "quote"', "é", "", "two\nlines", "x" * 50, "last"])
]
_CELLS = (
    *values.NAMES[:40],
    '"',
    '""',
    '"a',
    'a"b',
    ",",
    "1e400",
    "-0",
    "0x1F",
    "1.5",
    "1,5",
    "2013-02-30",
    "TRUE",
    "nan",
)
POLLS_MAX = 100_000


def read_all(source: FileSource, at_once: int = 3) -> tuple[list[pa.RecordBatch], int]:
    """All batches of a source, read so many rows at once, and the number of its dead letters."""
    reader = source.create()
    reader.open(OperatorContext(subtask=0, parallelism=1, clock=VirtualClock()))
    batches: list[pa.RecordBatch] = []
    letters = 0
    try:
        for _ in range(POLLS_MAX):
            fetched = reader.poll(at_once)
            if isinstance(fetched, Exhausted):
                return batches, letters
            assert isinstance(fetched, Fetched)
            batches.append(fetched.records.batch)
            letters += fetched.dead_letters.batch.num_rows if fetched.dead_letters is not None else 0
            for row in range(fetched.records.batch.num_rows if fetched.where is not None else 0):
                str(fetched.where(row))
            reader.snapshot()
            reader.splits()
    finally:
        reader.close()
    raise TimeoutError(f"{POLLS_MAX:,} polls do not end")


class TextFiles(Format):
    """A file is read whole, with the columns that are declared for it or that it seems to have."""

    suffix: ClassVar[str]

    def make(self, trial: Trial) -> Any:
        chance = trial.chance
        data = self.written(chance)
        for _ in trial.changes():
            if chance.random() < 0.4:
                data = trial.changed(octets.changed, data, "file")
            else:
                data = trial.changed(self.edited, data, "file")
        zipped = chance.random() < 0.1
        path = trial.folder / f"data{self.suffix}{'.gz' if zipped else ''}"
        packed = gzip.compress(data) if zipped else data
        if zipped and chance.random() < 0.5:
            packed = trial.changed(octets.changed, packed, "compressed file")
        path.write_bytes(packed)
        schema: pa.Schema | None = SCHEMA
        if chance.random() < 0.4:
            schema = None
        elif chance.random() < 0.3:
            at = chance.randrange(len(SCHEMA))
            schema = SCHEMA.set(at, pa.field(SCHEMA.names[at], chance.choice(tables.TYPES)))
            trial.story.append(f"the column {SCHEMA.names[at]!r} is declared as {schema.field(at).type}")
        event_time = "t" if schema is not None and pa.types.is_timestamp(schema.field("t").type) else None
        return lambda on_error: FileSource(path, columns=schema, event_time=event_time, on_error=on_error)

    def read(self, trial: Trial, made: Any) -> None:
        lenient = trial.chance.random() < 0.6
        strict: tuple[list[pa.RecordBatch], int] | None = None
        try:
            strict = self._checked(trial, made("fail"))
        except SourceError:
            if not lenient:
                raise
        if lenient:
            found = self._checked(trial, made("dead_letter"))
            if strict is not None and self.one_to_a_line and not found[1]:
                rows, same = _rows(found[0]), _rows(strict[0])
                alike = rows.equals(same) or rows.num_rows == same.num_rows == 0  # without a batch there is no schema
                trial.must(alike, "strict and lenient reading give different rows")

    one_to_a_line: ClassVar[bool] = False

    def _checked(self, trial: Trial, source: FileSource) -> tuple[list[pa.RecordBatch], int]:
        batches, letters = read_all(source, 3 if source.files[0].stat().st_size < 10_000 else 500)
        for batch in batches:
            batch.validate(full=True)
            trial.must(batch.schema.equals(source.schema), f"a batch is {batch.schema}, declared {source.schema}")
        return batches, letters

    def written(self, chance: Random) -> bytes:
        raise NotImplementedError  # abstract

    def edited(self, chance: Random, data: bytes) -> bytes:
        raise NotImplementedError  # abstract


def _rows(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks() if batches else pa.table({})


class CsvFiles(TextFiles):
    """Values that are separated by commas, or by tabs."""

    name = "csv"
    share = 8
    suffix = ".csv"

    def written(self, chance: Random) -> bytes:
        file = io.StringIO()
        writer = csv.DictWriter(file, SCHEMA.names, lineterminator=chance.choice(("\n", "\r\n")))
        writer.writeheader()
        writer.writerows(RECORDS * chance.choice((1, 1, 1, 200)))
        return file.getvalue().encode()

    def edited(self, chance: Random, data: bytes) -> bytes:
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        at = chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case 1:
                del lines[at]
            case 2:
                lines[at] = texts.changed(chance, lines[at][:1_000])
            case 3:
                lines[0] = ",".join(chance.choice((name, chance.choice(_CELLS), "n")) for name in SCHEMA.names)
            case _:
                cells = lines[at].split(",")
                cells[chance.randrange(len(cells))] = chance.choice((*_CELLS, *values.NAMES))
                lines[at] = ",".join(cells)
        return "\n".join(lines).encode("utf-8", "surrogatepass" if chance.random() < 0.5 else "replace")


class JsonFiles(TextFiles):
    """Objects, one to a line."""

    name = "json"
    share = 8
    suffix = ".jsonl"
    one_to_a_line = True

    def written(self, chance: Random) -> bytes:
        ascii_only = chance.random() < 0.5
        lines = [json.dumps(record, ensure_ascii=ascii_only) for record in RECORDS * chance.choice((1, 1, 1, 200))]
        return "\n".join(lines).encode() + b"\n"

    def edited(self, chance: Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        at = chance.randrange(len(lines))
        try:
            record = json.loads(lines[at])
        except (ValueError, RecursionError):
            lines[at] = chance.choice((b"", b"null", b"[]", b"{}", b"{", b"\x00", b"{}{}", b"[" * 100_000))
        else:
            lines[at] = values.as_text(chance, values.changed(chance, record)).replace(b"\n", b" ")
        return b"\n".join(lines)
