"""Replay logs: a manifest and Parquet files in folders."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.connectors.replay.log import ReplayLog, write_log

from ..mutations import folders, octets, tables, values
from ..trial import Format, Trial

ROWS = 60
BOMB_ROWS = 40_000_000
"""So many equal rows have some kilobytes in a Parquet file and 320 MB in memory."""


class ReplayLogs(Format):
    """A log is opened and read to its end, as a source does."""

    name = "replay-log"
    share = 8

    def prepare(self, folder: Path) -> None:
        times = np.arange(ROWS, dtype=np.int64) * 1_000_000
        table = pa.table(
            {
                "event": pa.array(times, pa.timestamp("us", "UTC")),
                "arrival": pa.array(times + 5, pa.timestamp("us", "UTC")),
                "word": [f"w{n % 7}" for n in range(ROWS)],
                "n": range(ROWS),
            }
        )
        write_log(
            table, folder / "log", event_time="event", arrival_time="arrival", row_group_rows=16, notes=["made"],
            fingerprint={"from": "a test"},
        )  # fmt: skip
        rows = pa.repeat(pa.scalar(7, pa.int64()), BOMB_ROWS)
        pq.write_table(pa.table({"n": rows}), folder / "bomb.parquet", row_group_size=BOMB_ROWS, compression="zstd")

    def load(self, folder: Path, outside: Path) -> None:
        self.whole, self.bomb = folder / "log", folder / "bomb.parquet"
        shutil.copytree(self.whole, outside / "log")
        for path in self.whole.rglob("*.*"):  # what a link of the same name may lead to
            shutil.copy(path, outside / path.name)

    def make(self, trial: Trial) -> Path:
        log = trial.folder / "log"
        shutil.copytree(self.whole, log)
        for _ in trial.changes():
            self._change(trial, log)
        return log

    def _change(self, trial: Trial, log: Path) -> None:
        chance, manifest = trial.chance, log / "manifest.json"
        parquets = sorted(path for path in log.rglob("*.parquet") if path.is_file())
        kind = chance.randrange(8)
        if not manifest.is_file() or not parquets or kind == 0:
            trial.story.append(folders.changed(chance, log, trial.outside))
        elif kind <= 3:
            try:
                content = json.loads(manifest.read_bytes())
            except (ValueError, RecursionError):
                return
            manifest.write_bytes(values.as_text(chance, trial.changed(_manifest, content, "manifest")))
        elif kind == 4:
            manifest.write_bytes(trial.changed(octets.changed, manifest.read_bytes(), "manifest"))
        else:
            path = chance.choice(parquets)
            try:
                with pq.ParquetFile(path) as file:
                    table = file.read() if file.metadata.num_rows <= ROWS * 10 else pa.table({"n": [1]})
            except (pa.ArrowException, OSError, ValueError):
                return
            if kind == 5:
                path.write_bytes(trial.changed(octets.changed, path.read_bytes(), path.name))
            elif kind == 6 and chance.random() < 0.2:
                shutil.copy(self.bomb, path)
                trial.story.append(f"{path.name} unpacks to {BOMB_ROWS:,} rows")
            else:
                try:
                    pq.write_table(trial.changed(tables.changed, table, path.name), path, row_group_size=16)
                except (pa.ArrowException, ValueError, OSError):
                    return
            if chance.random() < 0.9:
                _seal(manifest, log, path)

    def read(self, trial: Trial, made: Path) -> None:
        log = ReplayLog.open(made)
        rows = 0
        for channel in range(min(log.channels, 20)):
            cursor = log.cursor(channel)
            try:
                before = None
                while (batch := cursor.read(25)) is not None:
                    batch.validate(full=True)
                    trial.must(batch.schema.equals(log.schema), "a batch has other columns than its log")
                    arrivals = batch.column(log.arrival_time)
                    trial.must(arrivals.null_count == 0, "an arrival is null")
                    first, last = arrivals[0].value, arrivals[-1].value
                    trial.must(first <= last and (before is None or before <= first), "arrivals go back")
                    before = last
                    rows += batch.num_rows
                trial.must(cursor.position == cursor.rows, f"{cursor.position} of {cursor.rows} rows were read")
            finally:
                cursor.close()
        trial.must(rows == log.rows or log.channels > 20, f"{rows} of {log.rows} rows were read")
        trial.must(log.start_us <= log.end_us, "it ends before it begins")
        trial.must(0 <= log.rows_without_event_time <= log.rows, "more rows have no event time than there are")


def _manifest(chance: Random, content: Any) -> Any:
    """A manifest with a change, in its files as often as elsewhere; sometimes in the schema that it holds."""
    match chance.randrange(4):
        case 0:
            return values.changed(chance, content)
        case 1 if chance.random() < 0.5:
            return json.loads(json.dumps(content).replace('"channel-', '"../../outside/log/channel-', 1))
        case 1 if isinstance(content, dict) and isinstance(content.get("schema"), str):
            return {**content, "schema": _schema(chance, content["schema"])}
        case _ if isinstance(content, dict) and "channels" in content:
            return {**content, "channels": values.changed(chance, content["channels"])}
    return values.changed(chance, content)


def _schema(chance: Random, text: str) -> str:
    try:
        data = base64.b64decode(text)
        if chance.random() < 0.5:
            return base64.b64encode(octets.with_integer(chance, data)).decode()
        schema = pa.ipc.read_schema(pa.py_buffer(data))
        at = chance.randrange(len(schema))
        kind = chance.choice(tables.TYPES)
        other = schema.set(at, pa.field(chance.choice((schema.names[at], "x")), kind))
        return base64.b64encode(other.serialize()).decode()
    except (pa.ArrowException, ValueError, OSError):
        return text[::-1]


def _seal(manifest: Path, log: Path, path: Path) -> None:
    """Let the manifest say what is in a file, so that its size and checksum are right."""
    name = path.relative_to(log).as_posix()
    data = path.read_bytes()
    try:
        content = json.loads(manifest.read_bytes())
        for channel in content["channels"]:
            for file in channel:
                if file["name"] == name:
                    file.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    manifest.write_text(json.dumps(content), encoding="utf-8")
