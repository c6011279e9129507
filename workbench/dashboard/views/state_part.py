"""State as a part of the dashboard: how many keys an operator holds, the top ones among them, and the value of one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import column, none, scrolled, table
from workbench.dashboard.contract.actions import Answer, button, choice, field, group, offer
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.frames import Frame

LOOKED_AT = 200
"""Keys of each subtask that are ranked."""
LISTED, LISTED_ALONE = 8, 40
EVERY_S = 2.0

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """What an operator holds: how many keys, and some of them with their values."""

    size: int
    items: tuple[tuple[Value, Value | None], ...]


def keyed(frame: Frame) -> list[str]:
    """The operators whose input is spread by key, so that they may hold state by key."""
    return [operator.uid for operator in frame.operators if any(item.exchange == "hash" for item in operator.inputs)]


def figures(value: Value | None) -> dict[str, float]:
    """The numbers in a value by name; of a key's windows those of the latest one."""
    if value is None:
        return {}
    windows = value.get("windows")
    if isinstance(windows, Sequence) and windows and isinstance(windows[-1], Mapping):
        return {**figures(windows[-1]), "windows": float(len(windows))}
    return {
        name: float(number)
        for name, number in value.items()
        if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    }


def top(held: Held, by: str) -> list[tuple[Value, Value | None]]:
    """The items with the greatest number `by` first; those without it last."""
    return sorted(held.items, key=lambda item: -figures(item[1]).get(by, float("-inf")))


def sizes(frame: Frame, operator: str) -> list[tuple[str, int]]:
    """Bytes of each subtask that holds the operator in the last complete checkpoint (its whole chain's)."""
    home = next((o.vertex for o in frame.operators if o.uid == operator), None)
    names = {task.name for task in frame.tasks if task.vertex == home}
    known = sorted((*frame.earlier, *frame.checkpoints), key=lambda checkpoint: checkpoint.id)
    done = [checkpoint for checkpoint in known if checkpoint.state == "COMPLETED"]
    return [(task.task, task.size_bytes) for task in done[-1].subtasks if task.task in names] if done else []


def html(held: Held, by: str, most: int) -> str:
    """The top keys as a table."""
    if not held.items:
        return none("The operator holds no keys.")
    lines = []
    for key, value in top(held, by)[:most]:
        number = figures(value).get(by)
        lines.append(
            f"<tr><th>{wording.html_text(wording.plain(_key(key), 80))}</th>"
            f"<td class='n'>{wording.NOTHING if number is None else wording.html_text(wording.number(number))}</td>"
            f"<td title='{wording.html_text(written(value, 600))}'>{wording.html_text(written(value, 120))}</td></tr>"
        )
    rank = wording.html_text(wording.plain(by, 40) if by else "")
    return table(("key", rank, "value"), lines, (rank,))


def summary(frame: Frame, operator: str, held: Held) -> str:
    """Keys and sizes in one line."""
    told = sizes(frame, operator)
    total = sum(size for _, size in told)
    parts = ", ".join(f"{wording.html_text(task)} {wording.size(size)}" for task, size in told[:6])
    more = f" and {len(told) - 6} more" if len(told) > 6 else ""
    looked = f" ({len(held.items):,} of them ranked)" if len(held.items) < held.size else ""
    checkpointed = f" · {wording.size(total)} checkpointed: {parts}{more}" if told else " · no checkpoint"
    return f"<p><b>{held.size:,}</b> keys{looked}{checkpointed}</p>"


def written(value: Value | None, letters: int) -> str:
    """A value in words: ``n=3, mean=1.5``; of a key's windows each with its times, the latest first."""
    if value is None:
        return "null"
    windows = value.get("windows")
    if isinstance(windows, Sequence) and not isinstance(windows, str) and all(isinstance(w, Mapping) for w in windows):
        return wording.plain(" · ".join(written(window, letters) for window in reversed(windows)), letters)
    start, end = value.get("window_start"), value.get("window_end")
    if isinstance(start, datetime) and isinstance(end, datetime):
        rest = {name: item for name, item in value.items() if name not in ("window_start", "window_end")}
        upto = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
        return wording.plain(f"{written(rest, letters)} from {start:%Y-%m-%d %H:%M:%S} to {upto}", letters)
    parts = []
    for name, item in value.items():
        if isinstance(item, datetime):
            item = f"{item:%Y-%m-%d %H:%M:%S}"
        elif isinstance(item, float):
            item = f"{item:.6g}"
        parts.append(f"{name}={wording.plain(item, letters)}")
    return wording.plain(", ".join(parts), letters)


def _key(key: Value) -> object:
    return next(iter(key.values())) if len(key) == 1 else key


class StatePart(Part):
    """One operator at a time; it asks the running operator every two seconds, off the pump."""

    hint = "keyed state, queried while the job runs"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._asked_at = -EVERY_S
        self._frame: Frame | None = None
        self._held: Held | None = None
        self._most = LISTED_ALONE if easel.alone else LISTED
        self.operator, self.by = choice("Operator", 110), choice("Rank keys by", 90)
        self.key = field("Key to look up", "key", 70)
        self.look = button("Value of key", self._look_up, "Look up the current value of this key")
        self._answer = Answer("the look-up", easel.texts, easel.background)
        self._summary = easel.texts.piece("Keys and sizes", "state")
        self._table = easel.texts.piece("Top keys", "state")
        self._value = easel.texts.piece("Value of the key", "state_value")
        self.operator.on_change("value", lambda _attribute, _old, _new: self._forget())
        self.by.on_change("value", lambda _attribute, _old, _new: self._show())
        self.models = [
            column([
                group(self.operator, self.by, self.key, self.look),
                self._summary.div, self._answer.div, scrolled(self._value.div, 120 if easel.alone else 54),
            ]),
            scrolled(self._table.div, 600 if easel.alone else 170),
        ]  # fmt: skip
        self.inputs = (self.operator, self.by, self.key)

    def update(self, frame: Frame) -> None:
        self._frame = frame
        self._answer.update()
        offer(self.operator, keyed(frame))
        if not self.operator.options:
            self._summary.write(none("No operator of this job keeps keyed state."))
            return
        if frame.state in OVER and self._held is None:
            self._summary.write(none("The job has ended, so its state can no longer be queried."))
        if frame.state == "RUNNING" and monotonic() - self._asked_at >= EVERY_S and self.easel.runs_live():
            self._ask()

    def _ask(self) -> None:
        job, uid = self.easel.job, self.operator.value
        self._asked_at = monotonic()

        def held() -> Held:
            state = job.operator_state(uid)
            return Held(state.size(), tuple(state.items(LOOKED_AT)))

        def told(result: Held | None, problem: str | None) -> None:
            if uid != self.operator.value:
                return
            if result is None:
                self._summary.write(none(wording.html_text(problem)))
                return
            self._held = result
            self._show()

        self.easel.background.run("state", held, told)

    def _look_up(self) -> None:
        job, uid, text = self.easel.job, self.operator.value, self.key.value
        try:
            words = shlex.split(text)
        except ValueError:
            words = [text]
        if not words or not uid:
            self._answer.refuse(
                "enter a key in the field beside the button, and put a value that contains spaces in quotes"
            )
            return

        def found(value: Value | None) -> None:
            shown = "no value for this key" if value is None else written(value, 4000)
            self._value.write(f"<p><b>{wording.html_text(wording.plain(text, 80))}</b> {wording.html_text(shown)}</p>")

        self._answer.ask_slowly("look-up", lambda: job.operator_state(uid).get(*words), "found", found)

    def _forget(self) -> None:
        self._held, self._asked_at = None, -EVERY_S
        self._table.write("")

    def _show(self) -> None:
        if self._held is None or self._frame is None:
            return
        names = list(dict.fromkeys(name for _, value in self._held.items for name in figures(value)))
        offer(self.by, names)
        self._summary.write(summary(self._frame, self.operator.value, self._held))
        self._table.write(html(self._held, self.by.value, self._most))
