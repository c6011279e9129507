"""A flight recording in a file: the frames of a run as JSON lines, compressed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from workbench.errors import MISSING, SettingError, remedy, told_by
from workbench.from_json import made, parsed
from workbench.raised import first_line_of
from workbench.telemetry.frames import Frame
from workbench.telemetry.whole_file import replaced

FORMAT = "workbench recording"
VERSION = 1
_LINE_MAX = 1 << 26
"""The maximum number of characters of a line; a frame of a thousand tasks has a few million."""


def write_frames(path: Path, job: str, frames: Sequence[Frame]) -> None:
    """Write a recording; its first line identifies the format, the job and the number of frames.

    Raises:
        SettingError: the file cannot be written.
    """
    with replaced(path) as draft, gzip.open(draft, "wt", encoding="utf-8", compresslevel=5) as lines:
        lines.write(json.dumps({"format": FORMAT, "version": VERSION, "job": job, "frames": len(frames)}) + "\n")
        for frame in frames:
            lines.write(json.dumps(frame.to_plain(), ensure_ascii=False, separators=(",", ":")) + "\n")


def read_frames(path: Path) -> tuple[str, tuple[Frame, ...]]:
    """The job's name and the frames of a recording.

    Raises:
        SettingError: the file does not exist, or is not a complete recording.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = _lines(file)
            head = parsed(next(lines, "null"))
            if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("version") != VERSION:
                raise SettingError(f"{str(path)!r} is not a recording of version {VERSION}: see job.recording")
            job, expected = made(str, head.get("job")), made(int, head.get("frames"))
            frames = tuple(made(Frame, parsed(line), ignore_unknown=True) for line in lines)
    except MISSING:
        raise SettingError(f"there is no recording {str(path)!r}: job.recording(path) writes one") from None
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingError(
            f"{str(path)!r} is not a recording, or is damaged ({first_line_of(error)}): write it again"
        ) from error
    except OSError as error:
        raise SettingError(f"the recording {str(path)!r} cannot be read: {told_by(error)}; {remedy(error)}") from error
    if len(frames) != expected:
        raise SettingError(f"{str(path)!r} has {len(frames)} frames instead of {expected}: copy it again")
    return job, frames


def _lines(file: TextIO) -> Iterator[str]:
    """The lines, with a limit on their length: a small file may unpack to more than fits in memory."""
    for line in iter(lambda: file.readline(_LINE_MAX), ""):
        if len(line) == _LINE_MAX:
            raise ValueError(f"a line has more than {_LINE_MAX:,} characters")
        yield line
