"""Compiles all kernels for one level of instructions into an object file; run as a program, once for each level.

It is a separate process, because the functions that kernels call are compiled for the processor that is set when numba
is imported (NUMBA_CPU_NAME).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from llvmlite.binding import Linkage
from numba import types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod

from workbench.compiled.machinery.compiled import KERNELS, Kernel
from workbench.compiled.machinery.modules import MODULES
from workbench.compiled.native.calls import Signature, Value, symbol


@global_compiler_lock  # type: ignore[untyped-decorator]
def compile_level(level: str, file: Path) -> list[Signature]:
    """Write the object file; returns the signatures of its kernels.

    Args:
        level: LLVM's name of the processor, such as ``x86-64-v3``.
        file: where to write it.
    """
    typing, own = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    own.refresh()
    context = own.with_aot_codegen("kernels", cpu_name=level)
    library = context.codegen().create_library("kernels")
    library.add_ir_module(nrtdynmod.create_nrt_module(context)[0])
    flags = Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.nrt = True
    signatures, exported = [], set()
    for module in MODULES:
        import_module(module)
    for kernel in KERNELS.values():
        compiled = compile_extra(
            typing, context, kernel.function, kernel.signature, None, flags, locals={}, library=library
        )
        function = compiled.library.get_function(compiled.fndesc.llvm_func_name)
        function.name = symbol(kernel.name, level)
        exported.add(function.name)
        signatures.append(_signature(kernel, compiled.signature.return_type))
    library.finalize()
    for function in library.get_defined_functions():
        # Symbols that several levels define must not be merged: each level calls its own.
        if function.name in exported:
            function.visibility = "hidden"
        else:
            function.visibility = "default"
            function.linkage = Linkage.internal
    file.write_bytes(library.emit_native_object())
    return signatures


def _signature(kernel: Kernel, returned: Any) -> Signature:
    parts = tuple(returned.types) if isinstance(returned, types.BaseTuple) else (returned,)
    returns = () if isinstance(returned, types.NoneType) else tuple(_value(part) for part in parts)
    return Signature(kernel.name, tuple(_value(part) for part in kernel.signature), returns, kernel.few)


def _value(kind: Any) -> Value:
    if isinstance(kind, types.Array):
        element = _value(kind.dtype)
        return Value(element.kind, element.width, kind.ndim, filled=kind.mutable)
    if isinstance(kind, types.Boolean):
        return Value("b", 1)
    letter = "f" if isinstance(kind, types.Float) else "i" if kind.signed else "u"
    return Value(letter, kind.bitwidth // 8)


if __name__ == "__main__":
    print(json.dumps([asdict(own) for own in compile_level(sys.argv[1], Path(sys.argv[2]))]))  # noqa: T201
