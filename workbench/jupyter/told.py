"""What a kernel tells a page of its jobs: the content of the messages of `workbench.wire`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from workbench.api.job.job import Job
from workbench.dashboard.contract.recent_failure import failure_now
from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import sentence_of
from workbench.jupyter.showing.docked import is_docked
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.runtime.settings.table import OF_TUNE
from workbench.wire.head import Head
from workbench.wire.messages import FRAME_MAX, Choices, Hello, View
from workbench.wire.sentences import quoted
from workbench.wire.values import plain, readable, whole

Jobs = Callable[[], Mapping[str, Job]]
"""Returns the jobs of this kernel by name."""


def hello_of(jobs: Mapping[str, Job]) -> Hello:
    """The jobs, in the order of their start, the views that each of them has, and the settings with usual values."""
    usual = ((name, each) for name, each in {**OF_TUNE, **ARCHITECTURE_KNOBS}.items() if each.steps)
    return Hello(
        jobs=tuple(jobs),
        docks=tuple(filter(is_docked, jobs)),
        views=tuple(View(view.name, view.title, view.help) for view in VIEWS.values()),
        settings=tuple(Choices(name, each.title, tuple(each.choices)) for name, each in usual),
    )


def told_head(job: Job) -> Head:
    """A job at a glance, from its newest frame."""
    if job.engine == "spark":
        return _head_on_spark(job.state, job.status())
    frame = job.recorder.latest()
    head = job._run.head()
    return head if frame is None else replace(head, failure=quoted(failure_now(frame)))


def sent_head(job: Job) -> dict[str, Any]:
    """The same as a message carries it.

    A job that cannot be read, or has what no page reads, has a head that says so, so that it does not hide the others.
    """
    try:
        sent: dict[str, Any] = plain(told_head(job))
        if len(json.dumps(sent)) > FRAME_MAX:
            raise ValueError("what there is to tell of it has more than 8 MB")
    except Exception as error:  # noqa: BLE001
        sent = plain(Head(state="UNKNOWN", failure=quoted(f"this job cannot be read: {sentence_of(error)}")))
    return sent


def _head_on_spark(state: str, status: Mapping[str, Any]) -> Head:
    """What Spark measures; the rest is not known."""
    batches = whole(status["batches"])
    return Head(
        state=state,
        paused=bool(status["paused"]),
        read_per_s=readable(status["rows_per_second"]),
        late=whole(status["late_records"]),
        checkpoint=batches - 1 if batches else None,
        failure=quoted(status["failure"]),
    )
