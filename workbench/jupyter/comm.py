"""The kernel's side of the two comms: `register_comms` serves them, `unregister_comms` stops.

Why two comms: a front end sends comm messages over kernel subshells, so that a request is answered while a cell runs;
but ipykernel delivers a comm's incoming messages to the thread that last *sent* on it. Telemetry is pushed by a thread,
so it has a separate comm, and the control comm is answered only from within its own handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from workbench.api.job.job import Job
from workbench.errors import JobError, sentence_of, unknown
from workbench.front_ends import CONTROL_TARGET, TELEMETRY_TARGET
from workbench.jupyter.pump import MAX_FRONT_ENDS, Comm, FramePump, close
from workbench.jupyter.showing.ahead import import_ahead
from workbench.jupyter.showing.docked import front_closed, front_opened
from workbench.jupyter.told import Jobs, hello_of
from workbench.wire.messages import Hello, Reply, WireError, act_of, id_of, message, open_of, see_of
from workbench.wire.values import plain

_ACTS: Mapping[str, Callable[[Job, Mapping[str, Any]], object]] = {
    "tune": lambda job, args: job.tune(**args["settings"]),
    "pause": lambda job, args: job.pause(),
    "resume": lambda job, args: job.resume(),
    "checkpoint": lambda job, args: job.checkpoint(),
    "savepoint": lambda job, args: job.savepoint(args["name"]),
    "stop": lambda job, args: job.stop(wait=False),  # no page waits for it
    "fail": lambda job, args: job.fail(task=args["task"]),
}


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


def answer(found: object, jobs: Jobs) -> dict[str, Any]:
    """The reply to one message of the control comm; an error of any kind becomes a reply too.

    Example:
        >>> reply = answer({"v": 1, "type": "act", "id": "7", "name": "hello"}, dict)
        >>> reply["ok"], reply["data"]["jobs"]
        (True, [])
    """
    try:
        act = act_of(found)
        known = jobs()
        if act.name == "hello":
            return _reply(act.id, data=hello_of(known))
        if act.job not in known:
            raise JobError(unknown("job", act.job, known))
        _ACTS[act.name](known[act.job], act.args)
        return _reply(act.id)
    except Exception as error:  # noqa: BLE001
        return _reply(id_of(found), text=sentence_of(error))


def _reply(id: str, text: str = "", data: Hello | None = None) -> dict[str, Any]:
    return message("reply", plain(Reply(id, not text, text, data)))


class _Service:
    """Both comm targets of one kernel, and the control comms that are open."""

    def __init__(self, comm_manager: Any, jobs: Jobs) -> None:
        self._comm_manager = comm_manager
        self._jobs = jobs
        self._pump = FramePump(jobs)
        self._controls: dict[str, Comm] = {}
        comm_manager.register_target(CONTROL_TARGET, self._open_control)
        comm_manager.register_target(TELEMETRY_TARGET, self._open_telemetry)

    def stop(self) -> None:
        self._comm_manager.unregister_target(CONTROL_TARGET, self._open_control)
        self._comm_manager.unregister_target(TELEMETRY_TARGET, self._open_telemetry)
        self._pump.stop()
        for comm in tuple(self._controls.values()):
            self._forget_control(comm.comm_id)
            close(comm)

    def _open_control(self, comm: Comm, message: dict[str, Any]) -> None:
        def answer_message(message: dict[str, Any]) -> None:
            data = message["content"].get("data")
            if isinstance(data, dict) and data.get("type") == "see":
                self._see(data)
                return
            comm.send(answer(data, self._jobs))
            self._pump.hurry()

        # In place of on_msg(), which would run IPython's pre_execute and post_execute hooks around each message: in the
        # middle of a running cell these would, for example, flush the cell's half-drawn figures.
        comm.handle_msg = answer_message
        comm.on_close(lambda message: self._forget_control(comm.comm_id))
        self._controls[comm.comm_id] = comm
        with suppress(WireError):  # the answer to its first act says so
            if open_of(message["content"].get("data")).docks:
                front_opened(comm.comm_id)
        import_ahead()
        if len(self._controls) > MAX_FRONT_ENDS:
            oldest = self._controls[next(iter(self._controls))]
            self._forget_control(oldest.comm_id)
            close(oldest)

    def _see(self, data: object) -> None:
        with suppress(WireError):  # a page of another version is told so when it opens the comm, or acts
            see = see_of(data)
            self._pump.see(see.comm, see)

    def _forget_control(self, comm_id: str) -> None:
        self._controls.pop(comm_id, None)
        front_closed(comm_id)

    def _open_telemetry(self, comm: Comm, message: dict[str, Any]) -> None:
        comm.on_close(lambda message: self._pump.remove(comm.comm_id))
        try:
            see = see_of(message["content"].get("data"))
        except WireError:  # the control comm has told a page of another version so
            close(comm)
            return
        self._pump.add(comm, see)


_served: dict[Any, _Service] = {}
