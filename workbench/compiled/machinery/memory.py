"""Reads and writes at an address, so that one kernel can process columns of any number and type.

The cache on disk does not track this file: if you change it, also change the kernels that use it.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _loading(kind: Any) -> Any:
    def load(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], context.get_value_type(kind).as_pointer()))

        return kind(types.int64), generate

    return intrinsic(load)


def _storing(kind: Any) -> Any:
    def store(context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[1], builder.inttoptr(args[0], context.get_value_type(kind).as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, kind), generate

    return intrinsic(store)


load_int = _loading(types.int64)
load_8, store_8 = _loading(types.uint8), _storing(types.uint8)
load_16, store_16 = _loading(types.uint16), _storing(types.uint16)
load_32, store_32 = _loading(types.uint32), _storing(types.uint32)
load_64, store_64 = _loading(types.uint64), _storing(types.uint64)


@intrinsic  # type: ignore[untyped-decorator]
def pointer(context: Any, address: Any) -> Any:
    """An address as a pointer, for `carray`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate
