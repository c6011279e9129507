"""A process that tries inputs: it reads ``FORMAT SEED MOST`` lines and answers each with a line of JSON.

It may die, hang or grow at any input; whoever started it sees to that.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError

from . import holes
from .formats import FORMATS
from .trial import Format, Trial, WrongResultError
from .watching import Watch, untouched

SPARE_MB = 4_096
"""Addresses that the process may have beyond those that it began with: a bound for whatever asks for all memory."""
_CLEAR_PEAK = "5"


class Worker:
    """Tries inputs in a folder of its own.

    Args:
        place: of its own; ``inside`` there is the folder of the input that is tried, ``outside`` must not be touched.
        shared: by all processes: the real files of each format.
    """

    def __init__(self, place: Path, shared: Path) -> None:
        self._inside, self._outside, self._shared = place / "inside", place / "outside", shared
        for folder in (self._inside, self._outside):
            folder.mkdir()
        (self._outside / "canary").write_bytes(b"nobody reads this\n")
        os.environ["HOME"] = str(self._inside)
        os.chdir(self._inside)
        self._prepared: dict[str, Format] = {}
        self._watch = Watch(self._inside, place, self._outside)

    def made(self, name: str, seed: int, most: int | None = None) -> tuple[Format, Trial, Any]:
        """One input, ready to be read."""
        tried = self._format(name)
        self._clear()
        trial = Trial(name, seed, self._inside, self._outside, most)
        made = tried.make(trial)
        untouched(self._outside)
        return tried, trial, made

    def read(self, tried: Format, trial: Trial, made: Any) -> dict[str, Any]:
        """What became of it."""
        before_mb = _peak_mb(reset=True)
        begun = time.perf_counter()
        with self._watch.watching() as touched:
            outcome, text = _outcome(tried, trial, made)
        seconds = time.perf_counter() - begun
        grown_mb = _peak_mb() - before_mb
        if touched:
            outcome, text = "touched", "; ".join(touched[:5])
        elif grown_mb > tried.memory_mb and outcome in ("taken", "refused"):
            outcome, text = "memory", f"{grown_mb:.0f} MB were needed, at the end of which it was {outcome}: {text}"
        return {
            "outcome": outcome, "text": text, "seconds": seconds, "grown_mb": grown_mb, "story": trial.story,
        }  # fmt: skip

    def _format(self, name: str) -> Format:
        if name not in self._prepared:
            made = FORMATS[name]()
            folder = self._shared / name
            if not folder.exists():
                draft = Path(tempfile.mkdtemp(dir=self._shared))
                made.prepare(draft)
                with suppress(OSError):  # another process was faster
                    draft.rename(folder)
            made.load(folder, self._outside)
            self._prepared[name] = made
            gc.collect()
            gc.freeze()
        return self._prepared[name]

    def _clear(self) -> None:
        for entry in os.scandir(self._inside):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()


def _outcome(tried: Format, trial: Trial, made: Any) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tried.read(trial, made)
    except WorkbenchError as error:
        return "refused", f"{type(error).__name__}: {error}"
    except WrongResultError as error:
        return "wrong", str(error)
    except BaseException as error:  # noqa: BLE001  whatever it is, it is a finding
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/workbench/" in frame.filename]
        place = f"{re.sub('.*/workbench/', '', own[-1].filename)}:{own[-1].lineno}" if own else "?"
        with suppress(Exception):
            return "raised", f"{type(error).__name__} at {place}: {str(error)[:300]}"
        return "raised", f"{type(error).__name__} at {place}"
    return "taken", ""


def _peak_mb(*, reset: bool = False) -> float:
    """The most memory that the process has had at a time, since that was last reset; in MB."""
    if reset:
        Path("/proc/self/clear_refs").write_text(_CLEAR_PEAK, encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1_024  # type: ignore[index]


def _bound_addresses() -> None:
    size = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))[1])  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_AS, ((size + SPARE_MB * 1_024) * 1_024,) * 2)


def main() -> None:
    """``python -m fuzz.worker PLACE SHARED DEADLINE_S HOLE``"""
    place, shared, deadline_s, hole = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed is no answer
    faulthandler.enable()
    if hole:
        getattr(holes, hole)()
    tempfile.gettempdir()  # which tries, once, where it may write
    worker = Worker(place, shared)
    bounded = False

    def tell(line: str) -> None:
        answers.write(f"{line}\n")
        answers.flush()

    tell("ready")
    for line in sys.stdin:
        name, seed, most = line.split()
        made = worker.made(name, int(seed), None if most == "-" else int(most))
        if not bounded:
            _bound_addresses()
            bounded = True
        tell("made")
        faulthandler.dump_traceback_later(deadline_s * 0.9)
        told = worker.read(*made)
        faulthandler.cancel_dump_traceback_later()
        tell(json.dumps(told))


if __name__ == "__main__":
    main()
