"""Has processes try inputs, replaces those that die or hang, and counts what became of the inputs."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

SUPPORT = Path(__file__).parents[1]
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
_PATHS = [str(SUPPORT), str(SUPPORT.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
STARTS_WITHIN_S = 120.0
UNMADE = "unmade"
FINE = ("taken", "refused", UNMADE)
_MASKED = re.compile(r"'[^']*'|\"[^\"]*\"|/[^\s,;:]*|[-+]?\d[\d.,]*|\b(?=\w*\d)\w+\b")


@dataclass(frozen=True, slots=True)
class Input:
    """One input: its format and seed, and of how many changes at most."""

    format: str
    seed: int
    most: int | None = None

    def __str__(self) -> str:
        return f"{self.format} {self.seed}" + ("" if self.most is None else f" {self.most}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an input.

    Attributes:
        kind: taken or refused, which is fine; unmade, when one of its changes left nothing for the next one to change;
            wrong, raised, touched, memory, died or hung.
        text: the error, or what is wrong.
        seconds, grown_mb: that it took.
        story: what was changed in it.
    """

    tried: Input
    kind: str
    text: str
    seconds: float = 0.0
    grown_mb: float = 0.0
    story: Sequence[str] = ()

    @property
    def fine(self) -> bool:
        return self.kind in FINE

    @property
    def masked(self) -> str:
        """The text without its values."""
        return f"{self.kind}: {_MASKED.sub('*', self.text)[:160]}"

    def __str__(self) -> str:
        changes = "; ".join(self.story)
        return f"{self.tried}: {self.kind}: {self.text}" + (f"\n    after {changes}" if changes else "")


class Process:
    """A worker, which is started anew whenever it has gone.

    Args:
        shared: a folder for the real files that all processes change copies of.
        deadline_s: an input that takes longer hangs.
        hole: a defect that is planted into it; see `holes`.
    """

    def __init__(self, shared: Path, deadline_s: float, hole: str = "") -> None:
        self._shared = shared
        self._deadline_s = deadline_s
        self._hole = hole
        self._running: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="workbench-fuzz-", dir=MEMORY)
        self._number = 0
        self._heard = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._folder.cleanup()

    def tried(self, item: Input) -> Outcome:
        """What becomes of an input."""
        running = self._started()
        assert running.stdin is not None
        running.stdin.write(f"{item.format} {item.seed} {'-' if item.most is None else item.most}\n".encode())
        running.stdin.flush()
        if self._answer(running, STARTS_WITHIN_S) != "made":
            self._end(kill=True)
            return Outcome(item, UNMADE, f"the input cannot be made: {self._last_words()}")
        answer = self._answer(running, self._deadline_s)
        if answer is None:
            return Outcome(item, "hung", f"no answer within {self._deadline_s:g} s: {self._last_words()}")
        if not answer:
            status = running.wait()
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            return Outcome(item, "died", f"the process died ({name}): {self._last_words()}")
        told: dict[str, Any] = json.loads(answer)
        return Outcome(item, told["outcome"], told["text"], told["seconds"], told["grown_mb"], told["story"])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._running is not None:
            return self._running
        self._number += 1
        place = Path(self._folder.name) / str(self._number)
        place.mkdir()
        with self._errors.open("wb") as errors:
            running = self._running = subprocess.Popen(
                [
                    sys.executable,
                    "-B",
                    "-m",
                    "fuzz.worker",
                    str(place),
                    str(self._shared),
                    str(self._deadline_s),
                    self._hole,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS), "TMPDIR": str(place)},
            )
        self._heard = b""
        if self._answer(running, STARTS_WITHIN_S) != "ready":
            raise RuntimeError(f"a worker does not start: {self._last_words()}")
        return running

    def _answer(self, running: subprocess.Popen[bytes], within_s: float) -> str | None:
        """A line; None if none came in time, empty if the process has gone."""
        assert running.stdout is not None
        until = time.monotonic() + within_s
        while b"\n" not in self._heard:
            left_s = max(0.0, until - time.monotonic())
            if not select.select([running.stdout], [], [], left_s)[0]:
                self._end(kill=True)
                return None
            piece = os.read(running.stdout.fileno(), 1 << 16)
            if not piece:
                self._end()
                return ""
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    @property
    def _errors(self) -> Path:
        return Path(self._folder.name) / f"errors-{self._number}"

    def _last_words(self) -> str:
        text = self._errors.read_text(encoding="utf-8", errors="replace")
        text = text.partition("Extension modules:")[0].partition("nanobind:")[0]
        lines = text.splitlines()
        return " | ".join(line.strip() for line in lines if line.strip())[-1_500:] or "it said nothing"

    def _end(self, *, kill: bool = False) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        assert running.stdin is not None
        assert running.stdout is not None
        if kill:
            running.kill()
        with suppress(BrokenPipeError):
            running.stdin.close()
        running.wait()
        running.stdout.close()


@dataclass(slots=True)
class Count:
    """What was seen of one format's inputs."""

    kinds: Counter[str] = field(default_factory=Counter)
    errors: set[str] = field(default_factory=set)
    slowest_s: float = 0.0
    peak_mb: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        if outcome.kind != "taken":
            self.errors.add(outcome.masked)
        self.slowest_s = max(self.slowest_s, outcome.seconds)
        self.peak_mb = max(self.peak_mb, outcome.grown_mb)

    @property
    def inputs(self) -> int:
        return self.kinds.total()

    @property
    def findings(self) -> int:
        return self.inputs - sum(self.kinds[kind] for kind in FINE)


@dataclass(slots=True)
class Report:
    """What became of all inputs.

    Attributes:
        counts: by format.
        found: the first input of each kind of finding, made small, by its masked text.
    """

    counts: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    found: dict[tuple[str, str], Outcome] = field(default_factory=dict)

    def table(self) -> str:
        """The figures, a line for each format."""
        heads = ("format", "inputs", "taken", "refused", UNMADE, "findings", "distinct errors", "slowest s", "peak MB")
        rows = [
            (name, count.inputs, count.kinds["taken"], count.kinds["refused"],
             count.kinds[UNMADE], count.findings, len(count.errors),
             f"{count.slowest_s:.2f}", f"{count.peak_mb:.0f}")
            for name, count in sorted(self.counts.items())
        ]  # fmt: skip
        slowest = max((count.slowest_s for count in self.counts.values()), default=0.0)
        peak = max((count.peak_mb for count in self.counts.values()), default=0.0)
        total = ("all", *(sum(int(row[at]) for row in rows) for at in range(1, 7)), f"{slowest:.2f}", f"{peak:.0f}")
        cells = [[str(cell) for cell in row] for row in (heads, *rows, total)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        )


def inputs(shares: Mapping[str, int], count: int, first_seed: int) -> Iterator[Input]:
    """So many inputs, of the formats by their shares, one after the other."""
    order = [name for name, share in sorted(shares.items()) for _ in range(share)]
    seeds = dict.fromkeys(shares, first_seed)
    for number in range(count):
        name = order[number * _STRIDE % len(order)]
        yield Input(name, seeds[name])
        seeds[name] += 1


_STRIDE = 10_007
"""A prime: formats take turns, however large their shares are."""


def fuzz(items: Iterable[Input], *, processes: int, deadline_s: float, hole: str = "") -> Report:
    """Try inputs in several processes at once.

    Args:
        items: to be tried.
        processes: at a time.
        deadline_s: an input that takes longer hangs.
        hole: a planted defect.
    """
    report, left, lock = Report(), iter(items), threading.Lock()
    problems: list[BaseException] = []
    shared = tempfile.TemporaryDirectory(prefix="workbench-fuzz-", dir=MEMORY)

    def work() -> None:
        try:
            with Process(Path(shared.name), deadline_s, hole) as process:
                while True:
                    with lock:
                        item = next(left, None)
                    if item is None or problems:
                        return
                    outcome = process.tried(item)
                    key = item.format, outcome.masked
                    with lock:
                        report.counts[item.format].add(outcome)
                        new = not outcome.fine and key not in report.found
                        if new:
                            report.found[key] = outcome
                    if new:
                        small = smaller(process, outcome)
                        with lock:
                            report.found[key] = small
        except BaseException as error:  # noqa: BLE001  raised below, by the thread that waits
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.cleanup()
    if problems:
        raise problems[0]
    return report


def smaller(process: Process, outcome: Outcome) -> Outcome:
    """The same finding with as few changes as show it."""
    for most in range(len(outcome.story)):
        again = process.tried(Input(outcome.tried.format, outcome.tried.seed, most))
        if again.masked == outcome.masked:
            return again
    return outcome
