"""The folder of a headless run, and what a later run finds in it: nothing, a run to resume, or one that is finished."""

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
    """Where a run keeps everything.

    Attributes:
        root: the folder that the person names.
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
        """Whether the run came to the end of the history."""
        return (self.root / FINISHED).exists()

    @property
    def is_begun(self) -> bool:
        """Whether there is something of a former run."""
        return self.checkpoints.exists() or self.output.exists()

    def clean(self) -> None:
        """Remove what a run has written; the history stays.

        The mark of a finished run goes last: whoever is cut off here leaves a folder that the next run cleans again,
        instead of checkpoints whose output is gone.

        Raises:
            CheckpointError: a job is running here.
        """
        if self.checkpoints.exists():
            DirectoryStorage(self.checkpoints).close()  # refuses while another process holds it
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
        """Remember that the run came to its end; without the mark the next run resumes this one, and finds nothing left
        to do."""
        draft = self.root / f".{FINISHED}"
        draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.root / FINISHED)
