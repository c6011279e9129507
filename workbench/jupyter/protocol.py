"""The messages between the kernel and a front end.

There are two comms. On ``workbench:control`` the front end sends requests and the kernel answers each once; on
``workbench:telemetry`` the kernel sends the state of its jobs. Every message is a JSON object that carries
``version``. ``tests/support/golden/comm-protocol.json`` holds an example of each, and the tests of both sides read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from workbench.api.job.job import Job
from workbench.dashboard.contract.recent_failure import failure_now
from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import WorkbenchError, sentence_of, unknown
from workbench.jupyter.showing.docked import is_docked
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.runtime.settings.table import OF_TUNE
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import event_time_lag

PROTOCOL_VERSION = 1

VERBS: dict[str, tuple[str, ...]] = {
    "list": (),
    "tune": ("job", "settings"),
    "pause": ("job",),
    "resume": ("job",),
    "checkpoint": ("job",),
    "savepoint": ("job", "name"),
    "stop": ("job",),
    "fail": ("job", "task"),
}
"""The requests, and the fields that each requires."""


class ProtocolError(WorkbenchError):
    """A message that this side of the protocol does not understand."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the front end.

    Attributes:
        id: chosen by the front end; the reply repeats it.
        verb: one of `VERBS`.
        job: name of the job; empty for ``list``.
        settings: for ``tune``, values by setting name.
        task: for ``fail``, such as ``"aggregate[1]"``.
        name: for ``savepoint``.
    """

    id: str
    verb: str
    job: str = ""
    settings: Mapping[str, str | int | float | None] = field(default_factory=dict)
    task: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One job in one line, as a list of jobs shows it; metrics have Flink's names, None until they are known.

    Attributes:
        state: Flink's job state, or ``"UNKNOWN"`` if the job could not be read (`failure` says why).
        paused: its sources read nothing until it is resumed.
        started_us: distinguishes two runs of the same name.
        runningTime: milliseconds.
        numLateRecordsDropped: of all its operators.
        eventTimeLag: microseconds; as in the head of its dashboard.
        backpressure: one sentence.
        settings: the current values, by name.
        failure: the message of the failure that ended it, or that it has recovered from a moment ago.
        dock: the cell that started it asks for its dashboard beside the notebook.
        stepped: whether it advances only when a user steps it.
        tasks: their names, by which each can be failed.
    """

    name: str
    state: str
    paused: bool = False
    started_us: int | None = None
    runningTime: float | None = None
    numRecordsInPerSecond: float | None = None
    numRecordsOutPerSecond: float | None = None
    numLateRecordsDropped: int | None = None
    numRestarts: int | None = None
    lastCompletedCheckpointId: int | None = None
    eventTimeLag: int | None = None
    backpressure: str = ""
    settings: Mapping[str, str | int | None] = field(default_factory=dict)
    failure: str | None = None
    dock: bool = False
    stepped: bool = False
    tasks: list[str] = field(default_factory=list)


def parse_request(message: object) -> Request:
    """The request in a message from the front end.

    Raises:
        ProtocolError: another version, an unknown verb, or a field that is missing or of the wrong type.

    Example:
        >>> parse_request({"version": 1, "id": "7", "request": "pause", "job": "delays"})
        Request(id='7', verb='pause', job='delays', settings={}, task='', name='')
    """
    if not isinstance(message, dict):
        raise ProtocolError(f"a request is a JSON object, not {type(message).__name__}")
    if message.get("version") != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the front end speaks version {message.get('version')!r} of the workbench protocol, this kernel version"
            f" {PROTOCOL_VERSION}: install matching streaming-workbench and workbench-jupyterlab, then reload the page"
        )
    verb = message.get("request")
    if not isinstance(verb, str) or verb not in VERBS:
        raise ProtocolError(unknown("request", verb, VERBS))
    told = _text(message, "id")
    fields: dict[str, Any] = {
        name: _settings(message) if name == "settings" else _text(message, name) for name in VERBS[verb]
    }
    return Request(told, verb, **fields)


def request_id(message: object) -> str:
    """The id to answer to, even if the rest of the message is invalid; empty if there is none."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) else ""


def summarise(name: str, job: Job) -> JobSummary:
    """One job in one line, from its newest frame.

    A job that cannot be read becomes a line that says so, so that it does not hide the others.
    """
    try:
        told = job.status()
        if job.engine == "spark":
            return _summary_on_spark(name, job.state, told)
        summary = _summary_of_frame(name, job.state, bool(told.get("paused")), job.recorder.latest())
        return replace(summary, stepped=not job.live)
    except Exception as error:  # noqa: BLE001
        return JobSummary(name=name, state="UNKNOWN", failure=f"this job cannot be read: {sentence_of(error)}")


def jobs_message(jobs: Iterable[JobSummary]) -> dict[str, Any]:
    """What the telemetry comm carries: all jobs of this kernel, in the order in which they were started, and the views
    that each of them has, and the settings that have usual values.
    """
    views = [{"name": view.name, "title": view.title, "help": view.help} for view in VIEWS.values()]
    usual = ((name, each) for name, each in {**OF_TUNE, **ARCHITECTURE_KNOBS}.items() if each.steps)
    settings = [{"name": name, "title": each.title, "values": list(each.choices)} for name, each in usual]
    return {"version": PROTOCOL_VERSION, "jobs": [asdict(job) for job in jobs], "settings": settings, "views": views}


def success_reply(request: str, jobs: Iterable[JobSummary]) -> dict[str, Any]:
    """The answer to a completed request; the jobs are in their state after it."""
    return {"id": request, "ok": True, **jobs_message(jobs)}


def failure_reply(request: str, error: BaseException) -> dict[str, Any]:
    """The answer to a rejected request; ``error`` is one sentence for the user."""
    return {"id": request, "ok": False, "version": PROTOCOL_VERSION, "error": sentence_of(error)}


def _summary_on_spark(name: str, state: str, told: Mapping[str, Any]) -> JobSummary:
    """What Spark measures; the rest is not known."""
    return JobSummary(
        name=name,
        state=state,
        paused=bool(told["paused"]),
        numRecordsInPerSecond=_number(told["rows_per_second"]),
        numLateRecordsDropped=_whole(told["late_records"]),
        lastCompletedCheckpointId=told["batches"] - 1 if told["batches"] else None,
        failure=told["failure"],
    )


def _summary_of_frame(name: str, state: str, paused: bool, frame: Frame | None) -> JobSummary:
    if frame is None:
        return JobSummary(name=name, state=state, paused=paused, dock=is_docked(name))
    late = [_number(vertex.metrics.get("numLateRecordsDropped")) or 0 for vertex in frame.vertices]
    return JobSummary(
        name=name,
        state=state,
        paused=paused,
        started_us=frame.started_us,
        runningTime=_number(frame.metrics.get("runningTime")),
        numRecordsInPerSecond=_number(frame.metrics.get("numRecordsInPerSecond")),
        numRecordsOutPerSecond=_number(frame.metrics.get("numRecordsOutPerSecond")),
        numLateRecordsDropped=int(sum(late)),
        numRestarts=_whole(frame.metrics.get("numRestarts")),
        lastCompletedCheckpointId=_whole(frame.metrics.get("lastCompletedCheckpointId")),
        eventTimeLag=event_time_lag(frame),
        backpressure=frame.backpressure,
        settings={**frame.settings, **frame.knobs},
        failure=failure_now(frame),
        dock=is_docked(name),
        tasks=[task.name for task in frame.tasks],
    )


def _number(value: object) -> float | None:
    """A number that JSON can carry: no infinity and no NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _text(message: dict[str, Any], key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise ProtocolError(f"the {message['request']} request needs {key!r} as text, not {value!r}")
    return value


def _settings(message: dict[str, Any]) -> dict[str, str | int | float | None]:
    value = message.get("settings")
    if not isinstance(value, dict) or not value:
        raise ProtocolError(f"the tune request needs 'settings' as an object such as {{'speed': 'max'}}, not {value!r}")
    for name, setting in value.items():
        if setting is not None and not isinstance(setting, str | int | float):
            raise ProtocolError(f"setting {name!r} is {setting!r}: send text, a number or null")
    return value
