"""A checkpoint in progress: where its barrier is on every channel, what is before and behind it, what is held back."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none, table
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import ChannelFrame, Frame

LISTED = 24


@dataclass(frozen=True, slots=True)
class Cut:
    """One channel under a checkpoint.

    Attributes:
        source, target: the sending and the receiving task.
        before, behind: records queued before the barrier (they belong to the checkpoint) and behind it.
        on_channel: the barrier is queued on it now.
        held_us: how long alignment has held the channel back; None where it does not.
        words: where the barrier is, such as ``behind 2 buffers``.
    """

    source: str
    target: str
    before: int
    behind: int
    on_channel: bool
    held_us: int | None
    words: str


def in_progress(frame: Frame) -> CheckpointFrame | None:
    """The newest checkpoint that is under way."""
    return next((c for c in reversed(frame.checkpoints) if c.state == "IN_PROGRESS"), None)


def cuts(frame: Frame) -> tuple[Cut, ...]:
    """Every channel under the checkpoint in progress; none when there is no such checkpoint."""
    checkpoint = in_progress(frame)
    if checkpoint is None:
        return ()
    taken = {task.task for task in checkpoint.subtasks if task.start_delay_ms is not None}
    return tuple(_cut(channel, checkpoint.id, frame.time_us, taken) for channel in frame.channels)


def _cut(channel: ChannelFrame, checkpoint: int, now_us: int, taken: set[str]) -> Cut:
    queued = channel.queued_records
    before, behind, words, on_channel, held = queued, 0, "not sent yet", False, None
    if channel.finished:
        words = "finished: takes no part"
    elif checkpoint in channel.barriers:
        place = channel.barriers.index(checkpoint)
        before = channel.barrier_records[place] if place < len(channel.barrier_records) else queued
        behind = max(0, queued - before)
        buffers = channel.barrier_buffers[place] if place < len(channel.barrier_buffers) else 0
        words = f"behind {wording.count(buffers)} {'buffer' if buffers == 1 else 'buffers'}"
        on_channel = True
    elif channel.blocked:
        held = max(0, now_us - channel.blocked_us) if channel.blocked_us is not None else 0
        before, behind, words = 0, queued, f"held back for {wording.milliseconds(held / 1000)}"
    elif channel.target in taken:
        before, behind, words = 0, queued, "snapshot taken"
    return Cut(channel.source, channel.target, before, behind, on_channel, held, words)


def html(frame: Frame, most: int = LISTED) -> str:
    """The cut as a table: before the barrier, the barrier, behind it; held channels and full ones first."""
    checkpoint = in_progress(frame)
    if not frame.channels:
        return none("This job has no channels for barriers to pass through.")
    if checkpoint is None:
        return _waiting_html(frame, most)
    found = sorted(cuts(frame), key=lambda cut: (cut.held_us is None, not cut.on_channel, -(cut.before + cut.behind)))
    widest = max((cut.before + cut.behind for cut in found), default=0) or 1
    lines = []
    for cut in found[:most]:
        colour = " class='held'" if cut.held_us is not None else ""
        lines.append(
            f"<tr{colour}><td>{_channel(cut.source, cut.target)}</td>"
            f"<td class='cut'>{_bar(cut, widest)}</td>"
            f"<td class='n'>{wording.short(cut.before)} | {wording.short(cut.behind)}</td>"
            f"<td title='{wording.html_text(cut.words)}'>{wording.html_text(cut.words)}</td></tr>"
        )
    return _table(f"#{checkpoint.id}", "pre | post", lines, len(found) - most)


def _waiting_html(frame: Frame, most: int) -> str:
    """The queues alone, in as many lines, so that nothing jumps when a checkpoint begins and ends."""
    widest = max(channel.queued_records for channel in frame.channels) or 1
    lines = [
        f"<tr><td>{_channel(channel.source, channel.target)}</td>"
        f"<td class='cut'><span class='queue'><i style='width:{100 * channel.queued_records / widest:.0f}%'></i></span>"
        f"</td><td class='n'>{wording.short(channel.queued_records)}</td><td class='muted'>none in progress</td></tr>"
        for channel in frame.channels[:most]
    ]
    return _table("queue", "records", lines, len(frame.channels) - most)


def _table(cut: str, records: str, lines: list[str], left: int) -> str:
    rest = f"<p class='muted'>and {left} more channels</p>" if left > 0 else ""
    return table(("channel", cut, records, "barrier"), lines, (records,)) + rest


def _channel(source: str, target: str) -> str:
    """Both tasks; where there is not enough room their names are cut, and not the subtasks behind them."""
    ends = []
    for task in (source, target):
        begin = max(0, task.rfind("["))
        ends.append(f"<i>{wording.html_text(task[:begin])}</i><span>{wording.html_text(task[begin:])}</span>")
    title = wording.html_text(f"{source} → {target}")
    return f"<div class='channel' title='{title}'>{'<span> → </span>'.join(ends)}</div>"


def _bar(cut: Cut, widest: int) -> str:
    """The queue as a bar whose right end is the receiver's: records before the barrier are nearest to it."""
    before, behind = (100 * part / widest for part in (cut.before, cut.behind))
    gate = cut.held_us is not None or cut.on_channel
    return (
        f"<span class='queue'><i class='behind' style='width:{behind:.0f}%'></i>"
        f"{'<b>▮</b>' if gate else ''}<i class='before' style='width:{before:.0f}%'></i></span>"
    )
