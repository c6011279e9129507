"""Recordings: the frames of a run as lines of JSON, compressed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import pyarrow as pa

import workbench as wb

from ..mutations import octets, texts, values
from ..trial import Format, Trial

FRAMES = 4
BOMB_BYTES = 1 << 29


class Recordings(Format):
    """A recording is opened, and a report is written of it."""

    name = "recording"
    share = 6
    memory_mb = 400

    def prepare(self, folder: Path) -> None:
        table = pa.table({"k": ["a", "b"] * 20, "t": [n * 1_000_000 for n in range(40)]})
        stream = wb.Stream.from_table(table, event_time="t", rate=10.0).with_parallelism(1).key_by("k")
        pipeline = stream.window(wb.tumbling("10s")).aggregate(n=wb.count()).sink_to(wb.TableSink("counts"))
        job = pipeline.run("recorded", driver="stepping", buffer_size=1, checkpoint_interval="1s")
        job.stepper.step(60)
        job.tune(buffer_timeout="5ms")
        job.fail("aggregate[0]")
        job.wait()
        job.recording().save(folder / "run.recording")

    def load(self, folder: Path, outside: Path) -> None:
        lines = gzip.decompress((folder / "run.recording").read_bytes()).splitlines()
        every = lines[1:]
        kept = [every[at * (len(every) - 1) // (FRAMES - 1)] for at in range(FRAMES)]
        head = {**json.loads(lines[0]), "frames": len(kept)}
        self.lines = [json.dumps(head).encode(), *kept]
        members = gzip.compress(self.lines[0] + b"\n"), *[gzip.compress(b" " * (1 << 20))] * (BOMB_BYTES >> 20)
        self.bomb = b"".join(members)

    def make(self, trial: Trial) -> Path:
        path = trial.folder / "run.recording"
        chance, lines, packed = trial.chance, list(self.lines), None
        for _ in trial.changes():
            match chance.randrange(10):
                case 0:
                    packed = trial.changed(octets.changed, packed or gzip.compress(b"\n".join(lines), 1), "file")
                case 1:
                    at = chance.randrange(len(lines))
                    lines[at] = trial.changed(octets.changed, lines[at], f"line {at}")
                case 2:
                    lines = trial.changed(_lines, lines, "lines")
                case 3 if chance.random() < 0.2:
                    trial.story.append(f"a line unpacks to {BOMB_BYTES:,} bytes")
                    packed = self.bomb
                case _:
                    at = chance.randrange(len(lines))
                    lines[at] = trial.changed(_line, lines[at], f"line {at}")
        path.write_bytes(packed if packed is not None else gzip.compress(b"\n".join(lines) + b"\n", 1))
        return path

    def read(self, trial: Trial, made: Path) -> None:
        recording = wb.Recording.open(made)
        again = wb.Recording.open(recording.save(trial.folder / "again.recording"))
        same = again.frames == recording.frames or "nan" in repr(recording.frames)
        trial.must(same and again.name == recording.name, "what was saved again is not what was read")
        if trial.chance.random() < 0.1:
            recording.report(trial.folder / "run.html")


def _line(chance: Random, line: bytes) -> bytes:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return texts.changed(chance, line.decode("latin-1"))[:500_000].encode("utf-8", "surrogatepass")
    return values.as_text(chance, values.changed(chance, content)).replace(b"\n", b" ")


def _lines(chance: Random, lines: list[bytes]) -> list[bytes]:
    at = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            return lines[:at] + lines[at + 1 :] or [b""]
        case 1:
            return [*lines[:at], lines[at], *lines[at:]]
        case 2:
            return chance.sample(lines, len(lines))
    return [*lines, chance.choice((b"", b"null", b"{}", b"[" * 200_000, b" " * 100))]
