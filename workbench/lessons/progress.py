"""The progress of a learner: one small JSON file next to the notebooks, which can be downloaded and put back."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from workbench.errors import SettingError
from workbench.from_json import made, parsed
from workbench.raised import described

FILE = "course-progress.json"
VERSION = 1
BYTES_MAX = 1_000_000


@dataclass
class Prediction:
    """A prediction, and the measurement of the run.

    Attributes:
        right: None before the run.
    """

    answer: str
    right: bool | None = None


@dataclass
class Checked:
    """The checks of one exercise."""

    attempts: int = 0
    passed: bool = False


@dataclass
class LessonProgress:
    """The progress in one lesson: predictions, hints that were read, and checks, by name."""

    predictions: dict[str, Prediction] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    checks: dict[str, Checked] = field(default_factory=dict)


@dataclass
class Progress:
    """The progress in all lessons, by their numbers."""

    version: int = VERSION
    lessons: dict[str, LessonProgress] = field(default_factory=dict)


class ProgressFile:
    """The progress of a learner on disk.

    Args:
        path: of the file; it need not exist.

    Attributes:
        found: its content.

    Raises:
        SettingError: the file cannot be read, or is not a progress file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = _read(path)

    def of(self, number: str) -> LessonProgress:
        """The progress in a lesson."""
        return self.found.lessons.setdefault(number, LessonProgress())

    def reset(self, number: str) -> None:
        """Delete the progress in a lesson."""
        self.found.lessons.pop(number, None)
        self.save()

    def text(self) -> str:
        """The content of the file."""
        return json.dumps(asdict(self.found), indent=1, sort_keys=True) + "\n"

    def save(self) -> None:
        """Write the file atomically: it has either the old or the new content.

        Raises:
            SettingError: it cannot be written.
        """
        aside = self.path.with_name(f".{self.path.name}.new")
        try:
            aside.write_text(self.text(), encoding="utf-8")
            os.replace(aside, self.path)  # noqa: PTH105
        except OSError as error:
            raise SettingError(
                f"the progress cannot be written to {str(self.path)!r}, {described(error)}: name another file with "
                "wb.lesson(..., progress=...)"
            ) from error


def _read(path: Path) -> Progress:
    try:
        if not path.exists():
            return Progress()
        if path.stat().st_size > BYTES_MAX:
            raise ValueError(f"it has more than {BYTES_MAX:,} bytes")
        found = made(Progress, parsed(path.read_bytes()), ignore_unknown=True)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"the progress in {str(path)!r} cannot be read, {error}: move the file away to start again, or replace "
            "it with a file that you have downloaded"
        ) from error
    return found
