"""Registers the comm target by which front ends find the workbench in a Jupyter kernel, as soon as it is imported.

The code that answers is imported on the first request. A process that is not a kernel pays nothing for it.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any

CONTROL_TARGET = "workbench:control"
TELEMETRY_TARGET = "workbench:telemetry"


def admit_front_ends() -> None:
    """Let front ends of this process's kernel open their comms; does nothing without a kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None or getattr(kernel, "comm_manager", None) is None:
        return
    for target in (CONTROL_TARGET, TELEMETRY_TARGET):
        kernel.comm_manager.register_target(target, partial(_answer, kernel, target))


def _answer(kernel: Any, target: str, comm: Any, message: Any) -> None:
    """Serve the kernel's jobs from now on, which replaces this comm target, and pass the comm on."""
    import_module("workbench.jupyter").serve_jobs(kernel)
    kernel.comm_manager.targets[target](comm, message)
