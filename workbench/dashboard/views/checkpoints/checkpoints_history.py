"""The history of checkpoints, as Flink's tab *History* has it, and what every subtask did for the chosen one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, table
from workbench.dashboard.views.checkpoints import checkpoints_overview as overview
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame
from workbench.telemetry.frames import Frame

LISTED = 100
"""Subtasks of an operator that are listed; the sums are of all."""
STATES = {"COMPLETED": ("good", "✓ Completed"), "FAILED": ("bad", "✗ Failed"), "IN_PROGRESS": ("warn", "… In Progress")}
HEADS = (
    "ID", "Status", "Acknowledged", "Trigger Time", "Latest Acknowledgement", "End to End Duration",
    "Checkpointed Data Size", "Full Checkpoint Data Size", "Processed (persisted) in-flight data",
)  # fmt: skip


def html(frame: Frame, chosen: int | None, *, inside: bool = False, choosable: bool = True) -> str:
    """All checkpoints that are remembered, newest first.

    Args:
        chosen: the number of the one that somebody wants to see.
        inside: its subtasks stand below its row.
        choosable: a click on a row, or its button, chooses it.
    """
    if not frame.checkpoints:
        return none("No checkpoint was taken.")
    rows = []
    for checkpoint in reversed(frame.checkpoints):
        rows.append(_row(checkpoint, checkpoint.id == chosen, choosable))
        if inside and checkpoint.id == chosen:
            rows.append(f"<tr class='inside'><td colspan='{len(HEADS)}'>{details_html(checkpoint)}</td></tr>")
    return table(HEADS, rows, _NUMBERS)


def _row(checkpoint: CheckpointFrame, chosen: bool, choosable: bool) -> str:
    colour, state = STATES[checkpoint.state]
    why = f" title='{wording.html_text(checkpoint.reason)}'" if checkpoint.reason else ""
    kind = "" if checkpoint.kind == "periodic" else f" [{checkpoint.kind.capitalize()}]"
    mark = " class='chosen'" if chosen else ""
    number = overview.chooser(checkpoint, pressed=chosen) if choosable else str(checkpoint.id)
    choice = f" data-choose='{checkpoint.id}'" if choosable else ""
    return (
        f"<tr{choice}{mark}><td>{number}</td><td class='{colour}'{why}>{state}{kind}</td>"
        f"<td>{acknowledged(checkpoint.acknowledged, checkpoint.total)}</td>"
        f"<td>{_time(checkpoint.triggered_us)}</td><td>{_time(checkpoint.latest_acknowledgement_us)}</td>"
        f"<td class='n'>{wording.milliseconds(checkpoint.end_to_end_ms)}</td>"
        f"<td class='n'>{wording.size(checkpoint.size_bytes)}</td>"
        f"<td class='n'>{wording.size(checkpoint.full_size_bytes)}</td>"
        f"<td class='n'>{_pair(checkpoint.processed_bytes, checkpoint.persisted_bytes)}</td></tr>"
    )


# the subtasks of one ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of every subtask.

    Attributes:
        head: what Flink calls it.
        of: the figure, or a second one in brackets behind it; None where it is not known.
        show: writes one.
        whole: what an operator has of its subtasks: None where that would say nothing.
    """

    head: str
    of: tuple[Callable[[SubtaskCheckpointFrame], float | None], ...]
    show: Callable[[float | None], str]
    whole: Callable[[Sequence[float]], float] | None = None

    def shown(self, task: SubtaskCheckpointFrame) -> list[str]:
        """What it is for one subtask; nothing before that has acknowledged."""
        return [self.show(of(task) if task.acknowledged else None) for of in self.of]


COLUMNS = (
    Column("End to End Duration", (lambda task: task.end_to_end_ms,), wording.milliseconds, max),
    Column("Checkpointed Data Size", (lambda task: task.size_bytes,), wording.size, sum),
    Column("Full Checkpoint Data Size", (lambda task: task.full_size_bytes,), wording.size, sum),
    Column("Sync Duration", (lambda task: task.sync_ms,), wording.milliseconds),
    Column("Async Duration", (lambda task: task.async_ms,), wording.milliseconds),
    Column(
        "Processed (persisted) Data", (lambda task: task.processed_bytes, lambda task: task.persisted_bytes),
        wording.size, sum,
    ),
    Column("Alignment Duration", (lambda task: task.alignment_ms,), wording.milliseconds),
    Column("Start Delay", (lambda task: task.start_delay_ms,), wording.milliseconds),
)  # fmt: skip
SUBTASK_HEADS = ("ID", "Acknowledged", "Latest Acknowledgement", *(column.head for column in COLUMNS), "Unaligned")
_NUMBERS = (*HEADS[5:], *(column.head for column in COLUMNS))
SUMMARIES: tuple[tuple[str, Callable[[Sequence[float]], float]], ...] = (
    ("Minimum", min), ("Average", lambda numbers: sum(numbers) / len(numbers)), ("Maximum", max),
)  # fmt: skip


def by_operator(checkpoint: CheckpointFrame) -> dict[str, list[SubtaskCheckpointFrame]]:
    """Its subtasks by the name of their vertex, in the order of the plan."""
    found: dict[str, list[SubtaskCheckpointFrame]] = {}
    for task in checkpoint.subtasks:
        found.setdefault(task.task.rpartition("[")[0] or task.task, []).append(task)
    return found


def details_html(checkpoint: CheckpointFrame | None) -> str:
    """What is known of one checkpoint, and of its subtasks by operator."""
    if checkpoint is None:
        return none("No subtask has taken a snapshot.")
    whole = "" if checkpoint.state != "COMPLETED" else _yes(checkpoint.size_bytes == checkpoint.full_size_bytes)
    where = overview.path(checkpoint.path) if checkpoint.state == "COMPLETED" else wording.NOTHING
    facts = [
        ("Path", where), ("Discarded", _yes(checkpoint.discarded)), ("Checkpoint Type", overview.kind(checkpoint)),
        ("Full Checkpoint", whole or wording.NOTHING),
    ]  # fmt: skip
    if checkpoint.reason:
        facts.append(("Failure Message", f"<span class='bad'>{wording.html_text(checkpoint.reason)}</span>"))
    told = " · ".join(f"<span class='muted'>{name}</span> {value}" for name, value in facts)
    rows = (_operator(name, tasks, checkpoint) for name, tasks in by_operator(checkpoint).items())
    return f"<p class='facts'><b>#{checkpoint.id}</b> {told}</p>{table(SUBTASK_HEADS, rows, _NUMBERS)}"


def _operator(name: str, tasks: Sequence[SubtaskCheckpointFrame], checkpoint: CheckpointFrame) -> str:
    done = [task for task in tasks if task.acknowledged]
    latest = max((task.end_to_end_ms for task in done if task.end_to_end_ms is not None), default=None)
    unaligned = sum(task.unaligned for task in tasks)
    rows = [
        f"<tr class='task'><th title='{wording.html_text(name)}'>{wording.html_text(name)}</th>"
        f"<td>{acknowledged(len(done), len(tasks))}</td><td>{_after(checkpoint, latest)}</td>"
        f"{''.join(_figures(column, done, column.whole) for column in COLUMNS)}<td>{unaligned}/{len(tasks)}</td></tr>"
    ]
    if len(tasks) > 1:
        rows += [
            f"<tr class='sum'><td>{title}</td><td></td><td></td>"
            f"{''.join(_figures(column, done, of) for column in COLUMNS)}<td></td></tr>"
            for title, of in SUMMARIES
        ]
    for place, task in enumerate(tasks[:LISTED]):
        number = task.task.rpartition("[")[2].removesuffix("]") if "[" in task.task else str(place)
        figures = "".join(f"<td class='n'>{_together(column.shown(task))}</td>" for column in COLUMNS)
        rows.append(
            f"<tr><td>{wording.html_text(number)}</td><td>{'✓' if task.acknowledged else wording.NOTHING}</td>"
            f"<td>{_after(checkpoint, task.end_to_end_ms)}</td>{figures}<td>{_yes(task.unaligned)}</td></tr>"
        )
    if len(tasks) > LISTED:
        rows.append(f"<tr class='sum'><td colspan='3'>and {len(tasks) - LISTED} more</td></tr>")
    return "".join(rows)


def _figures(
    column: Column, tasks: Sequence[SubtaskCheckpointFrame], summed: Callable[[Sequence[float]], float] | None
) -> str:
    if summed is None:
        return "<td></td>"
    shown = []
    for of in column.of:
        known = [number for task in tasks if (number := of(task)) is not None]
        shown.append(column.show(summed(known) if known else None))
    return f"<td class='n'>{_together(shown)}</td>"


def acknowledged(done: int, total: int) -> str:
    """``2/6 (33 %)``; all of them without the share."""
    return f"{done}/{total}" + (f" ({wording.percent(done / total)})" if done < total else "")


def _together(shown: Sequence[str]) -> str:
    return shown[0] + "".join(f" ({more})" for more in shown[1:])


def _pair(processed: float | None, persisted: float | None) -> str:
    return _together([wording.size(processed), wording.size(persisted)])


def _after(checkpoint: CheckpointFrame, ms: float | None) -> str:
    return _time(None if ms is None else checkpoint.triggered_us + round(ms * 1_000))


def _time(us: int | None) -> str:
    """The time of day; the whole of it when the pointer rests on it."""
    return wording.NOTHING if us is None else f"<span title='{wording.instant(us)} UTC'>{wording.moment(us)}</span>"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
