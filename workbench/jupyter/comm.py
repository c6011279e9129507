"""The kernel's side of the two comms: `register_comms` serves them, `unregister_comms` stops.

Why two comms: a front end sends comm messages over kernel subshells, so that a request is answered while a cell runs;
but ipykernel delivers a comm's incoming messages to the thread that last *sent* on it. Telemetry is pushed by a thread,
so it has a separate comm, and the control comm is answered only from within its own handler.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from workbench.api.job.job import Job
from workbench.drivers.contract.leaving import end_with_process
from workbench.errors import JobError, unknown
from workbench.front_ends import CONTROL_TARGET, TELEMETRY_TARGET
from workbench.jupyter.protocol import (
    JobSummary,
    Request,
    failure_reply,
    jobs_message,
    parse_request,
    request_id,
    success_reply,
    summarise,
)
from workbench.jupyter.showing.ahead import import_ahead
from workbench.jupyter.showing.docked import front_closed, front_opened

Jobs = Callable[[], Mapping[str, Job]]
"""Returns the jobs of this kernel by name."""

PUSH_PERIOD_S = 0.25
MAX_FRONT_ENDS = 8
"""A page that crashed never closes its comms. Polling for it would keep an idle kernel from being culled, so the number
of comms is bounded instead, and the newest are kept."""

_ACTIONS: dict[str, Callable[[Job, Request], object]] = {
    "tune": lambda job, request: job.tune(**cast("Any", request.settings)),
    "pause": lambda job, request: job.pause(),
    "resume": lambda job, request: job.resume(),
    "checkpoint": lambda job, request: job.checkpoint(),
    "savepoint": lambda job, request: job.savepoint(request.name),
    "stop": lambda job, request: job.stop(wait=False),  # no page waits for it
    "fail": lambda job, request: job.fail(task=request.task),
}


class Comm(Protocol):
    """The part of ipykernel's comm that is used."""

    comm_id: str
    handle_msg: Callable[[dict[str, Any]], None]

    def send(self, data: dict[str, Any]) -> None: ...
    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None: ...
    def close(self) -> None: ...


def register_comms(kernel: Any, jobs: Jobs) -> None:
    """Serve a kernel's jobs to front ends, until `unregister_comms`; a second call for the same kernel replaces the
    first.

    Args:
        kernel: an ipykernel kernel; one without a comm manager (IPython in a terminal) is left alone.
        jobs: returns the jobs by name; called from the threads of the comms.
    """
    unregister_comms(kernel)
    if getattr(kernel, "comm_manager", None) is not None:
        _served[kernel] = _Service(kernel.comm_manager, jobs)


def unregister_comms(kernel: Any) -> None:
    """Close the comms of a kernel and stop the thread that feeds them; does nothing if they are not served."""
    service = _served.pop(kernel, None) if kernel is not None else None
    if service is not None:
        service.stop()


def answer(message: object, jobs: Jobs) -> dict[str, Any]:
    """The reply to one message of the control comm; an error of any kind becomes a reply too.

    Example:
        >>> reply = answer({"version": 1, "id": "7", "request": "list"}, dict)
        >>> reply["ok"], reply["jobs"]
        (True, [])
    """
    try:
        request = parse_request(message)
        known = jobs()
        if request.job:
            if request.job not in known:
                raise JobError(unknown("job", request.job, known))
            _ACTIONS[request.verb](known[request.job], request)
        return success_reply(request.id, _summaries(jobs))
    except Exception as error:  # noqa: BLE001
        return failure_reply(request_id(message), error)


class TelemetryPump:
    """The one thread that sends telemetry of the jobs to every view; it lives while there is a view.

    It samples the jobs once per period, and when a view is added or removed; a view receives only what has changed
    since its last message.

    Args:
        jobs: returns the jobs by name.
        period_s: seconds between two samples of the jobs.
    """

    def __init__(self, jobs: Jobs, *, period_s: float = PUSH_PERIOD_S) -> None:
        self._jobs = jobs
        self._period_s = period_s
        self._lock = threading.Lock()
        self._views: dict[str, _View] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def add(self, comm: Comm) -> None:
        """Feed a comm; the first message is sent at once. If there are too many, the oldest is closed."""
        with self._lock:
            self._views[comm.comm_id] = _View(comm)
            oldest = self._views.pop(next(iter(self._views))) if len(self._views) > MAX_FRONT_ENDS else None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="workbench-telemetry", daemon=True)
                self._thread.start()
                end_with_process(self)
        self._wake.set()
        if oldest is not None:
            _close(oldest.comm)

    def remove(self, comm_id: str) -> None:
        """Stop feeding a comm that was closed."""
        with self._lock:
            self._views.pop(comm_id, None)
        self._wake.set()

    def stop(self) -> None:
        """Close every view's comm and wait until the thread has ended."""
        with self._lock:
            views, self._views, thread = tuple(self._views.values()), {}, self._thread
        self._wake.set()
        for view in views:
            _close(view.comm)
        if thread is not None:
            thread.join(timeout=5.0)

    def leave(self) -> list[threading.Thread]:
        """The process ends: feed nothing more, since a kernel's socket takes messages of one thread only by then."""
        with self._lock:
            self._views, thread = {}, self._thread
        self._wake.set()
        return [] if thread is None else [thread]

    @property
    def running(self) -> bool:
        """Whether the thread is running."""
        with self._lock:
            return self._thread is not None

    def _run(self) -> None:
        while views := self._views_or_end():
            try:
                summaries = _summaries(self._jobs)
            except Exception:  # noqa: BLE001 - a look that failed must not end the thread: every view would fall silent
                summaries = None
            for view in views:
                if summaries is not None and not view.tell(summaries):
                    self.remove(view.comm.comm_id)
            self._wake.wait(self._period_s)
            self._wake.clear()

    def _views_or_end(self) -> tuple[_View, ...]:
        """The views to feed now; if there is none, the thread ends under the lock, so that `add` starts another."""
        with self._lock:
            if not self._views:
                self._thread = None
            return tuple(self._views.values())


class _View:
    """One open telemetry comm and what was last sent to it."""

    __slots__ = ("_told", "comm")

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self._told: tuple[JobSummary, ...] | None = None

    def tell(self, summaries: tuple[JobSummary, ...]) -> bool:
        """Send what is new; False if the comm cannot send it."""
        if summaries == self._told:
            return True
        try:
            self.comm.send(jobs_message(summaries))
        except Exception:  # noqa: BLE001 - whatever is wrong with one view, the others must still be fed
            return False
        self._told = summaries
        return True


class _Service:
    """Both comm targets of one kernel, and the control comms that are open."""

    def __init__(self, comm_manager: Any, jobs: Jobs) -> None:
        self._comm_manager = comm_manager
        self._jobs = jobs
        self._pump = TelemetryPump(jobs)
        self._controls: dict[str, Comm] = {}
        comm_manager.register_target(CONTROL_TARGET, self._open_control)
        comm_manager.register_target(TELEMETRY_TARGET, self._open_telemetry)

    def stop(self) -> None:
        self._comm_manager.unregister_target(CONTROL_TARGET, self._open_control)
        self._comm_manager.unregister_target(TELEMETRY_TARGET, self._open_telemetry)
        self._pump.stop()
        for comm in tuple(self._controls.values()):
            self._forget_control(comm.comm_id)
            _close(comm)

    def _open_control(self, comm: Comm, message: dict[str, Any]) -> None:
        def answer_message(message: dict[str, Any]) -> None:
            comm.send(answer(message["content"].get("data"), self._jobs))

        # In place of on_msg(), which would run IPython's pre_execute and post_execute hooks around each message: in the
        # middle of a running cell these would, for example, flush the cell's half-drawn figures.
        comm.handle_msg = answer_message
        comm.on_close(lambda message: self._forget_control(comm.comm_id))
        self._controls[comm.comm_id] = comm
        front_opened(comm.comm_id, message["content"].get("data"))
        import_ahead()
        if len(self._controls) > MAX_FRONT_ENDS:
            oldest = self._controls[next(iter(self._controls))]
            self._forget_control(oldest.comm_id)
            _close(oldest)

    def _forget_control(self, comm_id: str) -> None:
        self._controls.pop(comm_id, None)
        front_closed(comm_id)

    def _open_telemetry(self, comm: Comm, message: dict[str, Any]) -> None:
        comm.on_close(lambda message: self._pump.remove(comm.comm_id))
        self._pump.add(comm)


_served: dict[Any, _Service] = {}


def _close(comm: Comm) -> None:
    with contextlib.suppress(Exception):  # whatever the error, the comm is gone
        comm.close()


def _summaries(jobs: Jobs) -> tuple[JobSummary, ...]:
    return tuple(summarise(name, job) for name, job in jobs().items())
