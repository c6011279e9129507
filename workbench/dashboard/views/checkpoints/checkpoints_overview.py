"""The latest checkpoints, as Flink's tab *Overview* has them: counts, and the latest of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.sources import whole_of
from workbench.runtime.barriers.policies import POLICIES
from workbench.runtime.barriers.unaligned import UNALIGNED
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import Frame

Fact = tuple[str, str]
"""What it is called, and its value as HTML."""


def html(frame: Frame, *, choosable: bool = True) -> str:
    """Five groups of facts; `choosable`: a number is a button that chooses its checkpoint."""
    known = sorted((*frame.earlier, *frame.checkpoints), key=lambda checkpoint: checkpoint.id)
    return "".join(
        _group(title, facts)
        for title, facts in (
            ("Checkpoint Counts", counts(frame)),
            ("Latest Completed Checkpoint", _completed(_latest(known, "COMPLETED", savepoint=False), choosable)),
            ("Latest Failed Checkpoint", _failed(_latest(known, "FAILED"), choosable)),
            ("Latest Savepoint", _completed(_latest(known, "COMPLETED", savepoint=True), choosable)),
            ("Latest Restore", _restored(frame)),
        )
    )


def counts(frame: Frame) -> list[Fact]:
    """How many there were since the job, or the master that took over, began."""
    names = ("InProgress", "Completed", "Failed")
    running, completed, failed = (whole_of(frame.metrics, f"numberOf{name}Checkpoints") for name in names)
    told = [number for number in (running, completed, failed) if number is not None]
    return [
        ("Triggered", wording.count(sum(told) if told else None)), ("In Progress", wording.count(running)),
        ("Completed", wording.count(completed)), ("Failed", wording.count(failed)),
        ("Restored", wording.count(whole_of(frame.metrics, "numberOfRestores"))),
    ]  # fmt: skip


def chooser(checkpoint: CheckpointFrame, *, pressed: bool | None = None) -> str:
    """The number of a checkpoint as a button; `pressed`: whether it is the one that is shown, where that is marked."""
    state = "" if pressed is None else f" aria-pressed='{str(pressed).lower()}'"
    return f"<button type='button' title='Show its subtasks'{state}>{checkpoint.id}</button>"


def _latest(known: Sequence[CheckpointFrame], state: str, *, savepoint: bool | None = None) -> CheckpointFrame | None:
    found = (c for c in reversed(known) if c.state == state and savepoint in (None, c.kind == "savepoint"))
    return next(found, None)


def _completed(checkpoint: CheckpointFrame | None, choosable: bool) -> list[Fact]:
    if checkpoint is None:
        return []
    return [
        ("ID", _number(checkpoint, choosable)), ("Completion Time", wording.instant(checkpoint.ended_us)),
        ("End to End Duration", wording.milliseconds(checkpoint.end_to_end_ms)),
        ("Checkpointed Data Size", wording.size(checkpoint.size_bytes)),
        ("Full Checkpoint Data Size", wording.size(checkpoint.full_size_bytes)),
        ("Checkpoint Type", kind(checkpoint)), ("Path", path(checkpoint.path)),
    ]  # fmt: skip


def _failed(checkpoint: CheckpointFrame | None, choosable: bool) -> list[Fact]:
    if checkpoint is None:
        return []
    return [
        ("ID", _number(checkpoint, choosable)), ("Failure Time", wording.instant(checkpoint.ended_us)),
        ("Cause", f"<span class='bad'>{wording.html_text(checkpoint.reason or wording.NOTHING)}</span>"),
    ]  # fmt: skip


def _restored(frame: Frame) -> list[Fact]:
    restore = frame.restore
    if restore is None:
        return []
    return [
        ("ID", str(restore.id)), ("Restore Time", wording.instant(restore.time_us)),
        ("Type", "Savepoint" if restore.savepoint else "Checkpoint"), ("Path", path(restore.path)),
    ]  # fmt: skip


def kind(checkpoint: CheckpointFrame) -> str:
    """What for, and in which mode: ``Checkpoint, periodic, aligned``."""
    policy = UNALIGNED if checkpoint.unaligned else POLICIES.get(checkpoint.mode)
    mode = checkpoint.mode if policy is None else policy.title
    what = "Savepoint" if checkpoint.kind == "savepoint" else f"Checkpoint, {checkpoint.kind}"
    return wording.html_text(f"{what}, {mode}")


def path(text: str) -> str:
    """Where it is."""
    return wording.html_text(text) if text else "in memory"


def _number(checkpoint: CheckpointFrame, choosable: bool) -> str:
    if not choosable:
        return str(checkpoint.id)
    return f"<span data-choose='{checkpoint.id}'>{chooser(checkpoint)}</span>"


def _group(title: str, facts: Sequence[Fact]) -> str:
    told = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f"<section><h4>{title}</h4>{f'<dl>{told}</dl>' if told else '<p>None</p>'}</section>"
