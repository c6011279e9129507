"""A small input does not take much memory: what would become larger than a record may be is an error or a dead letter
that names the limit and the setting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.files.record_limit import RECORD_MB, SETTING, record_bytes
from workbench.connectors.messages.avro import AvroMessages
from workbench.connectors.messages.choosing import message_format
from workbench.connectors.messages.message_format import ArrowMessages

LIMIT_MB = 4
PEAK_MB = 96
"""Several copies of a record exist while it is decoded, beside the blocks of 1 MB in which files are read: 36 MB here.
An attack that is read whole takes the 160 MB that it claims."""
SCRIPT = Path(__file__).parents[1] / "support" / "record_attacks.py"
LIMIT = f"takes more than {LIMIT_MB} MB of memory, the limit of a record: set {SETTING}=... to raise it"

TOLD: Mapping[str, str] = {
    "avro: records of a byte": LIMIT,
    "avro: records of a byte in a map": LIMIT,
    "avro: records within themselves": "avro_schema has the record 'L' within itself",
    "avro: items without bytes": "avro_schema has an array whose values take no bytes",
    "avro: an array of a claimed length": "EOFError",
    "avro: text of a claimed length": "Expected 1099511627776 bytes, read 3",
    "avro: many longs": LIMIT,
    "avro: one long text": "decoded",
    "json: deep in no column": LIMIT,
    "json: deep and open": "JSON parse error",
    "json: deep in a column": LIMIT,
    "json: digits": "couldn't parse",
    "json: an exponent": "Number too big",
    "json: objects that lack all": LIMIT,
    "json: a large message": LIMIT,
    "csv: values without columns": "Expected 1 columns, got",
    "raw: a large message": LIMIT,
    "arrow: compressed": "it is compressed",
    "arrow: one text many times": LIMIT,
    "arrow: values without bytes": LIMIT,
    "file: json.gz": f"line 1 is not a record: it {LIMIT}",
    "file: json.zst": LIMIT,
    "file: json.bz2": LIMIT,
    "file: json.lz4": LIMIT,
    "file: csv.gz": f"line 2 is not a record: it {LIMIT}",
    "file: a quote": LIMIT,
    "socket: a line": LIMIT,
    "socket: a line with a long end": LIMIT,
    "events: a line": LIMIT,
    "events: empty lines": LIMIT,
    "websocket: a claimed length": f"a message {LIMIT}",
    "websocket: fragments": f"a message {LIMIT}",
}
FATAL = {
    "json: a large message": LIMIT,
    "file: json.gz": f"a.json.gz cannot be read: line 1 {LIMIT}",
    "file: csv.gz": f"a.csv.gz cannot be read: a row {LIMIT}, or close the quote",
    "socket: a line": f"is that the delimiter between its records? If so, this one {LIMIT}",
}


def attacked(folder: Path, on_error: str, *names: str) -> dict[str, Any]:
    """By name of an attack: the peak of memory, and what became of the record."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), on_error, *names],
        env={**os.environ, SETTING: str(LIMIT_MB)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line.pop("name"): line for line in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def as_letters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return attacked(tmp_path_factory.mktemp("attacks"), "dead_letter")


@pytest.fixture(scope="module")
def as_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return attacked(tmp_path_factory.mktemp("attacks"), "fail", *FATAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLD)
def test_a_small_input_takes_little_memory_and_names_the_limit(as_letters: dict[str, Any], name: str) -> None:
    found = as_letters[name]
    assert TOLD[name] in found["told"]
    assert found["peak"] < PEAK_MB


@pytest.mark.slow
def test_all_attacks_are_looked_at(as_letters: dict[str, Any]) -> None:
    assert set(as_letters) == {"", *TOLD}


@pytest.mark.slow
@pytest.mark.parametrize("name", FATAL)
def test_without_dead_letters_it_is_an_error(as_errors: dict[str, Any], name: str) -> None:
    found = as_errors[name]
    assert "SourceError" in found["told"]
    assert FATAL[name] in found["told"]
    assert found["peak"] < PEAK_MB


def test_the_setting_is_megabytes_and_holds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert record_bytes() == RECORD_MB << 20
    messages, schema = message_format("raw", None), pa.schema([("x", pa.binary())])
    large = [b"x" * (2 << 20)]
    assert messages.decode(large, schema).num_rows == 1
    monkeypatch.setenv(SETTING, "1")
    with pytest.raises(ValueError, match=r"more than 1 MB of memory.*WORKBENCH_RECORD_MB=\.\.\. to raise"):
        messages.decode(large, schema)
    for wrong in ("", "0", "64MB", "-1", "1.5", "9" * 30):
        monkeypatch.setenv(SETTING, wrong)
        with pytest.raises(wb.errors.SettingError, match=r"WORKBENCH_RECORD_MB is .*: write megabytes, such as 64"):
            record_bytes()


def test_messages_that_are_large_together_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "1")
    kind = {"type": "array", "items": "long"}
    messages = AvroMessages(json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}))
    schema = pa.schema([("x", pa.list_(pa.int64()))])
    value = b"\x80\x10" + b"\2" * 1_024 + b"\0"
    assert messages.decode([value], schema)["x"].to_pylist() == [[1] * 1_024]
    stream = ArrowMessages().encode(pa.record_batch({"id": pa.array([0] * 100_000, pa.int64())}))
    assert ArrowMessages().decode(stream * 3, pa.schema([("id", pa.int64())])).num_rows == 300_000
