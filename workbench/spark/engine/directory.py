"""The checkpoint directory of a job on Spark.

::

    checkpoints/
        pipeline.json       the identity of the pipeline
        spark/              Spark's checkpoint: offsets, commits, state
        source/             the log of batches that Spark has not committed
        epochs/, tables/    the sinks' snapshots, and the files of TableSinks
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbench.arguments import option
from workbench.connectors.parts.part_files import write_durably
from workbench.durable.disk import PRIVATE_FILE, PRIVATE_FOLDER, make_folder_durably
from workbench.durable.folder_lock import FolderLock, TakenError
from workbench.durable.holder import Holder
from workbench.errors import CheckpointError, unknown
from workbench.from_json import made, parsed
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.storage.locations import lasting

_PIPELINE = "pipeline.json"
PLANS = "plan-*.bin"
"""Names of files that earlier versions wrote, with functions and secrets of the pipeline."""
LOCK = "owner"
"""Name of the file that a process locks while its job uses the directory."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies the pipeline to which a checkpoint directory belongs.

    Attributes:
        operators: the kind of each operator, by uid.
        subtasks: the number of subtasks of each operator, by uid.
        key_groups: the number of key groups.
        tier: ``native`` or ``carried``.
        partitions: of Spark's shuffles, which are fixed for the life of a checkpoint.
        whole: whether Spark's own reader reads the sources, in one batch.
        run: identifies the first run.
    """

    operators: dict[str, str]
    subtasks: dict[str, int]
    key_groups: int
    tier: str
    partitions: int
    whole: bool = False
    run: str = ""

    @staticmethod
    def of(graph: PhysicalGraph, tier: str, partitions: int, *, whole: bool) -> Identity:
        """The identity of a pipeline that is started."""
        return Identity(
            graph.kinds, graph.parallelism, graph.max_parallelism, tier, partitions, whole, secrets.token_hex(8)
        )


class Directory:
    """The folder of one run, locked; a temporary one if none is given.

    Args:
        given: the checkpoint directory, or None.
        resume: whether it may contain checkpoints, from which the run continues.
        identity: of the pipeline that is started.
        job: its name.

    Attributes:
        root: the folder.
        run: identifies the pipeline's first run in the folder.
        whole: whether Spark's own reader reads the sources, in one batch; once that batch is written, the value of the
            first run.

    Raises:
        CheckpointError: it is in use, is not on this machine, contains checkpoints of another pipeline, or contains
            checkpoints although `resume` is false.
    """

    def __init__(self, given: str | Path | None, resume: bool, identity: Identity, job: str) -> None:
        self.kept = given is not None
        self._lock: FolderLock | None = None
        if given is None:
            self.root = Path(tempfile.mkdtemp(prefix="workbench-spark-"))
        else:
            place = str(lasting(given))
            if "://" in place:
                raise CheckpointError(
                    f"checkpoint_dir={place!r} is not a folder on this machine, which the log of a source on Spark "
                    "needs: use a local or mounted folder"
                )
            self.root = Path(place)
            try:
                self._lock = FolderLock(self.root, LOCK, Holder.this_process(job), private=True)
            except TakenError as taken:
                raise CheckpointError(
                    f"the checkpoint directory {place!r} is in use by {taken}: wait for it, or choose another"
                ) from None
            except OSError as error:
                raise CheckpointError(
                    f"the checkpoint directory {place!r} cannot be used: {error.strerror or error}"
                ) from error
        try:
            begun = self._begin(resume, identity)
            self.run, self.whole = begun.run, begun.whole
        except BaseException:
            self.close()
            raise
        for left in self.root.glob(PLANS):  # of earlier versions; they may hold secrets
            left.unlink(missing_ok=True)
        for name in ("source", "spark"):
            make_folder_durably(self.folder(name), private=True)

    def folder(self, name: str) -> Path:
        """A folder below the root."""
        return self.root / name

    @property
    def ended(self) -> bool:
        """Whether Spark has committed a batch after which every source has ended."""
        commits = self.root / "spark" / "commits"
        try:
            last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
            offsets = self.offsets(last)
        except (OSError, ValueError):
            return False
        return bool(offsets) and all(offset.get("ended") is True for offset in offsets)

    def offsets(self, batch: int) -> list[dict[str, Any]]:
        """The offset of each source after a batch.

        Raises:
            OSError, ValueError: the file of the batch cannot be read.
        """
        text = (self.root / "spark" / "offsets" / str(batch)).read_text(encoding="utf-8")
        return [parsed(line) for line in text.splitlines()[2:]]  # after the version and the settings

    def records_before(self, batch: int) -> int:
        """The number of records of the first source in the batches before one, if its offsets count them."""
        try:
            return 0 if batch == 0 else int(self.offsets(batch - 1)[0].get("records", 0))
        except (OSError, ValueError, LookupError):
            return 0

    def close(self) -> None:
        """Release the folder; a temporary one is removed."""
        if self.kept:
            _close_to_others(self.folder("spark"))
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if not self.kept:
            shutil.rmtree(self.root, ignore_errors=True)

    @property
    def _written(self) -> bool:
        """Whether a batch has reached the sinks."""
        return any(self.folder("epochs").glob("*.epoch"))

    def _begin(self, resume: bool, identity: Identity) -> Identity:
        file = self.root / _PIPELINE
        if not file.exists():
            others = sorted(entry.name for entry in self.root.iterdir() if entry.name != LOCK)
            if others:
                raise CheckpointError(
                    f"the checkpoint directory {str(self.root)!r} holds {others[0]!r}, which does not belong to a "
                    "job on Spark: choose another directory"
                )
            write_durably(file, json.dumps(asdict(identity), indent=2).encode())
            return identity
        check_unused(self.root, resume)
        try:
            saved = made(Identity, parsed(file.read_bytes()), _PIPELINE)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{file} cannot be read: {error}") from error
        _check_same(saved, identity, str(self.root))
        if saved.whole and not self._written:  # nothing is done yet, and there may be more records now
            for name in ("source", "spark"):
                shutil.rmtree(self.folder(name), ignore_errors=True)
            saved = replace(saved, whole=identity.whole)
            write_durably(file, json.dumps(asdict(saved), indent=2).encode())
        return saved


def _close_to_others(folder: Path) -> None:
    """Make what Spark has written readable by its owner only; so far, only the mode of its folder has protected it."""
    for place, _, names in os.walk(folder):
        with suppress(OSError):  # gone, or on a file system without modes
            Path(place).chmod(PRIVATE_FOLDER)
            for name in names:
                Path(place, name).chmod(PRIVATE_FILE)


def check_unused(place: str | Path | None, resume: bool) -> None:
    """Reject a run without `resume` if a job has left checkpoints in its directory.

    Args:
        place: the checkpoint directory, or None.
        resume: whether the run continues from the checkpoints.

    Raises:
        CheckpointError: there are checkpoints.
    """
    if place is not None and not resume and Path(place, _PIPELINE).exists():
        raise CheckpointError(
            f"the checkpoint directory {str(place)!r} holds the checkpoints of a job: add {option('resume')} to "
            f"continue from the latest, or choose another {option('checkpoint_dir', '')}"
        )


def _check_same(saved: Identity, now: Identity, place: str) -> None:
    for uid, kind in saved.operators.items():
        if uid not in now.operators:
            raise CheckpointError(
                f"the checkpoints in {place!r} belong to a pipeline with the operator {uid!r}: "
                f"{unknown('operator', uid, now.operators)}; run that pipeline, or choose another directory"
            )
        if now.operators[uid] != kind:
            raise CheckpointError(
                f"the operator {uid!r} is a {now.operators[uid]}, and the checkpoints in {place!r} hold the state of a "
                f"{kind}: run that pipeline, or choose another directory"
            )
    fixed: list[tuple[str, Any, Any]] = [
        ("operators", sorted(saved.operators), sorted(now.operators)),
        ("tier", saved.tier, now.tier),
        ("parallelism", saved.subtasks, now.subtasks),
        ("number of key groups", saved.key_groups, now.key_groups),
        ("number of shuffle partitions", saved.partitions, now.partitions),
    ]
    for what, before, after in fixed:
        if before != after:
            raise CheckpointError(
                f"the checkpoints in {place!r} were taken with different values of the {what}: {before} then, "
                f"{after} now; "
                "a Spark checkpoint fixes it, so use the previous value, or another directory"
            )
