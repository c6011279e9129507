"""Checkpoint directories: checkpoints, savepoints, their manifests and tables, and what a job says of itself."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pyarrow as pa
from pipelines.draft import Draft
from pipelines.generator import OPERATORS

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.durable.checksum import checksum
from workbench.from_arrow import tables_in
from workbench.runtime.storage import DirectoryStorage

from ..mutations import folders, octets, tables, values
from ..trial import FOREIGN, Format, Trial
from .jobs import CHECKPOINTS, SAVEPOINT, RealJob, copied, jobs_in, problems, run_some, to_the_end

MANY = int(os.environ.get("WORKBENCH_FUZZ", "500")) > 5_000
"""Whether there is time for a job of each kind."""


class Directories(Format):
    """Changes what lies in a job's checkpoint directory; what changes behind a checksum is sealed anew, mostly."""

    jobs: tuple[RealJob, ...]
    folder: Path
    only: ClassVar[str] = "**/*"

    def prepare(self, folder: Path) -> None:
        kinds = len(OPERATORS)
        run_some(range(kinds) if MANY else range(0, kinds, 4), folder)

    def load(self, folder: Path, outside: Path) -> None:
        self.folder = folder
        self.jobs = jobs_in(folder)
        if not (outside / "directory").exists():
            copied(folder, self.jobs[0], outside / "directory")

    def make(self, trial: Trial) -> tuple[Pipeline, Draft, bool]:
        job = trial.chance.choice(self.jobs)
        trial.story.append(f"job {job}")
        pipeline, draft = job.drawn()
        copied(self.folder, job, trial.folder)
        sealed = False
        for _ in trial.changes():
            sealed |= self._change(trial)
        return pipeline, draft, sealed

    def _change(self, trial: Trial) -> bool:
        """Make one change; whether no checksum can tell."""
        chance = trial.chance
        files = sorted(
            path for path in CHECKPOINTS.glob(self.only) if path.is_file() and not path.is_symlink() and path.suffix
        )
        if not files or chance.random() < 0.15:
            trial.story.append(folders.changed(chance, CHECKPOINTS, trial.outside))
            return True  # links within, and files that nothing needs, do no harm
        path = chance.choice(files)
        before = path.read_bytes()
        told = str(path.relative_to(CHECKPOINTS))
        if chance.random() < 0.2:
            path.write_bytes(trial.changed(octets.changed, before, told))
            return path.name == "job.json"
        change = _json if path.suffix == ".json" else _arrow
        path.write_bytes(trial.changed(change, before, told))
        seal(CHECKPOINTS)
        return True


def _json(chance: Random, data: bytes) -> bytes:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return octets.changed(chance, data)
    if isinstance(content, dict) and isinstance(content.get("files"), list) and chance.random() < 0.6:
        return values.as_text(chance, {**content, "files": values.changed(chance, content["files"])})
    return values.as_text(chance, values.changed(chance, content))


def _arrow(chance: Random, data: bytes) -> bytes:
    """A table of state with a change, or the JSON in the index of one, or a message of the streams."""
    if chance.random() < 0.25:
        return tables.changed_stream(chance, data)
    try:
        found = list(tables_in(data))
        at = chance.randrange(len(found))
        named = "json" in found[0].schema.names and chance.random() < 0.6
        found[0 if named else at] = _index(chance, found[0]) if named else tables.changed(chance, found[at])
        sink = pa.BufferOutputStream()
        for table in found:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue().to_pybytes()
    except (pa.ArrowException, ValueError, OSError, TypeError, RecursionError):
        return octets.changed(chance, data)


def _index(chance: Random, index: pa.Table) -> pa.Table:
    """An index with a change in the JSON of one piece of state."""
    found = index.column("json").to_pylist()
    places = [at for at, text in enumerate(found) if text is not None]
    if not places:
        return tables.changed(chance, index)
    at = chance.choice(places)
    text = values.as_text(chance, values.changed(chance, json.loads(found[at])))
    found[at] = text.decode("utf-8", "replace")
    place = index.schema.get_field_index("json")
    return index.set_column(place, index.schema.field(place), pa.array(found, index.schema.field(place).type))


def seal(root: Path) -> None:
    """Let each manifest say the sizes and checksums of the files that it names, and give it its own checksum."""
    for manifest in filter(Path.is_file, root.rglob("manifest.json")):
        try:
            content = json.loads(manifest.read_bytes())
            for file in content["files"]:
                _seal(file, manifest.parent / file["file"])
                for part in file["parts"]:
                    _seal(part, root / part["path"])
            content.pop("checksum", None)
            body = json.dumps(content, sort_keys=True).encode().removeprefix(b"{")
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        manifest.write_bytes(f'{{"checksum": "{checksum(body)}", '.encode() + body)


def _seal(entry: dict[str, Any], path: Path) -> None:
    data = path.read_bytes() if path.is_file() else None
    if data is not None and path.resolve().is_relative_to(Path.cwd()):
        entry.update(size=len(data), checksum=checksum(data))


class Checkpoints(Directories):
    """All checkpoints and savepoints of a directory are looked at and decoded."""

    name = "checkpoint"
    share = 12

    def read(self, trial: Trial, made: tuple[Pipeline, Draft, bool]) -> None:
        wb.found_jobs(str(CHECKPOINTS))
        with closing(DirectoryStorage(CHECKPOINTS)) as storage:
            found = [storage.latest(), storage.savepoint(SAVEPOINT)]
            for manifest in found:
                for file in manifest.files if manifest is not None else ():
                    for state in storage.states(manifest, file).values():
                        str({name: value for name, value in state.items() if not callable(value)})
        for path in (CHECKPOINTS / "savepoints" / SAVEPOINT, *sorted(CHECKPOINTS.glob("chk-*"))):
            snapshot = wb.Snapshot.open(path)
            repr(snapshot)


class Resumed(Directories):
    """A job goes on from a directory, to its end."""

    name = "resume"
    share = 4

    def read(self, trial: Trial, made: tuple[Pipeline, Draft, bool]) -> None:
        pipeline, draft, sealed = made
        job = pipeline.run("job", driver="stepping", checkpoint_dir=CHECKPOINTS, resume=True, restart="none")
        self._end(trial, job, draft, sealed)

    def _end(self, trial: Trial, job: wb.types.Job, draft: Draft, sealed: bool) -> None:
        state = to_the_end(job)
        if state == "FAILED":
            failure = job.recorder.latest().failure or ""
            trial.must(FOREIGN.search(failure) is None, f"it failed: {failure}")
            return
        if not sealed:
            trial.must(not (wrong := problems(job, draft)), "; ".join(wrong[:2]))


class Restored(Resumed):
    """A job begins with a savepoint that somebody has sent, and which is in a folder of its own."""

    name = "savepoint"
    share = 4
    only = f"savepoints/{SAVEPOINT}/**/*"

    def read(self, trial: Trial, made: tuple[Pipeline, Draft, bool]) -> None:
        pipeline, draft, sealed = made
        saved = (CHECKPOINTS / "savepoints" / SAVEPOINT).rename("sent")
        shutil.rmtree(CHECKPOINTS)
        job = pipeline.run("job", driver="stepping", checkpoint_dir=CHECKPOINTS, restore=saved, restart="none")
        self._end(trial, job, draft, sealed)


class Records(Directories):
    """What a job says of itself, in a directory that is looked into."""

    name = "job-record"
    share = 3
    only = "job.json"

    def read(self, trial: Trial, made: tuple[Pipeline, Draft, bool]) -> None:
        for found in wb.found_jobs(str(CHECKPOINTS)):
            repr(found)
            str(found.resumable)
