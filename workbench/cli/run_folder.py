"""The folder of a headless run. A later run finds it empty, with a run to resume, or with a finished run."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import CheckpointError
from workbench.runtime.storage import DirectoryStorage

FINISHED = "finished.json"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of all files of a run.

    Attributes:
        root: the folder given by ``--directory``.
    """

    root: Path

    @property
    def history(self) -> Path:
        """The replay log; written once, used by every run."""
        return self.root / "flights.log"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def output(self) -> Path:
        """Committed rows, as Parquet files."""
        return self.root / "delays"

    @property
    def is_finished(self) -> bool:
        """Whether the run reached the end of the history."""
        return (self.root / FINISHED).exists()

    @property
    def is_begun(self) -> bool:
        """Whether there are files of an earlier run."""
        return self.checkpoints.exists() or self.output.exists()

    def clean(self) -> None:
        """Remove the files of a run, but not the history.

        The mark of a finished run is removed last. If this is interrupted, the next run cleans the folder again instead
        of resuming from checkpoints without their output.

        Raises:
            CheckpointError: a job is running here.
        """
        if self.checkpoints.exists():
            DirectoryStorage(self.checkpoints).close()  # raises while another process owns it
        mark = self.root / FINISHED
        mark.touch()
        for folder in (self.output, self.checkpoints):
            if folder.exists():
                shutil.rmtree(folder)
        mark.unlink()

    def create(self) -> None:
        """Create the folder.

        Raises:
            CheckpointError: it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"cannot create {self.root}: {error.strerror}; choose another --directory") from error
        if not os.access(self.root, os.W_OK):
            raise CheckpointError(f"cannot write to {self.root}: choose another --directory")

    def mark_finished(self, **facts: float | int | str) -> None:
        """Mark the run as finished; without the mark, the next run would resume it and find nothing to do."""
        draft = self.root / f".{FINISHED}"
        draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.root / FINISHED)
