"""Loading and unloading: everything that ``%load_ext workbench`` changes in the kernel, and how it is undone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.display import display

from workbench.api.job.registry import jobs
from workbench.api.kept.job_record import MAGICS, remember_directories
from workbench.api.running.found_jobs import FoundJobs, found_jobs
from workbench.errors import WorkbenchError
from workbench.front_ends import show_failures_below
from workbench.jupyter.cell import BodySyntaxError
from workbench.jupyter.comm import register_comms, unregister_comms
from workbench.jupyter.completion import completer_of_streams
from workbench.jupyter.failures import show_failure
from workbench.jupyter.magics import StreamMagics
from workbench.jupyter.queries.completion import completer_of_queries
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.showing.docked import expect_front
from workbench.jupyter.shutdown import Caretaker

FOLDER = ".workbench/jobs"
"""The file in the working directory that lists the checkpoint directories of its jobs."""
SWITCH_INTERVAL_S = 0.0005
"""How long a thread may hold the interpreter's lock while another one waits for it; Python's default is ten times as
long.

A cell acquires the lock dozens of times, and so do the slots of a job. Beside a job with buffers of eight
records on two cores, ``1+1`` took 65 ms with the default and takes 25 ms with this value, and the job itself ran twice
as fast.
"""


@dataclass(slots=True)
class Loaded:
    """The state before loading, and what was added."""

    switch_interval_s: float
    exceptions: Any
    traceback: Any
    caretaker: Caretaker
    completers: tuple[Any, ...]


_loaded: dict[int, Loaded] = {}
"""By the identity of the shell: a process has one, tests have several."""


def _jobs() -> dict[str, Any]:
    return dict(jobs())


def serve_jobs(kernel: Any) -> None:
    """Serve this process's jobs to the front ends of its kernel."""
    register_comms(kernel, _jobs)


def load_ipython_extension(ipython: Any) -> None:
    """Add the magics, their completion, the comms and the one-line errors to `ipython`; a second call does nothing."""
    if id(ipython) in _loaded:
        return
    ipython.register_magics(StreamMagics)
    show_failures_below(ipython)
    completers = (completer_of_streams(ipython), completer_of_queries(ipython))
    ipython.Completer.custom_matchers.extend(completers)
    loaded = Loaded(sys.getswitchinterval(), ipython.custom_exceptions, ipython.CustomTB, Caretaker(_jobs), completers)
    ipython.set_custom_exc((WorkbenchError, BodySyntaxError, TypeError), show_failure)
    sys.setswitchinterval(min(SWITCH_INTERVAL_S, loaded.switch_interval_s))
    if hasattr(ipython, "kernel"):
        serve_jobs(ipython.kernel)
        _after_this_cell(ipython, expect_front)
    _loaded[id(ipython)] = loaded
    remember_directories(Path(FOLDER))
    _offer()


def _after_this_cell(ipython: Any, then: Callable[[], None]) -> None:
    def ended(_result: object) -> None:
        ipython.events.unregister("post_run_cell", ended)
        then()

    ipython.events.register("post_run_cell", ended)


def _offer() -> None:
    """List the jobs that earlier kernels left in this working directory, and those that are damaged."""
    found = found_jobs()
    resumable = FoundJobs(job for job in found if job.resumable)
    if resumable:
        what = "This job" if len(resumable) == 1 else "These jobs"
        names = "resume" if len(resumable) == 1 else "resume NAME"
        display(Advice(f"{what} can be continued with %stream {names}:\n{resumable!r}"))
    if damaged := FoundJobs(job for job in found if job.problem is not None):
        what = "This job" if len(damaged) == 1 else "These jobs"
        display(Advice(f"{what} cannot be continued as {'it is' if len(damaged) == 1 else 'they are'}:\n{damaged!r}"))


def unload_ipython_extension(ipython: Any) -> None:
    """Undo everything that loading changed; running jobs continue, and ``wb.jobs()`` still returns their handles."""
    loaded = _loaded.pop(id(ipython), None)
    if loaded is None:
        return
    if hasattr(ipython, "kernel"):
        unregister_comms(ipython.kernel)
    for magics in (ipython.magics_manager.magics["line"], ipython.magics_manager.magics["cell"]):
        for name in MAGICS:
            magics.pop(name, None)
    for completer in loaded.completers:
        ipython.Completer.custom_matchers.remove(completer)
    ipython.custom_exceptions, ipython.CustomTB = loaded.exceptions, loaded.traceback
    sys.setswitchinterval(loaded.switch_interval_s)
    loaded.caretaker.dismiss()
    if not _loaded:
        remember_directories(None)
