"""Messages of brokers: some are damaged, and the others arrive all the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from workbench.connectors.messages.choosing import MessageFormatName, message_format
from workbench.connectors.messages.sorting import Sorted, letters_of, sorted_out
from workbench.errors import PlanError, SourceError
from workbench.operators.functions.dead_letters import OnError

from ..mutations import octets, tables, texts, values
from ..trial import Format, Trial
from .text_files import RECORDS, SCHEMA

AVRO = json.dumps(
    {
        "type": "record",
        "name": "flight",
        "fields": [
            {"name": "n", "type": ["null", "long"]},
            {"name": "word", "type": ["string", {"type": "string", "logicalType": "uuid"}, "null"]},
            {"name": "x", "type": ["double", "null"]},
            {"name": "ok", "type": "boolean"},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
)
ROWS = pa.RecordBatch.from_pylist(RECORDS, SCHEMA.set(SCHEMA.get_field_index("t"), pa.field("t", pa.string()))).cast(
    SCHEMA
)


@dataclass(frozen=True)
class Description:
    """What sorting has to know about a source of messages."""

    schema: pa.Schema
    event_time: str | None
    on_error: OnError
    format: MessageFormatName


@dataclass(frozen=True)
class Made:
    """Messages, and which of them are as they were written."""

    messages: Sequence[bytes]
    whole: Sequence[int]
    schema: pa.Schema
    event_time: str | None


class Messages(Format):
    """Messages of one format, sorted into records and dead letters."""

    form: ClassVar[MessageFormatName]

    def load(self, folder: Any, outside: Any) -> None:
        self.format = message_format(self.form, AVRO if self.form == "avro" else None)

    def rows(self) -> pa.RecordBatch:
        """What is written; a message has one of its rows."""
        return ROWS

    def make(self, trial: Trial) -> Made:
        chance, rows = trial.chance, self.rows()
        messages = [self.format.encode(rows.slice(at, 1))[0] for at in range(rows.num_rows)]
        hit = chance.sample(range(len(messages)), chance.choice((1, 1, 2, 4)))
        damaged = list(messages)
        for _ in trial.changes():
            at = chance.choice(hit)
            damaged[at] = trial.changed(self.change(), damaged[at], f"message {at}")
        schema = rows.schema
        if chance.random() < 0.3:
            column = chance.randrange(len(schema))
            other = schema.set(column, pa.field(schema.names[column], chance.choice(tables.TYPES)))
            with suppress(PlanError):  # messages of this format cannot have such a column
                self.format.check(other)
                schema = other
                trial.story.append(f"the column {schema.names[column]!r} is declared as {schema.field(column).type}")
        event_time = "t" if "t" in schema.names and pa.types.is_timestamp(schema.field("t").type) else None
        whole = [at for at, message in enumerate(messages) if message == damaged[at]]
        return Made(damaged, whole if schema == rows.schema else (), schema, event_time)

    def change(self) -> Callable[[Any, bytes], bytes]:
        """Changes one message."""
        return octets.changed

    def read(self, trial: Trial, made: Made) -> None:
        found = self._sorted(made, "dead_letter")
        found.batch.validate(full=True)
        trial.must(found.batch.schema.equals(made.schema), f"a batch is {found.batch.schema}")
        kept = range(len(made.messages)) if found.kept is None else found.kept
        dead = {letter.position for letter in found.letters}
        places = {f"topic/0@{at}" for at in range(len(made.messages))}
        trial.must(len(dead) == len(found.letters), "a message has two dead letters")
        trial.must(dead == places - {f"topic/0@{at}" for at in kept}, "a message is neither a record nor a dead letter")
        trial.must({f"topic/0@{at}" for at in made.whole}.isdisjoint(dead), "a message that is whole is a dead letter")
        if not self.format.several:
            trial.must(len(kept) == found.batch.num_rows, f"{len(kept)} messages have {found.batch.num_rows} rows")
            rows = self.rows()
            for row, at in enumerate(kept):
                if at in made.whole:
                    trial.must(found.batch.slice(row, 1).equals(rows.slice(at, 1)), f"message {at} has another row")
        try:
            strict = self._sorted(made, "fail")
        except SourceError:
            trial.must(bool(dead), "messages without a dead letter are refused")
        else:
            alike = repr(strict.batch.to_pylist()) == repr(found.batch.to_pylist())  # a NaN equals no other
            trial.must(not dead and alike, "strict and lenient reading differ")

    def _sorted(self, made: Made, on_error: OnError) -> Sorted:
        source = Description(made.schema, made.event_time, on_error, self.form)
        letters = letters_of(made.messages, lambda at: f"topic/0@{at}", source)
        try:
            return sorted_out(
                len(made.messages),
                lambda begin, end: self.format.decode(made.messages[begin:end], made.schema),
                letters,
                source,
            )
        except SourceError as error:
            if on_error == "fail":
                raise
            raise AssertionError(f"a message fails the source in spite of on_error='dead_letter': {error}") from error


class JsonMessages(Messages):
    """Objects."""

    name = "json-messages"
    form = "json"

    def change(self) -> Callable[[Any, bytes], bytes]:
        return _edited_json


class CsvMessages(Messages):
    """Values that are separated by commas."""

    name = "csv-messages"
    form = "csv"

    def change(self) -> Callable[[Any, bytes], bytes]:
        return _edited_text


class AvroMessages(Messages):
    """Avro records, with unions and a UUID."""

    name = "avro-messages"
    form = "avro"


class ArrowMessages(Messages):
    """Arrow streams."""

    name = "arrow-messages"
    form = "arrow"


class RawMessages(Messages):
    """Text as it is."""

    name = "raw-messages"
    share = 1
    form = "raw"

    def rows(self) -> pa.RecordBatch:
        return ROWS.select(["word"])


def _edited_json(chance: Any, data: bytes) -> bytes:
    if chance.random() < 0.3:
        return octets.changed(chance, data)
    try:
        return values.as_text(chance, values.changed(chance, json.loads(data)))
    except (ValueError, RecursionError):
        return chance.choice((b"", b"null", b"[]", b"{}", b"{", b"\x00", b"{}{}", b"[" * 100_000))


def _edited_text(chance: Any, data: bytes) -> bytes:
    if chance.random() < 0.4:
        return octets.changed(chance, data)
    text = data.decode("utf-8", "surrogateescape")
    return texts.changed(chance, text[:1_000]).encode("utf-8", "surrogatepass")
