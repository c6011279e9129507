"""What the process is in which the workbench is imported: a kernel with front ends, a script, or something else.

In a Jupyter kernel this registers the comm target by which front ends find the workbench, as soon as it is imported.
The code that answers is imported on the first request. A process that is not a kernel pays nothing for it.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

CONTROL_TARGET = "workbench:control"
TELEMETRY_TARGET = "workbench:telemetry"

_PROGRAM = sys.modules.get("__main__")
"""The program of this process, before anything that runs other programs in it."""


def admit_front_ends() -> None:
    """Let front ends of this process's kernel open their comms; does nothing without a kernel. In a shell of IPython,
    failures of jobs are shown below cells."""
    found = shell()
    if found is not None:
        show_failures_below(found)
    kernel = getattr(found, "kernel", None)
    if kernel is None or getattr(kernel, "comm_manager", None) is None:
        return
    for target in (CONTROL_TARGET, TELEMETRY_TARGET):
        kernel.comm_manager.register_target(target, partial(_answer, kernel, target))


def show_failures_below(shell: Any) -> None:
    """Show failures of jobs below the cell that runs next, in a shell of IPython, and not as lines of a log on stderr;
    a program that configures ``logging`` gets these nevertheless."""
    log = logging.getLogger("workbench")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    shell.events.register("post_run_cell", _after_cell)  # once


def _after_cell(_result: object = None) -> None:
    jobs = getattr(sys.modules.get("workbench.api.job.registry"), "jobs", dict)  # a thread may be importing the module
    if any(job.state == "FAILED" for job in jobs().values()):
        import_module("workbench.jupyter.showing.failed_jobs").show_failed()


def shell() -> Any:
    """The shell of IPython, in a notebook's kernel or a terminal; None: there is none."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def is_script() -> bool:
    """Whether the process runs a program of the user's from its first line to its last, as ``python job.py`` does.

    Not a shell of Python or IPython, a test runner, a server or a command that is installed, nor a worker of
    ``multiprocessing``.
    """
    if sys.platform == "emscripten" or shell() is not None or hasattr(sys, "ps1") or sys.flags.interactive:
        return False
    if getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)() is not None:
        return False
    import sysconfig  # only the first job of a process asks

    if _PROGRAM is None or "pytest" in sys.modules:
        return False
    file = getattr(_PROGRAM, "__file__", None)
    if not file:
        return True  # python -c, or a program from standard input
    folders = [Path(sysconfig.get_path(name)) for name in ("scripts", "stdlib", "purelib", "platlib")]
    folders.append(Path(__file__).parent)
    return not any(Path(file).resolve().is_relative_to(folder.resolve()) for folder in folders)


def _answer(kernel: Any, target: str, comm: Any, message: Any) -> None:
    """Serve the kernel's jobs from now on, which replaces this comm target, and pass the comm on."""
    import_module("workbench.jupyter").serve_jobs(kernel)
    kernel.comm_manager.targets[target](comm, message)
