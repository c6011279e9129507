"""The last late records of every task, in words."""

from __future__ import annotations

from workbench.operators.contract.late_records import KEPT, LateRows
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.functions.dead_letters import as_json, key_text
from workbench.runtime.tasks.task import Task
from workbench.telemetry.frames import LateFrame

EVERY_US = 1_000_000
"""The shortest time between two conversions to text: frames share the result in between, and are kept for minutes."""
KEY_LETTERS, RECORD_LETTERS = 80, 300

_Seen = tuple[tuple[LateRows, ...], ...]


class LateSampler:
    """Describes late records, and caches the descriptions."""

    def __init__(self) -> None:
        self._attempt = -1
        self._told: dict[str, tuple[int, _Seen, tuple[LateFrame, ...]]] = {}

    def begin(self, attempt: int) -> None:
        """Forget an earlier attempt of the job."""
        if attempt != self._attempt:
            self._attempt = attempt
            self._told.clear()

    def sample(self, task: Task, now_us: int) -> tuple[LateFrame, ...]:
        """The last late records of a task, oldest first: up to `KEPT` for each of its operators."""
        seen = tuple(link.counters.late.latest for link in task.links)
        if not any(seen):
            return ()
        at, known, frames = self._told.get(task.name, (None, (), ()))
        same = len(known) == len(seen) and all(old is new for old, new in zip(known, seen, strict=True))
        if same or (at is not None and 0 <= now_us - at < EVERY_US and not task.finished):
            return frames
        frames = tuple(frame for link in task.links for frame in _frames(link.uid, link.counters.late.latest))
        self._told[task.name] = (now_us, seen, frames)
        return frames


def _frames(uid: str, pieces: tuple[LateRows, ...]) -> list[LateFrame]:
    made = []
    for piece in pieces:
        source = " or ".join(piece.senders) or None
        for row, time_us in zip(python_rows(piece.rows), piece.times.tolist(), strict=True):
            values = tuple(row[name] for name in piece.keys)
            key = "" if not values else key_text(values[0] if len(values) == 1 else values)
            record = _cut(as_json(row), RECORD_LETTERS)
            made.append(LateFrame(uid, _cut(key, KEY_LETTERS), time_us, piece.watermark_us, source, record))
    return made[-KEPT:]


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"
