"""The first door of a Jupyter kernel: a front end finds the workbench there as soon as it is imported.

What answers is imported when a front end asks. A process that is no kernel pays nothing for it.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any

CONTROL_TARGET = "workbench:control"
TELEMETRY_TARGET = "workbench:telemetry"


def admit_front_ends() -> None:
    """Let front ends of this process's kernel open their comms; does nothing where there is no kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None or getattr(kernel, "comm_manager", None) is None:
        return
    for target in (CONTROL_TARGET, TELEMETRY_TARGET):
        kernel.comm_manager.register_target(target, partial(_answer, kernel, target))


def _answer(kernel: Any, target: str, comm: Any, message: Any) -> None:
    """Serve the kernel's jobs from now on, which takes the place of this door, and hand the comm over."""
    import_module("workbench.jupyter").serve_jobs(kernel)
    kernel.comm_manager.targets[target](comm, message)
