"""Finds the extension module with precompiled kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FILE = FOLDER / "ready.abi3.so"
CHOICE = "WORKBENCH_KERNELS"
"""Environment variable: ``numba`` compiles the kernels with numba, a level such as ``x86-64-v3`` selects that one."""
LEVELS = {
    "x86_64": {
        "x86-64": "",
        "x86-64-v3": "+avx2,+bmi,+bmi2,+fma",
        "x86-64-v4": "+avx2,+bmi,+bmi2,+fma,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    },
    "aarch64": {"generic": ""},
    "arm64": {"generic": ""},
}
"""By machine: LLVM's processor names for instruction-set levels, with the features, the fastest last."""

_PACKING = ("x86-64-v4",)


@dataclass(frozen=True, slots=True)
class Ready:
    """Precompiled kernels for this processor.

    Attributes:
        level: of instructions that they use.
        kernels: by name.
        packs: whether they pack values in one instruction.
    """

    level: str
    kernels: Mapping[str, Callable[..., Any]]
    packs: bool


def ready(choice: str | None = None) -> Ready | None:
    """The precompiled kernels of the fastest level that this processor supports; None if numba has to compile them.

    They are ignored if they were built from other sources, as after a change to a kernel in a checkout.

    Args:
        choice: ``numba``, or the name of a level; None: the value of WORKBENCH_KERNELS.
    """
    choice = os.environ.get(CHOICE, "") if choice is None else choice
    if choice == "numba":
        return None
    try:
        module = import_module("workbench.compiled.native.ready")
    except ImportError:  # not built, or for another processor or system
        return None
    levels: list[str] = module.levels()
    try:
        fits = stamp() == module.STAMP
    except OSError:  # the sources are missing, as in some bundled applications
        return None
    if not fits or (choice and choice not in levels):
        return None
    level = choice or levels[-1]
    return Ready(level, module.kernels(level), level in _PACKING)


def stamp() -> str:
    """The stamp of all sources of the kernels."""
    whole = sha256()
    package = FOLDER.parent
    rooms = ("folding", "keys", "machinery", "matching", "native")
    files = [file for room in rooms for file in sorted((package / room).iterdir())]
    for file in (*files, package.parent / "durations.py"):
        if file.suffix in (".py", ".c"):
            whole.update(file.name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()
