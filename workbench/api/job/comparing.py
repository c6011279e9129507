"""Comparison of two stepping jobs: what differs between two runs that continued from the same moment."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.api.job.job import Job
from workbench.api.pictures.scene_view import Comparison
from workbench.arguments import as_given
from workbench.durations import format_instant
from workbench.errors import JobError
from workbench.telemetry.scene import Scene


def compare(left: Job, right: Job) -> Comparison:
    """Show two stepping jobs side by side, with a table of what differs.

    Source: E10, what-if: two versions from one moment.

    Args:
        left, right: the jobs, for example one and its `Stepper.fork`.

    Raises:
        JobError: one of them runs live, or is not a job.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
        >>> job = numbers.sink_to(wb.TableSink("n")).run("left", driver="stepping", buffer_size=1)
        >>> other = job.stepper.fork(name="right", buffer_timeout="5ms")
        >>> print(wb.compare(job, other))
        left | right
        setting buffer_timeout: 100ms | 5ms
        steps: 0 | 1
        >>> job.cancel(); other.cancel()
    """
    for job in (left, right):
        if not isinstance(job, Job):
            raise JobError(
                f"compare got {as_given(job)}, which is not a job: pass two jobs, such as wb.job('a'), wb.job('b')"
            )
    one, other = left.stepper.scene(), right.stepper.scene()
    settings = [_settings(left), _settings(right)]
    names = sorted({*settings[0], *settings[1]})
    pairs = [(f"setting {name}", settings[0].get(name, "-"), settings[1].get(name, "-")) for name in names]
    facts = [dict(_facts(one.scene)), dict(_facts(other.scene))]
    pairs += [(what, facts[0].get(what, "-"), facts[1].get(what, "-")) for what in {**facts[0], **facts[1]}]
    return Comparison(one, other, [pair for pair in pairs if pair[1] != pair[2]])


def _settings(job: Job) -> dict[str, str]:
    frame = job.recorder.latest()
    return {} if frame is None else {name: str(value) for name, value in frame.settings.items()}


def _facts(scene: Scene) -> Iterator[tuple[str, str]]:
    yield "steps", str(scene.step)
    yield "state", scene.state
    yield "time", format_instant(scene.time_us)
    yield "last complete checkpoint", str(scene.completed)
    for name, rows in scene.tables:
        yield f"table {name}", f"{rows} rows"
    for task in scene.tasks:
        for what, value in task.state:
            yield f"{task.name} {what}", value
        yield f"{task.name} event time", format_instant(task.watermark_us)
