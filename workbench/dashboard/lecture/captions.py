"""What each scene of a lecture shows now, in one to three sentences with the figures of a frame."""

from __future__ import annotations

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.sources import number_of, whole_of
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.views.event_time.holders import late_records
from workbench.dashboard.views.latency import percentiles
from workbench.durations import MAX_TIME
from workbench.runtime.barriers.policies import policy_of
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import Frame

EXACT = ". Records behind its barriers are read again, and nothing is committed twice"
"""What a failure does where each record counts once."""


def dataflow(frame: Frame) -> str:
    """How much runs, and how fast."""
    read, received = (_rate(frame, f"numRecords{way}PerSecond") for way in ("In", "Out"))
    tasks = _counted(len(frame.tasks), "task")
    return (
        f"{_counted(len(frame.vertices), 'vertex', 'vertices')} of the graph run as {tasks}. The sources read {read} "
        f"records per second, and the sinks receive {received}. {_escaped(frame.backpressure)}"
    )


def latency(frame: Frame) -> str:
    """The percentiles of latency, and the setting that bounds them."""
    found = percentiles(frame)
    timeout = frame.settings.get("buffer_timeout")
    if timeout == "disabled":
        waits = "A buffer is sent only when it is full, because the buffer timeout is <b>disabled</b>."
    elif timeout == "0ms":
        waits = "Each record is sent immediately, because the buffer timeout is <b>0 ms</b>."
    else:
        waits = f"A buffer waits at most <b>{_escaped(timeout)}</b> for further records: the buffer timeout."
    if found["p50"] is None:
        return f"No latency marker has reached a sink. {waits}"
    p50, p99 = wording.milliseconds(found["p50"]), wording.milliseconds(found["p99"])
    return (
        f"Half of the latency markers reach a sink within <b>{p50}</b>, 99 of 100 within <b>{p99}</b>, at "
        f"{_rate(frame, 'numRecordsInPerSecond')} records per second. {waits}"
    )


def event_time(frame: Frame) -> str:
    """How far event time has come, and what holds it back."""
    receivers = [task for task in frame.tasks if "currentInputWatermark" in task.metrics]
    reached = [(us, task) for task in receivers if (us := whole_of(task.metrics, "currentInputWatermark")) is not None]
    late = sum(late_records(frame).values())
    dropped = f"<b>{wording.count(late)}</b> {'record was' if late == 1 else 'records were'} dropped as late."
    if not reached:
        return f"No watermark has arrived, so no window has fired. {dropped}"
    us, task = min(reached, key=lambda one: one[0])
    if us == MAX_TIME:
        return f"Event time has reached its end: every window has fired. {dropped}"
    holder = f", held back by <b>{_escaped(task.watermarkHolder)}</b>" if task.watermarkHolder else ""
    return (
        f"Event time has reached <b>{wording.instant(us)}</b>{holder}: earlier records are late, and windows that "
        f"end earlier have fired. {dropped}"
    )


def backpressure(frame: Frame) -> str:
    """What holds the job back, and how full its channels are."""
    used = sum(edge.queued_buffers for edge in frame.edges)
    granted = sum(edge.capacity_buffers for edge in frame.edges)
    filled = f"<b>{wording.count(used)}</b> of {wording.count(granted)} buffers between tasks hold records."
    return f"{_escaped(frame.backpressure)} {filled} A task whose buffers are used up takes no input."


def checkpoints(frame: Frame) -> str:
    """The checkpoint in progress, or the latest one."""
    if frame.checkpoints and (newest := frame.checkpoints[-1]).state == "IN_PROGRESS":
        return (
            f"Checkpoint <b>{newest.id}</b> is in progress: {newest.acknowledged} of {_counted(newest.total, 'task')} "
            "have copied their state when the barrier reached them."
        )
    latest = _complete(frame)
    interval = frame.settings.get("checkpoint_interval")
    follows = (
        ""
        if frame.state in OVER
        else (
            "No further one is taken automatically: the interval is <b>disabled</b>."
            if interval in (None, "disabled")
            else f"One follows every <b>{_escaped(interval)}</b>; the interval never changes results."
        )
    )
    if latest is None:
        return f"No checkpoint is complete. {follows}".rstrip()
    return (
        f"Checkpoint <b>{latest.id}</b> took <b>{wording.milliseconds(latest.duration_ms)}</b> and wrote "
        f"{wording.size(latest.size_bytes)}: the state of {_counted(latest.total, 'task')}"
        f"{_promise(latest, ' at one cut through the stream')}. {follows}"
    )


def failure(frame: Frame) -> str:
    """What a failure did, or would do."""
    latest = _complete(frame)
    if frame.state in ("FAILING", "RESTARTING"):
        back = "the beginning" if latest is None else f"checkpoint <b>{latest.id}</b>"
        return f"A task has failed. The tasks connected to it stop, and go back to {back}."
    if frame.state == "FAILED":
        sentence = (frame.failure or "").split("\n", 1)[0]
        return f"The job has failed: {_escaped(sentence)}"
    restarts = whole_of(frame.metrics, "numRestarts") or 0
    if restarts and frame.restore is not None:
        return (
            f"After {_counted(restarts, 'failure')} the tasks run again, from checkpoint <b>{frame.restore.id}</b> on"
            f"{_promise(latest, EXACT)}."
        )
    if restarts:
        return f"After {_counted(restarts, 'failure')} the tasks run again, from the beginning."
    if frame.state in OVER:
        return "No task has failed."
    back = "start from the beginning" if latest is None else f"go back to checkpoint <b>{latest.id}</b>"
    return f"No task has failed. If one does, the tasks connected to it {back}."


def state(frame: Frame) -> str:
    """Where state is, and how much of it."""
    latest = _complete(frame)
    kept = (
        "No checkpoint contains it." if latest is None
        else f"Checkpoint <b>{latest.id}</b> holds it in {wording.size(latest.full_size_bytes or latest.size_bytes)}."
    )  # fmt: skip
    return f"Each subtask keeps the state of its own keys and changes it with every record. {kept}"


def results(frame: Frame) -> str:
    """What is committed."""
    if not frame.tables:
        return "The job has no table sink: its results are in its own sinks."
    rows = ", ".join(f"<b>{wording.count(rows)}</b> in {_escaped(name)}" for name, rows in frame.tables.items())
    return f"Committed rows: {rows}. A row becomes visible with the checkpoint that covers it, and stays."


def lanes(frame: Frame) -> str:
    """What is the same in jobs side by side, and what is not."""
    return (
        "The same pipeline runs several times at the same time, with one line for each job on the same axes. Move a "
        "slider of one of them to see what it changes."
    )


def stepper(frame: Frame) -> str:
    """How a job on the stepping driver moves."""
    return "<b>N</b> takes the next step, <b>B</b> goes back. Circles are records, ▲ checkpoint barriers, W watermarks."


def _complete(frame: Frame) -> CheckpointFrame | None:
    known = (one for one in (*frame.earlier, *frame.checkpoints) if one.state == "COMPLETED")
    return max(known, key=lambda one: one.id, default=None)


def _promise(checkpoint: CheckpointFrame | None, exact: str) -> str:
    """What its mode does to results; `exact`: that of a mode in which each record counts once."""
    policy = None if checkpoint is None else policy_of(checkpoint.mode)
    if policy is None or policy.guarantee == "exactly-once":
        return exact
    return f". With {policy.name}, {policy.help}"


def _rate(frame: Frame, metric: str) -> str:
    return f"<b>{wording.short(number_of(frame.metrics, metric))}</b>"


def _counted(number: int, noun: str, several: str = "") -> str:
    return f"<b>{number}</b> {noun if number == 1 else several or f'{noun}s'}"


def _escaped(text: object) -> str:
    return wording.html_text(text)
